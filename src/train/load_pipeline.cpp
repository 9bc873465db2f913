#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "train/abi.h"
#include "train/pipeline.h"

namespace redco {

namespace {

constexpr i64 kMostBytes = i64{1} << 30;

// The text between REDCO_ABI_BEGIN and REDCO_ABI_END in the file; "": none. Nothing of the file is run.
std::string abi_of(const std::string& path) {
  if (is_folder(path)) return "";
  const std::string bytes = read_file(path, kMostBytes);
  const std::string begin = REDCO_ABI_BEGIN;
  for (std::size_t at = 0; (at = bytes.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const std::size_t end = bytes.find(REDCO_ABI_END, at);
    if (end != std::string::npos && end - at < 200) return bytes.substr(at, end - at);
  }
  return "";
}

}  // namespace

std::unique_ptr<Pipeline> load_pipeline(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw UsageError("[pipeline] {} does not exist. Set pipeline to a shared object or a built-in pipeline",
                     path);
  if (const std::string abi = abi_of(path); !abi.empty() && abi != library_abi())
    throw UsageError(
        "[pipeline] {} was built against other headers than this redco: it has the interface {}, this redco "
        "has {}. Build it again with this redco",
        path, abi, library_abi());
  // dlopen searches other folders for names without a slash.
  void* so = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!so)
    throw UsageError(
        "[pipeline] {} can't be loaded: {}. Expected a shared object built with this version of redco", path,
        dlerror());
  if (dlsym(so, "redco_pipeline_abi"))
    throw UsageError("[pipeline] {} was built for an older redco. Build it again with this redco", path);
  auto make = reinterpret_cast<Pipeline* (*)()>(dlsym(so, "redco_make_pipeline"));
  if (!make || !dlsym(so, "redco_abi_text"))
    throw UsageError(
        "[pipeline] {} is not a pipeline. Add REDCO_PIPELINE(Class) to its source and rebuild it", path);
  std::unique_ptr<Pipeline> pipeline;
  try {
    pipeline.reset(make());
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
