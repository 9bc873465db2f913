// A contrastive pipeline of a user: two views of a vector, and symmetric InfoNCE over the global batch.
#include <cmath>

#include "redco.h"

using namespace redco;

class Clip : public EmbeddingPipeline {
  static constexpr i64 kIn = 6, kOut = 4;

 public:
  Clip() {
    SpecBuilder b(params_);
    for (const char* view : {"a", "b"}) b.linear(view, kOut, kIn, false, 0.5);
    b.add("logit_scale", {1}, ParamKind::bias, {Init::Kind::constant, std::log(1 / 0.07)});
  }
  const ModelParams& params() const override { return params_; }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    for (const char* view : {"a", "b"}) b.fields[view] = value_rows(mine, s, view, {kIn});
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }
  Embeddings embed(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const auto view = [&](const std::string& name) {
      const Tensor x =
          ctx.apply.train ? dropout(b[name], 0.1, Context::current().key(name.c_str())) : b[name];
      const Tensor y = linear(x, params[name + ".weight"]);
      return y * rsqrt(sum(square(y), {-1}, true));
    };
    return {{"a", view("a")}, {"b", view("b")}};
  }
  LossTerms loss(const ParamTree& params, const Batch& all, const StepContext&) const override {
    const Tensor factor = exp(params["logit_scale"]);
    const Tensor pairs = matmul(all["a"], all["b"], false, true) * factor;
    const Tensor own = sum_all(all["a"] * all["b"] * factor);
    return {
        {"loss", 0.5 * (sum_all(log_sum_exp(pairs)) + sum_all(log_sum_exp(transpose(pairs, 0, 1)))) - own}};
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    return read_jsonl(request, [](const Record& r) {
      Example e;
      for (const char* view : {"a", "b"}) e.values[view] = r.numbers(view);
      return e;
    });
  }

 private:
  ModelParams params_;
};

REDCO_PIPELINE(Clip)
