#include "ckpt/hub.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/strict_json.h"

namespace redco::ckpt {
namespace {

constexpr i64 kMaxRefBytes = 1 << 10;

struct Id {
  std::string org, name, revision;  // org and revision may be ""
  std::string text() const { return org.empty() ? name : org + "/" + name; }
  std::string folder() const { return "models--" + (org.empty() ? "" : org + "--") + name; }
};

bool is_part(const std::string& s, bool slashes = false) {
  auto ok = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || (slashes && c == '/');
  };
  return !s.empty() && s.size() <= 200 && s[0] != '.' && s[0] != '/' && s.find("..") == s.npos &&
         std::all_of(s.begin(), s.end(), ok);
}

// ORG/NAME@REVISION, with the hub's rules for names.
std::optional<Id> parse_id(const std::string& source) {
  Id id;
  std::string rest = source;
  if (const size_t at = rest.find('@'); at != rest.npos) {
    id.revision = rest.substr(at + 1);
    rest.resize(at);
    if (!is_part(id.revision, true)) return std::nullopt;
  }
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    id.org = rest.substr(0, slash);
    rest = rest.substr(slash + 1);
    if (!is_part(id.org)) return std::nullopt;
  }
  id.name = rest;
  return is_part(id.name) ? std::optional(id) : std::nullopt;
}

std::vector<std::string> snapshots_of(const std::string& repo) {
  const std::string folder = join_path(repo, "snapshots");
  return is_folder(folder) ? list_dir(folder) : std::vector<std::string>();
}

bool is_cache_folder(const std::string& path) {
  return is_folder(join_path(path, "snapshots")) && !exists(join_path(path, "config.json"));
}

// The commit in refs/NAME.
std::optional<std::string> ref(const std::string& repo, const std::string& name) {
  const std::string path = join_path(repo, "refs/" + name);
  const auto info = file_info(path);
  if (!info || info->kind != FileInfo::file) return std::nullopt;
  std::string commit = read_file(path, kMaxRefBytes);
  constexpr const char* kSpaces = " \t\r\n";
  commit.erase(commit.find_last_not_of(kSpaces) + 1);
  commit.erase(0, commit.find_first_not_of(kSpaces));
  if (!is_part(commit))
    throw UsageError("[model] {}: the file has '{}', expected a commit's hash", path, shown(commit));
  return commit;
}

// UsageError if a file of the snapshot is a link to a blob that is not there, as after an interrupted
// download.
void check_links(const std::string& folder, const std::string& download) {
  namespace fs = std::filesystem;
  const auto names = list_dir(folder);
  const bool safe =
      std::ranges::any_of(names, [](const std::string& n) { return n.ends_with(".safetensors"); });
  for (const std::string& name : names) {
    const fs::path path = join_path(folder, name);
    std::error_code none;
    if (!fs::is_symlink(path, none) || fs::exists(path, none)) continue;
    const bool read = std::ranges::any_of(
        std::vector<std::string>{".json", ".safetensors", ".bin", ".txt", ".model", ".jinja", ".gguf"},
        [&](const std::string& ending) { return name.ends_with(ending); });
    if (!read || (safe && name.ends_with(".bin"))) continue;
    const fs::path target = (path.parent_path() / fs::read_symlink(path, none)).lexically_normal();
    const std::string part = target.string() + ".incomplete";
    throw UsageError("[model] {}: the link's target {} is missing{}. Get it with `{}`", path.string(),
                     target.string(), fs::exists(part, none) ? "; the unfinished download is " + part : "",
                     download);
  }
}

