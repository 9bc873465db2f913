#include "base/error.h"
#include "base/user_code.h"
#include "pipeline/load_python.h"
#include "pipeline/pipeline.h"
#include "pipeline/plugin.h"
#include "pipeline/shared_objects.h"

namespace redco {

std::unique_ptr<Pipeline> load_pipeline(const std::string& path) {
  if (is_python_file(path)) return load_python_pipeline(path);
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
  std::unique_ptr<Pipeline> pipeline(
      in_user_code(pipeline_code(path, "the constructor"), [&] { return found->pipeline(); }));
  if (!pipeline) throw UsageError("[pipeline] {}: the constructor returned no pipeline", path);
  pipeline->origin = path;
  return pipeline;
}

UserCode pipeline_code(const std::string& origin, const char* function) {
  if (origin.empty()) return nullptr;  // redco's own pipeline
  return std::make_shared<const UserMessage>([origin, function](const std::string& why) {
    std::string text = fmt::format("[pipeline] {} failed{}", function, why);
    if (std::string_view(".?!").find(text.back()) == std::string_view::npos) text += ".";
    return fmt::format("{} The pipeline is {}", text, origin);
  });
}

}  // namespace redco
