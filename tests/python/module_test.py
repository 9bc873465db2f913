"""The module redco in a plain Python: tensors and ops against NumPy, gradients against differences, models."""

import collections
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import redco
import redco._glue

SOURCE = os.environ["REDCO_SOURCE"]
FIXTURES = os.path.join(SOURCE, "tests", "fixtures")


def numeric_gradient(f, x, step=1e-4):
    """Of f(array) -> number, by central differences in double precision."""
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        a, b = x.copy(), x.copy()
        a[i] += step
        b[i] -= step
        g[i] = (f(a) - f(b)) / (2 * step)
    return g


class Module(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def near(self, tensor, array, tolerance=1e-5):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=tolerance, atol=tolerance)

    def test_indexing_is_numpys(self):
        a = self.rng.normal(size=(4, 5, 6)).astype(np.float32)
        t = redco.tensor(a)
        for index in (1, -1, (2, 3), (slice(1, 3), 2), (Ellipsis, 0), (slice(None), None, 3), (0, Ellipsis, slice(2, 5)),
                      (slice(None, -1), slice(2, None))):
            self.near(t[index], a[index])
        ids = np.array([3, 0, 3], dtype=np.int32)
        self.near(t[redco.tensor(ids)], a[ids])
        for index in ([0, -1], (slice(None), [4, 0, 0]), (slice(None), slice(None), np.array([[1, 2], [0, 5]])),
                      np.array([True, False, True, False]), slice(None, None, 2),
                      (slice(None), slice(3, None, -1)), (None, 2, [1])):
            self.near(t[index], a[index])
        self.near(t[1, ..., [3, 2]], a[1][:, [3, 2]])
        numbers = np.arange(12, dtype=np.int32).reshape(3, 4)
        np.testing.assert_array_equal(redco.tensor(numbers)[:, [2, 0]].numpy(), numbers[:, [2, 0]])
        for bad in (7, (0, 0, 0, 0), [4], (slice(None), [-6]), ([0], [1])):
            with self.assertRaises(IndexError):
                t[bad]
        with self.assertRaisesRegex(IndexError, "a mask selects as many elements as its values say"):
            t[t > 0]

    def test_operators_are_numpys(self):
        a, b = (self.rng.uniform(0.5, 2, size=(3, 4)).astype(np.float32) for _ in range(2))
        x, y = redco.tensor(a), redco.tensor(b)
        for found, expected in ((x + y, a + b), (x - 2, a - 2), (2 - x, 2 - a), (x * y, a * b), (x / y, a / b),
                                (1 / x, 1 / a), (-x, -a), (x**2, a**2), (x**3, a**3), (x**0.5, a**0.5),
                                (x**1.7, a**1.7), (x < y, a < b), (x >= 1, a >= 1), (x == x, a == a), (x != y, a != b),
                                (x @ y.transpose(0, 1), a @ b.T), (abs(-x), a), (x.sum(0), a.sum(0)),
                                (x.mean(), a.mean()), (x.sum([0, 1], keepdim=True), a.sum(keepdims=True))):
            self.near(found, expected)
        with self.assertRaisesRegex(redco.ShapeError, r"\[add\] shapes do not match"):
            x + redco.zeros([7])
        with self.assertRaisesRegex(TypeError, "ctx.agree"):
            bool(x[0, 0] > 1)

    def test_ids_are_integers(self):
        a, b = np.array([[3, 1], [2**30, -7]], dtype=np.int32), np.array([1, 2], dtype=np.int32)
        x, y = redco.tensor(a), redco.tensor(b)
        for found, expected in ((x + y, a + b), (x - 1, a - 1), (1 - x, 1 - a), (y * 3, b * 3), (-x, -a)):
            self.assertEqual(found.dtype, "int32")
            np.testing.assert_array_equal(found.numpy(), expected)
        for found, expected in ((y / 2, b / 2), (y * 0.5, b * 0.5), (y + redco.tensor([0.5, 1.5]), b + [0.5, 1.5]),
                                (y > 1, b > 1), (y == 1, b == 1)):
            self.near(found, expected)
        values, ids = redco.tensor([[1.0, 5.0, 3.0]]).top_k(2)
        self.assertEqual((values.numpy().tolist(), ids.numpy().tolist()), ([[5, 3]], [[1, 2]]))

    def test_gradients(self):
        a = self.rng.uniform(0.5, 1.5, size=(3, 4))
        cases = {
            "softmax": lambda x: (redco.softmax(x) ** 2).sum(),
            "indexing": lambda x: (x[1:, ::1] * x[:1, :]).sum() + x[0, 3],
            "division": lambda x: (1 / x).sum(),
            "along": lambda x: (redco.softmax(x, 0) ** 2).sum() + (x[:, [0, 0, 2]] ** 2).sum() + (x[::2] ** 3).sum(),
            "second": lambda x: (redco.grad(redco.exp(x).sum() + (x**3).sum(), [x], create_graph=True)[0] ** 2).sum(),
        }
        for name, f in cases.items():
            with self.subTest(name):
                def value(array):
                    return f(redco.tensor(array, "float64").watched()).item()

                x = redco.tensor(a, "float64").watched()
                found = redco.grad(f(x), [x])[0].numpy()
                np.testing.assert_allclose(found, numeric_gradient(value, a), rtol=1e-6, atol=1e-6)

    def test_gradients_reach_what_a_watched_tensor_is_computed_from(self):
        # One step of gradient descent on w^2 from w = 3 with rate 0.1: (0.8 w)^2, whose gradient is 1.28 w.
        w = redco.tensor([3.0]).watched()

        def adapted(w, inner):
            return (w - 0.1 * redco.grad((inner**2).sum(), inner, create_graph=True)) ** 2

        inner = w.watched()
        self.near(redco.grad(adapted(inner, inner).sum(), w), [1.28 * 3])
        inner = w.detach().watched()  # cut: only w itself has a gradient, with the step as a constant
        self.near(redco.grad(adapted(w, inner).sum(), w), [2 * (3 - 0.6)])
        x = redco.tensor([2.0])
        with self.assertRaisesRegex(redco.ShapeError, r"\[grad\] input 0, f32 \(1\).*is not on the tape. Compute the loss from"):
            redco.grad((x**2).sum(), [x])
        with self.assertRaisesRegex(redco.UsageError, "the loss .* depends on no input"):
            redco.grad((x**2).sum(), x.watched())

    def test_initial_values_have_the_shape_of_the_parameter(self):
        p = redco.Params()
        weight, bias = np.ones((2, 3)), [0.5, 0.25]
        p.linear("a", 2, 3, init=weight)
        p.linear("b", 2, 3, init=(weight, bias))
        p.linear("c", 2, 3, init=("copy", "b"))
        p.embedding("table", 4, 2, init=np.zeros((4, 2)))
        p.conv("conv", 2, 1, 3, 3, init="ones")
        for bad in (lambda: p.linear("d", 3, 2, init=weight), lambda: p.add("e", [3, 2], init=weight)):
            with self.assertRaisesRegex(redco.UsageError, r"has the shape \(3, 2\), but its initial values have the shape \(2, 3\)"):
                bad()

    def test_functions_of_functions(self):
        a = self.rng.normal(size=(3, 4)).astype(np.float32)
        x = redco.tensor(a).watched()
        y = redco.recompute(lambda t: redco.tanh(t) * 2, x).sum()
        self.near(redco.grad(y, [x])[0], 2 / np.cosh(a) ** 2)
        rows = redco.vmap(lambda xs: [xs[0].sum()], [redco.tensor(a)])
        self.near(rows[0], a.sum(1))
        with self.assertRaisesRegex(Exception, "division by zero"):
            redco.recompute(lambda t: t * (1 / 0), x)

    def test_examples_keep_what_they_are_given(self):
        e = redco.Example({"x": np.zeros((2, 3)), "y": 0.5, "n": 7, "ids": [1, 2], "name": "a", "more": {"k": [1, "b"]}})
        self.assertEqual(e["x"].shape, (2, 3))
        self.assertEqual((e["y"].shape, float(e["y"]), int(e["n"])), ((), 0.5, 7))
        self.assertEqual((e["ids"].tolist(), e["name"], e["more"]), ([1, 2], "a", {"k": [1, "b"]}))
        with self.assertRaisesRegex(KeyError, "no field 'z'; it has: ids, n, x, y"):
            e["z"]
        with self.assertRaises(ValueError):
            redco.Example({"ids": [2**40]})

    def test_a_model_of_a_folder(self):
        folder = os.path.join(FIXTURES, "models", "gpt2")
        if not os.path.isdir(folder):
            folder = next(os.path.join(d) for d, _, files in os.walk(FIXTURES)
                          if "gpt2" in os.path.basename(d) and "model.safetensors" in files)
        m = redco.load(folder)
        ids = redco.tensor(np.array([[1, 2, 3, 4]]))
        logits = m.model.apply(m.params, ids)
        self.assertEqual(logits.shape, (1, 4, m.model.vocab_size))
        # The last token's logits do not change earlier ones.
        self.near(m.model.apply(m.params, ids[:, :3])[0], logits.numpy()[0, :3], 1e-4)

    def test_what_a_notebook_asks_of_a_decoder(self):
        m = redco.load(os.path.join(FIXTURES, "gpt2"), tokenizer="bytes")
        self.assertIn("gpt2", repr(m))
        logits, ids = m.logits("abc").astype(float), m.tokenizer.encode("abc")
        states = m.hidden_states("abc")
        self.assertEqual([x.shape for x in states], [(3, m.model.hidden_size)] * (m.model.n_layers + 1))
        log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = -np.mean([log_probs[i, ids[i + 1]] for i in range(2)])
        self.assertAlmostEqual(m.loss("abc").item(), expected, delta=1e-4)
        params = m.params.watched()
        name = params.trained()[0]
        self.assertEqual(redco.grad(m.loss("abc", params), params[name]).shape, params[name].shape)
        pieces = []
        text = m.generate("abc", max_new_tokens=6, on_text=pieces.append)
        self.assertEqual("".join(pieces), text)
        self.assertEqual(m.generate(["abc", "b"], max_new_tokens=6)[0], text)
        self.assertEqual(m.generate(ids, max_new_tokens=6), text)
        self.assertEqual(len(m.generate("a", max_new_tokens=2, num_return_sequences=3, temperature=1.0)), 3)
        for bad, why in ((lambda: m.predict({"text": "a"}), "use generate"), (lambda: m.chat("a"), "no chat template"),
                         (lambda: m.generate("a", max_tokens=3), "unknown key generation.max_tokens"),
                         (lambda: m.generate(["a", "b"], on_text=print), "on_text is for one prompt"),
                         (lambda: m.loss("a"), "needs two tokens")):
            with self.assertRaisesRegex(redco.UsageError, why):
                bad()

    def test_what_a_notebook_asks_of_an_encoder(self):
        m = redco.load(os.path.join(FIXTURES, "bert-sentence"), tokenizer="bytes")
        vectors = m.embed(["one text", "another"])
        self.assertEqual(vectors.shape, (2, m.model.hidden_size))
        np.testing.assert_allclose(m.embed("another"), vectors[1], atol=1e-5)
        last = m.hidden_states("another")[-1].mean(0)  # its folder pools by the mean
        np.testing.assert_allclose(last / np.linalg.norm(last), vectors[1] / np.linalg.norm(vectors[1]), atol=1e-4)
        with self.assertRaisesRegex(redco.UsageError, "it generates no text"):
            m.generate("a")
        classifier = redco.load(os.path.join(FIXTURES, "bert-seqcls"), tokenizer="bytes")
        answer, logits = classifier.predict("some text"), classifier.logits("some text")
        self.assertEqual(len(answer["probabilities"]), len(logits))
        self.assertEqual(np.argmax(list(answer["probabilities"].values())), np.argmax(logits))

    def test_plans_predictions_and_metrics_of_dicts(self):
        with tempfile.TemporaryDirectory() as folder:
            model = {"path": os.path.join(FIXTURES, "gpt2"), "tokenizer": "bytes"}
            texts = os.path.join(folder, "in.jsonl")
            with open(texts, "w") as f:
                f.write('{"prompt": "ab"}\n{"prompt": "c"}\n')
            answers = redco.predict({"model": model, "predict": {"input": texts, "max_new_tokens": 2}})
            self.assertEqual([a["prompt"] for a in answers], ["ab", "c"])
            self.assertEqual(answers[0]["prediction"], redco.load(**model).generate("ab", max_new_tokens=2))
            job = {"pipeline": "lm", "model": model, "train": {"global_batch_size": 2}}
            self.assertGreater(redco.plan(job)["n_parameters"], 1000)
            with open(os.path.join(folder, "text.txt"), "w") as f:
                f.write("a text " * 20)
            metrics = redco.evaluate({**job, "data": {"eval": [f.name], "max_length": 16}})
            self.assertGreater(metrics["loss"], 0)
            with self.assertRaisesRegex(RuntimeError, "redco plan ended with exit code 2"):
                redco.plan({"modle": model})

    # Newer releases of pybind11 write other types and more names.
    @unittest.skipUnless(sys.version_info[:2] == (3, 11), "the stubs are made with Python and pybind11 of Debian 12")
    def test_the_stubs_are_those_of_the_module(self):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(redco.__file__)))
        subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "make_python_stubs.py"), folder, "--check"],
                       check=True)

    def test_answers_are_texts_numbers_or_structs(self):
        @dataclasses.dataclass
        class Box:
            corner: tuple
            size: np.ndarray

        @dataclasses.dataclass
        class Answer:
            label: str
            boxes: list
            score: float = 0.5

        Pair = collections.namedtuple("Pair", "first second")
        given = ["yes", 3, {"text": "a", "p": np.float32(0.25)}, Answer("cat", [Box((1, 2), np.ones(2))]), Pair(1, "b")]
        self.assertEqual([json.loads(a) for a in redco._glue.answers(given, 5)], [
            {"prediction": "yes"}, {"prediction": 3}, {"text": "a", "p": 0.25},
            {"label": "cat", "boxes": [{"corner": [1, 2], "size": [1, 1]}], "score": 0.5}, {"first": 1, "second": "b"}])

    def test_the_wheel_has_what_the_build_makes(self):
        def text(name):
            with open(os.path.join(SOURCE, name)) as f:
                return f.read()

        project, build = text("pyproject.toml"), text("CMakeLists.txt")
        pattern = re.search(r"^regex = '(.*)'$", project, re.M).group(1)
        self.assertRegex(re.search(pattern, build).group("value"), r"^\d+\.\d+\.\d+$")
        for target in re.search(r"^build.targets = (.*)$", project, re.M).group(1).strip("[]").split(", "):
            self.assertIn(f"add_custom_target({target.strip(chr(34))} ", build)
        for option in re.findall(r"^(REDCO_\w+) = ", project, re.M):
            self.assertIn(f"option({option} ", build)
        # The component whose files are the wheel's: program, library, module and stubs.
        components = set(re.findall(r'"(\w+)"', re.search(r"^install.components = (.*)$", project, re.M).group(1)))
        for file in ("cmake/install.cmake", "cmake/python.cmake"):
            self.assertLessEqual(components, set(re.findall(r"COMPONENT (\w+)", text(file))), file)
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(redco.__file__), "_redco.pyi")))
        # The oldest Python is that of the search for one.
        oldest = re.search(r'^requires-python = ">=3\.(\d+)"$', project, re.M).group(1)
        self.assertIn(f"sys.version_info >= (3, {oldest})", text("cmake/python.cmake"))

    def test_every_op_of_the_api_page_is_bound(self):
        # Ops whose work another function or an operator does in Python, and ops for redco alone.
        other = set("""operator add compare less less_equal equal unary name_of sum_to reshape_all reshape_placement to_sum_type repeat_heads
            sum_heads head_repeats LowRank add_low_rank linear_partial linear_transposed linear_weight_gradient
            scatter_rows unpick cross_entropy_composed layer_norm_composed rms_norm_composed attention_composed
            cache_write experts_composed conv2d_weight_gradient relu_avg_pool2d""".split())
        with open(os.path.join(SOURCE, "docs", "api.md")) as f:
            page = f.read()
        begin, end = page.index("## Elementwise"), page.index("## Image files")
        names = set()
        for row in re.findall(r"^\| (`[^|]*) \|", page[begin:end], re.M):
            names.update(re.findall(r"`(\w+)(?:\(|`)", row))
        missing = sorted(n for n in names - other if not hasattr(redco, n) and not hasattr(redco.Tensor, n))
        self.assertEqual(missing, [])


unittest.main()
