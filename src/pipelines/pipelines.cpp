#include "pipelines/pipelines.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace redco {

namespace {
struct Entry {
  const char* name;
  std::unique_ptr<Pipeline> (*make)();
};
constexpr Entry kPipelines[] = {{"lm", make_lm_pipeline}};
}  // namespace

std::vector<std::string> pipeline_names() {
  std::vector<std::string> out;
  for (const Entry& e : kPipelines) out.emplace_back(e.name);
  return out;
}

std::unique_ptr<Pipeline> make_pipeline(const std::string& name) {
  for (const Entry& e : kPipelines)
    if (name == e.name) return e.make();
  if (name.find('/') != std::string::npos || name.ends_with(".so")) return load_pipeline(name);
  throw UsageError("[pipeline] '{}' is no built-in pipeline ({}) and no path of a shared object", name,
                   fmt::join(pipeline_names(), ", "));
}

}  // namespace redco
