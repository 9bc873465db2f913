#!/usr/bin/env python3
"""Expected values of pipeline rl, by PyTorch: python3 scripts/make_rl_fixture.py > tests/fixtures/rl/expected.json

Needs torch. Losses and gradients of PPO (discrete and continuous) and DDPG on small random networks and
batches, and advantages by the loop of Stable-Baselines3's RolloutBuffer.
"""
import json
import math

import torch
from torch import nn
from torch.distributions import Categorical, Normal

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def rounded(t):
    """Rounds to float32, so that both sides start with the same numbers."""
    return t.to(torch.float32).to(torch.float64)


def network(name, sizes, params):
    for i in range(1, len(sizes)):
        params[f"{name}.fc{i}.weight"] = rounded(torch.randn(sizes[i], sizes[i - 1]) / math.sqrt(sizes[i - 1]))
        params[f"{name}.fc{i}.bias"] = rounded(0.1 * torch.randn(sizes[i]))


def run(name, x, params, act=torch.tanh):
    i = 1
    while f"{name}.fc{i}.weight" in params:
        x = nn.functional.linear(x, params[f"{name}.fc{i}.weight"], params[f"{name}.fc{i}.bias"])
        i += 1
        if f"{name}.fc{i}.weight" in params:
            x = act(x)
    return x


def plain(t):
    return short(t.detach().tolist())


def short(x):
    """Nine digits: they determine a float32 exactly, and tests compare fewer."""
    return [short(v) for v in x] if isinstance(x, list) else float(f"{x:.9g}") if isinstance(x, float) else x


def case(settings, params, batch, terms, gradients):
    return {
        "settings": settings,
        "params": {k: plain(v.flatten()) for k, v in params.items()},
        "batch": {k: plain(v) for k, v in batch.items()},
        "terms": {k: v.item() for k, v in terms.items()},
        "gradients": {k: plain(v.flatten()) for k, v in gradients.items()},
    }


def gradients_of(loss, params, prefixes):
    names = [n for n in params if n.startswith(prefixes)]
    found = torch.autograd.grad(loss, [params[n] for n in names], retain_graph=True)
    return dict(zip(names, found))


def ppo(discrete, clip_vf):
    n, obs, out = 12, 4 if discrete else 3, 2 if discrete else 1
    clip, vf, ent = 0.2, 0.5, 0.01
    params = {}
    network("actor", [obs, 8, 8, out], params)
    network("critic", [obs, 8, 8, 1], params)
    if not discrete:
        params["actor.log_std"] = rounded(torch.tensor([-0.3]))
    params = {k: v.requires_grad_() for k, v in params.items()}
    x = rounded(torch.randn(n, obs))

    def distribution():
        y = run("actor", x, params)
        return Categorical(logits=y) if discrete else Normal(y, params["actor.log_std"].exp())

    d = distribution()
    action = d.sample()
    action = action if discrete else rounded(action)
    log_prob = d.log_prob(action) if discrete else d.log_prob(action).sum(-1)
    batch = {
        "observation": x,
        "action": action.reshape(n, -1),
        # Old probabilities are so different that the ratio is clipped on both sides.
        "log_prob": rounded(log_prob.detach() + 0.3 * torch.randn(n)).reshape(n, 1),
        "advantage": rounded(torch.randn(n)).reshape(n, 1),
        "return": rounded(torch.randn(n)).reshape(n, 1),
    }
    value = run("critic", x, params)
    batch["value"] = rounded(value.detach() + 0.3 * torch.randn(n, 1))
    ratio = (log_prob.reshape(n, 1) - batch["log_prob"]).exp()
    a = batch["advantage"]
    policy = -torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
    error = (value - batch["return"]) ** 2
    if clip_vf is not None:
        clipped = batch["value"] + (value - batch["value"]).clamp(-clip_vf, clip_vf)
        error = torch.max(error, (clipped - batch["return"]) ** 2)
    entropy = (d.entropy() if discrete else d.entropy().sum(-1)).mean()
    loss = policy + vf * error.mean() - ent * entropy
    settings = {"clip_range": clip, "vf_coef": vf, "ent_coef": ent}
    if clip_vf is not None:
        settings["clip_range_vf"] = clip_vf
    terms = {"loss": loss, "policy": policy, "value": error.mean(), "entropy": entropy}
    return case(settings, params, batch, terms, gradients_of(loss, params, ("actor", "critic")))


def ddpg():
    n, obs, act = 12, 3, 1
    params = {}
    for prefix in ("", "target."):
        network(prefix + "actor", [obs, 8, 8, act], params)
        network(prefix + "critic", [obs + act, 8, 8, 1], params)
    params = {k: v.requires_grad_() for k, v in params.items()}
    batch = {
        "observation": rounded(torch.randn(n, obs)),
        "next_observation": rounded(torch.randn(n, obs)),
        "action": rounded(torch.rand(n, act) * 2 - 1),
        "reward": rounded(torch.randn(n, 1)),
        "discount": rounded(0.99 * (torch.rand(n, 1) > 0.3)),
    }
    relu = torch.relu
    following = run("target.actor", batch["next_observation"], params, relu).tanh()
    later = run("target.critic", torch.cat([batch["next_observation"], following], -1), params, relu)
    wanted = (batch["reward"] + batch["discount"] * later).detach()
    now = run("critic", torch.cat([batch["observation"], batch["action"]], -1), params, relu)
    critic = nn.functional.mse_loss(now, wanted)
    best = run("actor", batch["observation"], params, relu).tanh()
    actor = -run("critic", torch.cat([batch["observation"], best], -1), params, relu).mean()
    gradients = gradients_of(critic, params, ("critic",)) | gradients_of(actor, params, ("actor",))
    return case({}, params, batch, {"critic": critic, "actor": actor}, gradients)


def advantages():
    """Stable-Baselines3: a truncated episode's reward gets gamma * V(last observation); then GAE over dones."""
    steps, n, gamma, lam = 9, 3, 0.97, 0.9
    rewards, values, following = (rounded(torch.randn(steps, n)) for _ in range(3))
    ended = torch.rand(steps, n) < 0.3
    terminated = ended & (torch.rand(steps, n) < 0.5)
    for t in range(steps - 1):  # the state after a step that does not end an episode is the next step's state
        following[t] = torch.where(ended[t], following[t], values[t + 1])
    bootstrapped = rewards + gamma * following * (ended & ~terminated)
    out, last = torch.zeros(steps, n), torch.zeros(n)
    for t in reversed(range(steps)):
        goes_on = (~ended[t]).double()
        nxt = values[t + 1] if t + 1 < steps else following[t]
        delta = bootstrapped[t] + gamma * nxt * goes_on - values[t]
        last = delta + gamma * lam * goes_on * last
        out[t] = last
    return {"n": n, "gamma": gamma, "lambda": lam, "rewards": plain(rewards.flatten()),
            "values": plain(values.flatten()), "next_values": plain(following.flatten()),
            "terminated": plain(terminated.flatten()), "ended": plain(ended.flatten()),
            "advantages": plain(out.flatten())}


print(json.dumps({"advantages": advantages(), "ppo_discrete": ppo(True, None), "ppo_continuous": ppo(False, 0.2),
                  "ddpg": ddpg()}, separators=(",", ":")))
