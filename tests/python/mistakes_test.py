"""Mistakes in scripts, as somebody makes them who knows PyTorch: what redco answers."""

import os
import shutil
import subprocess
import unittest

from jobs import HOME, Jobs

SCRIPT = """import numpy as np
import redco


class Mine(redco.Pipeline):
    class Settings:
        width: int = 8

    def open(self, request):
        for i in range(32):
            yield {"x": np.random.default_rng(i).normal(size=3), "c": i % 4}

    def params(self):
        p = redco.Params()
        p.linear("fc1", self.settings.width, 3)
        p.linear("fc2", 4, self.settings.width)
        return p

    def loss(self, params, batch, ctx):
        h = redco.tanh(redco.dense(params, "fc1", batch["x"]))
        logits = redco.dense(params, "fc2", h)
        return redco.cross_entropy(logits, batch["c"]).sum()
"""
LOSS = "        return redco.cross_entropy(logits, batch[\"c\"]).sum()\n"
MEMBER = "    def params(self):\n"


class Mistakes(Jobs):
    def script(self, old="", new="", member=""):
        self.assertIn(old, SCRIPT)
        path = os.path.join(HOME, "mistake.py")
        with open(path, "w") as f:
            f.write((SCRIPT.replace(old, new) if old else SCRIPT) + ("\n    " + member + "\n" if member else ""))
        return path

    def trains(self, old, new, member=""):
        self.redco("train", self.job(self.script(old, new, member), model=None, data=None))

    def said(self, old, new, code=2):
        said = self.redco("train", self.job(self.script(old, new), model=None, data=None), code=code)
        self.assertEqual(said.count("error:"), 1, said)
        return said

    def expect(self, cases, old, written):
        for new, text in cases.items():
            with self.subTest(new):
                self.assertIn(text, self.said(old, written(new)))

    def test_of_a_loss(self):
        self.expect({
            "redco.mse_loss(logits, 0)": "has no attribute 'mse_loss'. Write ((x - target) ** 2).sum()",
            "redco.soft_max(logits).sum()": "no attribute 'soft_max'; did you mean softmax?",
            "logits.sofmax(1).sum()": "no attribute 'sofmax'; did you mean softmax?",
            "logits.sum().backward()": "no attribute 'backward'. Loss() returns the loss, and redco differentiates it",
            "logits.masked_fill(logits > 0, 0.0)": "Write redco.where(mask, value, x)",
            "logits.to('cuda')": "Leave it out: tensors have no device",
            "redco.randn(4)": "Write redco.random_normal(shape, 'name')",
            "params.fc1": "Parameters are params[\"fc1\"]",
            "1.0": "loss() returned float; expected a tensor with one element, or a dict of them",
            "(logits.sum(), logits)": "loss() returned tuple; expected a tensor",
            "logits[1.0]": "an index is 1.0; expected integers, slices, None, ... or int32 ids",
            "logits.norm(1)": "norm(p=1) is of another order than 2. A dim is norm(dim=1)",
            "redco.einsum('...i->i', logits)": "'...' is not supported; give each dim a name",
            "redco.huber_loss(logits)": "It is redco.huber_loss(x, target, delta=1.0)",
        }, LOSS, lambda x: f"        return {x}\n")
        twice = ("x = h.watched()\n        error = redco.dense(params, 'fc2', x).sum()\n"
                 "        return error + redco.grad(error, x).sum()")
        self.assertIn("is differentiated twice, and the first grad() freed what the second one needs. Set retain=True "
                      "in the first one", self.said(LOSS, f"        {twice}\n"))
        self.trains(LOSS, f"        {twice.replace('error, x', 'error, x, retain=True')}\n")

    def test_of_a_class(self):
        self.expect({
            "terms = 'loss'": "terms is the text 'loss'; expected a tuple of texts: terms = ('loss',)",
            "term = ('loss',)": "Mine.term is not used; did you mean terms?",
            "unit = 'token'": "with unit = 'tokens' losses are means over the tokens",
            "def after_updates(self, params, ctx):\n        return {}": "did you mean after_update?",
            "def collate(self, batch):\n        return {}": "line 13: collate(self, batch); expected "
                                                          "collate(self, examples, shape)",
            "def groups(self):\n        return redco.ParamGroup('a')":
                "it returned ParamGroup; expected a list of redco.ParamGroup",
            "def groups(self):\n        return [redco.ParamGroup('a', lr=1)]":
                "unexpected keyword argument 'lr'. It is redco.ParamGroup(name, has=None, term='', plus=()",
            "def groups(self):\n        return [redco.ParamGroup('a', has='fc3')]":
                "its `has` selects none of fc1.weight, fc1.bias, fc2.weight, fc2.bias",
            "def groups(self):\n        return [redco.ParamGroup('a'), redco.ParamGroup('b')]":
                "in two parameter groups, 'a' and 'b'; expected one. A group without `has` selects all parameters",
            "def groups(self):\n        return [redco.ParamGroup('a', optimizer=('adamw', {'lr': 1}))]":
                "optimizer adamw of a parameter group has no setting lr",
        }, MEMBER, lambda x: f"    {x}\n\n{MEMBER}")
        # A member that is used may have any name.
        self.trains("        for i in range(32)", "        for i in self.examples()", "examples = staticmethod(lambda: range(32))")
        self.assertIn("write width: int = 8", self.said("width: int = 8", "width = 8"))
        self.assertIn("loss(self, params, batch); expected loss(self, params, batch, ctx)",
                      self.said("loss(self, params, batch, ctx)", "loss(self, params, batch)"))
        self.assertIn("the function returned list; expected redco.Params", self.said("return p\n", "return [p]\n"))
        self.assertIn("or define params() in a pipeline of yours",
                      self.said(SCRIPT[SCRIPT.index(MEMBER):SCRIPT.index("    def loss")], ""))

    def test_of_data(self):
        self.assertIn("'x' is not finite: example 3 of the data, counted from 0",
                      self.said("normal(size=3)", "normal(size=3) * (np.nan if i == 3 else 1)", code=6))

    def test_a_checkpoint_runs_what_its_user_has_trained(self):
        path = self.script()
        config = {"XDG_CONFIG_HOME": os.path.join(HOME, "config")}
        run = os.path.join(HOME, "run")

        def evaluate(code, where=f"workdir={run}", *more):
            done = subprocess.run([os.environ["REDCO"], "evaluate", where, *more], text=True, cwd=HOME,
                                  capture_output=True, env={**os.environ, **config}, timeout=120)
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stderr

        self.redco("train", self.job("./mistake.py", model=None, data=None), environment=config)
        evaluate(0)
        # A copy of a checkpoint has the job that was trained. With another job it is somebody else's.
        copy = os.path.join(HOME, "copy")
        shutil.copytree(os.path.join(run, "checkpoints", "last"), copy)
        evaluate(0, f"predict.checkpoint={copy}")
        os.unlink(os.path.join(copy, "training", "manifest.json"))
        with open(os.path.join(copy, "training", "job.yaml"), "a") as f:
            f.write("\n")
        self.assertIn("would run its code", evaluate(2, f"predict.checkpoint={copy}"))
        # Another user, a changed file.
        config["XDG_CONFIG_HOME"] += "-of-another"
        self.assertIn("or trust it once (`redco trust", evaluate(2))
        config["XDG_CONFIG_HOME"] = os.path.join(HOME, "config")
        with open(path, "a") as f:
            f.write("# changed\n")
        self.assertIn("would run its code", evaluate(2))
        evaluate(0, f"workdir={run}", "pipeline=./mistake.py")
        subprocess.run([os.environ["REDCO"], "trust", "mistake.py"], cwd=HOME, check=True, capture_output=True,
                       env={**os.environ, **config})
        evaluate(0)


unittest.main()
