"""PyTorch: PPO on CartPole with the settings of configs/rl/cartpole_ppo.yaml.

The environments are stepped together by numpy (gymnasium's equations), the policy sees all of them together, and an update
takes one minibatch of all transitions: the loop has no work per environment in Python.
"""
import argparse
import time

import numpy as np
import torch

from common import peak_memory, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)
N_ENVS, N_STEPS, UPDATES, GAMMA, LAMBDA, CLIP = 8, 32, 20, 0.98, 0.8, 0.2


class CartPoles:
    def __init__(self, n):
        self.random, self.n = np.random.default_rng(0), n
        self.state, self.length = self.start(n), np.zeros(n, int)

    def start(self, n):
        return self.random.uniform(-0.05, 0.05, (n, 4))

    def step(self, action):
        """-> (observations, terminated, truncated, observations before a restart)."""
        x, v, angle, w = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        cosine, sine = np.cos(angle), np.sin(angle)
        push = (force + 0.05 * w * w * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        speed = push - 0.05 * turn * cosine / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * w, w + 0.02 * turn], 1)
        self.length += 1
        terminated = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 12 * np.pi / 180)
        truncated = ~terminated & (self.length >= 500)
        last, over = self.state, terminated | truncated
        if over.any():
            self.state = self.state.copy()
            self.state[over] = self.start(int(over.sum()))
            self.length[over] = 0
        return self.state, terminated, truncated, last


def mlp(outputs):
    return torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                               torch.nn.Linear(64, outputs))


def tensor(x):
    return torch.as_tensor(x, dtype=torch.float32)


actor, critic, envs = mlp(2), mlp(1), CartPoles(N_ENVS)
parameters = [*actor.parameters(), *critic.parameters()]
adam = torch.optim.Adam(parameters, 1e-3, eps=1e-5, fused=True)
seen, times = envs.state, []


def roll_out():
    global seen
    rows = {k: [] for k in ("observation", "action", "log_prob", "value", "next", "terminated", "over")}
    with torch.no_grad():
        for _ in range(N_STEPS):
            x = tensor(seen)
            log_probs = torch.log_softmax(actor(x), 1)
            action = torch.multinomial(log_probs.exp(), 1)
            rows["observation"].append(x)
            rows["action"].append(action)
            rows["log_prob"].append(log_probs.gather(1, action))
            seen, terminated, truncated, last = envs.step(action[:, 0].numpy())
            rows["next"].append(tensor(last))
            rows["terminated"].append(tensor(terminated))
            rows["over"].append(tensor(terminated | truncated))
        r = {k: torch.stack(v) for k, v in rows.items() if v}
        r["value"] = critic(r["observation"])[..., 0]
        ahead = critic(r["next"])[..., 0] * (1 - r["terminated"])
        delta = (1 + GAMMA * ahead - r["value"]).numpy()
        kept, advantage, running = (GAMMA * LAMBDA * (1 - r["over"])).numpy(), np.empty_like(delta), 0.0
        for t in reversed(range(N_STEPS)):
            running = delta[t] + kept[t] * running
            advantage[t] = running
        r["advantage"] = torch.from_numpy(advantage)
        r["return"] = r["advantage"] + r["value"]
        return {k: v.flatten(0, 1) for k, v in r.items()}


def update(r):
    log_probs = torch.log_softmax(actor(r["observation"]), 1)
    ratio = (log_probs.gather(1, r["action"]) - r["log_prob"])[:, 0].exp()
    advantage = r["normal"]
    policy = -torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
    value = (critic(r["observation"])[:, 0] - r["return"]).square().mean()
    adam.zero_grad()
    (policy + 0.5 * value).backward()
    torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    adam.step()


for epoch in range(args.epochs + 1):
    begin = time.perf_counter()
    r = roll_out()
    r["normal"] = (r["advantage"] - r["advantage"].mean()) / (r["advantage"].std() + 1e-8)
    for _ in range(UPDATES):
        order = torch.randperm(N_ENVS * N_STEPS)
        update({k: v[order] for k, v in r.items()})
    times.append(time.perf_counter() - begin)
report(env_steps_per_s=N_ENVS * N_STEPS * args.epochs / sum(times[1:]), peak_memory_bytes=peak_memory())
