// Activations of a model by name: what a pass computed, and values in their place (patching, steering, sparse
// autoencoders).
//
//   "embedding"          what begins the residual stream
//   "layers.N"           the stream after layer N, counted from 0
//   "layers.N.attention" what the attention of layer N (or its mixer) adds to the stream, before dropout and
//                        scales
//   "layers.N.mlp"       what its MLP adds
//   "final_norm"         what the head reads
//   "pooled"             of two towers: what the projection of the embedding reads, [B, C]
// The others are [B, T, C]. Encoder-decoder models have them in both stacks, so in encode() and in apply().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace redco {

class Activations {
 public:
  // From the value to the one that the pass continues with: a tensor of the same shape, on the tape.
  using Replacement = std::function<Tensor(const Tensor& x)>;

  // captures: the names that a pass keeps. A name that is captured and replaced is kept after its
  // replacement.
  explicit Activations(std::vector<std::string> captures, std::map<std::string, Replacement> replaced = {});

  // Of the last pass, on the tape. UsageError: the name is not captured, or there was no pass.
  const Tensor& operator[](const std::string& name) const;
  const std::vector<std::string>& captures() const { return captures_; }

  // --- For Model ---
  // A pass begins, and ends. UsageError: the family has no activation of a name that was asked for.
  void begin();
  void end(const std::string& family) const;
  // The value that the pass continues with.
  Tensor pass(const std::string& name, const Tensor& x);

 private:
  std::vector<std::string> captures_, seen_;
  std::map<std::string, Replacement> replaced_;
  std::map<std::string, Tensor> captured_;
};

}  // namespace redco
