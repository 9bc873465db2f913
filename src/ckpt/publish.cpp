#include "ckpt/publish.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"

namespace redco::ckpt {
namespace {

const std::string kTemp = ".tmp-", kTrash = ".trash-", kOld = ".old-";

// All files below a folder, relative to it, and the folders themselves, inner ones first.
void walk(const std::string& folder, const std::string& below, std::vector<std::string>* files,
          std::vector<std::string>* folders) {
  for (const std::string& name : list_dir(folder)) {
    std::string path = join_path(folder, name), relative = below.empty() ? name : below + "/" + name;
    auto info = file_info(path, false);
    if (!info) continue;
    REDCO_CHECK(info->kind == FileInfo::file || info->kind == FileInfo::folder, "{} is no plain file", path);
    if (info->kind == FileInfo::folder) {
      walk(path, relative, files, folders);
    } else {
      files->push_back(relative);
    }
  }
  folders->push_back(folder);
}

void check_pointer(const std::string& name) {
  bool plain = !name.empty() && name.size() <= 200 && name.front() != '.' && !name.starts_with("step-");
  for (char c : name) plain = plain && c > ' ' && c != '/' && c != 0x7f;
  if (!plain)
    throw UsageError("[checkpoint] '{}' can't be a pointer's name: it would be no plain file name", name);
}

std::string human(i64 bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

std::string step_name(i64 step) {
  REDCO_CHECK(step >= 0, "step {}", step);
  return fmt::format("step-{:08}", step);
}

std::optional<i64> parse_step_name(const std::string& name) {
  if (!name.starts_with("step-")) return std::nullopt;
  i64 step = 0;
  const char* end = name.data() + name.size();
  auto [p, ec] = std::from_chars(name.data() + 5, end, step);
  if (ec != std::errc() || p != end || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

std::string CheckpointFolder::in(const std::string& name) const { return join_path(path_, name); }

std::string CheckpointFolder::temp_folder(i64 step) const { return in(kTemp + step_name(step)); }

std::string CheckpointFolder::begin(i64 step, i64 bytes) {
  make_dirs(path_);
  clean_up();
  i64 free = disk_free(path_);
  if (free < bytes)
    throw IoError(
        "[checkpoint] step {} needs {} in {}, but {} are free; free some space, or lower "
        "checkpoint.keep_last",
        step, human(bytes), path_, human(free));
  make_dirs(join_path(temp_folder(step), parent_path(kManifestPath)));
  return temp_folder(step);
}

std::string CheckpointFolder::publish(i64 step, const std::map<std::string, i64>& versions,
                                      const std::vector<FileRecord>& records) {
  const std::string temp = temp_folder(step), name = step_name(step), final = in(name);
  std::vector<std::string> files, folders;
  walk(temp, "", &files, &folders);
  Manifest m;
  m.step = step;
  m.versions = versions;
  std::map<std::string, const FileRecord*> recorded;
  for (const FileRecord& r : records)
    REDCO_CHECK(recorded.emplace(r.path, &r).second, "{} recorded twice", r.path);
  for (const std::string& file : files) {
    // Writers have synced theirs, so this is free for all but files that came here some other way.
    sync_file(join_path(temp, file));
    auto it = recorded.find(file);
    m.files.push_back(it != recorded.end() ? *it->second : record_file(temp, file));
    if (it != recorded.end()) recorded.erase(it);
  }
  REDCO_CHECK(recorded.empty(), "{} was recorded but isn't there", recorded.begin()->first);
  std::sort(m.files.begin(), m.files.end(),
            [](const FileRecord& a, const FileRecord& b) { return a.path < b.path; });
  if (auto why = difference(temp, m, false))
    throw IoError("[checkpoint] {} changed after it was written: {}", temp, *why);
  for (const std::string& folder : folders) sync_dir(folder);
  write_file_durable(join_path(temp, kManifestPath), to_json(m));

  if (!file_info(final, false)) {
    rename_durable(temp, final);
  } else if (exchange_durable(temp, final)) {
    discard(file_name(temp));
  } else {
    // Not every file system can exchange. Between these two, `.old-` is what locate() finds.
    if (file_info(in(kOld + name), false)) discard(kOld + name);
    rename_durable(final, in(kOld + name));
    rename_durable(temp, final);
    discard(kOld + name);
  }
  return final;
}

void CheckpointFolder::abandon(i64 step) {
  if (file_info(temp_folder(step), false)) discard(kTemp + step_name(step));
}

void CheckpointFolder::point(const std::string& pointer, i64 step) {
  check_pointer(pointer);
  REDCO_CHECK(is_folder(in(step_name(step))), "{} to step {}", pointer, step);
  symlink_durable(step_name(step), in(pointer));
}

std::vector<i64> CheckpointFolder::prune(i64 keep_last) {
  REDCO_CHECK(keep_last >= 1, "keep_last {}", keep_last);
  std::map<i64, bool> named;
  for (const auto& [pointer, step] : pointers()) named[step] = true;
  std::vector<i64> all = steps(), removed;
  i64 kept = 0;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    Manifest m;
    bool whole = why_not_whole(locate(*it), *it, false, &m).empty();
    if (!named.count(*it) && kept >= keep_last) {
      removed.push_back(*it);
    } else {
      kept += whole;
    }
  }
  std::reverse(removed.begin(), removed.end());
  for (i64 step : removed) discard(file_name(locate(step)));
  return removed;
}

// Out of sight in one step, then gone. Killed in between, the rest is removed by the next clean_up().
void CheckpointFolder::discard(const std::string& name) {
  std::string trash;
  for (int k = 0; trash.empty() || file_info(trash, false); ++k)
    trash = in(fmt::format("{}{}-{}", kTrash, name, k));
  rename_durable(in(name), trash);
  remove_tree(trash);
}

void CheckpointFolder::clean_up() {
  for (const std::string& name : list_dir(path_)) {
    if (name.starts_with(kTrash)) {
      remove_tree(in(name));
    } else if (name.starts_with(kTemp + "step-")) {
      discard(name);
    } else if (name.starts_with(kOld)) {
      std::string original = name.substr(kOld.size());
      if (!parse_step_name(original)) continue;
      if (file_info(in(original), false)) {
        discard(name);
      } else {
        rename_durable(in(name), in(original));  // killed between the two renames of publish()
      }
    } else if (name.starts_with(".") && name.find(".tmp-") != name.npos && read_link(in(name))) {
      remove_file(in(name));  // a pointer's new link
    }
  }
}

std::vector<i64> CheckpointFolder::steps() const {
  std::vector<i64> all;
  if (!is_folder(path_)) return all;
  for (std::string name : list_dir(path_)) {
    if (name.starts_with(kOld)) name = name.substr(kOld.size());
    auto step = parse_step_name(name);
    if (step && !locate(*step).empty()) all.push_back(*step);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string CheckpointFolder::locate(i64 step) const {
  for (const std::string& name : {step_name(step), kOld + step_name(step)})
    if (is_folder(in(name))) return in(name);
  return "";
}

// "" if it is whole.
std::string CheckpointFolder::why_not_whole(const std::string& path, i64 step, bool hashes,
                                            Manifest* manifest) const {
  try {
    if (!exists(join_path(path, kManifestPath))) return fmt::format("it has no {}", kManifestPath);
    *manifest = read_manifest(path);
    if (manifest->step != step) return fmt::format("its manifest is of step {}", manifest->step);
    return difference(path, *manifest, hashes).value_or("");
  } catch (const Error& e) {
    return e.what();
  }
}

CheckpointFolder::Found CheckpointFolder::find_newest_whole(bool hashes) const {
  Found found;
  if (!is_folder(path_)) return found;
  std::vector<i64> all = steps();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    Manifest m;
    std::string path = locate(*it), why = why_not_whole(path, *it, hashes, &m);
    if (why.empty()) {
      found.step = *it;
      found.path = path;
      found.manifest = std::move(m);
      break;
    }
    found.passed_over.push_back({file_name(path), why});
  }
  for (const std::string& name : list_dir(path_))
    if (name.starts_with(kTemp + "step-")) found.passed_over.push_back({name, "its save was not finished"});
  return found;
}

std::map<std::string, i64> CheckpointFolder::pointers() const {
  std::map<std::string, i64> all;
  if (!is_folder(path_)) return all;
  for (const std::string& name : list_dir(path_)) {
    if (name.starts_with(".")) continue;
    auto target = read_link(in(name));
    auto step = target ? parse_step_name(*target) : std::nullopt;
    if (step) all[name] = *step;
  }
  return all;
}

std::string CheckpointFolder::resolve(const std::string& pointer) const {
  auto all = pointers();
  auto it = all.find(pointer);
  if (it == all.end()) {
    std::string there;
    for (const auto& [name, step] : all) there += (there.empty() ? "" : ", ") + name;
    throw UsageError("[checkpoint] {} has no checkpoint '{}'; there are: {}", path_, pointer,
                     there.empty() ? "none" : there);
  }
  std::string path = locate(it->second);
  if (path.empty())
    throw ContentsError("{}: names {}, which isn't there", in(pointer), step_name(it->second));
  return path;
}

}  // namespace redco::ckpt
