#include "workdir/run_record.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "workdir/workdir_names.h"

namespace redco {

using RunJson = nlohmann::json;

namespace {

constexpr i64 kMaxBytes = 16 << 20;
constexpr i64 kFormatVersion = 1;

std::string record_path(const std::string& workdir) { return join_path(workdir, workdir::kRecord); }
// The actions of a move: written before it, removed after it.
std::string move_path(const std::string& workdir) { return join_path(workdir, workdir::kMoving); }

RunJson to_json(const RunRecord& r) {
  RunJson j = ckpt::to_json(r.run);
  j["format_version"] = kFormatVersion;
  j["started"] = r.started;
  if (!r.resumed_from.empty()) j["resumed_from"] = r.resumed_from;
  if (!r.slurm_job.empty()) j["slurm_job"] = r.slurm_job;
  return j;
}

std::string text_of(const RunJson& j, const char* key, const std::string& where) {
  const auto it = j.find(key);
  if (it == j.end()) return "";
  if (!it->is_string()) throw ContentsError("{}: {}: expected a string", where, key);
  return it->get<std::string>();
}

RunRecord parse_record(const RunJson& j, const std::string& where) {
  if (!j.is_object() || !j.contains("format_version") || j["format_version"] != kFormatVersion)
    throw ContentsError("{}: expected an object of format_version {}", where, kFormatVersion);
  return {ckpt::parse_run_identity(j, where), text_of(j, "started", where), text_of(j, "resumed_from", where),
          text_of(j, "slurm_job", where)};
}

// `base`, or `base`-2, `base`-3, ...: the first that does not exist. Paths begin in `folder`.
std::string free_name(const std::string& folder, const std::string& base) {
  std::string name = base;
  for (int k = 2; file_info(join_path(folder, name), false); ++k) name = fmt::format("{}-{}", base, k);
  return name;
}

// Replaces `to` by a copy of the file `from`.
void copy_file_durable(const std::string& from, const std::string& to) {
  const ReadFile source = ReadFile::open(from);
  DurableFile copy = DurableFile::create(to, source.size());
  std::string block(static_cast<std::size_t>(std::min<i64>(source.size(), 1 << 20)), '\0');
  for (i64 at = 0; at < source.size();) {
    const i64 n = std::min(static_cast<i64>(block.size()), source.size() - at);
    source.pread_exact(at, block.data(), n);
    copy.pwrite(at, block.data(), n);
    at += n;
  }
  copy.commit();
}

// Every action may be repeated.
void move(const std::string& workdir, const RunJson& todo, const std::string& where) {
  const RunRecord record = parse_record(todo.value("run", RunJson()), where);
  const std::string to = join_path(workdir, text_of(todo, "to", where));
  for (const RunJson& name : todo.value("names", RunJson::array())) {
    if (!name.is_string()) throw ContentsError("{}: names: expected strings", where);
    const std::string from = join_path(workdir, name.get<std::string>());
    if (!file_info(from, false)) continue;
    // A power loss during a rename may have left the name in both places.
    const std::string there = join_path(to, free_name(to, name.get<std::string>()));
    make_dirs(parent_path(there));
    rename_durable(from, there);
  }
  for (const RunJson& name : todo.value("copies", RunJson::array())) {
    if (!name.is_string()) throw ContentsError("{}: copies: expected strings", where);
    const std::string from = join_path(workdir, name.get<std::string>());
    if (!file_info(from)) continue;
    const std::string there = join_path(to, name.get<std::string>());
    make_dirs(parent_path(there));
    copy_file_durable(from, there);
  }
  write_file_durable(record_path(workdir), to_json(record).dump(2) + "\n");
  remove_file(move_path(workdir));
}

}  // namespace

std::optional<RunRecord> read_run_record(const std::string& workdir) {
  const std::string path = record_path(workdir);
  if (!exists(path)) return std::nullopt;
  try {
    return parse_record(ckpt::read_strict_json(path, kMaxBytes), path);
  } catch (const ContentsError& e) {
    throw ContentsError(
        "[checkpoint] {}. Remove the file: redco then reads the run from its newest checkpoint", e.what());
  }
}

ckpt::RunIdentity begin_start(const std::string& workdir, i64 step) {
  auto record = read_run_record(workdir);
  if (!record) throw IoError("[train] {} is gone", record_path(workdir));
  record->run.begin_start(step);
  write_file_durable(record_path(workdir), to_json(*record).dump(2) + "\n");
  return record->run;
}

void require_newest_start(const std::string& workdir, const ckpt::RunIdentity& run) {
  if (run.start == 0) return;
  const auto record = read_run_record(workdir);
  if (!record) return;
  const bool same = record->run.id == run.id;
  if (same && record->run.start <= run.start) return;
  throw Error(
      ExitCode::rank_failed,
      fmt::format("[train] {} has taken over {}. This process belongs to start {}, so it saves nothing "
                  "more and ends",
                  same ? fmt::format("start {} of this run", record->run.start) : "another run", workdir,
                  run.start));
}

std::string begin_run(const std::string& workdir, const RunRecord& record, const std::string& old_id,
                      const OldFiles& old) {
  make_dirs(workdir);
  std::string to;
  const auto existing = [&](const std::vector<std::string>& all) {
    std::vector<std::string> out;
    for (const std::string& name : all)
      if (file_info(join_path(workdir, name), false)) out.push_back(name);
    return out;
  };
  const std::vector<std::string> names = existing(old.moved), copies = existing(old.copied);
  const bool keeps = !names.empty() || !copies.empty();
  if (keeps) to = free_name(workdir, join_path(workdir::kPrevious, old_id.empty() ? "unnamed" : old_id));
  const RunJson todo = {{"to", to}, {"names", names}, {"copies", copies}, {"run", to_json(record)}};
  if (keeps) write_file_durable(move_path(workdir), todo.dump(2) + "\n");
  move(workdir, todo, move_path(workdir));
  return to;
}

void finish_move(const std::string& workdir) {
  const std::string path = move_path(workdir);
  if (!exists(path)) return;
  const RunJson todo = ckpt::read_strict_json(path, kMaxBytes);
  if (!todo.is_object()) throw ContentsError("{}: expected an object", path);
  info("[train] moving the old run of {} to {}, because the start that began this was killed", workdir,
       text_of(todo, "to", path));
  move(workdir, todo, path);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace redco
