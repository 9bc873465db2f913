"""The examples in Python: two steps on two ranks, with the losses of C++ on the same job; and the tutorial's code."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

REDCO = os.environ["REDCO"]
SOURCE = os.environ["REDCO_SOURCE"]

TWO_STEPS = ["train.max_steps=2", "train.n_epochs=~", "train.logging_steps=1", "eval.every_n_epochs=~",
             "eval.every_n_steps=~", "data.eval=[]", "parallel.threads_per_rank=1"]
TEXTS = ["model.num_hidden_layers=1", "model.hidden_size=32", "model.intermediate_size=32"]
RL = ["pipeline=rl", "settings={}"]
# Name: keys for both runs, and the keys that select the built-in pipeline.
BUILT_IN = {
    "classification": (TEXTS, ["pipeline=classification"]),
    "regression": (TEXTS, ["pipeline=regression"]),
    "language_modelling": (["train.global_batch_size=8"], ["pipeline=lm"]),
    "text_to_text": (["train.global_batch_size=8", "model.d_model=32"], ["pipeline=seq2seq"]),
    "image_to_text": (["train.global_batch_size=4"], ["pipeline=captioning"]),
    "text_to_image": (["train.global_batch_size=4", "model.num_hidden_layers=1"],
                      ["pipeline=text_to_image", "settings={}", "diffusion.caption_dropout=0.1"]),
    "maml": (["train.global_batch_size=4", "maml.tasks_per_epoch=8"],
             ["pipeline=maml", "settings={}", "maml.inner_steps=1", "maml.inner_learning_rate=0.4"]),
    "decoder": (["train.global_batch_size=8"], ["model.arch=llama"]),
    "lion": (["train.global_batch_size=8"], []),  # on one rank; plugins_test.py compares it with NumPy
    "ppo": ([], [*RL, "rl={algorithm: ppo, env: CartPole-v1, n_envs: 8, n_steps: 32, update_epochs: 20, gamma: 0.98, "
                      "gae_lambda: 0.8, n_eval_episodes: 0}"]),
    "ddpg": ([], [*RL, "rl={algorithm: ddpg, env: Pendulum-v1, n_envs: 4, n_steps: 16, gradient_steps: 64, "
                       "learning_starts: 1000, buffer_size: 50000, hidden_sizes: [128, 128], activation: relu, "
                       "gamma: 0.98, n_eval_episodes: 0}"]),
}
# The losses of docs/examples/NAME/NAME.cpp on the same job with one rank.
WRITTEN = {"fedavg": [1.4953819, 1.4277147], "dp_sgd": [1.9423235, 2.4303333]}


def setUpModule():
    global HOME
    HOME = tempfile.mkdtemp()


def tearDownModule():
    shutil.rmtree(HOME)


def run(*arguments, cwd=SOURCE):
    done = subprocess.run([REDCO, *arguments], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"redco {' '.join(arguments)}\n{done.stdout}")
    return done.stdout


def metrics(workdir):
    """The terms of each step."""
    with open(os.path.join(workdir, "metrics.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return [{k: x[k] for k in ("loss", "critic", "actor", "policy", "value", "entropy") if k in x}
            for x in lines if "loss" in x or "critic" in x]


def trained(name, label, *keys):
    workdir = os.path.join(HOME, f"{name}-{label}")
    run("train", f"examples/{name}.yaml", *TWO_STEPS, f"workdir={workdir}", *keys)
    return metrics(workdir)


def blocks(page):
    """(language, text) of the code on a page of docs."""
    with open(os.path.join(SOURCE, "docs", page)) as f:
        return re.findall(r"^```(\w+)\n(.*?)^```", f.read(), re.M | re.S)


class Examples(unittest.TestCase):
    maxDiff = None

    def compare(self, name, found, expected):
        self.assertEqual(len(expected), 2, name)
        self.assertEqual(len(found), 2, name)
        for step, (a, b) in enumerate(zip(found, expected)):
            for term in b:
                self.assertLess(abs(a[term] - b[term]), 1e-5 * max(1, abs(b[term])),
                                f"{name}, step {step + 1}, {term}:\n{found}\n{expected}")

    def test_each_is_the_built_in_pipeline(self):
        def both(name):
            common, built_in = BUILT_IN[name]
            return (name, trained(name, "python", *common, "parallel.n_ranks=2"),
                    trained(name, "built-in", *common, *built_in))

        with ThreadPoolExecutor(2) as two:
            for name, found, expected in two.map(both, BUILT_IN):
                with self.subTest(name):
                    self.compare(name, found, expected)

    def test_each_is_the_written_out_example(self):
        for name, expected in WRITTEN.items():
            with self.subTest(name):
                found = trained(name, "python", "parallel.n_ranks=2")
                self.compare(name, found, [{"loss": x} for x in expected])

    def test_check_of_federated_averaging(self):
        """Only the first of the compared runs calls source(); a plan has no data for it."""
        self.assertIn("source() does not run in a plan", run("plan", "examples/fedavg.yaml"))
        run("check", "examples/fedavg.yaml", "settings={n_clients: 20, local_epochs: 1}", "train.global_batch_size=2",
            "parallel.threads_per_rank=1")

    def test_each_is_short_and_tested(self):
        files = sorted(os.listdir(os.path.join(SOURCE, "examples")))
        names = sorted({*BUILT_IN, *WRITTEN})
        self.assertEqual([f for f in files if f.endswith(".py")], [f"{n}.py" for n in names])
        paths = [os.path.join(SOURCE, "examples", f"{n}.py") for n in names]
        counted = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "count-loc"), *paths], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        for line in counted.splitlines()[:-1]:
            self.assertLessEqual(int(line.split()[0]), 60, line)

    def test_the_page_of_lines_is_true(self):
        table = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "count-loc"), "--table"], text=True,
                               stdout=subprocess.PIPE, check=True).stdout
        with open(os.path.join(SOURCE, "docs", "lines_of_code.md")) as f:
            self.assertIn(table, f.read(), "run scripts/count-loc --update")

    def test_ppo_continues_where_it_stopped(self):
        job = ["train.n_epochs=2", "settings={n_steps: 8, update_epochs: 2}", "train.global_batch_size=32",
               "train.schedule=constant", "train.logging_steps=1"]  # two epochs of four steps
        run("train", "examples/ppo.yaml", *job, f"workdir={HOME}/whole")
        run("train", "examples/ppo.yaml", *job, f"workdir={HOME}/parts", "train.max_steps=6")
        run("train", "examples/ppo.yaml", *job, f"workdir={HOME}/parts")
        self.assertEqual(metrics(f"{HOME}/parts"), metrics(f"{HOME}/whole"))

    def test_the_tutorial_in_python(self):
        """The Python of docs/tutorial.md, whose later blocks replace or add functions of the first."""
        folder = os.path.join(HOME, "tutorial")
        os.mkdir(folder)
        source, files = "", {}
        for language, text in blocks("tutorial.md"):
            if language == "python" and not source:
                files["first.py"] = source = text
            elif language == "python":
                name = re.search(r"^    def (\w+)\(", text, re.M).group(1)
                old = re.compile(rf"(^    #[^\n]*\n)*^    def {name}\(.*?(?=^    (?:def|#)|\Z)", re.M | re.S)
                source = old.sub(lambda _: text, source) if old.search(source) else source + "\n" + text
            elif language == "yaml":
                add, name = re.match(r"# (add to )?(\w+\.yaml)", text).groups()
                files[name] = (files.get(name, "") if add else "") + text
            elif "pairs.jsonl" in text:
                subprocess.run(["bash", "-c", text], cwd=folder, check=True)
        files["my_dpo.py"] = source
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        run("train", "base.yaml", cwd=folder)
        run("train", "job.yaml", "workdir=first", "pipeline=./first.py", "train.max_steps=2", cwd=folder)
        for name, keys in (("python", ["pipeline=./my_dpo.py"]), ("built-in", ["pipeline=dpo", "settings={}"])):
            run("train", "job.yaml", f"workdir={name}", *keys, cwd=folder)
        found, expected = (metrics(os.path.join(folder, name)) for name in ("python", "built-in"))
        self.assertEqual(len(expected), 12)
        for a, b in zip(found, expected):
            self.assertLess(abs(a["loss"] - b["loss"]), 1e-6, f"{found}\n{expected}")
        run("predict", "job.yaml", "pipeline=./my_dpo.py", "workdir=python", "--prompt", "Two words: ",
            "predict.max_new_tokens=4", cwd=folder)
        self.assertLess(source.count("\n"), 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
