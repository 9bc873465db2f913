#include "assembly/named_parts.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "assembly/job_params.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

namespace redco {

// Enough of a file's bytes to tell weights apart without reading them all.
std::string weights_fingerprint(const std::string& folder) {
  Hasher h;
  for (const std::string& name : list_dir(folder)) {
    if (!name.ends_with(".safetensors") && !name.ends_with(".bin") && !name.ends_with(".index.json"))
      continue;
    const ReadFile f = ReadFile::open(join_path(folder, name));
    const i64 n = std::min<i64>(f.size(), 64 << 10);
    std::string bytes(2 * n, '\0');
    f.pread_exact(0, bytes.data(), n);
    f.pread_exact(f.size() - n, bytes.data() + n, n);
    bytes += fmt::format("{} {}", name, f.size());
    h.update(bytes.data(), bytes.size());
  }
  return h.digest128().hex();
}

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

std::map<std::string, FrozenModel> frozen_models(const std::vector<NamedParts>& parts,
                                                 const ParamTree& params, i64 seed) {
  std::map<std::string, FrozenModel> out;
  for (const NamedParts& p : parts) {
    if (!p.settings.frozen) continue;
    FrozenModel& m = out[p.settings.name];
    const std::string& folder = p.source.folder;
    m.from = folder.empty() ? p.source.origin : std::filesystem::absolute(folder).lexically_normal().string();
    m.fingerprint = hash128(p.model->config_json()).hex() + "/" +
                    (folder.empty() ? fmt::format("train.seed={}", seed) : weights_fingerprint(folder)) +
                    (p.source.adapter.empty() ? "" : "/" + weights_fingerprint(p.source.adapter));
    const std::vector<bool> own = own_parameters(params.part(p.settings.name), *p.model);
    if (const std::string extra = p.source.extra_folder();
        !extra.empty() && std::ranges::find(own, false) != own.end())
      m.fingerprint += "/" + weights_fingerprint(extra);
  }
  return out;
}

}  // namespace redco
