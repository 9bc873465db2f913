"""A recurrent language model, a classifier of texts, and a regression on feature vectors."""
from typing import Literal, Optional

import redco


class Averages(redco.ModelFamily):
    """Each layer adds an exponential average of the tokens before."""

    relative_positions, attends, cache, max_length = True, False, "state", 64

    class Config:
        vocab_size: int
        hidden_size: int
        num_hidden_layers: int

    def spec(self, p):
        c = self.config
        p.embedding("embed", c.vocab_size, c.hidden_size, 0.1)
        for i in range(c.num_hidden_layers):
            p.norm(f"layers.{i}.norm", c.hidden_size, bias=False)
            p.add(f"layers.{i}.decay", [c.hidden_size], init="uniform", std=1.0, cut=-1)
            p.linear(f"layers.{i}.out", c.hidden_size, c.hidden_size, bias=False)
        p.linear("lm_head", c.vocab_size, c.hidden_size, bias=False, role="head")

    def average(self, own, o, i, x, key_mask):
        rows, tokens, width = x.shape
        decay = -redco.softplus(own[f"layers.{i}.decay"]).reshape([1, 1, width])
        decay, k = redco.broadcast_to(decay, [rows, tokens, width]), redco.ones_like(x)
        v, cache = x, redco.layer_cache(o, i)
        if key_mask is not None:
            start = cache.length if cache else 0
            seen = key_mask[:, start:start + tokens].float().reshape([rows, tokens, 1])
            decay, v = decay * seen, v * seen
        shape = [rows, tokens, width, 1]
        before = cache.read() if cache else []
        y, state = redco.linear_recurrence(decay, k.reshape(shape), k.reshape(shape), v.reshape(shape),
                                           initial=before[0] if before else None)
        if cache:
            cache.append([state], tokens)
        return redco.dense(own, f"layers.{i}.out", y.reshape([rows, tokens, width]), o)

    def decode(self, params, inputs, o):
        x = redco.embedding(params["embed"], inputs.input_ids)
        for i in range(self.config.num_hidden_layers):
            x = redco.run_block(params, o, f"layers.{i}", x, lambda own, x, i=i: x + self.average(
                own, o, i, redco.rms_norm_of(own, f"layers.{i}.norm", x), inputs.key_mask))
        return redco.lm_head(params, "lm_head", x, o)


class BagOfWords(redco.ModelFamily):
    task = "sequence-classification"

    class Config:
        vocab_size: int
        hidden_size: int
        num_labels: int = 2
        pooling: Literal["mean", "sum"] = "mean"
        scale: Optional[float] = None
        max_position_embeddings: int = 64

    def spec(self, p):
        c = self.config
        p.embedding("embed", c.vocab_size, c.hidden_size, 0.1)
        p.linear("hidden", c.hidden_size, c.hidden_size, std=0.5, role="first")
        p.linear("classifier", c.num_labels, c.hidden_size, std=0.5, role="second")

    def encode_outputs(self, params, inputs, o):
        x = redco.embedding(params["embed"], inputs.input_ids)
        if inputs.key_mask is not None:
            x = x * inputs.key_mask.float().reshape([*inputs.key_mask.shape, 1])
        x = x.mean(1) if self.config.pooling == "mean" else x.sum(1)
        x = redco.dropout(o, "pooled", 0.1, x)
        return redco.dense(params, "classifier", redco.relu(redco.dense(params, "hidden", x, o)), o)


class Bumps(redco.ModelFamily):
    task, vocabulary, attends, n_layers, num_labels, problem_type = "vector-regression", False, False, 1, 1, "regression"

    class Config:
        input_size: int
        hidden_size: int

    def spec(self, p):
        p.linear("in", self.config.hidden_size, self.config.input_size, std=1.0)
        p.linear("out", 1, self.config.hidden_size, std=0.3)

    def encode_outputs(self, params, inputs, o):
        return redco.dense(params, "out", redco.exp(-redco.square(redco.dense(params, "in", inputs.features, o))), o)
