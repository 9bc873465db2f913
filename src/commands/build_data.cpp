#include "commands/build_data.h"

#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/job_pipeline.h"
#include "base/words.h"
#include "comm/group.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"

namespace redco {

BuiltData build_data(const JobConfig& given, const std::function<void(const BuiltData::Index&)>& seen) {
  if (const PipelineInfo* info = pipeline_info(given.pipeline); info && !info->needs_data)
    throw UsageError("[data] pipeline {} makes its data while it trains; there is nothing to build",
                     info->name);
  if (given.data.sources(false).empty() && given.data.sources(true).empty())
    throw UsageError("[data] data.train and data.eval are missing. Set at least one of them");
  const auto folder = cache_folder(given);
  if (!folder)
    throw UsageError(
        "[data] data.cache and workdir are missing. Set data.cache to the folder for the indexes, and give "
        "trainings the same data.cache");
  Context c({1, 1}, make_self_group());
  const Context::Use use(c);
  const JobConfig job = with_data_config(given);
  const Assembly parts = assemble(job);
  const auto pipeline =
      make_job_pipeline(job, parts.model.get(), parts.tokenizer.get(), {}, parts.source.folder, parts.named);
  BuiltData out{*folder, {}};
  for (const bool evaluation : {false, true}) {
    const IndexObserver observer([&](const CachedIndex& index) {
      out.indexes.push_back({index, evaluation});
      if (seen) seen(out.indexes.back());
    });
    if (evaluation)
      make_eval_sets(job, *pipeline, parts.source.folder, *folder);
    else
      make_training_data(job, *pipeline, parts.source.folder, *folder);
  }
  return out;
}

std::string to_text(const BuiltData::Index& i) {
  return fmt::format("{}: {}, {}, {}, {} in {:.2f} s", i.path, counted(i.examples, i.unit),
                     counted(i.tokens, "token"), human_bytes(static_cast<u64>(i.bytes)),
                     i.built ? "built" : "found", i.seconds);
}

std::string to_json(const BuiltData& d) {
  nlohmann::ordered_json j = {{"cache", d.folder}, {"indexes", nlohmann::ordered_json::array()}};
  for (const BuiltData::Index& i : d.indexes)
    j["indexes"].push_back({{"split", i.evaluation ? "eval" : "train"},
                            {"path", i.path},
                            {"unit", i.unit},
                            {"examples", i.examples},
                            {"tokens", i.tokens},
                            {"bytes", i.bytes},
                            {"built", i.built},
                            {"seconds", i.seconds}});
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace redco
