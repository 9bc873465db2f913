#include "assembly/job_params.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "assembly/calibration.h"
#include "assembly/named_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/params_io.h"
#include "ckpt/peft.h"
#include "comm/group.h"
#include "train/checkpoint_files.h"

namespace redco {

std::vector<CustomRule> custom_rules(const JobConfig& job) {
  std::vector<CustomRule> out;
  for (const auto& r : job.parallel.sharding_rules) out.push_back({r.match, r.spec});
  for (const NamedModelSettings& m : named_models(job))
    for (const auto& r : m.sharding_rules) out.push_back({r.match, r.spec, m.name});
  return out;
}

ParamStorage training_storage(const JobConfig& job) {
  return {.sharding = job.parallel.sharding(), .weights = job.model.weights(), .trains = true};
}
ParamStorage inference_storage(const JobConfig& job) { return {.weights = job.model.weights()}; }

namespace {

// A planned rank only checks (check_weights()).
bool reports() { return Context::current().world().rank() == 0 && !Context::current().is_meta(); }

// Reads or initializes the parameters of one model. `tree` has its own names.
void load_model(ParamTree& tree, const JobConfig& job, const ModelSource& source, const Model* model,
                const std::map<std::string, std::string>& aliases) {
  const auto seed = static_cast<u64>(job.train.seed);
  const auto canonical = [&](const std::string& n) { return model ? model->canonical_name(n) : n; };
  std::vector<bool> own = no_adapters(tree.specs());
  ParamTree base = tree.subset(own);
  ckpt::HeadLoad head{
      .is_head = [&](const std::string& n) { return is_task_head(*model, n); }, .made = {}, .unused = {}};
  const auto files = ckpt::ModelFiles::open(source.folder);
  const auto load = [&](const ckpt::Importances* importances) {
    ckpt::load_params(base, files, canonical, aliases, "", source.new_head ? &head : nullptr,
                      source.more_rows, importances);
  };
  if (model && calibrates(job, base)) {
    const auto importances = importance(job, source, *model, base, [&] { load(nullptr); });
    load(&importances);
  } else {
    load(nullptr);
  }
  if (!head.made.empty()) {
    std::vector<bool> made;
    for (const ParamSpec& s : tree.specs())
      made.push_back(std::find(head.made.begin(), head.made.end(), s.name) != head.made.end());
    ParamTree fresh = tree.subset(made);
    initialize(fresh, seed);
    // A pooler that nothing reads needs no training.
    std::erase_if(head.made, [&](const std::string& n) { return tree.find_spec(n)->buffer; });
    if (reports() && source.adapter.empty() && !head.made.empty())
      warn("[model] {} has no weights for {}: they begin at random and must be trained first", source.folder,
           fmt::join(head.made, ", "));
  }
  if (!head.unused.empty() && reports())
    debug("[model] {}: not needed for {}: {}", source.folder, job.pipeline, fmt::join(head.unused, ", "));
  if (!source.adapter.empty()) {
    ckpt::load_adapter(tree, ckpt::read_adapter(source.adapter), canonical);
  } else if (source.lora) {
    own.flip();
    ParamTree adapters = tree.subset(own);
    initialize(adapters, seed);
  }
}

// Reads parameters that a pipeline has besides the model's from their folder. Returns the names of the
// missing ones. ContentsError: it has one in another shape. `declared`: the function that declares them.
std::vector<std::string> read_own_part(ParamTree& tree, const std::string& folder,
                                       const std::string& declared) {
  ckpt::HeadLoad any{.is_head = [](const std::string&) { return true; }, .made = {}, .unused = {}};
  if (!folder.empty() && is_folder(folder)) {
    const auto files = ckpt::ModelFiles::open(folder);
    if (const auto d = ckpt::stored_differences(tree, files); !d.reshaped.empty())
      throw ContentsError(
          "[checkpoint] {} of the pipeline declares other shapes than those of the weights. {}. Declare the stored "
          "shape, or give the parameter a name that the file does not have",
          declared, fmt::join(d.reshaped, "; "));
    ckpt::load_params(
        tree, files, [](const std::string& n) { return n; }, {}, "", &any);
  } else {
    for (const ParamSpec& s : tree.specs()) any.made.push_back(s.name);
  }
  return any.made;
}

// All of them, from the folder of the weights.
std::vector<std::string> read_extra(const ParamTree& tree, const ModelSource& source,
                                    const std::string& declared) {
  const std::string& weights = source.trained_folder();
  std::vector<std::string> missing;
  for (SavedPart& p : own_parts(tree))
    for (std::string& name :
         read_own_part(p.tree, weights.empty() ? "" : join_path(weights, p.folder), declared))
      missing.push_back(std::move(name));
  return missing;
}

// Those of this training: what the folder lacks begins with its initial values. Returns the names of these.
std::vector<std::string> load_extra(ParamTree& tree, const ModelSource& source, u64 seed, bool trains) {
  initialize(tree, seed);
  const std::vector<std::string> all = read_extra(tree, source, "extra_params()");
  if (all.empty() || !reports()) return all;
  std::vector<std::string> made = all;
  if (constexpr std::size_t kNamed = 5; made.size() > kNamed) {
    const std::size_t more = made.size() - kNamed;
    made.resize(kNamed);
    made.push_back(fmt::format("{} more", more));
  }
  const std::string& weights = source.trained_folder();
  const std::string line = fmt::format(
      "[model] {} has no values for the pipeline's own parameters ({}): they begin with their "
      "initial values",
      weights.empty() ? "the job" : weights, fmt::join(made, ", "));
  if (trains) {
    info("{}; moving averages begin as copies", line);
  } else {
    warn("{} and must be trained first", line);
  }
  return all;
}

// Those of the training of a frozen model (Pipeline::extra_params_of()): its folder has them all.
void load_extra_of(const std::string& name, ParamTree& tree, const ModelSource& source) {
  if (tree.size() == 0) return;
  std::vector<std::string> missing = read_extra(tree, source, fmt::format("extra_params_of(\"{}\")", name));
  for (std::string& m : missing) m += " " + to_string(tree[m].shape());
  if (!missing.empty())
    throw ContentsError(
        "[models] models.{}: {} has no values for {}, which the pipeline needs of this model. Its training "
        "saves them in {}/ if its pipeline declares them in extra_params()",
        name, source.trained_folder(), fmt::join(missing, ", "), part_folder(kExtra));
}

// The tensors of one owner, by their names in `tree`.
ParamTree owned_by(const ParamTree& tree, const std::string& owner) {
  std::vector<bool> selected;
  for (const ParamSpec& s : tree.specs()) selected.push_back(s.owner == owner);
  return tree.subset(selected);
}

}  // namespace

ParamTree make_job_params(const JobConfig& job, const ModelSource& source, const Model* model,
                          const ModelParams& params, const ParamStorage& storage,
                          const std::vector<NamedParts>* named) {
  const auto sharded =
      shard_specs(params.specs, Context::current().mesh().mp(), custom_rules(job), storage.weights);
  if (reports())
    for (const std::string& w : sharded.sharding.warnings) warn("[sharding] {}", w);
  const auto seed = static_cast<u64>(job.train.seed);
  ParamTree tree = make_params(params, sharded.layouts, storage);
  ParamTree own = tree.part("");
  std::vector<std::string> made;  // what has initial values, not stored ones
  if (source.folder.empty()) {
    initialize(own, seed);
    for (const ParamSpec& s : own.specs()) made.push_back(s.name);
  } else {
    load_model(own, job, source, model, params.aliases);
  }
  if (tree.has_part(kExtra)) {
    ParamTree extra = tree.part(kExtra);
    for (std::string& name : load_extra(extra, source, seed, storage.trains)) made.push_back(std::move(name));
  }
  static const std::vector<NamedParts> kNone;
  for (const NamedParts& n : named ? *named : kNone) {
    if (n.source.folder.empty()) {
      // A frozen one begins like the job's model, if it has the same names; a trained one with its own draws.
      ParamTree fresh = n.settings.frozen ? tree.part(n.settings.name) : owned_by(tree, n.settings.name);
      initialize(fresh, seed);
    } else {
      const ParamTree theirs = tree.part(n.settings.name);
      std::vector<bool> of_model = own_parameters(theirs, *n.model);
      ParamTree own_part = theirs.subset(of_model);
      load_model(own_part, n.job, n.source, n.model.get(), n.model->params().aliases);
      of_model.flip();
      ParamTree more = theirs.subset(of_model);
      load_extra_of(n.settings.name, more, n.source);
    }
  }
  copy_initial_values(tree, made);
  return tree;
}

}  // namespace redco
