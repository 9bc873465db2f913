// A pipeline with the mistakes that its environment selects. Its loss throws on the last rank only.
#include <cmath>
#include <csignal>
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
  ModelParams extra_params() const override {
    ModelParams out;
    if (how_ == "extra") return params_;
    if (how_ == "sizes") SpecBuilder(out).add("head", {-1, 2}, ParamKind::other, {});
    return out;
  }
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext& ctx) override {
    std::vector<Example> rows(how_ == "nothing" ? 0 : how_ == "grows" ? 8 + ctx.epoch : 8);
    if (how_ == "source" && Context::current().rank() == 1) rows.resize(9);
    for (Example& e : rows) e.values["x"] = {1, 2};
    if (how_ == "order") return std::make_shared<ExampleList>(rows, "rows", std::vector<i64>{0, 8});
    return std::make_shared<ExampleList>(rows, "rows");
  }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, how_ == "example" ? "y" : "x", {2});
    b.weights[how_ == "weights" && s.mine.begin > 0 ? "lost" : "loss"] = static_cast<double>(mine.size());
    if (how_ == "not a weight") b.weights["loss"] = NAN;
    if (how_ == "negative") b.weights["loss"] = -1;
    if (how_ == "no shape") b.shape = {};
    if (how_ == "no value") b.fields["z"] = Tensor();
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
    if (how_ == "crash" && ctx.step == 2 && c.rank() == 0) raise(SIGSEGV);
    const Tensor sum = sum_all(square(linear(b["x"], p["fc1.weight"])));
    if (how_ == "more terms") return {{"loss", sum}, {"more", sum}};
    if (how_ == "same terms") return {{"loss", sum}, {"loss", sum}};
    if (how_ == "not a number") return {{"loss", sum + std::log(-1.0)}};
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
    if (how_ == "itself") {
      none.has = [](const std::string& n) { return n == "fc2.weight"; };
      none.ema_of = [](const std::string& n) { return n; };
      return {all, none};
    }
    if (how_ == "follows" || how_ == "shape") {
      none.has = [](const std::string& n) { return n == "fc2.weight"; };
      none.ema_of = [this](const std::string&) { return how_ == "shape" ? "fc1.weight" : "fc3.weight"; };
      return {all, none};
    }
    if (how_ == "no groups") return {};
    if (how_ == "period") all.period = 0;
    if (how_ == "no has") all.has = nullptr;
    if (how_ == "rate") all.learning_rate = [](i64, double) { return NAN; };
    return {all};
  }
  std::map<std::string, double> notes() const override {
    return how_ == "notes" ? std::map<std::string, double>{{"loss", 1}} : std::map<std::string, double>{};
  }
  std::string state() const override { return how_ == "state" ? "{" : "{}"; }

 private:
  std::string how_;
  ModelParams params_;
};

REDCO_PIPELINE(Fails)
