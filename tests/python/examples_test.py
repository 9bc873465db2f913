"""The examples in Python: two steps on two ranks, with the losses of the built-in pipelines on the same job."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

REDCO = os.environ["REDCO"]
SOURCE = os.environ["REDCO_SOURCE"]

RL = ["settings={}", "pipeline=rl"]
TWO = ["train.max_steps=2", "train.n_epochs=~", "eval.every_n_epochs=~", "eval.every_n_steps=~"]
SMALL_TEXTS = ["model.num_hidden_layers=1", "model.hidden_size=32", "model.intermediate_size=32"]
# Name: settings of both runs, and those that select the built-in pipeline.
EXAMPLES = {
    "classification": (SMALL_TEXTS, ["pipeline=classification"]),
    "regression": (SMALL_TEXTS, ["pipeline=regression"]),
    "language_modelling": (["train.global_batch_size=8"], ["pipeline=lm"]),
    "text_to_text": (["train.global_batch_size=8", "model.d_model=32"], ["pipeline=seq2seq"]),
    "image_to_text": (["train.global_batch_size=4"], ["pipeline=captioning"]),
    "text_to_image": (["train.global_batch_size=4"],
                      ["pipeline=text_to_image", "settings={}", "diffusion.caption_dropout=0.1"]),
    "maml": (["train.global_batch_size=4", "maml.tasks_per_epoch=8"],
             ["pipeline=maml", "settings={}", "maml.inner_steps=1", "maml.inner_learning_rate=0.4"]),
    "ppo": ([], [*RL, "rl={algorithm: ppo, env: CartPole-v1, n_envs: 8, n_steps: 32, update_epochs: 20, gamma: 0.98, "
                      "gae_lambda: 0.8, n_eval_episodes: 0}"]),
    "ddpg": ([], [*RL, "rl={algorithm: ddpg, env: Pendulum-v1, n_envs: 4, n_steps: 16, gradient_steps: 64, "
                       "learning_starts: 1000, buffer_size: 50000, hidden_sizes: [128, 128], activation: relu, "
                       "gamma: 0.98, n_eval_episodes: 0}"]),
}
