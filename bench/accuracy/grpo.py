#!/usr/bin/env python3
"""GRPO: compares redco with PyTorch for the same initial weights, the same recorded answers and steps.

    PEER_PYTHON bench/accuracy/grpo.py --work /tmp/grpo [--iterations 3] [--loss grpo dapo dr_grpo sequence delta]

PEER_PYTHON has torch and transformers. redco trains the model of configs/grpo/warm_start.yaml for some steps. From it,
each loss trains one epoch of several passes through its own answers, with a reference (beta > 0). The checkpoint
holds the answers, their log-probabilities and advantages. The peer is transformers' LlamaForCausalLM on the same
folder, as policy and as reference, with these answers in redco's order, torch.optim.AdamW and clipping. After the first
step probability ratios differ from 1, and some tokens are clipped. Losses are about 0.01 to 0.2 in size, so their
absolute difference counts. It must be below 1e-5 in every step. It is mostly below 1e-7. One step of dapo has 7e-6, for
which no cause was proved: AdamW can make updates as large as the learning rate from gradients that are rounding errors.
sequence and delta are loss_type grpo with importance_sampling_level sequence and with delta, as TRL computes them.
"""
import argparse
import json
import os
import subprocess

import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM

from redco_order import epoch_order

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = os.path.join(HERE, "..", "..", "configs", "grpo")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for the data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--iterations", type=int, default=3, help="passes through the answers")
parser.add_argument("--loss", nargs="+", default=["grpo", "dapo", "dr_grpo", "sequence", "delta"])
args = parser.parse_args()
torch.set_num_threads(1)
PROMPTS, GROUP, BATCH, TOKENS, LEARNING_RATE, EPSILON, DELTA, BETA, SEED = 16, 8, 32, 4, 3e-4, 0.2, 1.25, 0.04, 42
STEPS = args.iterations * PROMPTS * GROUP // BATCH
os.makedirs(args.work, exist_ok=True)


def redco(job, name, *words):
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", os.path.join(JOBS, job), f"workdir={workdir}", "parallel.threads_per_rank=1",
                    "data.eval=[]", "eval.every_n_epochs=~", "checkpoint.resume=never", f"train.seed={SEED}", *words],
                   check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    return os.path.join(workdir, "checkpoints", "last"), os.path.join(workdir, "metrics.jsonl")


LOSS_TYPE = {"sequence": "grpo", "delta": "grpo"}
VARIANT = {"sequence": ["grpo.importance_sampling_level=sequence"], "delta": [f"grpo.delta={DELTA}"]}
FOLDER, _ = redco("warm_start.yaml", "start", "train.max_steps=150")


def recorded(checkpoint):
    """(ids, index of the answer's first token, log-probabilities when sampled, advantage) of each answer."""
    with open(os.path.join(checkpoint, "training", "state.json"), encoding="utf-8") as f:
        state = json.load(f)["pipeline_state"]
    out = []
    for e in state["examples"]:
        sampled = e["values"]["log_probs"]
        out.append((e["ids"]["answer"], len(e["ids"]["answer"]) - len(sampled), sampled, e["values"]["advantage"][0]))
    return out


def token_log_probs(model, rows):
    length = max(len(r[0]) for r in rows)
    ids = torch.tensor([r[0] + [0] * (length - len(r[0])) for r in rows])
    return F.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]


def loss_of(kind, policy, reference, rows):
    mine = token_log_probs(policy, rows)
    with torch.no_grad():
        theirs = token_log_probs(reference, rows)
    mask, sampled = torch.zeros_like(mine), torch.zeros_like(mine)
    for r, (ids, first, log_probs, _) in enumerate(rows):
        mask[r, first - 1:len(ids) - 1] = 1
        sampled[r, first - 1:len(ids) - 1] = torch.tensor(log_probs)
    advantage = torch.tensor([r[3] for r in rows])[:, None]
    log_ratio = (mine - sampled) * mask
    # TRL: importance_sampling_level sequence is GSPO; delta limits the ratio before the minimum
    ratio = torch.exp(log_ratio.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True) if kind == "sequence" else log_ratio)
    limited = ratio.clamp(1 - EPSILON, 1 + EPSILON)
    if kind == "delta":
        ratio = ratio.clamp(max=DELTA)
    gain = torch.minimum(ratio * advantage, limited * advantage)
    apart = (theirs - mine) * mask
    token = (BETA * (torch.exp(apart) - apart - 1) - gain) * mask
    clipped = ((gain < ratio * advantage) * mask).sum().item()
    if kind == "dapo":
        return token.sum() / mask.sum(), clipped
    return (token.sum(-1) / (TOKENS if kind == "dr_grpo" else mask.sum(-1))).mean(), clipped


def peer(kind, answers):
    policy, reference = (LlamaForCausalLM.from_pretrained(FOLDER).eval() for _ in range(2))
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    order = [i for k in range(args.iterations) for i in epoch_order(len(answers), SEED, k)]
    losses, clipped = [], 0
    for step in range(STEPS):
        loss, n = loss_of(kind, policy, reference, [answers[i] for i in order[step * BATCH:(step + 1) * BATCH]])
        clipped += n
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, clipped


for kind in args.loss:
    checkpoint, metrics = redco(
        "arithmetic.yaml", kind, f"model={{path: {FOLDER}, tokenizer: bytes}}", f"models={{reference: {{path: {FOLDER}}}}}",
        "train.n_epochs=~", f"train.max_steps={STEPS}", "train.logging_steps=1", "train.warmup_ratio=0",
        "train.schedule=constant", "train.clip_grad_norm=1.0",
        f"train.global_batch_size={BATCH}", f"train.learning_rate={LEARNING_RATE}", f"grpo.prompts_per_epoch={PROMPTS}",
        f"grpo.num_generations={GROUP}", f"grpo.num_iterations={args.iterations}", f"grpo.max_new_tokens={TOKENS}",
        f"grpo.epsilon={EPSILON}", f"grpo.epsilon_high={EPSILON}", f"grpo.beta={BETA}", f"grpo.loss_type={LOSS_TYPE.get(kind, kind)}",
        *VARIANT.get(kind, []))
    with open(metrics, encoding="utf-8") as lines:
        ours = [j["loss"] for j in map(json.loads, lines) if "loss" in j]
    theirs, clipped = peer(kind, recorded(checkpoint))
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"{kind}: {len(ours)} steps, losses {min(ours):.6f} to {max(ours):.6f}, {clipped:.0f} clipped tokens; "
          f"largest difference to PyTorch {worst:.1e}")
    assert len(ours) == STEPS and clipped > 0 and worst < 1e-5, list(zip(ours, theirs))
