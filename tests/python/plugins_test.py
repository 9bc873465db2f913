"""Optimizers and model families in Python, run by the program: equal to the built-in ones, on every mesh."""

import filecmp
import json
import os
import shutil
import sys
import types
import unittest

import numpy as np
import redco

from jobs import HOME, SOURCE, Jobs

PLUGINS = os.path.join(SOURCE, "tests", "python", "plugins")
EXAMPLES = os.path.join(SOURCE, "examples")
DECODER = {"tokenizer": "bytes", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
RUN = os.path.join(HOME, "run")
LAST = os.path.join(RUN, "checkpoints", "last")


def plugin(name):
    return os.path.join(PLUGINS, name + ".py")


class Optimizers(Jobs):
    def lm(self, parallel=None, **train):
        job = self.job("lm", train={"weight_decay": 0.1, "clip_grad_norm": 1.0, **train})
        return {**job, "parallel": {"threads_per_rank": 1, **(parallel or {})}}

    def go_back(self, step, last):
        """The run as it was after a step."""
        shutil.rmtree(os.path.join(RUN, "checkpoints", f"step-{last:08}"))
        os.unlink(LAST)
        os.symlink(f"step-{step:08}", LAST)

    def test_sgd_in_python_is_the_built_in_one_to_the_byte(self):
        expected = self.losses(self.lm(optimizer="sgd", momentum=0.9))
        built_in = os.path.join(HOME, "built_in")
        shutil.copytree(os.path.realpath(LAST), built_in)
        mine = self.lm(optimizer=plugin("momentum"))
        self.assertEqual(self.losses(mine), expected)
        for name in ("model.safetensors", "training/optimizer.safetensors"):
            self.assertTrue(filecmp.cmp(os.path.join(built_in, name), os.path.join(LAST, name), shallow=False), name)
        # Every sharding of the state, and more model shards.
        sharded = {"n_ranks": 2, "shard_optimizer": True}
        one = self.losses(self.lm({"n_ranks": 2}, optimizer=plugin("momentum")))
        self.assertEqual(self.losses(self.lm(sharded, optimizer=plugin("momentum"))), one)
        self.assertNear(self.losses(self.lm({"n_ranks": 2, "shard_parameters": True}, optimizer=plugin("momentum"))),
                        expected, 1e-5)
        self.assertNear(self.losses(self.lm({"n_ranks": 4, "n_model_shards": 2, "shard_gradients": True},
                                            optimizer=plugin("momentum"))), expected, 1e-5)

    def test_it_resumes(self):
        settings = {"optimizer": plugin("momentum"), "optimizer_settings": {"momentum": 0.8}}
        job = self.lm({"n_ranks": 2, "shard_optimizer": True}, **settings)
        job["checkpoint"] = {"resume": "never", "every_n_steps": 2}
        expected = self.losses(job)
        self.go_back(2, 4)
        said = self.redco("train", {**job, "checkpoint": {"every_n_steps": 2}})
        self.assertEqual(self.metrics(), expected, said)
        with open(os.path.join(LAST, "training", "state.json")) as f:
            self.assertEqual(json.load(f)["plugins"][0]["path"], plugin("momentum"))
        # A plugin is for the training only: a checkpoint names it, and runs none of its code.
        self.redco("predict", {"workdir": RUN, "predict": {"prompt": "S", "max_new_tokens": 2}})
        self.go_back(2, 4)
        other = {**job, "checkpoint": {}, "train": {**job["train"], "optimizer": "adamw", "optimizer_settings": {}}}
        self.assertIn("momentum", self.redco("train", other, code=2))

    def test_state_of_other_shapes_on_shards(self):
        job = {"optimizer": plugin("rows"), "learning_rate": 1e-3}
        expected = self.losses(self.lm(**job))
        self.assertLess(expected[-1], expected[0])
        for parallel in ({"n_ranks": 2, "shard_optimizer": True}, {"n_ranks": 2, "n_model_shards": 2}):
            self.assertNear(self.losses(self.lm(parallel, **job)), expected, 1e-5)
        self.assertRegex(self.redco("plan", self.lm(**job)), r"  optimizer +3\.59 KiB")

    def test_a_group_has_an_optimizer_in_python(self):
        path = os.path.join(HOME, "grouped.py")
        with open(path, "w") as f:
            f.write("import sys\nimport redco\n"
                    f"sys.path.append({PLUGINS!r})\nfrom momentum import Momentum\n"
                    "class Grouped(redco.builtin.LM):\n"
                    "    def groups(self):\n"
                    "        return [redco.ParamGroup('all', term='loss', optimizer=Momentum(momentum=0.9))]\n")
        expected = self.losses(self.lm(optimizer="sgd", momentum=0.9, weight_decay=0.01))
        job = self.lm()
        self.assertEqual(self.losses({**job, "pipeline": path}), expected)

    def test_lion_is_its_formula(self):
        sys.path.append(EXAMPLES)
        from lion import Lion

        rng = np.random.default_rng(0)
        p, m = rng.normal(size=(2, 3)).astype("f4"), np.zeros((2, 3), "f4")
        rule, now = Lion(beta1=0.8), (redco.tensor(p), {"momentum": redco.tensor(m)})
        for _ in range(3):
            g = rng.normal(size=p.shape).astype("f4")
            p = p - 0.1 * (np.sign(0.8 * m + 0.2 * g) + 0.5 * p)
            m = 0.99 * m + 0.01 * g
            now = rule.update(now[0], redco.tensor(g), now[1], types.SimpleNamespace(learning_rate=0.1, weight_decay=0.5))
        np.testing.assert_allclose(now[0].numpy(), p, rtol=1e-6)
        np.testing.assert_allclose(now[1]["momentum"].numpy(), m, rtol=1e-5)

    def test_errors(self):
        expected = {
            "exception": "[optimizer] update() of momentum ({}) for transformer.wte.weight failed: ZeroDivisionError: "
                         "division by zero\n  {}:17, in update: `return 1 / 0`",
            "state": "failed: the new state that it returned has no 'momentum_buffer'",
            "shape": "[add] shapes do not match",
            "sum": "[optimizer] elementwise() of momentum",
        }
        path = plugin("momentum")
        for mistake, text in expected.items():
            with self.subTest(mistake):
                said = self.redco("train", self.lm(optimizer=path), environment={"MISTAKE": mistake}, code=2)
                self.assertIn(text.format(path, path), said)
        said = self.redco("train", self.lm(optimizer=path, optimizer_settings={"momentun": 1}), code=2)
        self.assertIn("unknown key train.optimizer_settings.momentun; did you mean train.optimizer_settings.momentum?",
                      said)
        self.assertIn("it has no class derived from redco.Optimizer",
                      self.redco("train", self.lm(optimizer=os.path.join(PLUGINS, "..", "jobs.py")), code=2))
        self.assertIn("none.py does not exist", self.redco("train", self.lm(optimizer="./none.py"), code=2))
        several = plugin("families")
        self.assertIn("has several classes derived from redco.ModelFamily (averages, bag_of_words, bumps)",
                      self.redco("train", {**self.lm(), "model": {"arch": several, "tokenizer": "bytes"}}, code=2))


class Families(Jobs):
    def test_the_decoder_is_the_built_in_one(self):
        job = self.job("lm", train={"learning_rate": 1e-2})
        expected = self.losses({**job, "model": {"arch": "llama", **DECODER}})
        mine = {**job, "model": {"arch": os.path.join(EXAMPLES, "decoder.py"), **DECODER}}
        self.assertEqual(self.losses(mine), expected)
        for parallel in ({"n_ranks": 2, "n_model_shards": 2, "sequence_parallel": True},
                         {"n_ranks": 4, "n_model_shards": 4}, {"n_ranks": 2, "shard_parameters": True}):
            found = self.losses({**mine, "parallel": {"threads_per_rank": 1, **parallel},
                                 "train": {**mine["train"], "recompute": "block"}})
            self.assertNear(found, expected, 1e-5)
        # Its checkpoint is one of the family; generation uses the cache.
        said = self.redco("predict", {**mine, "predict": {"prompt": "Sentence", "max_new_tokens": 8}})
        weights = os.path.join(HOME, "llama")
        os.mkdir(weights)
        shutil.copy(os.path.join(LAST, "model.safetensors"), weights)
        with open(os.path.join(LAST, "config.json")) as f:
            config = json.load(f)
        self.assertEqual((config["model_type"], config["architectures"]), ("tiny_decoder", ["TinyDecoder"]))
        config.update(model_type="llama", architectures=["LlamaForCausalLM"])
        with open(os.path.join(weights, "config.json"), "w") as f:
            json.dump(config, f)
        answer = {"model": {"path": weights, "tokenizer": "bytes"}, "predict": {"prompt": "Sentence", "max_new_tokens": 8}}
        self.assertEqual(said.splitlines()[-1], self.redco("predict", answer).splitlines()[-1])
        self.redco("predict", {"workdir": RUN, "predict": {"prompt": "S", "max_new_tokens": 2}})  # its user has trained it
        other = {"XDG_CONFIG_HOME": os.path.join(HOME, "of-another")}
        said = self.redco("predict", {"workdir": RUN, "predict": {"prompt": "S"}}, environment=other, code=2)
        self.assertIn("is a model of the family tiny_decoder, which is not built in", said)
        self.assertIn(os.path.join(EXAMPLES, "decoder.py"), said)

    def test_an_encoder_decoder_is_the_built_in_one(self):
        path = os.path.join(HOME, "reverse.jsonl")
        with open(path, "w") as f:
            for i in range(40):
                text = "abcdefgh"[i % 5:][:3 + i % 4]
                f.write(json.dumps({"source": text, "target": text[::-1]}) + "\n")
        job = self.job("seq2seq", data={"train": [path]}, train={"learning_rate": 3e-3}, model=None)
        bart = {"arch": "bart", "tokenizer": "bytes", "d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
                "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                "max_position_embeddings": 64, "dropout": 0.0, "tie_word_embeddings": False, "pad_token_id": 1,
                "decoder_start_token_id": 2}
        own = {"arch": plugin("encoder_decoder"), "tokenizer": "bytes", "d_model": 32, "ffn_dim": 48, "layers": 2,
               "heads": 4}
        asked = {"predict": {"prompt": "abcd", "max_new_tokens": 6}}
        expected = self.losses({**job, "model": bart})
        answer = self.redco("predict", {**job, "model": bart, **asked}).splitlines()[-1]
        self.assertEqual(self.losses({**job, "model": own}), expected)
        self.assertEqual(self.redco("predict", {**job, "model": own, **asked}).splitlines()[-1], answer)
        self.assertNear(self.losses({**job, "model": own}, (2, 2)), expected, 1e-5)

    def test_fused_layers_and_names_of_files(self):
        folder, source = os.path.join(HOME, "tiny_gpt2"), os.path.join(SOURCE, "tests", "fixtures", "gpt2")
        os.mkdir(folder)
        shutil.copy(os.path.join(source, "model.safetensors"), folder)
        with open(os.path.join(source, "config.json")) as f:
            config = json.load(f)
        kept = {k: config[k] for k in ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions")}
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({**kept, "model_type": "tiny_gpt2"}, f)
        mine = redco.load(folder, plugins=[plugin("fused")], tokenizer="bytes")
        built_in = redco.load(source, tokenizer="bytes")
        np.testing.assert_allclose(mine.logits("a text"), built_in.logits("a text"), rtol=1e-4, atol=1e-5)

    def test_a_recurrent_family_has_a_cache(self):
        job = self.job("lm", train={"learning_rate": 1e-2})
        job = {**job, "plugins": [plugin("families")],
               "model": {"arch": "averages", "tokenizer": "bytes", "hidden_size": 16, "num_hidden_layers": 2}}
        expected = self.losses(job)
        self.assertLess(expected[-1], expected[0])
        self.assertNear(self.losses(job, (2, 2)), expected, 1e-5)
        # In this process. With the cache and rows of two lengths as without: each prefix gives the next token.
        m = redco.load(LAST, plugins=[plugin("families")])
        prompts = ["Sentence 1 of", "A"]
        for prompt, text in zip(prompts, m.generate(prompts, max_new_tokens=5, min_new_tokens=5)):
            ids = m.tokenizer.encode(prompt)
            for _ in range(5):
                ids.append(int(m.logits(ids)[-1].argmax()))
            self.assertEqual(text, m.tokenizer.decode(ids[-5:]))

    def test_families_of_other_tasks(self):
        data = os.path.join(HOME, "labels.jsonl")
        with open(data, "w") as f:
            for i in range(40):
                f.write(json.dumps({"text": "good " * (i % 3 + 1) if i % 2 else "bad words", "label": i % 2}) + "\n")
        job = self.job("classification", data={"train": [data]}, train={"max_steps": 20, "learning_rate": 3e-2})
        job = {**job, "plugins": [plugin("families")], "model": {"arch": "bag_of_words", "tokenizer": "bytes",
                                                                 "hidden_size": 8, "num_labels": 2}}
        expected = self.losses(job)
        self.assertLess(expected[-1], 0.5 * expected[0])
        self.assertNear(self.losses(job, (2, 2))[:3], expected[:3], 1e-4)
        for key, value, text in (("pooling", "max", "pooling"), ("scale", "much", "scale"), ("hiden_size", 8, "hiden_size")):
            said = self.redco("train", {**job, "model": {**job["model"], key: value}}, code=2)
            self.assertIn(text, said)
        said = self.redco("plan", {**job, "model": {"arch": "bag_of_words", "tokenizer": "bytes"}}, code=2)
        self.assertIn("hidden_size", said)


unittest.main()
