// A pipeline with the mistakes that its environment selects. Its loss throws on the last rank only.
#include <cstdlib>
#include <stdexcept>

#include "redco.h"

using namespace redco;

class Fails : public Pipeline {
 public:
  Fails() {
    const char* how = std::getenv("OUTSIDE_FAILS");
    how_ = how ? how : "";
    if (how_ == "made") throw std::runtime_error("not today");
    SpecBuilder b(params_);
    b.linear("fc1", how_ == "shape" ? 3 : 2, 2, false, 1);
    b.linear("fc2", 2, 2, false, 1);
  }
  const ModelParams& params() const override { return params_; }
  ModelParams extra_params() const override { return how_ == "extra" ? params_ : ModelParams(); }
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext& ctx) override {
    std::vector<Example> rows(how_ == "nothing" ? 0 : how_ == "grows" ? 8 + ctx.epoch : 8);
    for (Example& e : rows) e.values["x"] = {1, 2};
    return std::make_shared<ExampleList>(rows, "rows");
  }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, how_ == "example" ? "y" : "x", {2});
    b.weights[how_ == "weights" && s.mine.begin > 0 ? "lost" : "loss"] = static_cast<double>(mine.size());
    return b;
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    const Context& c = Context::current();
    if (ctx.step == 2 && c.rank() == c.mesh().ranks() - 1) {
      if (how_ == "exception") throw std::runtime_error("the loss went wrong");
      if (how_ == "number") throw 42;
    }
    if (how_ == "no term") return {};
    if (how_ == "field") return {{"loss", sum_all(b["xx"])}};
    if (how_ == "parameter") return {{"loss", sum_all(linear(b["x"], p["fc1.wieght"]))}};
    if (how_ == "matrix")
      return {{"loss", sum_all(linear(linear(b["x"], p["fc1.weight"]), random_normal({2, 3}, 1)))}};
    if (how_ == "vector") return {{"loss", linear(b["x"], p["fc1.weight"])}};
    if (how_ == "model") model->vocab_size();
    if (how_ == "tokenizer") tokenizer->vocab_size();
    if (how_ == "rank")
      return {{"loss", scale(sum_all(square(linear(b["x"], p["fc1.weight"]))), 1 + 0.5 * c.rank())}};
    return {{how_ == "term" ? "lost" : "loss", sum_all(square(linear(b["x"], p["fc1.weight"])))}};
  }
  std::vector<ParamGroup> groups() const override {
    ParamGroup all{
        .name = "all", .has = [](const std::string& n) { return n == "fc1.weight"; }, .term = "loss"};
    ParamGroup again = all;
    again.name = "again";
    ParamGroup none = again;
    none.has = [](const std::string&) { return false; };
    if (how_ == "twice") return {all, again};
    if (how_ == "empty") return {all, none};
    if (how_ == "follows" || how_ == "shape") {
      none.has = [](const std::string& n) { return n == "fc2.weight"; };
      none.ema_of = [this](const std::string&) { return how_ == "shape" ? "fc1.weight" : "fc3.weight"; };
      return {all, none};
    }
    if (how_ == "no groups") return {};
    if (how_ == "period") all.period = 0;
    return {all};
  }
  std::string state() const override { return how_ == "state" ? "{" : "{}"; }

 private:
  std::string how_;
  ModelParams params_;
};

REDCO_PIPELINE(Fails)
