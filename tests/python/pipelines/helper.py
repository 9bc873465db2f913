def broken(x):
    raise ValueError("a helper's problem")
