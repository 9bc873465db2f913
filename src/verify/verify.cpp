#include "verify/verify.h"

#include <cmath>
#include <filesystem>

#include "autograd/grad.h"
#include "base/error.h"
#include "base/file.h"
#include "ckpt/params_io.h"
#include "generate/generate.h"
#include "models/model.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "optim/gradients.h"
#include "verify/expected.h"

namespace redco {

namespace {

namespace fs = std::filesystem;
using ckpt::SafetensorsFile;

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& r) : request_(r) {}

  VerifyReport run() {
    Context& c = Context::current();
    load();
    report_.model = model_->family();
    report_.mesh = fmt::format("dp {} x mp {}", c.mesh().dp, c.mesh().mp);
    if (expected_.has("input_ids")) forward();
    if (expected_.has("gen_input_ids")) generation();
    for (const std::string& name : expected_.names())
      if (!seen_.count(name)) {
        const bool input = expected_.is_input(name);
        if (!input) report_.lines.push_back({name, 0, 0, false, false, expected_.why_not(name)});
      }
    std::sort(report_.lines.begin(), report_.lines.end(),
              [](const VerifyLine& a, const VerifyLine& b) { return a.tensor < b.tensor; });
    bool any = false, all = true;
    for (const VerifyLine& l : report_.lines) {
      any |= l.checked;
      all &= !l.checked || l.passed;
    }
    report_.passed = any && all;
    return report_;
  }

 private:
  void load() {
    const std::string folder = request_.folder;
    if (!fs::is_directory(folder)) throw UsageError("[verify] no such folder: {}", folder);
    model_ = make_model(ModelConfig(read_text(folder + "/config.json"), folder + "/config.json",
                                    request_.config_overrides, request_.ignore_config_keys));
    expected_ = Expected::open(folder, request_.expected);
    expected_.check_task("causal-lm");
    const auto sharded = shard_specs(model_->params().specs, Context::current().mesh().mp, request_.rules);
    params_ = make_params(model_->params(), sharded.layouts);
    const auto files = ckpt::ModelFiles::open(folder);
    ckpt::load_params(
        params_, files, [&](const std::string& n) { return model_->canonical_name(n); },
        model_->params().aliases);
  }

  // --- comparing -------------------------------------------------------------------------------------------
  void compare(const std::string& name, const std::vector<double>& got) {
    const std::vector<double> want = expected_.values(name);
    const double tolerance = expected_.tolerance(name);
    double worst = 0;
    if (got.size() != want.size())
      throw ContentsError("[verify] {}: '{}' holds {} values, the model computes {}", expected_.path(), name,
                          want.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double d = std::fabs(got[i] - want[i]);
      worst = std::isfinite(d) ? std::max(worst, d) : HUGE_VAL;
    }
    add({name, worst, tolerance, true, worst <= tolerance, ""});
  }
  void compare_ids(const std::string& name, const std::vector<std::vector<i32>>& rows, i32 pad) {
    const auto want = expected_.ids(name);
    const Shape shape = expected_.shape(name);
    i64 wrong = 0;
    for (i64 r = 0; r < shape[0]; ++r)
      for (i64 t = 0; t < shape[1]; ++t) {
        const bool have = t < static_cast<i64>(rows[r].size());
        wrong += (have ? rows[r][t] : pad) != want[r * shape[1] + t];
      }
    for (const auto& row : rows) wrong += std::max<i64>(0, static_cast<i64>(row.size()) - shape[1]);
    add({name, static_cast<double>(wrong), 0, true, wrong == 0, "ids that differ"});
  }
  void add(VerifyLine line) {
    seen_.insert(line.tensor);
    report_.lines.push_back(std::move(line));
  }
  bool wants(const std::string& name) const { return expected_.has(name); }

