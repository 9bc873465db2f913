#include "base/error.h"
#include "base/user_code.h"
#include "train/pipeline.h"
#include "train/plugin.h"
#include "train/shared_objects.h"

namespace redco {

std::unique_ptr<Pipeline> load_pipeline(const std::string& path) {
  const PluginExport* found = nullptr;
  for (const PluginExport* e : load_shared_object(path, "pipeline").exports) {
    if (!e->pipeline) continue;
    if (found)
      throw UsageError("[pipeline] {} has two pipelines, {} and {}. Keep one REDCO_PIPELINE in its sources",
                       path, found->klass, e->klass);
    found = e;
  }
  if (!found)
    throw UsageError(
        "[pipeline] {} is not a pipeline. Add REDCO_PIPELINE(Class) to its source and rebuild it", path);
  std::unique_ptr<Pipeline> pipeline;
  try {
    pipeline.reset(found->pipeline());
  } catch (...) {
    rethrow_from_pipeline(path, "the constructor");
  }
  if (!pipeline) throw UsageError("[pipeline] {}: the constructor returned no pipeline", path);
  pipeline->origin = path;
  return pipeline;
}

void rethrow_from_pipeline(const std::string& origin, const char* function) {
  if (origin.empty()) throw;  // redco's own pipeline
  rethrow_from_user([&](const std::string& why) {
    std::string text = fmt::format("[pipeline] {} failed{}", function, why);
    if (std::string_view(".?!").find(text.back()) == std::string_view::npos) text += ".";
    return fmt::format("{} The pipeline is {}", text, origin);
  });
}

}  // namespace redco
