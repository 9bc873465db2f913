"""Deep deterministic policy gradient (Lillicrap et al. 2016) of an environment with continuous actions."""
import numpy as np
import redco


class Ddpg(redco.Pipeline):
    terms = ("critic", "actor")
    shuffles = False  # the minibatches are drawn
    keeps = ("envs", "memory")

    class Settings:
        env: str = "Pendulum-v1"
        n_envs: int = 4
        n_steps: int = 16
        gradient_steps: int = 64
        learning_starts: int = 1000
        buffer_size: int = 50000
        gamma: float = 0.98

    def params(self):
        e = self.envs = redco.Environments(self.settings.env, self.settings.n_envs)
        self.widths = [e.observation_size, e.action_size, 1, e.observation_size, 1]  # of a row of the memory
        self.memory, p = np.empty((0, sum(self.widths)), "float32"), redco.Params()
        for net, inputs, outputs in (("actor", e.observation_size, e.action_size), ("critic", sum(self.widths[:2]), 1)):
            for of in ("", "target."):
                p.linear(f"{of}{net}.fc1", 128, inputs, init="uniform", std=inputs**-0.5)
                p.linear(f"{of}{net}.fc2", 128, 128, init="uniform", std=128**-0.5)
                p.linear(f"{of}{net}.fc3", outputs, 128, init="uniform", std=3e-3)
        return p

    def groups(self):
        return [redco.ParamGroup("critic", has="critic.", term="critic"),
                redco.ParamGroup("actor", has="actor.", term="actor"),
                redco.ParamGroup("targets", has="target.", ema_of=("target.", ""), tau=0.005)]

    def net(self, params, name, x):
        for i in (1, 2):
            x = redco.relu(redco.dense(params, f"{name}.fc{i}", x))
        return redco.dense(params, f"{name}.fc3", x)

    def value(self, params, x, action=None, of=""):  # of the actor's action, unless given
        action = redco.tanh(self.net(params, of + "actor", x)) if action is None else action
        return self.net(params, of + "critic", redco.concat([x, action], -1))

    def loss(self, params, batch, ctx):
        with redco.no_grad():
            wanted = batch["reward"] + batch["discount"] * self.value(params, batch["following"], of="target.")
        return {"critic": ((self.value(params, batch["observation"], batch["action"]) - wanted) ** 2).sum(),
                "actor": -self.value(params, batch["observation"]).sum()}

    def play(self, policy, noise, epoch, site):
        e, rows = self.envs, []
        e.prepare(len(noise), self.job.seed, epoch, site)
        for draw in noise:
            seen = e.observations()
            action = np.clip(policy(seen) + draw, -1, 1)
            reward, following, terminated, _ = e.step(e.action_low + (action + 1) / 2 * (e.action_high - e.action_low))
            rows.append(np.c_[seen, action, reward, following, self.settings.gamma * ~terminated])
        self.memory = np.concatenate([self.memory, *rows])[-self.settings.buffer_size :].astype("float32")

    def source(self, params, ctx):
        s, seed, actions = self.settings, self.job.seed, [self.settings.n_envs, self.envs.action_size]
        if ctx.epoch == 0:  # random actions before the first epoch
            random = 2 * redco.uniforms([-(-s.learning_starts // s.n_envs), *actions], "rl/random", seed) - 1
            self.play(lambda seen: 0, random, 0, "rl/first reset")
        noise = 0.1 * redco.normals([s.n_steps, *actions], "rl/noise", seed, ctx.epoch)
        self.play(lambda x: np.tanh(self.net(params, "actor", redco.tensor(x)).numpy()), noise, ctx.epoch, "rl/reset")
        draws = redco.uniforms([s.gradient_steps * self.job.global_batch_size], "rl/minibatch", seed, ctx.epoch)
        picked = self.memory[(draws.astype(float) * len(self.memory)).astype(int)]
        columns = np.split(picked, np.cumsum(self.widths)[:-1], axis=1)
        return dict(zip(("observation", "action", "reward", "following", "discount"), columns)), self.envs.notes()
