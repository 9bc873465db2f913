#include "pipeline/shared_objects.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/user_line.h"
#include "env/plugin_environments.h"
#include "models/plugin_families.h"
#include "pipeline/compile_plugin.h"
#include "pipeline/load_python.h"
#include "pipeline/plugin.h"

namespace redco {

namespace {

constexpr i64 kMostBytes = i64{1} << 30;

// The text between REDCO_ABI_BEGIN and REDCO_ABI_END in the bytes of a file; "": none.
std::string abi_of(const std::string& bytes) {
  const std::string begin = REDCO_ABI_BEGIN;
  for (std::size_t at = 0; (at = bytes.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const std::size_t end = bytes.find(REDCO_ABI_END, at);
    if (end != std::string::npos && end - at < 200) return bytes.substr(at, end - at);
  }
  return "";
}

void register_exports(SharedObject& object) {
  for (const PluginExport* e : object.exports) {
    if (e->optimizer) {
      add_optimizer({e->name, e->optimizer, object.path});
      object.optimizers.emplace_back(e->name);
    }
    if (e->metric) add_metric({e->name, e->metric, object.path});
    if (e->environment) add_environment({e->name, e->environment, object.path});
    if (e->reward) add_reward({e->name, e->reward, object.path});
    if (!e->model) continue;
    const std::string name = e->klass;  // may begin with namespaces
    const std::size_t colon = name.rfind(':');
    add_family({.name = e->name,
                .architecture = colon == std::string::npos ? name : name.substr(colon + 1),
                .make = e->model,
                .vocabulary = e->vocabulary,
                .origin = object.path});
    object.families.emplace_back(e->name);
  }
}

// `file` is the shared object of `path`: itself, or compiled from it.
SharedObject load_binary(const std::string& file, const std::string& path, const std::string& setting) {
  const std::string bytes = is_folder(file) ? "" : read_file(file, kMostBytes);
  if (const std::string abi = abi_of(bytes); !abi.empty() && abi != library_abi())
    throw UsageError(
        "[{}] {} was built against other headers than this redco: it has the interface {}, this redco has "
        "{}. Build it again with this redco",
        setting, path, abi, library_abi());
  // dlopen() of a truncated file crashes. The section headers are at the end of a shared object.
  if (Elf64_Ehdr header; bytes.size() >= sizeof header) {
    std::memcpy(&header, bytes.data(), sizeof header);
    const bool is_elf =
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
    if (is_elf && header.e_shoff + u64{header.e_shentsize} * header.e_shnum > bytes.size())
      throw UsageError("[{}] {} is incomplete: {} of {} bytes. Build or copy it again", setting, path,
                       bytes.size(), header.e_shoff + u64{header.e_shentsize} * header.e_shnum);
  }
  // dlopen searches other folders for names without a slash.
  const std::string absolute = std::filesystem::absolute(file).string();
  void* so = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!so)
    throw UsageError(
        "[{}] {} can't be loaded: {}. Expected a Python file (.py), or a shared object built with this "
        "version of redco",
        setting, path, dlerror());
  add_user_object(absolute);
  if (dlsym(so, "redco_pipeline_abi"))
    throw UsageError("[{}] {} was built for an older redco. Build it again with this redco", setting, path);
  const auto table = reinterpret_cast<PluginTable (*)()>(dlsym(so, "redco_plugin_table"));
  SharedObject out{
      .path = path, .fingerprint = hash128(bytes).hex(), .exports = {}, .families = {}, .optimizers = {}};
  if (table) {
    const PluginTable entries = table();
    out.exports.assign(entries.begin, entries.end);
  }
  if (out.exports.empty() && setting != "pipeline")
    throw UsageError(
        "[{}] {} is not a plugin. Add REDCO_MODEL(\"name\", Class), REDCO_OPTIMIZER, REDCO_METRIC or "
        "REDCO_ENVIRONMENT to its source and rebuild it",
        setting, path);
  return out;
}

SharedObject load(const std::string& path, const std::string& setting) {
  if (is_python_file(path)) {
    PythonPlugin p = load_python_plugin(path);
    return {.path = path,
            .fingerprint = std::move(p.fingerprint),
            .exports = {},
            .families = std::move(p.families),
            .optimizers = std::move(p.optimizers)};
  }
  std::optional<CompiledPlugin> compiled;
  if (is_cpp_file(path)) compiled = compiled_plugin(path, setting);
  SharedObject out = load_binary(compiled ? compiled->path : path, path, setting);
  if (compiled) out.fingerprint = compiled->fingerprint;
  register_exports(out);
  return out;
}

}  // namespace

const SharedObject& load_shared_object(const std::string& path, const std::string& setting) {
  // Ranks may be threads of one process. Entries stay where they are.
  static auto& mutex = *new std::mutex;
  static auto& loaded = *new std::deque<std::pair<std::string, SharedObject>>;
  if (!exists(path))
    throw UsageError(
        "[{0}] {1} does not exist. Set {0} to {2}", setting, path,
        setting == "pipeline" ? "a shared object or a built-in pipeline" : "shared objects or Python files");
  const std::string key = std::filesystem::canonical(path).string();
  const std::lock_guard lock(mutex);
  const auto known = std::ranges::find(loaded, key, &std::pair<std::string, SharedObject>::first);
  if (known != loaded.end()) return known->second;
  SharedObject object = load(path, setting);
  return loaded.emplace_back(key, std::move(object)).second;
}

}  // namespace redco
