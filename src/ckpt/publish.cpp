#include "ckpt/publish.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/tolerate.h"
#include "base/words.h"

namespace redco::ckpt {
namespace {

const std::string kTemp = ".tmp-", kTrash = ".trash-", kOld = ".old-", kLease = ".lease-";

// All files below a folder, relative to it, and the folders, inner ones first.
void walk(const std::string& folder, const std::string& below, std::vector<std::string>* files,
          std::vector<std::string>* folders) {
  for (const std::string& name : list_dir(folder)) {
    std::string path = join_path(folder, name), relative = below.empty() ? name : below + "/" + name;
    auto info = file_info(path, false);
    if (!info) continue;
    if (info->kind != FileInfo::file && info->kind != FileInfo::folder)
      throw IoError("[checkpoint] {} is not a plain file", path);
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
    throw UsageError("[checkpoint] '{}' can't be the name of a pointer, expected a plain file name", name);
}

// A path that existed and is gone is a failure of the disk here, not of the job.
template <class F>
auto expecting_the_workdir(const std::string& folder, const F& f) {
  try {
    return f();
  } catch (const UsageError& e) {
    throw IoError("[checkpoint] {}; was {} moved or removed while the run was writing to it?", e.what(),
                  parent_path(folder));
  }
}

[[noreturn]] void throw_error(ExitCode code, const std::string& message) {
  if (code == ExitCode::io) throw IoError("{}", message);
  throw ContentsError("{}", message);
}

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

std::unique_ptr<Lease> hold_checkpoint(const std::string& folder) {
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(folder, none);
  if (none || !parse_step_name(real.filename())) return nullptr;
  return Lease::hold(real.parent_path() /
                     (kLease + real.filename().string() + "-" + new_run_id().substr(0, 16)));
}

std::string CheckpointFolder::in(const std::string& name) const { return join_path(path_, name); }

std::string CheckpointFolder::temp_folder(i64 step) const { return in(kTemp + step_name(step)); }

std::string CheckpointFolder::begin(i64 step, i64 bytes) {
  if (!is_folder(parent_path(path_)))
    throw IoError("[checkpoint] {} is gone: it was moved or removed while the run was writing to it",
                  parent_path(path_));
  return expecting_the_workdir(path_, [&] {
    make_dirs(path_);
    clean_up();
    if (file_info(temp_folder(step), false)) discard(file_name(temp_folder(step)));
    i64 free = disk_free(path_);
    if (free < bytes)
      throw IoError(
          "[checkpoint] step {} needs {} in {}, but {} are free; free some space, or lower "
          "checkpoint.keep_last",
          step, human_bytes(static_cast<u64>(bytes)), path_, human_bytes(static_cast<u64>(free)));
    make_dirs(join_path(temp_folder(step), parent_path(kManifestPath)));
    return temp_folder(step);
  });
}

std::string CheckpointFolder::publish(i64 step, const std::map<std::string, i64>& versions,
                                      const std::vector<FileRecord>& records) {
  const std::string temp = temp_folder(step), name = step_name(step), final = in(name);
  return expecting_the_workdir(path_, [&] {
    write_manifest(temp, step, versions, records);
    std::string replaced;  // the replaced checkpoint of this step
    if (!file_info(final, false)) {
      rename_durable(temp, final);
    } else if (exchange_durable(temp, final)) {
      replaced = file_name(temp);
    } else {
      // Not every file system can exchange two names. Between these two renames, locate() finds `.old-`.
      replaced = kOld + name;
      if (file_info(in(replaced), false)) discard(replaced);
      rename_durable(final, in(replaced));
      rename_durable(temp, final);
    }
    if (!replaced.empty())
      tolerate(fmt::format("[checkpoint] {}: an old checkpoint was not removed", path_),
               [&] { discard(replaced); });
    return final;
  });
}

// Writes the manifest of `temp`'s files; then everything is durable.
void CheckpointFolder::write_manifest(const std::string& temp, i64 step,
                                      const std::map<std::string, i64>& versions,
                                      const std::vector<FileRecord>& records) {
  std::vector<std::string> files, folders;
  walk(temp, "", &files, &folders);
  Manifest m;
  m.step = step;
  if (run_) m.run = *run_;
  m.run.starts.clear();  // of run.json
  m.versions = versions;
  std::map<std::string, const FileRecord*> recorded;
  for (const FileRecord& r : records)
    REDCO_CHECK(recorded.emplace(r.path, &r).second, "{} recorded twice", r.path);
  for (const std::string& file : files) {
    // Writers already synced their files, so this is only work for files from other sources.
    sync_file(join_path(temp, file));
    auto it = recorded.find(file);
    m.files.push_back(it != recorded.end() ? *it->second : record_file(temp, file));
    if (it != recorded.end()) recorded.erase(it);
  }
  if (!recorded.empty())
    throw IoError("[checkpoint] {} was written but is gone", join_path(temp, recorded.begin()->first));
  std::sort(m.files.begin(), m.files.end(),
            [](const FileRecord& a, const FileRecord& b) { return a.path < b.path; });
  std::optional<std::string> changed;
  try {
    changed = missing_bytes(temp, m);
  } catch (const ContentsError& e) {
    changed = e.what();
  }
  if (changed) throw IoError("[checkpoint] {} changed after it was written: {}", temp, *changed);
  for (const std::string& folder : folders) sync_dir(folder);
  write_file_durable(join_path(temp, kManifestPath), to_json(m));
}

void CheckpointFolder::abandon(i64 step) {
  if (file_info(temp_folder(step), false)) discard(kTemp + step_name(step));
}

void CheckpointFolder::point(const std::string& pointer, i64 step) {
  check_pointer(pointer);
  if (!is_folder(in(step_name(step))))
    throw IoError("[checkpoint] the pointer {} can't be set to {}, which is gone", in(pointer),
                  step_name(step));
  symlink_durable(step_name(step), in(pointer));
}

std::vector<i64> CheckpointFolder::prune(i64 keep_last) {
  REDCO_CHECK(keep_last >= 1, "keep_last {}", keep_last);
  std::map<i64, bool> named;
  for (const auto& [pointer, step] : pointers()) named[step] = true;
  std::vector<i64> old, removed;
  i64 kept = 0;
  for (const Entry& e : survey()) {
    if (!named.count(e.step) && kept >= keep_last) {
      if ((e.manifest || !run_) && !is_leased(e.step)) old.push_back(e.step);
    } else {
      kept += e.kind == Entry::whole;
    }
  }
  std::reverse(old.begin(), old.end());
  for (const i64 step : old)
    if (tolerate(fmt::format("[checkpoint] {}: an old checkpoint was not removed", path_),
                 [&] { discard(file_name(locate(step))); }))
      removed.push_back(step);
  return removed;
}

bool CheckpointFolder::is_leased(i64 step) const {
  for (const std::string& name : list_dir(path_))
    if (name.starts_with(kLease + step_name(step) + "-") && !lease_holder(in(name)).empty()) return true;
  return false;
}

// Renames the checkpoint to an ignored name, then removes it. If a part can't be removed (NFS keeps open
// files), the next clean_up() tries again.
void CheckpointFolder::discard(const std::string& name) {
  std::string trash;
  for (int k = 0; trash.empty() || file_info(trash, false); ++k)
    trash = in(fmt::format("{}{}-{}", kTrash, name, k));
  rename_durable(in(name), trash);
  remove_trash(trash);
}

void CheckpointFolder::remove_trash(const std::string& trash) {
  tolerate(fmt::format("[checkpoint] {}: a removed checkpoint still uses disk space", path_),
           [&] { remove_tree(trash); });
}

void CheckpointFolder::clean_up() {
  const std::string what = fmt::format("[checkpoint] {}: leftovers were not removed", path_);
  std::vector<std::string> names;
  tolerate(what, [&] { names = list_dir(path_); });
  for (const std::string& name : names) tolerate(what, [&] { clean_up(name); });
}

void CheckpointFolder::clean_up(const std::string& name) {
  if (name.starts_with(kTrash)) {
    remove_trash(in(name));
  } else if (name.starts_with(kTemp + "step-")) {
    discard(name);
  } else if (name.starts_with(kOld)) {
    const std::string original = name.substr(kOld.size());
    if (!parse_step_name(original)) return;
    if (file_info(in(original), false)) {
      discard(name);
    } else {
      rename_durable(in(name), in(original));  // killed between the two renames of publish()
    }
  } else if (name.starts_with(kLease)) {
    if (lease_holder(in(name)).empty()) remove_file(in(name));  // its reader is gone
  } else if (name.starts_with(".") && name.find(".tmp-") != name.npos && read_link(in(name))) {
    remove_file(in(name));  // the new link of a pointer
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

CheckpointFolder::Entry CheckpointFolder::inspect(i64 step) const {
  Entry e{.step = step, .name = step_name(step), .path = locate(step)};
  if (!e.path.empty()) e.name = file_name(e.path);
  const auto is = [&](Entry::Kind kind, const std::string& problem, ExitCode code) {
    e.kind = kind;
    e.problem = problem;
    e.code = code;
  };
  try {
    if (e.path.empty()) {
      is(Entry::incomplete, "the checkpoint is gone", ExitCode::contents);
      return e;
    }
    if (!exists(join_path(e.path, kManifestPath))) {
      is(Entry::incomplete, fmt::format("the checkpoint has no {}", kManifestPath), ExitCode::contents);
      return e;
    }
    e.manifest = read_manifest(e.path);
    if (e.manifest->step != step)
      throw ContentsError("{}: the manifest is of step {}, expected {}", join_path(e.path, kManifestPath),
                          e.manifest->step, step);
    if (const auto missing = missing_bytes(e.path, *e.manifest))
      is(Entry::incomplete, *missing, ExitCode::contents);
  } catch (const Error& error) {
    if (error.code() == ExitCode::bug) throw;
    is(Entry::broken, error.what(), error.code() == ExitCode::io ? ExitCode::io : ExitCode::contents);
  }
  return e;
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::survey() const {
  std::vector<Entry> all;
  for (const i64 step : steps())
    if (Entry e = inspect(step); !is_foreign(e)) all.insert(all.begin(), std::move(e));
  return all;
}

bool CheckpointFolder::is_foreign(const Entry& e) const {
  return run_ && e.manifest && !run_->holds(e.manifest->run, e.step);
}

CheckpointFolder::Found CheckpointFolder::find_newest(const std::string& setting) const {
  Found found;
  if (!exists(path_)) return found;
  if (!is_folder(path_)) throw ContentsError("[checkpoint] {} is not a folder", path_);
  const std::vector<i64> all = steps();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    Entry e = inspect(*it);
    if (is_foreign(e)) continue;
    if (e.kind == Entry::broken)
      throw_error(e.code, fmt::format("[checkpoint] {}{}", e.problem, remedy(*it, setting)));
    if (e.kind == Entry::whole) {
      found.step = *it;
      found.path = e.path;
      found.manifest = std::move(*e.manifest);
      break;
    }
    found.skipped.push_back({e.name, e.problem});
  }
  if (!found && !found.skipped.empty())
    throw ContentsError("[checkpoint] {} has no complete checkpoint ({}: {}){}", path_, found.skipped[0].name,
                        found.skipped[0].reason, remedy(0, setting));
  for (const std::string& name : list_dir(path_))
    if (name.starts_with(kTemp + "step-")) found.skipped.push_back({name, "its save did not finish"});
  return found;
}

CheckpointFolder::Found CheckpointFolder::find_last(const std::string& setting) const {
  const auto named = pointers();
  const auto last = named.find("last");
  if (last == named.end()) return find_newest(setting);
  Entry e = inspect(last->second);
  if (e.kind == Entry::broken)
    throw_error(e.code, fmt::format("[checkpoint] {}{}", e.problem, remedy(e.step, setting)));
  if (e.kind == Entry::incomplete) {
    Found found = find_newest(setting);
    const auto same = [&](const Skipped& s) { return s.name == e.name; };
    if (std::none_of(found.skipped.begin(), found.skipped.end(), same))
      found.skipped.insert(found.skipped.begin(), {e.name, e.problem});
    if (!found)
      throw ContentsError("[checkpoint] {} refers to {}: {}{}", in("last"), e.name, e.problem,
                          remedy(e.step, setting));
    return found;
  }
  Found found{.step = e.step, .path = e.path, .manifest = std::move(*e.manifest)};
  for (const i64 step : steps())
    if (step > found.step)
      if (const Entry newer = inspect(step); newer.kind == Entry::whole && !is_foreign(newer))
        found.newer = newer.name;
  return found;
}

std::string CheckpointFolder::remedy(i64 step, const std::string& setting) const {
  std::string older;
  try {
    for (const Entry& e : survey())
      if (older.empty() && e.step < step && e.kind == Entry::whole) older = e.path;
  } catch (const IoError&) {
    return "";  // the error is already about the newest one
  }
  if (!older.empty()) return fmt::format("; {}={} uses the newest older complete checkpoint", setting, older);
  return fmt::format("; there is no older complete checkpoint{}",
                     setting == "checkpoint.resume" ? ": checkpoint.resume=never starts a new run" : "");
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
    throw UsageError("[checkpoint] {} has no checkpoint '{}'. Available: {}", path_, pointer,
                     there.empty() ? "none" : there);
  }
  std::string path = locate(it->second);
  if (path.empty())
    throw ContentsError("{}: refers to {}, which is missing", in(pointer), step_name(it->second));
  return path;
}

}  // namespace redco::ckpt