  // --- forward, loss, gradients, AdamW
  // ------------------------------------------------------------------------
  void forward() {
    const Shape shape = expected_.shape("input_ids");
    const auto ids = expected_.ids("input_ids");
    std::vector<i32> mask =
        wants("attention_mask") ? expected_.ids("attention_mask") : std::vector<i32>(ids.size(), 1);
    std::vector<i32> labels = wants("labels") ? expected_.ids("labels") : std::vector<i32>(ids.size(), -100);
    const i64 B = shape[0], T = shape[1];
    expected_.check_ids("input_ids", model_->vocab_size());
    std::vector<i32> positions, shifted(ids.size(), -100);
    i64 valid = 0;
    for (i64 b = 0; b < B; ++b) {
      const auto row = model_->positions(std::span<const i32>(mask).subspan(b * T, T), false);
      positions.insert(positions.end(), row.begin(), row.end());
      for (i64 t = 0; t + 1 < T; ++t) {
        shifted[b * T + t] = labels[b * T + t + 1];  // transformers shifts inside the model
        valid += shifted[b * T + t] >= 0;
      }
    }
    const Layout rows = batch_layout();
    const DecoderInputs in{from_ids(shape, ids, rows), from_ids(shape, positions, rows),
                           from_ids(shape, mask, rows)};
    const Tensor targets = from_ids(shape, shifted, rows);
    auto mean_loss = [&](const Tensor& logits) {
      return scale(sum_all(cross_entropy(logits, targets)), valid ? 1.0 / static_cast<double>(valid) : 0.0);
    };
    {
      NoGrad off;
      std::vector<Tensor> hidden;
      ApplyOptions o;
      o.hidden_states = &hidden;
      const Tensor logits = model_->apply(params_, in, o);
      for (size_t i = 0; i < hidden.size(); ++i)
        if (wants(fmt::format("hidden.{}", i))) compare(fmt::format("hidden.{}", i), to_values(hidden[i]));
      if (wants("logits")) compare("logits", to_values(logits));
      if (wants("loss")) compare("loss", {item(mean_loss(logits))});
    }
    const bool grads = expected_.any_with("grad."),
               steps = wants("loss_step1") || expected_.any_with("adamw.");
    if (!grads && !steps) return;

    auto gradients = [&](double* loss) {
      const ParamTree p = params_.watched();
      const Tensor l = mean_loss(model_->apply(p, in, {}));
      auto g = grad(l, p.values());
      *loss = item(l);
      std::vector<size_t> index(g.size());
      for (size_t i = 0; i < index.size(); ++i) index[i] = i;
      reduce_gradients(g, params_, index);
      return g;
    };
    const Expected::Optimizer opt = expected_.optimizer();
    AdamW adamw({.beta1 = opt.beta1,
                 .beta2 = opt.beta2,
                 .epsilon = opt.eps,
                 .weight_decay = opt.weight_decay,
                 .decay_norms_and_biases = true},
                params_);
    const i64 n = steps ? opt.steps : 1;
    double loss = 0;
    for (i64 s = 0; s < n; ++s) {
      const auto g = gradients(&loss);
      if (s == 0) {
        first_gradients_ = by_stored_name(params_.with_values(g));
        for (const auto& [name, values] : first_gradients_)
          if (wants("grad." + name)) compare("grad." + name, values);
      }
      if (!steps) break;
      const std::string name = fmt::format("loss_step{}", s + 1);
      if (wants(name)) compare(name, {loss});
      double factor = 1;
      if (opt.clip) factor = std::min(1.0, *opt.clip / (gradient_norm(g) + 1e-6));
      adamw.update(params_, g, opt.lr, factor);
    }
    if (!steps) return;
    for (const auto& [name, values] : by_stored_name(params_))
      if (wants("adamw." + name)) compare_adamw("adamw." + name, values, first_gradients_.at(name), opt);
    const std::string after = fmt::format("loss_after{}", n);
    if (wants(after)) {
      NoGrad off;
      compare(after, {item(mean_loss(model_->apply(params_, in, {})))});
    }
    // What follows is asked of the checkpoint, not of what three steps made of it.
    const auto files = ckpt::ModelFiles::open(request_.folder);
    ckpt::load_params(
        params_, files, [&](const std::string& x) { return model_->canonical_name(x); },
        model_->params().aliases);
  }

  // Where the first gradient is at least 1e-5: ten times the bucket's difference; elsewhere AdamW divides
  // noise by noise: 3 lr.
  void compare_adamw(const std::string& name, const std::vector<double>& got,
                     const std::vector<double>& first, const Expected::Optimizer& opt) {
    const auto want = expected_.values(name);
    if (want.size() != got.size())
      throw ContentsError("[verify] {}: '{}' holds {} values, the model has {}", expected_.path(), name,
                          want.size(), got.size());
    VerifyLine line{name, 0, expected_.adamw_tolerance(1e-3), true, true, ""};
    double worst_share = -1;
    for (size_t i = 0; i < got.size(); ++i) {
      const double d = std::fabs(got[i] - want[i]);
      const double tolerance =
          std::fabs(first[i]) >= 1e-5 ? expected_.adamw_tolerance(std::fabs(first[i])) : 3 * opt.lr;
      if (!(d / tolerance <= worst_share)) {  // NaN counts
        worst_share = std::isfinite(d) ? d / tolerance : HUGE_VAL;
        line.difference = std::isfinite(d) ? d : HUGE_VAL;
        line.tolerance = tolerance;
      }
    }
    line.passed = worst_share <= 1;
    add(line);
  }