// The snapshot of a cache folder. `download` is the command that downloads it.
std::string snapshot(const std::string& repo, const std::string& revision, const std::string& download) {
  const auto held = snapshots_of(repo);
  auto folder = [&](const std::string& commit) {
    const std::string path = join_path(repo, "snapshots/" + commit);
    check_links(path, download);
    return path;
  };
  auto has = [&](const std::string& commit) {
    return std::find(held.begin(), held.end(), commit) != held.end();
  };
  const std::string wanted = revision.empty() ? "main" : revision;
  if (const auto commit = ref(repo, wanted)) {
    if (has(*commit)) return folder(*commit);
    throw UsageError("[model] {}: refs/{} refers to the snapshot {}, which is missing. Get it with `{}`",
                     repo, wanted, *commit, download);
  }
  if (!revision.empty()) {
    std::vector<std::string> matches;
    for (const std::string& s : held)
      if (s.starts_with(revision)) matches.push_back(s);
    if (matches.size() == 1) return folder(matches[0]);
    throw UsageError("[model] {}: {} revision {}; the cache has {}. Get it with `{}`", repo,
                     matches.empty() ? "has no" : "several snapshots match", revision,
                     held.empty() ? "no snapshot" : fmt::format("{}", fmt::join(held, ", ")), download);
  }
  if (held.size() == 1) return folder(held[0]);
  if (held.empty())
    throw UsageError("[model] {}: no snapshot in this folder. Get one with `{}`", repo, download);
  throw UsageError("[model] {}: {} snapshots and no refs/main. Give the folder of one: {}/snapshots/{}", repo,
                   held.size(), repo, fmt::join(held, " or "));
}

std::string download_command(const Id& id) {
  return "hf download " + id.text() + (id.revision.empty() ? "" : " --revision " + id.revision);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string path = value ? value : "";
  const char* home = std::getenv("HOME");
  if (home && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  return path;
}

}  // namespace

std::vector<std::string> hub_caches() {
  std::vector<std::string> out;
  auto add = [&](const std::string& base, const std::string& below) {
    if (base.empty()) return;
    const std::string path = below.empty() ? base : join_path(base, below);
    if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
  };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"})
    add(variable(name), "");
  add(variable("HF_HOME"), "hub");
  add(variable("XDG_CACHE_HOME"), "huggingface/hub");
  add(variable("HOME"), ".cache/huggingface/hub");
  return out;
}

std::string local_source(const std::string& source) {
  if (source.empty()) return source;
  if (exists(source)) {
    if (!is_cache_folder(source)) return source;
    std::string name = file_name(source.ends_with('/') ? source.substr(0, source.size() - 1) : source);
    if (name.starts_with("models--")) name = name.substr(8);
    if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
    return snapshot(source, "", "hf download " + name);
  }
  const auto id = parse_id(source);
  if (!id) return source;
  for (const std::string& cache : hub_caches())
    if (const std::string repo = join_path(cache, id->folder()); is_folder(repo))
      return snapshot(repo, id->revision, download_command(*id));
  return source;
}

std::optional<HubSource> hub_source(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder + "/").lexically_normal().parent_path();
  const std::string repo = path.parent_path().parent_path().filename();
  if (path.parent_path().filename() != "snapshots" || !repo.starts_with("models--")) return std::nullopt;
  HubSource out{repo.substr(8), path.filename()};
  if (const size_t dashes = out.id.find("--"); dashes != out.id.npos) out.id.replace(dashes, 2, "/");
  return out;
}

std::string hub_hint(const std::string& source) {
  for (const std::string_view scheme : {"https://", "http://", "hf://"})
    if (source.starts_with(scheme)) {
      // https://huggingface.co/ORG/NAME/tree/main -> ORG/NAME
      std::string rest = source.substr(scheme.size());
      if (scheme != "hf://") rest.erase(0, std::min(rest.size(), rest.find('/') + 1));
      for (const char* end : {"/tree/", "/resolve/", "/blob/", "?"})
        if (const auto at = rest.find(end); at != rest.npos) rest.resize(at);
      while (rest.ends_with('/')) rest.pop_back();
      const auto id = parse_id(rest);
      return fmt::format(
          "; this is an address, and redco does not download{}",
          id ? fmt::format(". Get the model with `{}`, then give its id: {}", download_command(*id), rest)
             : ". Get the model, then give its folder");
    }
  const auto id = parse_id(source);
  if (!id) return "";
  const auto caches = hub_caches();
  return fmt::format(
      "; it is not in the hub cache either ({}). If it is a model of the hub, get it with `{}`",
      caches.empty() ? "no cache folder is set" : fmt::format("{}", fmt::join(caches, ", ")),
      download_command(*id));
}

}  // namespace redco::ckpt
