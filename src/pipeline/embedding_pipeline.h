// EmbeddingPipeline: a pipeline whose loss depends on all examples of a step together, such as a contrastive
// loss, where each example is compared with all others.
//
// embed() computes what the loss needs of each example, for one micro-batch. loss() is called once per step,
// with the embeddings of the whole global batch. So loss and gradients do not depend on meshes and
// micro-batches, while the activations in memory are those of one micro-batch (GradCache, Gao et al. 2021).
//
// The last micro-batch of a step stays on the tape until the loss. The others are embedded twice: first
// without tape, and again after the loss, with the same random keys, to differentiate them with the gradients
// of their embeddings. A step of n micro-batches costs n - 1 forward passes more than other losses.
#pragma once

#include <map>
#include <string>

#include "pipeline/pipeline.h"

namespace redco {

// Tensors of one micro-batch by name, with a row for each example: dim 0 is the batch.
using Embeddings = std::map<std::string, Tensor>;

class EmbeddingPipeline : public Pipeline {
 public:
  // Whether the loss is one of the whole step. If false, embed() is not called, and loss() gets each
  // micro-batch, as in other pipelines. The same answer during a run.
  virtual bool embeds() const { return true; }

  // At least one tensor is floating; it becomes f32. i32 tensors (labels) have no gradient. The result must
  // depend only on the arguments and on random keys, and a row only on its own example. Every micro-batch has
  // the same names, types and row shapes.
  virtual Embeddings embed(const ParamTree& params, const Batch& batch, const StepContext& ctx) const = 0;

  // `all` has the fields of embed() for all examples of the step, in their order and sharded along rows over
  // dp, and the sums of the weights of collate(). Its other fields are absent. In an evaluation, it has
  // train.global_batch_size examples; the last one may have fewer.
  LossTerms loss(const ParamTree& params, const Batch& all, const StepContext& ctx) const override = 0;
};

}  // namespace redco