  // Whole tensors as the files store them: parts joined, transposed back.
  std::map<std::string, std::vector<double>> by_stored_name(const ParamTree& tree) {
    std::map<std::string, std::vector<double>> out;
    for (size_t i = 0; i < tree.size(); ++i) {
      const ParamSpec& s = tree.specs()[i];
      auto& whole = out[s.stored.name];
      whole.resize(numel(s.stored.shape));
      const auto part = to_values(tree.values()[i]);
      const i64 rows = s.shape[0], row = rows ? numel(s.shape) / rows : 0;
      const i64 all = s.stored.transposed ? s.stored.shape[1] : 0;
      for (i64 r = 0; r < rows; ++r)
        for (i64 k = 0; k < row; ++k)
          whole[s.stored.transposed ? k * all + s.stored.row + r : (s.stored.row + r) * row + k] =
              part[r * row + k];
    }
    return out;
  }

  // --- generation
  // ------------------------------------------------------------------------------------------------
  void generation() {
    Context& c = Context::current();
    // Each replica's mp group answers all rows: the ids must come out on every one of them.
    auto sub = Context::mp_submesh(c);
    ParamTree replica = params_;
    Context::Use use(*sub);
    GenerationSettings g = expected_.generation();
    auto prompts_of = [&](const std::string& ids_name, const std::string& mask_name) {
      const Shape shape = expected_.shape(ids_name);
      const auto ids = expected_.ids(ids_name);
      const auto mask = wants(mask_name) ? expected_.ids(mask_name) : std::vector<i32>(ids.size(), 1);
      std::vector<std::vector<i32>> out(shape[0]);
      for (i64 r = 0; r < shape[0]; ++r)
        for (i64 t = 0; t < shape[1]; ++t)
          if (mask[r * shape[1] + t]) out[r].push_back(ids[r * shape[1] + t]);
      return out;
    };
    auto check_greedy = [&](const std::string& out_name, const std::string& ids_name,
                            const std::string& mask_name) {
      if (!wants(out_name)) return;
      const auto prompts = prompts_of(ids_name, mask_name);
      std::vector<i64> ordinals(prompts.size());
      const auto fresh = redco::generate(*model_, replica, prompts, ordinals, g);
      const Shape shape = expected_.shape(ids_name);
      const auto ids = expected_.ids(ids_name);
      std::vector<std::vector<i32>> rows(prompts.size());
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r].assign(ids.begin() + r * shape[1], ids.begin() + (r + 1) * shape[1]);
        rows[r].insert(rows[r].end(), fresh[r].begin(), fresh[r].end());
      }
      compare_ids(out_name, rows, g.pad_id);
    };
    check_greedy("greedy_ids", "gen_input_ids", "gen_attention_mask");
    if (wants("padded_input_ids"))
      check_greedy("padded_greedy_ids", "padded_input_ids", "padded_attention_mask");
    if (wants("sample_probs_t07_k20_p09")) {
      GenerationSettings s = g;
      s.temperature = 0.7;
      s.top_k = 20;
      s.top_p = 0.9;
      const auto prompts = prompts_of("gen_input_ids", "gen_attention_mask");
      const auto logits = next_token_logits(*model_, replica, prompts, g.pad_id);
      std::vector<double> got;
      const i64 V = model_->vocab_size();
      for (size_t r = 0; r < prompts.size(); ++r)
        for (float p : sampling_probabilities(std::span<const float>(logits).subspan(r * V, V), s))
          got.push_back(p);
      compare("sample_probs_t07_k20_p09", got);
    }
  }

  const VerifyRequest& request_;
  std::unique_ptr<Model> model_;
  Expected expected_;
  ParamTree params_;
  std::map<std::string, std::vector<double>> first_gradients_;
  std::set<std::string> seen_;
  VerifyReport report_;
};

}  // namespace

VerifyReport verify(const VerifyRequest& request) { return Verifier(request).run(); }

}  // namespace redco
