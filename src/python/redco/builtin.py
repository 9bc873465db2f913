"""Built-in pipelines to derive from: `class Mine(redco.builtin.LM): def loss(...)`.

What the class does not define is that of the built-in pipeline, with its sections of the job. In an own loss,
`super().loss(params, batch, ctx)` is the built-in's: a dict of named sums.
"""

from redco._pipeline import Pipeline


class _BuiltIn(Pipeline):
    def collate(self, examples, shape):
        return self._cpp.base_collate(examples, shape)

    def loss(self, params, batch, ctx):
        return self._cpp.base_loss(params, batch, ctx)

    def predict(self, params, examples, ctx):
        return self._cpp.base_predict(params, examples, ctx)

    def metrics(self, means):
        return self._cpp.base_metrics(means)


class LM(_BuiltIn):
    _built_in = "lm"


class Seq2Seq(_BuiltIn):
    _built_in = "seq2seq"


class Classification(_BuiltIn):
    _built_in = "classification"


class Regression(_BuiltIn):
    _built_in = "regression"


class DPO(_BuiltIn):
    _built_in = "dpo"


class GRPO(_BuiltIn):
    _built_in = "grpo"


class Reward(_BuiltIn):
    _built_in = "reward"


class Distillation(_BuiltIn):
    _built_in = "distillation"


class Captioning(_BuiltIn):
    _built_in = "captioning"
