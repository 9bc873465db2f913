"""RedCoast (Deployer, Trainer) on JAX: the training step of GPT-2 124M on CPU devices, with data or model parallelism."""
import argparse
import os
import statistics
import time

from common import peak_memory, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--devices", type=int, default=2)
parser.add_argument("--shards", type=int, default=1)
parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
parser.add_argument("--rows", type=int, default=4)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()
os.environ.update(XLA_FLAGS=f"--xla_force_host_platform_device_count={args.devices}", JAX_PLATFORMS="cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from redco import Deployer, Trainer  # noqa: E402
from transformers import FlaxGPT2LMHeadModel, GPT2Config  # noqa: E402

dtype = jnp.bfloat16 if args.dtype == "bf16" else jnp.float32
deployer = Deployer(jax_seed=0, n_model_shards=args.shards, workdir=None)
model = FlaxGPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), dtype=dtype, _do_init=False)
params = model.init_weights(jax.random.PRNGKey(0), (1, 8))


def collate(examples):
    tokens = np.stack([e["tokens"] for e in examples])
    return {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]}


def loss(rng, state, params, batch, is_training):
    labels = batch.pop("labels")
    logits = state.apply_fn(**batch, params=params, dropout_rng=rng, train=is_training)[0]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


trainer = Trainer(deployer=deployer, collate_fn=collate, apply_fn=model, loss_fn=loss, params=params, compute_dtype=dtype,
                  optimizer=optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, weight_decay=0.01)),
                  params_sharding_rules=deployer.get_sharding_rules(params_shape_or_params=params))
random = np.random.RandomState(0)
rows = [{"tokens": random.randint(0, 50257, args.length + 1)} for _ in range(args.rows)]
times = []
for _ in range(args.steps + 2):
    begin = time.perf_counter()
    trainer.fit(train_examples=rows, per_device_batch_size=args.rows * args.shards // args.devices, n_epochs=1)
    jax.block_until_ready(trainer.state.params)
    times.append(time.perf_counter() - begin)
seconds = statistics.median(times[2:])
report(step_s=seconds, tokens_per_s=args.rows * args.length / seconds, peak_memory_bytes=peak_memory())
