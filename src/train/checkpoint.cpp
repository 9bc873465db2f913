#include "train/checkpoint.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "ckpt/params_io.h"
#include "ckpt/peft.h"
#include "data/index/epoch_order.h"
#include "data/text/lm_windows.h"
#include "models/config_tree.h"
#include "train/checkpoint_files.h"
#include "train/predictor.h"

namespace redco {

using Json = nlohmann::ordered_json;

std::string part_folder(const std::string& owner) { return "models/" + owner; }

std::string to_json(const TrainState& s) {
  Json j = {{"step", s.step},
            {"optimizer_steps", s.optimizer_steps},
            {"group_steps", s.group_steps},
            {"best", s.best},
            {"best_step", s.best_step},
            {"seed", s.seed},
            {"global_batch_size", s.global_batch_size},
            {"n_examples", s.n_examples},
            {"optimizer", s.optimizer},
            {"data_fingerprint", s.data_fingerprint},
            {"tokenizer_fingerprint", s.tokenizer_fingerprint},
            {"pipeline", s.pipeline},
            {"started_in", s.started_in},
            {"threads_per_rank", s.threads_per_rank},
            {"dp", s.dp},
            {"mp", s.mp},
            {"compute_dtype", s.compute_dtype},
            {"isa", s.isa},
            {"pipeline_state", Json::parse(s.pipeline_state)}};
  if (s.waiting)
    j["early_stopping"] = {{"metric", s.waiting->metric},
                           {"best", s.waiting->best ? Json(*s.waiting->best) : Json()},
                           {"best_step", s.waiting->best_step},
                           {"evaluations_since", s.waiting->evaluations}};
  if (s.pending_evaluation) j["pending_evaluation"] = true;
  if (s.base) j["base"] = {{"from", s.base->from}, {"fingerprint", s.base->fingerprint}};
  for (const auto& [name, m] : s.frozen_models)
    j["frozen_models"][name] = {{"from", m.from}, {"fingerprint", m.fingerprint}};
  for (const PluginRecord& p : s.plugins)
    j["plugins"].push_back({{"path", p.path}, {"fingerprint", p.fingerprint}, {"families", p.families}});
  return j.dump(2) + "\n";
}

bool is_json(const std::string& text) { return Json::accept(text); }

std::string state_of(const Pipeline& pipeline) {
  std::string state = in_pipeline(pipeline, "state()", [&] { return pipeline.state(); });
  if (!is_json(state)) throw UsageError("[pipeline] state() returned no JSON: {}", excerpt(state));
  return state;
}

TrainState parse_state(const std::string& text, const std::string& where) {
  TrainState s;
  try {
    const Json j = Json::parse(text);
    s.step = j.at("step");
    s.optimizer_steps = j.at("optimizer_steps");
    s.group_steps = j.at("group_steps").get<std::map<std::string, i64>>();
    s.best = j.at("best").get<std::map<std::string, double>>();
    // Older checkpoints lack the field; their pointers don't change.
    if (j.contains("best_step")) s.best_step = j["best_step"].get<std::map<std::string, i64>>();
    s.seed = j.at("seed");
    s.global_batch_size = j.at("global_batch_size");
    s.n_examples = j.at("n_examples");
    // Checkpoints from before there was a choice used AdamW.
    s.optimizer = j.value("optimizer", "adamw");
    s.data_fingerprint = j.at("data_fingerprint");
    s.tokenizer_fingerprint = j.at("tokenizer_fingerprint");
    s.pipeline = j.at("pipeline");
    s.started_in = j.value("started_in", "");
    s.threads_per_rank = j.at("threads_per_rank");
    s.dp = j.at("dp");
    s.mp = j.at("mp");
    s.compute_dtype = j.at("compute_dtype");
    s.isa = j.at("isa");
    s.pipeline_state = j.at("pipeline_state").dump();
    s.pending_evaluation = j.value("pending_evaluation", false);
    if (j.contains("base")) s.base = {j["base"].at("from"), j["base"].at("fingerprint")};
    if (j.contains("frozen_models"))
      for (const auto& [name, m] : j["frozen_models"].items())
        s.frozen_models[name] = {m.at("from"), m.at("fingerprint")};
    if (j.contains("plugins"))
      for (const Json& p : j["plugins"])
        s.plugins.push_back(
            {p.at("path"), p.at("fingerprint"), p.at("families").get<std::vector<std::string>>()});
    if (j.contains("early_stopping")) {
      const Json& w = j["early_stopping"];
      s.waiting.emplace();
      s.waiting->metric = w.at("metric");
      if (!w.at("best").is_null()) s.waiting->best = w.at("best").get<double>();
      s.waiting->best_step = w.at("best_step");
      s.waiting->evaluations = w.at("evaluations_since");
    }
  } catch (const nlohmann::json::exception& e) {
    throw ContentsError("[checkpoint] {}: {}", where, e.what());
  }
  bool sound = s.step >= 0 && s.optimizer_steps >= 0 && s.n_examples >= 1 && s.global_batch_size >= 1;
  for (const auto& [name, n] : s.group_steps) sound = sound && n >= 0;
  for (const auto& [name, n] : s.best_step) sound = sound && n >= 0;
  if (s.waiting) sound = sound && s.waiting->best_step >= 0 && s.waiting->evaluations >= 0;
  if (!sound) throw ContentsError("[checkpoint] {}: a count is negative, expected 0 or more", where);
  return s;
}

std::map<std::string, i64> algorithm_versions() {
  return {{"rng", 1}, {"shuffle", kShuffleVersion}, {"packing", kPackingVersion}, {"init", kInitVersion}};
}

std::string saved_config(const Model& model, ckpt::StoredType dtype) {
  nlohmann::ordered_json j = model.config().tree().json;
  const char* name = dtype == ckpt::StoredType::bf16 ? "bfloat16" : "float32";
  if (j.contains("torch_dtype")) j["torch_dtype"] = name;
  if (j.contains("dtype") || !j.contains("torch_dtype")) j["dtype"] = name;
  return j.dump(2) + "\n";
}

namespace {

// Settings of the adapters that a resumed run must keep; loading the tensors checks layers and shapes.
void check_same_lora(const LoraConfig& was, const LoraConfig& is, const std::string& checkpoint) {
  auto same = [&](const char* what, double a, double b) {
    if (a != b)
      throw UsageError(
          "[checkpoint] {} was made with {}={}, but this job has {}. A resumed run needs the same value. "
          "Restore it, or start a new run in another workdir or with checkpoint.resume=never",
          checkpoint, what, a, b);
  };
  same("train.lora.rank", static_cast<double>(was.rank), static_cast<double>(is.rank));
  same("train.lora.alpha", was.alpha, is.alpha);
  same("train.lora.use_rslora", was.use_rslora, is.use_rslora);
}

// The parameters that the pipeline has besides the model's are those of the checkpoint.
void check_same_extra(const std::string& checkpoint, const ParamTree& params) {
  std::vector<SavedPart> parts;
  if (params.has_part(kExtra)) parts = own_parts(params.part(kExtra));
  if (std::ranges::none_of(parts, [](const SavedPart& p) { return p.folder == part_folder(kExtra); }))
    parts.push_back({part_folder(kExtra), ParamTree({}, {}), nullptr});
  ckpt::StoredDifferences d;
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const SavedPart& p : parts) {
    if (const std::string folder = join_path(checkpoint, p.folder); is_folder(folder)) {
      const auto files = ckpt::ModelFiles::open(folder);
      const ckpt::StoredDifferences of = ckpt::stored_differences(p.tree, files);
      append(d.missing, of.missing);
      append(d.unknown, of.unknown);
      append(d.reshaped, of.reshaped);
    } else {
      for (const ParamSpec& s : p.tree.specs()) d.missing.push_back(s.name);
    }
  }
  std::string what;
  const auto add = [&](const char* kind, const std::vector<std::string>& names) {
    if (!names.empty()) what += fmt::format("{}: {}. ", kind, fmt::join(names, ", "));
  };
  add("New", d.missing);
  add("No longer declared", d.unknown);
  add("Other shapes", d.reshaped);
  if (!what.empty())
    throw UsageError(
        "[checkpoint] {} was made with other parameters of the pipeline (extra_params()). {}A resumed run needs "
        "the same. Restore them, or start a new run in another workdir with model.path={}: there, new "
        "parameters begin with their initial values",
        checkpoint, what, checkpoint);
}

}  // namespace

