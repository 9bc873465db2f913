"""Pipelines in Python, run by the program: equal to the built-in ones, on every mesh; their errors; resume."""

import json
import os
import shutil
import subprocess
import unittest

from jobs import HOME, PAIRS, REDCO, SOURCE, TEXT, Jobs

SCRIPTS = os.path.join(SOURCE, "tests", "python", "pipelines")


def script(name):
    return os.path.join(SCRIPTS, name + ".py")


class Pipelines(Jobs):
    def test_a_language_model_is_the_built_in_one(self):
        expected = self.losses(self.job("lm"))
        self.assertEqual(self.losses(self.job(script("lm"))), expected)
        self.assertEqual(self.losses(self.job(script("lm_default"))), expected)
        for mesh in ((2, 1), (1, 2)):
            self.assertNear(self.losses(self.job(script("lm")), mesh), expected, 1e-5)

    def test_dpo_is_the_built_in_one(self):
        self.redco("train", self.job("lm", train={"max_steps": 1}))
        start = os.path.join(HOME, "start")
        shutil.copytree(os.path.join(HOME, "run", "checkpoints", "last"), start, dirs_exist_ok=True)
        parts = dict(model=None, data={"train": [PAIRS]}, models={"reference": {"path": start}})
        expected = self.losses({**self.job("dpo", **parts), "model": {"path": start}})
        self.assertLess(expected[-1], expected[0])
        for mesh in ((1, 1), (2, 1), (1, 2)):
            found = self.losses({**self.job(script("dpo"), **parts), "model": {"path": start}}, mesh)
            self.assertNear(found, expected, 1e-5)
        # Without an own predict(), answers continue prompts, whatever example() reads.
        said = self.redco("predict", {**self.job(script("dpo"), **parts), "model": {"path": start},
                                      "predict": {"prompt": "Two: ", "max_new_tokens": 3}})
        self.assertGreater(len(said), 3)

    def test_a_derived_pipeline_changes_the_loss_alone(self):
        expected = self.losses(self.job("lm", train={"max_steps": 1}))
        found = self.losses(self.job(script("derived"), train={"max_steps": 1}))
        self.assertNear(found, [2 * x for x in expected], 1e-6)

    def test_own_parameters_and_data(self):
        job = self.job(script("mlp"), model=None, data=None, eval={"every_n_steps": 4})
        expected = self.losses(job)
        self.assertEqual(len(self.metrics("eval_rmse")), 1)
        self.assertNear(self.losses(job, (2, 2)), expected, 1e-5)
        self.assertIn("162 parameters", self.redco("plan", job))
        with open(os.path.join(HOME, "in.jsonl"), "w") as f:
            f.write('{"x": [0.1, 0.2, 0.3]}\n{"x": [1, 2, 3]}\n')
        out = os.path.join(HOME, "out.jsonl")
        self.redco("predict", {**job, "predict": {"input": os.path.join(HOME, "in.jsonl"), "output": out}})
        with open(out) as f:
            self.assertEqual([type(json.loads(x)["prediction"]) for x in f], [float, float])

    def test_a_loss_of_the_whole_batch(self):
        job = self.job(script("pairs"), model=None, data=None)
        expected = self.losses(job)
        self.assertNear(self.losses({**job, "train": {**job["train"], "per_device_batch_size": 2}}, (2, 1)), expected, 1e-5)

    def test_check_passes(self):
        self.assertIn("passed", self.redco("check", self.job(script("zloss"))))

    def test_rollouts_resume_and_are_one_on_all_ranks(self):
        job = self.job(script("policy_gradient"), data={"train": [PAIRS]}, train={"max_steps": 6, "global_batch_size": 8},
                       checkpoint={"resume": "never", "every_n_steps": 3})
        self.redco("train", job, (2, 1))
        self.assertEqual(len(self.metrics("reward")), 6)
        # The reward is random, so a resumed run can only be equal if the checkpoint holds the examples.
        expected = self.metrics()[3:]
        run = os.path.join(HOME, "run")
        shutil.rmtree(os.path.join(run, "checkpoints", "step-00000006"))
        os.unlink(os.path.join(run, "checkpoints", "last"))
        os.symlink("step-00000003", os.path.join(run, "checkpoints", "last"))
        job["checkpoint"] = {"every_n_steps": 3}
        self.redco("train", job, (1, 2))
        self.assertNear(self.metrics()[-3:][:1], expected[:1], 1e-4)
        job["checkpoint"] = {"resume": "never"}
        said = self.redco("train", {**job, "settings": {"agree": False}}, (2, 1), code=2)
        self.assertIn("source() made other examples on rank 1 than on rank 0", said)

    def test_the_default_weight_is_the_unit(self):
        job = self.job(script("lm_default"), train={"max_steps": 1})
        said = self.redco("train", job, environment={"UNIT": "examples"})
        self.assertIn('the weight of \'loss\' is the number of rows. For a sum over tokens set unit = "tokens"', said)
        said = self.redco("train", job, environment={"RENAME": "labels"}, code=2)
        self.assertIn('`unit` is "tokens", but collate() gives neither the weight of \'loss\' nor an array of ids', said)

    def test_what_only_source_sets_is_named(self):
        job = self.job(script("source_only"), model=None, data=None)
        said = self.redco("check", job, code=1)
        self.assertIn("AttributeError: 'Sourced' object has no attribute 'scale'. source() does not run when", said)

    def test_hooks_masks_activations_and_moving_averages(self):
        job = self.job(script("hooks"), data=None, train={"max_steps": 4, "logging_steps": 2},
                       checkpoint={"resume": "never", "every_n_steps": 2})
        run = os.path.join(HOME, "run")
        expected = self.losses(job)
        self.assertEqual(self.metrics("progress"), [0.5, 1])
        self.assertEqual(len(self.metrics("twice")), 2)
        self.assertGreater(self.metrics("distance")[1], 0)
        last = os.path.join(run, "checkpoints", "last")
        with open(os.path.join(last, "notes", "why.txt")) as f:
            self.assertEqual(f.read(), "for a test")
        events = os.path.join(run, "tensorboard")
        with open(os.path.join(events, os.listdir(events)[0]), "rb") as f:
            self.assertEqual(f.read().count(b"\x0a\x09direction\x2a"), 2)  # Value: tag 1, histo 5
        distances = self.metrics("distance")
        self.assertNear(self.losses(job, (2, 2)), expected, 1e-5)
        self.assertNear(self.metrics("distance"), distances, 1e-4)
        # A run that continues has the average of the checkpoint, not a copy.
        shutil.rmtree(os.path.join(run, "checkpoints", "step-00000004"))
        os.unlink(last)
        os.symlink("step-00000002", last)
        self.redco("train", {**job, "checkpoint": {"every_n_steps": 2}}, (2, 1))
        self.assertNear(self.metrics("distance"), distances, 1e-4)

    def test_sums_of_a_step_become_buffers(self):
        job = self.job(script("codebook"), model=None, data=None, eval={"every_n_steps": 4},
                       train={"learning_rate": 0.05}, checkpoint={"resume": "never", "every_n_steps": 2})
        expected, codes = self.losses(job), self.metrics("code")
        self.assertNear(self.metrics("used"), [(4 - 8) * 0.5**k + 8 for k in range(1, 5)], 1e-5)
        self.assertNotEqual(codes[0], codes[3])
        # An evaluation has gradients inside of its loss, of parameters without tape: the same batch, one step later.
        self.assertLess(self.metrics("eval_loss")[0], expected[3])
        for mesh, rows in (((1, 1), 3), ((2, 1), 2), ((2, 2), 4)):
            job["train"]["per_device_batch_size"] = rows
            self.assertNear(self.losses(job, mesh), expected, 1e-5)
            self.assertNear(self.metrics("code"), codes, 1e-5)
        run = os.path.join(HOME, "run", "checkpoints")
        shutil.rmtree(os.path.join(run, "step-00000004"))
        os.unlink(os.path.join(run, "last"))
        os.symlink("step-00000002", os.path.join(run, "last"))
        self.redco("train", {**job, "checkpoint": {"every_n_steps": 2}}, (1, 1))
        self.assertNear(self.metrics("code")[-1:], codes[-1:], 1e-5)

    def test_a_queue_and_an_implicit_gradient_are_the_same_on_every_mesh(self):
        # MoCo: a buffer of the keys of a step, which a moving average makes. DEQ: gradients that are computed twice.
        for name in ("moco", "equilibrium"):
            job = self.job(script(name), model=None, data=None, train={"learning_rate": 0.01, "global_batch_size": 32})
            expected = self.losses(job)
            for mesh, rows in (((1, 1), 5), ((2, 1), 16), ((2, 2), 7)):
                job["train"]["per_device_batch_size"] = rows
                self.assertNear(self.losses(job, mesh), expected, 1e-5)

    def test_a_training_without_an_example_for_the_plan_starts(self):
        job = self.job(script("policy_gradient"), data={"train": [PAIRS]}, train={"max_steps": 1})
        said = self.redco("train", job, environment={"NO_PLAN": "1"})
        self.assertIn("[memory] not checked, because the job has no plan: ", said)
        said = self.redco("plan", job, environment={"NO_PLAN": "1"}, code=2)
        self.assertIn("source() does not run in a plan. Give it one: define plan_example(self, length)", said)

    def test_a_model_of_ones_own_reads_texts(self):
        job = self.job(script("bigram"), model={"tokenizer": "bytes"})
        self.assertNear(self.losses(job, (2, 2)), self.losses(job), 1e-5)
        said = self.redco("train", {**job, "model": {}}, code=2)
        self.assertIn("the job has no tokenizer for the texts of training data. Give model.tokenizer", said)

    def test_a_script_starts_jobs_of_its_own_pipeline(self):
        path = os.path.join(HOME, "sweep.py")
        with open(path, "w") as f:
            f.write("import sys\nimport redco\n"
                    "class Line(redco.Pipeline):\n"
                    "    def params(self):\n"
                    "        p = redco.Params()\n        p.add('w', [1], init=3.0)\n        return p\n"
                    "    def open(self, request):\n        return [{'x': 1.0}, {'x': 2.0}]\n"
                    "    def loss(self, params, batch, ctx):\n        return (params['w'] * batch['x']).sum()\n"
                    "for rate in map(float, sys.argv[1:]):\n"
                    "    redco.train({'pipeline': Line, 'workdir': f'sweep-{rate}', 'parallel': {'n_ranks': 2},\n"
                    "                 'train': {'max_steps': 1, 'global_batch_size': 2, 'learning_rate': rate}})\n")
        done = subprocess.run([REDCO, "run", path, "0.5", "0.25"], cwd=HOME, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        for rate in ("0.5", "0.25"):
            self.assertEqual(self.metrics(workdir=os.path.join(HOME, f"sweep-{rate}")), [4.5])
        done = subprocess.run([REDCO, "run", "none.py"], text=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none.py does not exist", done.stderr)

    def test_errors_end_the_search(self):
        expected = {
            "field": ["collate() failed: KeyError: the example has no field 'inputs'; it has: input_ids, labels",
                      "mistakes.py:15, in collate: `examples[0][\"inputs\"]`"],
            "rows": ["field 'input_ids' has 1 rows; expected 8 rows, one per example"],
            "exception": ["loss() failed: ZeroDivisionError: division by zero", "mistakes.py:25, in loss: `1 / 0`",
                          "The pipeline is"],
            "helper": ["ValueError: a helper's problem", "helper.py:2, in broken", "mistakes.py:27, in loss"],
            "none": ["TypeError: loss() returned None; expected a tensor with one element"],
            "shape": ["[add] shapes do not match: f32 (8, 32, 257)", "f32 (3, 5, 7)", "mistakes.py:34, in loss"],
            "parameter": ["no parameter is named 'transformer.wte.wieght'", "mistakes.py:36, in loss"],
            "branch": ["a branch on the value of f32 ()", "ctx.agree(tensor)", "mistakes.py:37"],
            "term": ["the term 'other' has no weight. Name it in `terms`"],
            "recompute": ["a helper's problem", "helper.py:2, in broken"],
        }
        for mistake, texts in expected.items():
            with self.subTest(mistake):
                mesh = (2, 1) if mistake == "exception" else (1, 1)
                said = self.redco("train", self.job(script("mistakes")), mesh, {"MISTAKE": mistake}, code=2)
                for text in texts:
                    self.assertIn(text, said)
                self.assertEqual(said.count("error:"), 1, said)

    def test_the_first_value_that_is_not_finite_is_named(self):
        job = self.job(script("mistakes"), train={"debug": True})
        said = self.redco("train", job, (1, 1), {"MISTAKE": "infinite"}, 6)
        self.assertIn("[debug] op log is the first whose result is not finite: -inf at element 0 of f32 (8, 32)", said)
        self.assertIn("mistakes.py:41, in loss: `losses = redco.log(losses * 0)`", said)
        job["train"]["debug"] = False
        self.assertIn("train.debug=true names the op", self.redco("train", job, (1, 1), {"MISTAKE": "infinite"}, 6))
        self.redco("train", self.job("lm", train={"debug": True, "max_steps": 1}), (1, 2))

    def test_an_endless_loop_is_named(self):
        for mesh in ((1, 1), (2, 1)):
            said = self.redco("train", self.job(script("mistakes"), fault={"timeout": 3, "max_restarts": 0}), mesh, {"MISTAKE": "endless"}, 5)
            self.assertRegex(said, r"no progress for 3 s .*\(phase: [a-z]+ in mistakes.py:(30|31), loss")

    def test_settings_are_checked(self):
        said = self.redco("train", self.job(script("mistakes"), settings={"alhpa": 1}), code=2)
        self.assertIn("unknown key settings.alhpa; did you mean settings.alpha?", said)
        said = self.redco("train", self.job(script("mistakes"), settings={"alpha": "much"}), code=2)
        self.assertIn("settings.alpha: expected a number, got the text 'much'", said)

    def test_scripts_that_are_none(self):
        for source, text in {
            "import redco\nclass A(redco.Pipeline)\n": "SyntaxError",
            "import redco\n": "it has no class derived from redco.Pipeline",
            "import no_such_module\n": "ModuleNotFoundError: No module named 'no_such_module'",
        }.items():
            path = os.path.join(HOME, "bad.py")
            with open(path, "w") as f:
                f.write(source)
            self.assertIn(text, self.redco("train", self.job(path), code=2))

    def test_the_skeleton_trains(self):
        subprocess.run([REDCO, "new", "pipeline", "sine"], cwd=HOME, check=True, stderr=subprocess.DEVNULL)
        folder = os.path.join(HOME, "sine")
        subprocess.run([REDCO, "train", "job.yaml", "parallel.n_ranks=2"], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL, timeout=120)
        self.assertLess(self.metrics("eval_loss", os.path.join(folder, "runs", "sine"))[-1], 0.05)


unittest.main()
