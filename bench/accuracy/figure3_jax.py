"""RedCoast's part of figure3.py: its Deployer and Trainer on JAX, two CPU devices, two model shards."""
import argparse
import json
import math
import os
import statistics
import time

os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from flax.traverse_util import flatten_dict, unflatten_dict  # noqa: E402
from redco import Deployer, Trainer  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from transformers import AutoConfig, FlaxAutoModelForCausalLM  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--initial", required=True)
parser.add_argument("--batches", required=True)
parser.add_argument("--learning-rate", type=float, required=True)
args = parser.parse_args()
deployer = Deployer(jax_seed=0, n_model_shards=2, workdir=None)
model = FlaxAutoModelForCausalLM.from_config(AutoConfig.from_pretrained(args.initial), dtype=jnp.float32, _do_init=False)


def initial_params():
    """The stored weights with Flax's names and orientation."""
    stored = {}
    for name in sorted(os.listdir(args.initial)):
        if name.endswith(".safetensors"):
            stored.update(load_file(os.path.join(args.initial, name)))
    params = {}
    for key, like in flatten_dict(jax.eval_shape(lambda: model.init_weights(jax.random.PRNGKey(0), (1, 8)))).items():
        path, kind = ".".join(key[:-1]), key[-1]
        value = stored[f"{path}.{'bias' if kind == 'bias' else 'weight'}"]
        params[key] = value.T if kind == "kernel" else value
        if params[key].shape != like.shape:
            raise SystemExit(f"{path}: {params[key].shape} for {like.shape}")
    return unflatten_dict(params)


def collate(examples):
    return {"input_ids": np.stack([e["inputs"] for e in examples]), "labels": np.stack([e["labels"] for e in examples])}


def loss(rng, state, params, batch, is_training):
    logits = state.apply_fn(input_ids=batch["input_ids"], params=params)[0]  # without dropout
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()


params = initial_params()
trainer = Trainer(deployer=deployer, collate_fn=collate, apply_fn=model, loss_fn=loss, params=params, compute_dtype=jnp.float32,
                  optimizer=optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(args.learning_rate, weight_decay=0.01)),
                  params_sharding_rules=deployer.get_sharding_rules(params_shape_or_params=params))
data = np.load(args.batches)
rows, times = data["inputs"].shape[1], []
for inputs, labels in zip(data["inputs"], data["labels"]):
    examples = [{"inputs": i, "labels": j} for i, j in zip(inputs, labels)]
    begin = time.perf_counter()
    trainer.fit(train_examples=examples, per_device_batch_size=rows, n_epochs=1)
    jax.block_until_ready(trainer.state.params)
    times.append(time.perf_counter() - begin)


@jax.jit
def summed(params, inputs, labels):
    each = optax.softmax_cross_entropy_with_integer_labels(model(input_ids=inputs, params=params)[0], jnp.maximum(labels, 0))
    return jnp.where(labels >= 0, each, 0).sum(), each.mean()


total, held_out, labels = 0.0, data["eval_inputs"], data["eval_labels"]
for first in range(0, len(held_out), rows):
    total += float(summed(trainer.state.params, held_out[first:first + rows], labels[first:first + rows])[0])
after = float(summed(trainer.state.params, data["inputs"][-1], data["labels"][-1])[1])
print(json.dumps(dict(tokens_per_s=data["inputs"][0].size / statistics.median(times[2:]), loss=[after],
                      perplexity=math.exp(total / int((labels >= 0).sum())))), flush=True)