bool has_optimizer_state(const std::string& checkpoint) {
  return exists(join_path(checkpoint, "training/optimizer.safetensors")) ||
         exists(join_path(checkpoint, "training/optimizer.safetensors.index.json"));
}

void load_checkpoint_tensors(const std::string& checkpoint, CheckpointContents& what) {
  ParamTree& params = what.params;
  auto canonical = [&](const std::string& n) { return what.model ? what.model->canonical_name(n) : n; };
  if (what.adapter_config.empty() && ckpt::is_adapter(checkpoint))
    throw UsageError("[checkpoint] {} has LoRA adapters, but this job has no train.lora. Restore train.lora",
                     checkpoint);
  if (!what.adapter_config.empty() && !ckpt::is_adapter(checkpoint))
    throw UsageError("[checkpoint] {} has no LoRA adapters, but this job has train.lora. Remove train.lora",
                     checkpoint);
  if (!what.adapter_config.empty()) {
    const ckpt::PeftAdapter saved = ckpt::read_adapter(checkpoint);
    check_same_lora(saved.config, ckpt::parse_adapter(what.adapter_config, "train.lora").config, checkpoint);
    ParamTree own = params.part("");
    ckpt::load_adapter(own, saved, canonical);
  } else {
    ParamTree own = params.part("");
    ckpt::load_params(own, ckpt::ModelFiles::open(checkpoint), canonical, what.aliases);
  }
  const auto as_saved = [](const std::string& n) { return n; };
  check_same_extra(checkpoint, params);
  for (SavedPart& p : parts_of(what)) {
    const auto named = [&](const std::string& n) { return p.model ? p.model->model->canonical_name(n) : n; };
    ckpt::load_params(p.tree, ckpt::ModelFiles::open(join_path(checkpoint, p.folder)), named,
                      p.model ? p.model->model->params().aliases : std::map<std::string, std::string>());
  }
  const std::string training = join_path(checkpoint, "training");
  const bool has_masters = [&] {
    if (!has_optimizer_state(checkpoint)) return false;
    const auto files = ckpt::ModelFiles::open(training, "optimizer");
    for (Optimizer::State& s : what.optimizer)
      ckpt::load_params(s.tree, files, as_saved, what.aliases, s.name + "/");
    ParamTree trained = params.subset(trained_ones(params.specs()));
    const bool found = std::ranges::any_of(files.tensors(),
                                           [](const auto& t) { return t.entry->name.starts_with(kMaster); });
    if (found) ckpt::load_params(trained, files, as_saved, what.aliases, kMaster);
    return found;
  }();
  if (has_masters) return;
  Context::current().world().on_first([&] {
    const auto files =
        ckpt::ModelFiles::open(checkpoint, what.adapter_config.empty() ? "model" : ckpt::kAdapterStem);
    if (std::ranges::any_of(files.tensors(),
                            [](const auto& t) { return t.entry->type != ckpt::StoredType::f32; }))
      warn(
          "[checkpoint] {} has rounded weights and no master weights: the run continues with the rounded ones",
          checkpoint);
  });
}

}  // namespace redco
