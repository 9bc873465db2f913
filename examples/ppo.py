"""Proximal policy optimization (Schulman et al. 2017) of an environment with discrete actions."""
import numpy as np
import redco


class Ppo(redco.Pipeline):
    terms = ("loss", "policy", "value", "entropy")
    unit = "transitions"
    passes = property(lambda self: self.settings.update_epochs)
    keeps = ("envs",)

    class Settings:
        env: str = "CartPole-v1"
        n_envs: int = 8
        n_steps: int = 32
        update_epochs: int = 20
        gamma: float = 0.98
        gae_lambda: float = 0.8
        clip_range: float = 0.2

    def params(self):
        self.envs = redco.Environments(self.settings.env, self.settings.n_envs)
        p = redco.Params()
        for net, outputs, gain in (("actor", self.envs.n_actions, 0.01), ("critic", 1, 1)):
            sizes = [self.envs.observation_size, 64, 64, outputs]
            for i, g in ((1, 2**0.5), (2, 2**0.5), (3, gain)):
                p.linear(f"{net}.fc{i}", sizes[i], sizes[i - 1], std=g / max(sizes[i - 1 : i + 1]) ** 0.5)
        return p

    def net(self, params, name, x):
        for i in (1, 2):
            x = redco.tanh(redco.dense(params, f"{name}.fc{i}", x))
        return redco.dense(params, f"{name}.fc3", x)

    def loss(self, params, batch, ctx):
        log_probs = redco.log_softmax(self.net(params, "actor", batch["observation"]))
        ratio = redco.exp(redco.pick(log_probs, batch["action"]) - batch["log_prob"])
        clipped = redco.clamp(ratio, 1 - self.settings.clip_range, 1 + self.settings.clip_range)
        policy = -redco.minimum(ratio * batch["advantage"], clipped * batch["advantage"]).sum()
        value = ((self.net(params, "critic", batch["observation"])[:, 0] - batch["return"]) ** 2).sum()
        with redco.no_grad():  # only for the log
            entropy = -(redco.exp(log_probs) * log_probs).sum()
        return {"loss": policy + 0.5 * value, "policy": policy, "value": value, "entropy": entropy}

    def source(self, params, ctx):
        s, envs, steps = self.settings, self.envs, []
        envs.prepare(s.n_steps, self.job.seed, ctx.epoch)
        for draw in redco.uniforms([s.n_steps, s.n_envs, 1], "rl/action", self.job.seed, ctx.epoch):
            seen = envs.observations()
            log_probs = redco.log_softmax(self.net(params, "actor", redco.tensor(seen))).numpy()
            action = (draw >= np.exp(log_probs).cumsum(1)[:, :-1]).sum(1)
            steps.append((seen, action, log_probs[np.arange(s.n_envs), action], *envs.step(action)))
        seen, action, log_prob, reward, following, terminated, ended = map(np.concatenate, zip(*steps))
        value, later = (self.net(params, "critic", redco.tensor(x)).numpy()[:, 0] for x in (seen, following))
        advantage = (reward + s.gamma * later * ~terminated - value).reshape(s.n_steps, s.n_envs).astype(float)
        carry = s.gamma * s.gae_lambda * ~ended.reshape(advantage.shape)
        for t in range(s.n_steps - 2, -1, -1):  # generalized advantages
            advantage[t] += carry[t] * advantage[t + 1]
        advantage = advantage.reshape(-1)
        scaled = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)
        return {"observation": seen, "action": action, "log_prob": log_prob, "advantage": scaled,
                "return": advantage + value}, envs.notes()

    def predict(self, params, examples, ctx):
        logits = self.net(params, "actor", redco.tensor(redco.rows(examples, "observation")))
        return [{"action": int(a)} for a in logits.numpy().argmax(1)]
