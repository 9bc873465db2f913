// A regression of rows of different lengths, correct on every mesh, and the mistakes that `settings.mistake`
// selects. Most of them change nothing on one rank, and no error ends the run.
#include <random>

#include "redco.h"

using namespace redco;

struct LayoutSettings {
  std::string mistake;
  void visit(SettingsVisitor& v) { v.field("mistake", mistake, "what is wrong; empty: nothing"); }
};

class Layouts : public Pipeline {
 public:
  Layouts() {
    SpecBuilder b(params_);
    b.linear("fc1", 16, 4, true, 0.5);
    b.linear("fc2", 1, 16, false, 0.5);
  }
  const ModelParams& params() const override { return params_; }

  // Twelve rows of one to four points.
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext&) override {
    const Context& c = Context::current();
    std::vector<Example> rows(12);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::mt19937 random(static_cast<unsigned>(r));
      Example& e = rows[r];
      e.ordinal = static_cast<i64>(r);
      const size_t points = 1 + r % 4;
      e.ids["point"].assign(points, 1);
      for (size_t i = 0; i < 4 * kPoints; ++i)
        e.values["x"].push_back(i < 4 * points ? static_cast<float>(random() % 1000) / 500 - 1 : 0);
      for (size_t i = 0; i < kPoints; ++i) e.values["here"].push_back(i < points ? 1 : 0);
      if (wrong("source")) e.values["x"][0] += static_cast<float>(c.mesh().dp());
      if (wrong("forgets") && !restored_) e.values["x"][0] += 1;  // rollouts that are not in state()
    }
    return std::make_shared<ExampleList>(std::move(rows), "rows");
  }
  std::string state() const override { return R"({"kept": true})"; }
  void restore(const std::string&) override { restored_ = true; }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, "x", {kPoints, 4});        // [B, P, 4]
    b.fields["here"] = value_rows(mine, s, "here", {kPoints, 1});  // [B, P, 1]
    std::vector<float> noise;
    std::mt19937 random(1);  // in the order of this replica's rows
    for (const Example& e : mine)
      noise.push_back(wrong("random") ? static_cast<float>(random() % 100) / 100
                                      : static_cast<float>(e.ordinal) / 100);
    static std::mt19937 unseeded(1);  // another call draws other numbers
    if (wrong("collate draws")) noise.assign(mine.size(), static_cast<float>(unseeded() % 100) / 100);
    b.fields["noise"] = from_local_values({s.rows, 1, 1}, noise);
    if (wrong("field") && s.mine.begin == 0) b.fields["extra"] = from_local_values({s.rows, 1, 1}, noise);
    double points = 0;
    for (const Example& e : mine) points += static_cast<double>(e.ids.at("point").size());
    b.weights["loss"] = wrong("weight")    ? static_cast<double>(s.rows)  // of all replicas
                        : wrong("mean")    ? 1
                        : wrong("padding") ? static_cast<double>(s.length * s.mine.size())
                                           : points;
    return b;
  }

  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    const Context& c = Context::current();
    const Tensor h = gelu(linear(b["x"] + b["noise"], p["fc1.weight"], p["fc1.bias"]));  // [B, P, 16]
    const Tensor error = square(linear(dropout(ctx.apply, "h", 0.1, h), p["fc2.weight"]));
    const Tensor sum = sum_all(error * b[wrong("name") ? "hear" : "here"]);
    static std::mt19937 unseeded(1);
    if (wrong("loss draws")) return {{"loss", scale(sum, static_cast<double>(unseeded() % 100))}};
    if (wrong("rank")) return {{"loss", scale(sum, 1 + 0.1 * c.rank())}};
    if (wrong("shard")) return {{"loss", scale(sum, 0.01 * static_cast<double>(h.local().back()))}};
    if (wrong("mean")) return {{"loss", scale(sum, 1. / static_cast<double>(b.shape.rows))}};
    if (wrong("number") && c.mesh().ranks() > 1) return {{"loss", scale(sum, INFINITY)}};
    return {{"loss", sum}};
  }

 private:
  static constexpr i64 kPoints = 4;
  bool wrong(const char* what) const { return own_settings<LayoutSettings>(settings->own).mistake == what; }
  ModelParams params_;
  bool restored_ = false;
};

REDCO_PIPELINE(Layouts)
