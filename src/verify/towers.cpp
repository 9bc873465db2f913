#include "verify/towers.h"

#include <fmt/format.h>

#include <memory>

#include "nn/activations_by_name.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/pooling.h"

namespace redco {

Tensor tower_logits(const Model& model, const ParamTree& params, const EncoderInputs& images,
                    const EncoderInputs& texts, const ApplyOptions& options,
                    std::map<std::string, Tensor>* values) {
  const auto embeds = [&](const std::string& tower, const EncoderInputs& in) {
    ApplyOptions o = options;
    std::vector<Tensor> states;
    if (values) {
      o.hidden_states = &states;
      o.activations = std::make_shared<Activations>(std::vector<std::string>{"final_norm", "pooled"});
    }
    const Tensor y = unit_rows(model.apply_encoder(params, in, o));
    if (!values) return y;
    for (size_t i = 0; i < states.size(); ++i) (*values)[fmt::format("{}_hidden.{}", tower, i)] = states[i];
    (*values)[tower + "_last"] = (*o.activations)["final_norm"];
    (*values)[tower + "_pooled"] = (*o.activations)["pooled"];
    (*values)[tower + "_embeds"] = y;
    return y;
  };
  const Tensor of_images = embeds("image", images), of_texts = embeds("text", texts);
  const Tensor logits = matmul(of_images, of_texts, false, true) * exp(params["logit_scale"]);
  return params.has("logit_bias") ? logits + params["logit_bias"] : logits;
}

Tensor tower_loss(const ParamTree& params, const Tensor& logits) {
  const i64 B = logits.size(0);
  const Tensor own = arange(B);
  if (params.has("logit_bias")) {
    const Tensor pairs = sum_all(logits * one_hot(own, B, logits.dtype()));
    return (sum_all(softplus(logits)) - pairs) / static_cast<double>(B);
  }
  const Tensor rows = cross_entropy(logits, own), columns = cross_entropy(transpose(logits, 0, 1), own);
  return (sum_all(rows) + sum_all(columns)) / static_cast<double>(2 * B);
}

}  // namespace redco
