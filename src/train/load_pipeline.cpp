#include "base/error.h"
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
  // Follows a message, which may end with its own mark.
  const auto after = [&](std::string_view message) {
    if (origin.empty()) return std::string();
    const bool ended = !message.empty() && std::string_view(".?!").find(message.back()) != std::string::npos;
    return fmt::format("{} The pipeline is {}", ended ? "" : ".", origin);
  };
  try {
    throw;
  } catch (const BugError& e) {
    if (origin.empty()) throw;
    throw UsageError("[pipeline] {} failed: {}{}", function, e.found(), after(e.found()));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ExitCode::bug,
                fmt::format("[pipeline] {} failed: {}{}", function, e.what(), after(e.what())));
  } catch (...) {
    throw Error(ExitCode::bug,
                fmt::format("[pipeline] {} failed with an exception that is not a std::exception{}", function,
                            after("")));
  }
}

}  // namespace redco
