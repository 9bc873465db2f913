"""Functions of tensors with the names of PyTorch and NumPy, against NumPy; their gradients against differences."""

import unittest

import numpy as np
import redco


class Tensors(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(3)
        self.a, self.b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
        self.x, self.y = redco.tensor(self.a, "float64"), redco.tensor(self.b, "float64")

    def all_near(self, pairs):
        for k, (found, expected) in enumerate(pairs):
            with self.subTest(k):
                self.assertEqual(tuple(found.shape), np.shape(expected))
                np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)

    def test_shapes(self):
        a, x = self.a, self.x
        self.all_near([
            (x.unsqueeze(1), a[:, None]), (x.unsqueeze(-1), a[..., None]), (x[:, :1].squeeze(), a[:, 0]),
            (x[:, :1].squeeze(1), a[:, 0]), (x.flatten(), a.reshape(-1)), (x.flatten(1), a.reshape(2, -1)),
            (x.reshape(4, -1), a.reshape(4, -1)), (x.view(6, 4), a.reshape(6, 4)), (x.permute(2, 0, 1), a.transpose(2, 0, 1)),
            (x.T, a.T), (x.mT, a.swapaxes(1, 2)), (x[:, :1].expand(2, 5, -1), np.repeat(a[:, :1], 5, 1)),
            (x[0].expand([2, 3, 4]), np.stack([a[0]] * 2)), (x.flip(1), a[:, ::-1]), (x.flip([0, 2]), a[::-1, :, ::-1]),
            (x.roll(1, -1), np.roll(a, 1, -1)), (x.roll(-1, 0), np.roll(a, -1, 0)), (x.tril(), np.tril(a)),
            (x.triu(1), np.triu(a, 1)), (redco.cat([x, x]), np.concatenate([a, a])), (x.chunk(2, 2)[1], a[..., 2:]),
            (x.split([1, 2], 1)[1], a[:, 1:]), (x.split(3, 2)[1], a[..., 3:]), (x.unbind(1)[2], a[:, 2]),
            (x.gather(1, redco.tensor([[[2, 0, 0, 1]]] * 2)), np.take_along_axis(a, np.array([[[2, 0, 0, 1]]] * 2), 1)),
            (redco.full_like(x, 2), np.full_like(a, 2)), (redco.eye(2, 3), np.eye(2, 3)), (redco.ones(2, 3), np.ones((2, 3))),
            (redco.linspace(0, 1, 5), np.linspace(0, 1, 5)), (redco.arange(2, 5), np.arange(2, 5))])
        self.assertEqual((x.size(), x.size(-1), x.numel(), x.dim()), ((2, 3, 4), 4, 24, 3))
        self.assertEqual(np.asarray(x).tolist(), x.tolist())
        for bad in (lambda: x.squeeze(1), lambda: x.unbind(7), lambda: x.split([1, 1], 1), lambda: x.softmax(3)):
            with self.assertRaises(redco.ShapeError):
                bad()

    def test_a_plain_python_shows_values(self):
        self.assertEqual(repr(redco.tensor([[1.5, 2], [3, 4]])),
                         "redco.Tensor([[1.5, 2. ],\n              [3. , 4. ]], float32)")
        self.assertEqual(str(redco.arange(2)), "redco.Tensor([0, 1], int32)")
        texts = []
        redco.vmap(lambda xs: [texts.append(repr(xs[0])) or xs[0]], [self.x])
        self.assertIn("f64", texts[0])
        self.assertEqual((redco.zeros(2, 3).shape, redco.zeros([2]).shape, redco.zeros(()).shape), ((2, 3), (2,), ()))
        self.assertEqual(redco.zeros([2], "int32").dtype, "int32")

    def test_reductions_and_elements(self):
        a, x = self.a, self.x
        exps = np.exp(a)
        self.all_near([
            (x.amax(), a.max()), (x.amax(1), a.max(1)), (x.amax(-1, keepdim=True), a.max(-1, keepdims=True)),
            (x.amin([0, 2]), a.min((0, 2))), (x.max(), a.max()), (x.min(), a.min()), (x.argmax(0), a.argmax(0)),
            (x.argmin(-1), a.argmin(-1)), (x[0, 0].argmax(), a[0, 0].argmax()), (x.var(1), a.var(1, ddof=1)), (x.std(correction=0), a.std()),
            (x.norm(dim=2), np.linalg.norm(a, axis=2)), (x.norm(2), np.linalg.norm(a)), (x.softmax(1), exps / exps.sum(1, keepdims=True)),
            (x.log_softmax(0), a - np.log(exps.sum(0))), (x.logsumexp(1), np.log(exps.sum(1))),
            (x.logsumexp(0, True), np.log(exps.sum(0, keepdims=True))), (x.sort(1, True)[0], -np.sort(-a, 1)),
            (x.sort(dim=0)[0], np.sort(a, 0)), (x.top_k(2, dim=1)[0], -np.sort(-a, 1)[:, :2]),
            (redco.leaky_relu(x, 0.1), np.where(a > 0, a, 0.1 * a)), (redco.elu(x), np.where(a > 0, a, np.expm1(a))),
            (redco.huber_loss(x, self.y), np.where(abs(a - self.b) < 1, (a - self.b) ** 2 / 2, abs(a - self.b) - 0.5)),
            (redco.binary_cross_entropy_with_logits(x, (self.y > 0)), np.log1p(exps) - a * (self.b > 0))])
        with self.assertRaisesRegex(TypeError, r"x.amax\(dim\) are values with gradient, x.argmax\(dim\) ids"):
            x.max(1)
        # PyTorch's and NumPy's are the ids among all elements, not along the last dim.
        for f in (x.argmax, x.argmin, lambda: redco.argmax(x)):
            with self.assertRaisesRegex(TypeError, r"needs a dim: x.argmax\(-1\) are ids along the last one"):
                f()
        self.assertEqual(int(x.reshape([-1]).argmax().numpy()), a.argmax())

    def test_operands_may_be_arrays_and_lists(self):
        a, x = self.a, self.x
        ids = redco.tensor([7, -7, 6, 0])
        self.all_near([
            (x * self.b, a * self.b), (self.b - x, self.b - a), (self.b / x, self.b / a), (x + [1, 2, 3, 4], a + [1, 2, 3, 4]),
            (x @ self.b.swapaxes(1, 2), a @ self.b.swapaxes(1, 2)), (self.b.swapaxes(1, 2) @ x, self.b.swapaxes(1, 2) @ a),
            (x > self.b, a > self.b), (self.b > x, self.b > a), (np.float32(2) * x, 2 * a), (2**x, 2**a),
            (abs(x) ** x, abs(a) ** a), ((x > 0) & (self.y > 0), (a > 0) & (self.b > 0)), (~(x > 0), a <= 0),
            ((x > 0) | (self.y > 0), (a > 0) | (self.b > 0)), (redco.maximum(x, 0), np.maximum(a, 0)),
            (redco.minimum(x, self.b), np.minimum(a, self.b)), (redco.where(x > 0, x, 0), np.where(a > 0, a, 0)),
            (redco.where(x > 0, 1, 0), a > 0), (ids // 3, ids.numpy() // 3), (ids % 3, ids.numpy() % 3),
            (ids // -2, ids.numpy() // -2), (ids * np.arange(4), ids.numpy() * np.arange(4))])
        self.assertEqual((ids // 3).dtype, "int32")
        for bad in (lambda: ids & ids, lambda: x // 2, lambda: x + ["a"], lambda: redco.tensor(["a"])):
            with self.assertRaises((TypeError, redco.UsageError, ValueError)):
                bad()

    def test_products_by_names(self):
        rng = np.random.default_rng(1)
        sizes = dict(b=2, q=3, k=4, h=2, d=5, i=3, j=2)
        for equation in ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ij,jk->ik", "ij,jk", "ij,ij->", "ij->ji", "ij->j", "i,j->ij",
                         "bi,bi->b", "bij,bjk,bk->bi", "i->i"):
            operands = [rng.normal(size=[sizes[c] for c in n]) for n in equation.split("->")[0].split(",")]
            self.all_near([(redco.einsum(equation, *(redco.tensor(o, "float64") for o in operands)),
                            np.einsum(equation, *operands))])
        for bad in ("ii->i", "ij,jk->iz", "ij"):
            with self.assertRaises(redco.ShapeError):
                redco.einsum(bad, redco.ones(2, 2), redco.ones(2, 2))

    def test_sums_of_segments(self):
        ids = np.array([2, 0, 2, 1, 2], dtype=np.int32)
        rows = np.random.default_rng(2).normal(size=(5, 2, 3))
        expected = np.zeros((4, 2, 3))
        np.add.at(expected, ids, rows)
        self.all_near([(redco.segment_sum(redco.tensor(rows, "float64"), redco.tensor(ids), 4), expected)])
        with self.assertRaisesRegex(redco.ShapeError, r"expected x \[N, ...\] and int32 ids \[N\]"):
            redco.segment_sum(self.x, redco.tensor(ids), 4)

    def test_gradients_of_first_and_second_order(self):
        ids = redco.tensor([1, 0])
        functions = {
            "amax": lambda x: (x.amax(1) ** 3).sum(), "var": lambda x: (x.var([0, 1]) ** 2).sum(),
            "norm": lambda x: x.norm(dim=1).sum(), "gather": lambda x: (x.gather(2, redco.tensor([[[3, 1]] * 3] * 2)) ** 3).sum(),
            "roll": lambda x: (x.roll(1, 2) ** 2 * x).sum(), "flip": lambda x: (x.flip(0) ** 2 * x).sum(),
            "einsum": lambda x: (redco.einsum("bij,bkj->bik", x, x) ** 2).sum(), "elu": lambda x: (redco.elu(x) ** 2).sum(),
            "huber": lambda x: (redco.huber_loss(x, 0.3) ** 2).sum(), "power": lambda x: (2**x).sum(),
            "segment": lambda x: (redco.segment_sum(x, ids, 3) ** 3).sum(), "array": lambda x: (self.b * x**3).sum(),
            "softmax": lambda x: (x.softmax(1) ** 2).sum(), "index": lambda x: (x[:, [2, 2, 0]] ** 3).sum(),
        }
        rng = np.random.default_rng(4)
        direction, step = rng.normal(size=self.a.shape), 1e-5
        for name, f in functions.items():
            def first(array):
                x = redco.tensor(array, "float64").watched()
                return redco.grad(f(x), x, create_graph=True), x

            with self.subTest(name):
                g, x = first(self.a)
                both = [f(redco.tensor(self.a + s * step * direction, "float64")).item() for s in (1, -1)]
                slope = float((g.numpy() * direction).sum())
                self.assertAlmostEqual(slope, (both[0] - both[1]) / (2 * step), delta=1e-6 * max(1, abs(slope)))
                second = redco.grad((g * direction).sum(), x).numpy()
                both = [first(self.a + s * step * direction)[0].numpy() for s in (1, -1)]
                np.testing.assert_allclose(second, (both[0] - both[1]) / (2 * step), rtol=1e-5, atol=1e-5)


unittest.main()
