#include "assembly/named_parts.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "assembly/job_params.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "ckpt/weights_hash.h"
#include "comm/group.h"

namespace redco {

std::vector<NamedParts> make_named_parts(const JobConfig& job, const std::vector<std::string>* only) {
  std::vector<NamedParts> out;
  for (const NamedModelSettings& settings : named_models(job)) {
    if (only && std::ranges::find(*only, settings.name) == only->end()) continue;
    NamedParts& p = out.emplace_back();
    p.settings = settings;
    p.job = job_of_model(job, settings);
    try {
      p.tokenizer = job_tokenizer(p.job);
      p.source = model_source(p.job, p.tokenizer.get());
      if (p.source.new_head && p.source.adapter.empty())
        throw UsageError("{} has no head that was trained for it. Train one first: pipeline: {}",
                         p.source.folder, p.job.pipeline);
      p.model = make_job_model(p.job, p.source);
    } catch (const UsageError& e) {
      throw UsageError("models.{} ({}): {}", settings.name, job.origins.where("models." + settings.name),
                       e.what());
    }
  }
  if (only)
    for (const std::string& name : *only)
      if (!job.models.values.count(name))
        throw UsageError(
            "[models] this pipeline needs the model '{}', and the job has none. Add it, e.g. models: {{{}: "
            "{{path: FOLDER}}}}",
            name, name);
  return out;
}

void give_models(Pipeline& pipeline, const std::vector<NamedParts>& parts) {
  pipeline.models.clear();
  for (const NamedParts& p : parts) {
    NamedModel& m = pipeline.models[p.settings.name];
    m.model = p.model.get();
    m.tokenizer = p.tokenizer.get();
    m.frozen = p.settings.frozen;
    m.weights = inference_storage(p.job).weights;
  }
}

std::vector<std::shared_ptr<Lease>> verify_named(const std::vector<NamedParts>& parts, Group& world) {
  std::vector<std::shared_ptr<Lease>> out;
  for (const NamedParts& p : parts)
    for (auto& lease : verify_source(p.job, world)) out.push_back(std::move(lease));
  return out;
}

std::vector<bool> own_parameters(const ParamTree& part, const Model& model) {
  std::set<std::string> names;
  for (const ParamSpec& s : model.params().specs) names.insert(s.name);
  std::vector<bool> out;
  for (const ParamSpec& s : part.specs()) out.push_back(names.count(s.name) > 0);
  return out;
}

namespace {

FrozenModel frozen_model(const Model& model, const ModelSource& source, i64 seed, bool with_extra) {
  const std::string& folder = source.folder;
  FrozenModel m;
  m.from =
      folder.empty() ? source.config.source() : std::filesystem::absolute(folder).lexically_normal().string();
  m.fingerprint = hash128(model.config_json()).hex() + "/" +
                  (folder.empty() ? fmt::format("train.seed={}", seed) : ckpt::weights_hash(folder)) +
                  (source.adapter.empty() ? "" : "/" + ckpt::weights_hash(source.adapter));
  if (const std::string extra = source.extra_folder(); with_extra && !extra.empty())
    m.fingerprint += "/" + ckpt::weights_hash(extra);
  return m;
}

// The first rank reads the files. Collective.
FrozenModel agreed(Group& world, const std::function<FrozenModel()>& make) {
  FrozenModel m;
  world.on_first([&] { m = make(); });
  m.from = world.agree(m.from);
  m.fingerprint = world.agree(m.fingerprint);
  return m;
}

}  // namespace

std::map<std::string, FrozenModel> frozen_models(const std::vector<NamedParts>& parts,
                                                 const ParamTree& params, i64 seed, Group& world) {
  std::map<std::string, FrozenModel> out;
  for (const NamedParts& p : parts) {
    if (!p.settings.frozen) continue;
    const std::vector<bool> own = own_parameters(params.part(p.settings.name), *p.model);
    const bool has_others = std::ranges::find(own, false) != own.end();
    out[p.settings.name] = agreed(world, [&] { return frozen_model(*p.model, p.source, seed, has_others); });
  }
  return out;
}

std::optional<FrozenModel> base_of_adapter(const Model* model, const ModelSource& source, Group& world) {
  if (!model || !source.lora || source.folder.empty()) return std::nullopt;
  ModelSource base = source;
  base.adapter.clear();  // it is what the training begins with
  return agreed(world, [&] { return frozen_model(*model, base, 0, false); });
}

}  // namespace redco
