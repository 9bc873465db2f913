// The embeddings of a step's micro-batches, for the one loss of an EmbeddingPipeline, and their gradients.
#pragma once

#include <unordered_map>
#include <vector>

#include "pipeline/embedding_pipeline.h"
#include "tensor/node.h"

namespace redco {

// Null if the pipeline's loss is one of each micro-batch.
const EmbeddingPipeline* embedding_pipeline(const Pipeline& pipeline);

// What loss() gets for a step of this one micro-batch: the batch itself, or its embeddings.
Batch loss_batch(const Pipeline& pipeline, const ParamTree& params, const Batch& batch,
                 const StepContext& ctx);

class StepEmbeddings {
 public:
  // Runs embed() for each micro-batch: of the last one with the tape of `params`, of the others without tape.
  // pipeline, batches and row_offsets outlive the object. UsageError: the result of embed() does not fit.
  StepEmbeddings(const EmbeddingPipeline& pipeline, const ParamTree& params,
                 const std::vector<Batch>& batches, const std::vector<i64>& row_offsets,
                 const StepContext& ctx);

  // The argument of loss(), with random rows from 0 on.
  const Batch& all() const { return all_; }
  // In training, the floating embeddings of all micro-batches but the last, as leaves of the tape:
  // micro-batch by micro-batch.
  const std::vector<Tensor>& leaves() const { return leaves_; }
  // The number of micro-batches that are embedded again.
  size_t repeated() const { return batches_.size() - 1; }
  // Drops the tensors that loss() has read.
  void release();
  // Runs embed() of micro-batch m again, with the tape of `params`. The results belong to leaves [m * size(),
  // (m + 1) * size()). The gradients of the loss are those at the first values, so an error of the pipeline
  // (in_pipeline) if this rank's rows differ from them in a bit.
  std::vector<Tensor> repeat(size_t m, const ParamTree& params, const StepContext& ctx) const;
  size_t size() const { return floats_.size(); }

 private:
  Embeddings embed(size_t m, const ParamTree& params, const StepContext& ctx) const;
  void check(const Embeddings& e, const Batch& batch) const;
  const EmbeddingPipeline& pipeline_;
  const std::vector<Batch>& batches_;
  const std::vector<i64>& row_offsets_;
  std::vector<std::string> floats_;  // names of floating embeddings
  std::string first_;                // the names, types and row shapes of the first micro-batch
  Batch all_;
  std::vector<Tensor> leaves_;
  std::vector<Tensor> first_values_;  // of the leaves
};

// Keeps the gradients of `leaves`, and passes those of parameters on.
class LeafGradients final : public GradientSink {
 public:
  LeafGradients(GradientSink& parameters, const std::vector<Tensor>& leaves);
  // In the order of the leaves, after the backward pass.
  std::vector<Tensor> take() { return std::move(gradients_); }

  Tensor room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) override;
  bool add(const Node* leaf, const Tensor& part) override;
  void complete(const Node* leaf, SmallVector<Tensor, 2>& rest) override;

 private:
  GradientSink& parameters_;
  const std::vector<Tensor>& leaves_;
  std::unordered_map<const Node*, size_t> index_;
  std::vector<Tensor> gradients_;
};

}  // namespace redco
