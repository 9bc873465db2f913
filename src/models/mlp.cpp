// MLP on feature vectors: classification, or regression of one or more values.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/families.h"
#include "models/spec_builder.h"

namespace redco {

namespace {

class Mlp : public Model {
 public:
  explicit Mlp(ModelConfig& c) {
    family_ = "mlp";
    task_ = ModelTask::vector_regression;
    attends_ = false;
    n_features_ = c.integer("input_size");
    std::vector<i64> widths = read_widths(c);
    n_layers_ = static_cast<i64>(widths.size());
    activation_ = c.activation_or("hidden_act", "relu");
    dropout_ = c.rate_or("hidden_dropout_prob", 0);
    // Null: torch.nn.Linear's initialization, uniform within 1 / sqrt(inputs).
    const double std = c.has("initializer_range") ? c.positive_or("initializer_range", 0) : 0;
    c.expect("architectures", {"[\"MlpModel\"]", "[]"});
    problem_type_ = c.text_or("problem_type", "regression");
    if (problem_type_ != "regression" && problem_type_ != "single_label_classification")
      c.fail("problem_type", "not supported; supported: regression, single_label_classification");
    num_labels_ = c.has("num_labels") || c.has("id2label") || problem_type_ != "regression" ? c.labels() : 1;
    c.finish();

    SpecBuilder b(params_);
    widths.push_back(num_labels_);
    i64 in = n_features_;
    for (size_t i = 0; i < widths.size(); ++i) {
      b.linear(layer(i), widths[i], in, true, std);
      if (std == 0)
        for (size_t end = params_.specs.size(), s = end - 2; s < end; ++s)
          params_.specs[s].init = {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(in))};
      in = widths[i];
    }
    config_json_ = c.dump();
  }

  // features [B, F] -> [B, labels]
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    Tensor x = in.features;
    if (x.visible() != 2 || x.size(1) != n_features_)
      throw ContentsError("[model] features of shape {}; the model expects {} per row", to_string(x.shape()),
                          n_features_);
    for (size_t i = 0; i < static_cast<size_t>(n_layers_); ++i) {
      x = activate(activation_, dense(p, layer(i), x, o));
      x = dropout(o, fmt::format("hidden.{}", i), dropout_, x);
    }
    return dense(p, layer(static_cast<size_t>(n_layers_)), x, o);
  }

 private:
  static std::string layer(size_t i) { return fmt::format("layers.{}", i); }

  static std::vector<i64> read_widths(ModelConfig& c) {
    std::vector<i64> out;
    if (!c.require("hidden_sizes")) return out;
    const auto v = nlohmann::json::parse(c.json("hidden_sizes"));
    if (v.is_array())
      for (const auto& n : v)
        if (n.is_number_integer() && n.get<double>() >= 1 && n.get<double>() <= 1 << 30)
          out.push_back(n.get<i64>());
    if (!v.is_array() || out.size() != v.size())
      c.fail("hidden_sizes", "expected the widths of the hidden layers, such as [40, 40]");
    return out;
  }

  std::string activation_;
  double dropout_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(ModelConfig& c) { return std::make_unique<Mlp>(c); }

}  // namespace redco
