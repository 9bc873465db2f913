// new pipeline: the same skeleton in Python.
#include "skeleton.h"

namespace redco::cli {
namespace {

constexpr const char* kPythonSource =
    R"text("""@NAME@: fits y = sin(x). Replace the data, the parameters and the loss by your own.

This code does not depend on ranks: redco splits the rows of a batch over replicas, and layers over model shards.
"""

import numpy as np
import redco


class @CLASS@(redco.Pipeline):
    # The job's `settings:` section. An unknown key or a wrong type is an error that names its place.
    class Settings:
        n_examples: int = 1024
        noise: float = 0.1

    # The pipeline's own parameters. To train the job's model, remove params() and call
    # self.model.apply(params, ...) in loss().
    def params(self):
        p = redco.Params()
        p.linear("net.fc1", out=64, in_=1, std=2)
        p.linear("net.fc2", out=1, in_=64, std=0.125)
        return p

    def forward(self, params, x):
        return redco.dense(params, "net.fc2", redco.tanh(redco.dense(params, "net.fc1", x)))

    # The data: any iterable of dicts; the first rank reads it once. To train on files, replace it by
    # example(self, record), which makes an example of each line of data.train.
    def open(self, request):
        rng = np.random.default_rng(1 if request.evaluation else 0)
        noise = 0 if request.evaluation else self.settings.noise
        for _ in range(256 if request.evaluation else self.settings.n_examples):
            x = rng.uniform(-3, 3)
            yield {"x": [x], "y": [np.sin(x) + noise * rng.normal()]}

    # 1. Examples of this replica -> arrays [len(examples), ...]. The default stacks all fields, as here.
    def collate(self, examples, shape):
        return {"x": redco.rows(examples, "x"), "y": redco.rows(examples, "y")}

    # 2. The loss of a batch: a sum, not a mean. redco divides by the number of rows of all ranks.
    def loss(self, params, batch, ctx):
        return redco.square(self.forward(params, batch["x"]) - batch["y"]).sum()

    # 3. A prediction for each example.
    def predict(self, params, examples, ctx):
        y = self.forward(params, redco.tensor(redco.rows(examples, "x"))).numpy()
        return [{"prediction": float(v)} for v in y[:, 0]]

    # A line of predict.input as an example: {"x": [0.5]}.
    def request(self, record):
        return {"x": np.asarray(record["x"], dtype=np.float32)}
)text";

constexpr const char* kPythonJob = R"text(# redco train job.yaml
pipeline: ./@NAME@.py
workdir: runs/@NAME@
train: {global_batch_size: 32, n_epochs: 20, learning_rate: 5.0e-3}
eval: {every_n_epochs: 5}
settings: {n_examples: 1024, noise: 0.1}
)text";

constexpr const char* kPythonReadme = R"text(# @NAME@
A pipeline for redco in [`@NAME@.py`](@NAME@.py): `collate`, `loss` and `predict`, written for one device.

    redco train job.yaml
    redco train job.yaml parallel.n_ranks=2 workdir=runs/two                              # two replicas
    redco train job.yaml parallel.n_ranks=2 parallel.n_model_shards=2 workdir=runs/cut    # two model shards
    redco check job.yaml                                                                  # all meshes agree

docs/python.md of redco documents all functions of a pipeline.
)text";

}  // namespace

Skeleton python_pipeline_skeleton() {
  return {.kind = "pipeline",
          .example = "z_loss",
          .files = {{"@NAME@.py", kPythonSource}, {"job.yaml", kPythonJob}, {"README.md", kPythonReadme}},
          .begin = "redco train job.yaml"};
}

}  // namespace redco::cli
