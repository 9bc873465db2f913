#include "verify/verify.h"

#include <cmath>
#include <filesystem>

#include "autograd/grad.h"
#include "base/error.h"
#include "base/file.h"
#include "ckpt/params_io.h"
#include "ckpt/peft.h"
#include "models/model.h"
#include "ops/create.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/gradients.h"
#include "pipeline/bad_ids.h"
#include "train/folder_model.h"
#include "verify/expected.h"
#include "verify/generation.h"
#include "verify/meta_learning.h"
#include "verify/stored.h"
#include "verify/task.h"

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
    report_.mesh = fmt::format("dp {} x mp {}", c.mesh().dp(), c.mesh().mp());
    if (expected_.has("input_ids") || expected_.has("pixel_values") || expected_.has("features") ||
        expected_.has("input_features"))
      forward();
    generation();
    for (const std::string& name : expected_.names())
      if (!seen_.count(name)) {
        const bool input = expected_.is_input(name);
        if (!input) report_.lines.push_back({.tensor = name, .note = kUnknown});
      }
    conclude(report_, request_.strict);
    return report_;
  }

 private:
  void load() {
    const std::string folder = request_.folder;
    if (!fs::is_directory(folder)) throw UsageError("[verify] folder {} does not exist", folder);
    base_ = folder;
    if (ckpt::is_adapter(folder)) {
      adapter_ = ckpt::read_adapter(folder);
      base_ = ckpt::base_folder(*adapter_, "put the base where it says");
    }
    model_ = make_folder_model(base_, {ConfigJson::of_file(join_path(base_, "config.json")),
                                       request_.config_overrides,
                                       request_.ignore_config_keys,
                                       {request_.origins, ""}});
    if (adapter_)
      model_->set_params(with_lora(model_->params(), adapter_->config,
                                   ckpt::adapter_modules(model_->params(), *adapter_, canonical()),
                                   adapter_->folder));
    expected_ = Expected::open(folder, request_.expected);
    expected_.check_task(name_of(model_->task()));
    expected_.rename_parameters(canonical());
    const auto sharded = shard_specs(model_->params().specs, Context::current().mesh().mp(), request_.rules);
    params_ = make_params(model_->params(), sharded.layouts, {.sharding = request_.sharding});
    load_values();
  }
  ckpt::CanonicalName canonical() const {
    return [this](const std::string& n) { return model_->canonical_name(n); };
  }
  void load_values() {
    ParamTree own = params_.subset(no_adapters(params_.specs()));
    ckpt::load_params(own, ckpt::ModelFiles::open(base_), canonical(), model_->params().aliases);
    if (adapter_) ckpt::load_adapter(params_, *adapter_, canonical());
  }

  // --- comparing -------------------------------------------------------------------------------------------
  // `mask`: positions where it is 0 are not compared; null: all are compared.
  void compare(const std::string& name, const std::vector<double>& got, const PositionMask* mask = nullptr) {
    const std::vector<double> want = expected_.values(name);
    const double tolerance = expected_.tolerance(name);
    if (got.size() != want.size())
      throw ContentsError("[verify] {}: '{}' holds {} values, the model computes {}", expected_.path(), name,
                          want.size(), got.size());
    VerifyLine line{.tensor = name, .tolerance = tolerance, .checked = true};
    const size_t width = mask ? got.size() / mask->values.size() : 0;  // values of a position
    if (mask) {
      line.mask = mask->name;
      line.positions = static_cast<i64>(mask->values.size());
      line.left_out = std::count(mask->values.begin(), mask->values.end(), 0);
    }
    for (size_t i = 0; i < got.size(); ++i) {
      if (mask && mask->values[i / width] == 0) continue;
      const double d = std::fabs(got[i] - want[i]);
      line.difference = std::isfinite(d) ? std::max(line.difference, d) : HUGE_VAL;
    }
    line.passed = line.difference <= tolerance;
    if (mask && line.left_out == line.positions) {
      line.checked = line.passed = false;
      line.note = fmt::format("{} is 0 at every position", mask->name);
    }
    add(std::move(line));
  }
  void compare_ids(const std::string& name, const std::vector<std::vector<i32>>& rows, i32 pad) {
    const auto want = expected_.ids(name);
    const Shape shape = expected_.shape(name);
    if (shape[0] != static_cast<i64>(rows.size()))
      throw ContentsError("[verify] {}: '{}' has {} rows for {} prompts", expected_.path(), name, shape[0],
                          rows.size());
    i64 wrong = 0;
    for (i64 r = 0; r < shape[0]; ++r)
      for (i64 t = 0; t < shape[1]; ++t) {
        const bool have = t < static_cast<i64>(rows[r].size());
        wrong += (have ? rows[r][t] : pad) != want[r * shape[1] + t];
      }
    for (const auto& row : rows) wrong += std::max<i64>(0, static_cast<i64>(row.size()) - shape[1]);
    add({.tensor = name,
         .difference = static_cast<double>(wrong),
         .checked = true,
         .passed = wrong == 0,
         .note = "ids that differ"});
  }
  void add(VerifyLine line) {
    seen_.insert(line.tensor);
    report_.lines.push_back(std::move(line));
  }
  bool wants(const std::string& name) const { return expected_.has(name); }

  Tensor loss_of(const TaskInputs& in, const ParamTree& params) const {
    std::vector<Tensor> routers;
    const Tensor logits = task_logits(*model_, params, in, {.router_logits = &routers});
    return task_loss(*model_, in, logits, routers);
  }

  // --- forward, loss, gradients, AdamW
  // ------------------------------------------------------------------------
  void forward() {
    const TaskInputs in = read_task_inputs(*model_, expected_, base_);
    {
      NoGrad off;
      std::map<std::string, Tensor> hidden;
      std::vector<Tensor> routers;
      const Tensor logits = task_logits(*model_, params_, in, {.router_logits = &routers}, &hidden);
      for (const auto& [name, states] : hidden)
        if (wants(name)) compare(name, to_values(states), mask_of(*model_, in, name));
      if (wants("logits")) compare("logits", to_values(logits), mask_of(*model_, in, "logits"));
      if (wants("loss")) compare("loss", {item(task_loss(*model_, in, logits, routers))});
      check_ids();
    }
    const bool grads = expected_.any_with("grad."),
               steps = wants("loss_step1") || expected_.any_with("adamw.");
    if (!grads && !steps) return;

    auto gradients = [&](double* loss) {
      const ParamTree p = params_.watched();
      const Tensor l = loss_of(in, p);
      *loss = item(l);
      return reduced_gradients(l, p, params_, request_.sharding);
    };
    const Expected::Optimizer opt = expected_.optimizer();
    AdamW adamw({.beta1 = opt.beta1,
                 .beta2 = opt.beta2,
                 .epsilon = opt.eps,
                 .weight_decay = opt.weight_decay,
                 .decay_norms_and_biases = true},
                params_, request_.sharding);
    const i64 n = steps ? opt.steps : 1;
    double loss = 0;
    for (i64 s = 0; s < n; ++s) {
      auto g = gradients(&loss);
      if (s == 0) {
        first_gradients_ = by_stored_name(params_.with_values(g));
        for (const auto& [name, values] : first_gradients_)
          if (wants("grad." + name)) compare("grad." + name, values);
      }
      if (!steps) break;
      if (s == 0) settle_undetermined(g);
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
      compare(after, {item(loss_of(in, params_))});
    }
    // The following checks use the checkpoint's values, not those after the AdamW steps.
    load_values();
  }

  // Labels beyond the classes; the ids of tokens were checked when they were read.
  void check_ids() const {
    const auto bad = Context::current().queue().take_bad_id();
    Context::current().world().together([&] {
      if (bad) throw ContentsError("[verify] {}: {}", expected_.path(), describe(*bad));
    });
  }

  // AdamW's first step is lr g / (|g| + eps): its size is lr for any size of g, in the direction of g's sign.
  // If the file's gradient is within its tolerance of 0, and redco's within the tolerance of the file's, both
  // signs are right and the step uses the file's gradient. Otherwise the later losses would compare signs of
  // rounding errors.
  void settle_undetermined(std::vector<Tensor>& g) {
    for (size_t i = 0; i < g.size(); ++i) {
      const ParamSpec& s = params_.specs()[i];
      std::vector<double> values;
      for (const StoredPiece& p : stored_pieces(s)) {
        const std::string name = "grad." + p.name;
        if (!wants(name)) continue;
        if (values.empty()) values = to_values(g[i]);
        const std::vector<double> want = expected_.values(name);
        const double tolerance = expected_.tolerance(name);
        for (size_t j = 0; j < p.index.size(); ++j) {
          const double file = want[p.index[j]];
          double& ours = values[p.first + j];
          if (std::fabs(file) > tolerance || !(std::fabs(ours - file) <= tolerance)) continue;
          if (file == 0 && ours == 0) continue;
          ours = file;
          ++report_.undetermined;
        }
      }
      if (values.empty()) continue;
      const std::vector<float> settled(values.begin(), values.end());
      g[i] = from_values(s.shape, std::span<const float>(settled), g[i].layout());
    }
  }

  // Tolerance: ten times the bucket's difference if the first gradient is at least 1e-5; else 3 lr, because
  // AdamW divides noise by noise.
  void compare_adamw(const std::string& name, const std::vector<double>& got,
                     const std::vector<double>& first, const Expected::Optimizer& opt) {
    const auto want = expected_.values(name);
    if (want.size() != got.size())
      throw ContentsError("[verify] {}: '{}' holds {} values, the model has {}", expected_.path(), name,
                          want.size(), got.size());
    VerifyLine line{.tensor = name, .tolerance = expected_.adamw_tolerance(1e-3), .checked = true};
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

  // --- generation
  // ------------------------------------------------------------------------------------------------
  void generation() {
    Context& c = Context::current();
    // Each replica's mp group generates all rows, so the ids are checked on each.
    auto sub = Context::mp_submesh(c);
    const ParamTree replica = params_.gathered();
    Context::Use use(*sub);
    check_generation(
        base_, expected_, *model_, replica,
        {.ids = [&](const auto& name, const auto& rows, i32 pad) { compare_ids(name, rows, pad); },
         .values = [&](const auto& name, const auto& values) { compare(name, values); }});
  }

  const VerifyRequest& request_;
  std::unique_ptr<Model> model_;
  Expected expected_;
  ParamTree params_;
  std::string base_;                          // the folder of the model's weights
  std::optional<ckpt::PeftAdapter> adapter_;  // if the folder is an adapter
  std::map<std::string, std::vector<double>> first_gradients_;
  std::set<std::string> seen_;
  VerifyReport report_;
};

}  // namespace

VerifyReport verify(const VerifyRequest& request) {
  return is_meta_learning(request) ? verify_meta_learning(request) : Verifier(request).run();
}

}  // namespace redco
