#include "train/step_embeddings.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/redistribute.h"
#include "ops/shape.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

// Names, types and row shapes: "image f32 (64), label i32 ()".
std::string signature(const Embeddings& e) {
  std::string out;
  for (const auto& [name, t] : e) {
    const Shape& s = t.shape();
    out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", name, t.is_float() ? "f32" : "i32",
                       to_string(Shape(s.begin() + 1, s.end())));
  }
  return out;
}

// The first difference of this rank's rows in their bits: "row 3 has 0.5, before 0.25"; "": none.
std::string first_difference(const Tensor& before, const Tensor& now) {
  const auto values = [](const Tensor& t) {
    if (t.dtype() == DType::f64) return host_copy<double>(t);
    const std::vector<float> as_float = host_copy<float>(t);
    return std::vector<double>(as_float.begin(), as_float.end());
  };
  const std::vector<double> a = values(before), b = values(now);
  for (size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<u64>(a[i]) != std::bit_cast<u64>(b[i])) {
      const i64 row = static_cast<i64>(i) / (before.local_numel() / before.local()[0]);
      return fmt::format("row {} has {}, before {}", before.range(0).begin + row, b[i], a[i]);
    }
  return "";
}

}  // namespace

const EmbeddingPipeline* embedding_pipeline(const Pipeline& pipeline) {
  const auto* const embedding = dynamic_cast<const EmbeddingPipeline*>(&pipeline);
  return embedding && in_pipeline(pipeline, "embeds()", [&] { return embedding->embeds(); }) ? embedding
                                                                                             : nullptr;
}

Batch loss_batch(const Pipeline& pipeline, const ParamTree& params, const Batch& batch,
                 const StepContext& ctx) {
  const EmbeddingPipeline* const embedding = embedding_pipeline(pipeline);
  return embedding ? StepEmbeddings(*embedding, params, {batch}, {0}, ctx).all() : batch;
}

StepEmbeddings::StepEmbeddings(const EmbeddingPipeline& pipeline, const ParamTree& params,
                               const std::vector<Batch>& batches, const std::vector<i64>& row_offsets,
                               const StepContext& ctx)
    : pipeline_(pipeline), batches_(batches), row_offsets_(row_offsets) {
  std::map<std::string, std::vector<Tensor>> parts;
  const bool trains = ctx.apply.train;
  for (size_t m = 0; m < batches.size(); ++m) {
    const Batch& b = batches[m];
    all_.shape.rows += b.shape.rows;
    all_.shape.length = std::max(all_.shape.length, b.shape.length);
    all_.shape.target_length = std::max(all_.shape.target_length, b.shape.target_length);
    for (const auto& [name, weight] : b.weights) all_.weights[name] += weight;
    const bool last = m + 1 == batches.size();
    const Restore<bool> recording(Context::current().recording, Context::current().recording && last);
    const Embeddings e = embed(m, params, ctx);
    if (m == 0) {
      first_ = signature(e);
      for (const auto& [name, t] : e)
        if (t.is_float()) floats_.push_back(name);
    }
    in_pipeline(pipeline_, "embed()", [&] {
      REDCO_CHECK(signature(e) == first_,
                  "it returned {} for a micro-batch, and {} for the first one of the step; expected the same "
                  "names, types and row shapes",
                  signature(e), first_);
    });
    for (const auto& [name, t] : e) {
      Tensor part = redistribute(t, batch_layout());
      if (trains && !last && t.is_float()) {
        first_values_.push_back(part.detached());
        leaves_.push_back(part = first_values_.back().watched());
      }
      parts[name].push_back(std::move(part));
    }
  }
  const Scope scope("embeddings");
  for (auto& [name, of_name] : parts) {
    if (of_name.size() > 1)  // rows of a replica are not contiguous in the global batch
      for (Tensor& t : of_name) t = to_replicated(t);
    all_.fields[name] = of_name.size() == 1 ? of_name[0] : redistribute(concat(of_name, 0), batch_layout());
    all_.shape.mine = all_.fields[name].range(0);
  }
}

void StepEmbeddings::release() {
  all_ = {};
  leaves_.clear();
}

std::vector<Tensor> StepEmbeddings::repeat(size_t m, const ParamTree& params, const StepContext& ctx) const {
  const Embeddings e = embed(m, params, ctx);
  std::vector<Tensor> out;
  for (const std::string& name : floats_) {
    out.push_back(e.at(name));
    const NoGrad off;
    const Tensor again = redistribute(out.back().detached(), batch_layout());
    const Tensor& first = first_values_[m * size() + out.size() - 1];
    if (const std::string what = first_difference(first, again); !what.empty())
      in_pipeline(pipeline_, "embed()", [&] {
        REDCO_CHECK(false,
                    "the embedding '{}' of the same examples has other values when it is computed again: {}. "
                    "It must depend only on its arguments and on redco's random numbers: no counter, cache "
                    "or generator of the pipeline may change it",
                    name, what);
      });
  }
  return out;
}

Embeddings StepEmbeddings::embed(size_t m, const ParamTree& params, const StepContext& ctx) const {
  const Restore<i64> first_row(Context::current().random.row_offset, row_offsets_[m]);
  Embeddings e = in_pipeline(pipeline_, "embed()", [&] { return pipeline_.embed(params, batches_[m], ctx); });
  check(e, batches_[m]);
  for (auto& [name, t] : e) t = to_sum_type(t);
  return e;
}

void StepEmbeddings::check(const Embeddings& e, const Batch& batch) const {
  in_pipeline(pipeline_, "embed()", [&] {
    bool floating = false;
    for (const auto& [name, t] : e) {
      REDCO_CHECK(t.defined(), "the embedding '{}' has no value", name);
      REDCO_CHECK(t.visible() >= 1 && t.size(0) == batch.shape.rows,
                  "the embedding '{}' is {}; expected a row for each of the {} examples in dim 0", name,
                  describe(t), batch.shape.rows);
      floating = floating || t.is_float();
    }
    REDCO_CHECK(floating, "it returned no floating tensor, so the loss has no gradient");
  });
}

LeafGradients::LeafGradients(GradientSink& parameters, const std::vector<Tensor>& leaves)
    : parameters_(parameters), leaves_(leaves), gradients_(leaves.size()) {
  for (size_t i = 0; i < leaves.size(); ++i) index_[leaves[i].node().get()] = i;
}

Tensor LeafGradients::room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) {
  return index_.contains(leaf) ? Tensor() : parameters_.room(leaf, shape, dtype, layout);
}

bool LeafGradients::add(const Node* leaf, const Tensor& part) {
  return !index_.contains(leaf) && parameters_.add(leaf, part);
}

void LeafGradients::complete(const Node* leaf, SmallVector<Tensor, 2>& rest) {
  const auto at = index_.find(leaf);
  if (at == index_.end()) return parameters_.complete(leaf, rest);
  const Tensor& value = leaves_[at->second];
  gradients_[at->second] = rest.empty() ? zeros(value.shape(), value.dtype(), value.layout())
                                        : sum_of_parts(rest, leaf->outputs[0]).detached();
}

}  // namespace redco
