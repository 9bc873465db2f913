"""Rollouts with a reward in Python, which is random on each rank: ctx.on_first() makes it one."""

import os
import random

import redco


class PolicyGradient(redco.Pipeline):
    passes = 2

    class Settings:
        group: int = 4
        prompts: int = 4
        agree: bool = True

    def example(self, record):
        return {"prompt": self.prompt_ids(record["prompt"])}

    def source(self, params, ctx):
        s = self.settings
        first = ctx.epoch * s.prompts
        prompts = [e["prompt"] for e in self.train_data.endless(first, s.prompts)]
        answers = self.sample(params, prompts, first, num_return_sequences=s.group, temperature=1.0, max_new_tokens=6)
        examples, total = [], 0.0
        for prompt, group in zip(prompts, answers):
            reward = lambda: [r.text.count("e") + int.from_bytes(os.urandom(1), "little") / 255 for r in group]
            rewards = ctx.on_first(reward) if s.agree else reward()
            total += sum(rewards)
            for r, a in zip(group, redco.group_advantages(rewards)):
                examples.append({"ids": list(prompt) + r.ids, "first": len(prompt), "advantage": a})
        assert random.random() >= 0
        return examples, {"reward": total / len(examples)}

    if "NO_PLAN" not in os.environ:

        def plan_example(self, length):
            return {"ids": [1] * length, "first": 1, "advantage": 0.0}

    def collate(self, examples, shape):
        fields, _ = self.token_rows(shape, [(e["ids"], int(e["first"])) for e in examples])
        return {**fields, "advantage": redco.rows(examples, "advantage")}

    def loss(self, params, batch, ctx):
        return -(self.token_log_probs(params, batch, ctx).sum(1) * batch["advantage"]).sum()
