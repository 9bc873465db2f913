#include "assembly/assembly.h"

#include <nlohmann/json.hpp>

#include "base/temporaries.h"
#include "comm/group.h"
#include "models/config_tree.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"

namespace redco {

Assembly assemble(const JobConfig& job, bool with_tokenizer) {
  Assembly out;
  out.source.config = ConfigJson(ConfigTree{nlohmann::ordered_json::object()}, "pipeline " + job.pipeline);
  const bool has_model = job.model.path || job.model.preset || job.model.arch;
  if (with_tokenizer || (has_model && job.model.arch) || job.model.resize_embeddings)
    out.tokenizer = job_tokenizer(job);
  out.named = make_named_parts(job);
  if (!has_model) return out;
  out.source = training_source(job, out.tokenizer.get());
  out.model = make_job_model(job, out.source);
  return out;
}

Assembly assemble_for_plan(const JobConfig& job) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  return assemble(job, !info || info->needs_tokenizer);
}

std::map<std::string, std::string> model_config_of_data(const JobConfig& job, const Assembly& parts) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info || !info->config || !parts.model) return {};
  Group& world = Context::current().world();
  std::string decided;
  world.on_first([&] {
    const TemporaryFolder cache;
    decided =
        nlohmann::json(
            info->config(*parts.model,
                         {.data = job.data,
                          .cache = cache.path(),
                          .has_head = !parts.source.folder.empty() && !parts.source.new_head,
                          .given = [&](const std::string& key) { return job.model.config.count(key) > 0; }}))
            .dump();
  });
  return nlohmann::json::parse(world.agree(decided)).get<std::map<std::string, std::string>>();
}

}  // namespace redco
