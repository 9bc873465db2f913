"""Deep deterministic policy gradient (Lillicrap et al. 2016) of an environment with continuous actions."""
import numpy as np
import redco


class Ddpg(redco.Pipeline):
    terms = ("critic", "actor")
    unit = "transitions"
    shuffles = False  # the minibatches are drawn

    class Settings:
        env: str = "Pendulum-v1"
        n_envs: int = 4
        n_steps: int = 16
        gradient_steps: int = 64
        learning_starts: int = 1000
        buffer_size: int = 50000
        hidden_size: int = 128
        gamma: float = 0.98
        tau: float = 0.005
        noise_std: float = 0.1

    def params(self):
        self.envs, self.memory = redco.Environments(self.settings.env, self.settings.n_envs), []
        p, o, h = redco.Params(), self.envs.observation_size, self.settings.hidden_size
        for net, inputs, outputs in (("actor", o, self.envs.action_size), ("critic", o + self.envs.action_size, 1)):
            for i, (fan_in, fan_out) in enumerate(((inputs, h), (h, h), (h, outputs)), 1):
                for of in ("", "target."):
                    p.linear(f"{of}{net}.fc{i}", fan_out, fan_in, init="uniform", std=3e-3 if i == 3 else fan_in**-0.5)
        return p

    def groups(self):
        return [redco.ParamGroup("critic", has="critic.", term="critic"),
                redco.ParamGroup("actor", has="actor.", term="actor"),
                redco.ParamGroup("targets", has="target.", ema_of=("target.", ""), tau=self.settings.tau)]

    def net(self, params, name, x):
        for i in (1, 2):
            x = redco.relu(redco.dense(params, f"{name}.fc{i}", x))
        return redco.dense(params, f"{name}.fc3", x)

    def actor(self, params, x, of=""):
        return redco.tanh(self.net(params, of + "actor", x))

    def critic(self, params, x, action, of=""):
        return self.net(params, of + "critic", redco.concat([x, action], -1))

    def loss(self, params, batch, ctx):
        x, following = batch["observation"], batch["next_observation"]
        with redco.no_grad():
            later = self.critic(params, following, self.actor(params, following, "target."), "target.")
            wanted = batch["reward"] + batch["discount"] * later
        error = self.critic(params, x, batch["action"]) - wanted
        return {"critic": (error**2).sum(), "actor": -self.critic(params, x, self.actor(params, x)).sum()}

    def play(self, actions, resets):
        """Steps with actions in [-1, 1] of a function of the observations, and remembers them."""
        e = self.envs
        for t, reset in enumerate(resets):
            seen = e.observations()
            action = np.clip(actions(t, seen), -1, 1).astype("float32")
            reward, following, terminated, _ = e.step(e.action_low + (action + 1) / 2 * (e.action_high - e.action_low), reset)
            discount = self.settings.gamma * ~terminated
            self.memory += zip(seen, action, reward[:, None], following, discount[:, None])
        self.memory = self.memory[-self.settings.buffer_size :]

    def source(self, params, ctx):
        s, e, seed, k = self.settings, self.envs, self.job.seed, ctx.epoch
        if k == 0:  # random actions before the first epoch
            e.begin(redco.uniforms([s.n_envs, e.state_size], "rl/begin", seed))
            first = [-(-s.learning_starts // s.n_envs), s.n_envs]
            random = 2 * redco.uniforms([*first, e.action_size], "rl/random", seed) - 1
            self.play(lambda t, seen: random[t], redco.uniforms([*first, e.state_size], "rl/first reset", seed))
        noise = s.noise_std * redco.normals([s.n_steps, s.n_envs, e.action_size], "rl/noise", seed, k)
        self.play(lambda t, seen: self.actor(params, redco.tensor(seen)).numpy() + noise[t],
                  redco.uniforms([s.n_steps, s.n_envs, e.state_size], "rl/reset", seed, k))
        draws = redco.uniforms([s.gradient_steps * self.job.global_batch_size], "rl/minibatch", seed, k)
        picked = zip(*(self.memory[int(i)] for i in draws.astype(float) * len(self.memory)))
        names = ("observation", "action", "reward", "next_observation", "discount")
        return dict(zip(names, map(np.stack, picked))), e.notes()
