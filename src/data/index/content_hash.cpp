#include "data/index/content_hash.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "base/timing.h"

namespace redco {

namespace {

constexpr const char* kMemoHeader = "redco content hashes 1 ";
constexpr i64 kMaxMemoBytes = i64{32} << 20;
constexpr std::size_t kMaxMemoEntries = std::size_t{1} << 16;  // the oldest are dropped

struct MemoEntry {
  std::string path;  // canonical
  FileStamp stamp;
  Hash128 hash;
};

// Two hosts may give the devices of a shared file system different numbers, so a path has an entry for each.
std::string memo_key(const MemoEntry& e) { return fmt::format("{} {}", e.stamp.device, e.path); }

std::string memo_line(const MemoEntry& e) {
  return fmt::format("{} {} {} {} {} {} {}\n", e.hash.hex(), e.stamp.device, e.stamp.inode, e.stamp.size,
                     e.stamp.modified, e.stamp.changed, e.path);
}

bool read_hex(std::string_view text, u64& to) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), to, 16);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

// Empty if there is no whole memo.
std::vector<MemoEntry> read_memo(const std::string& folder) {
  std::vector<MemoEntry> out;
  try {
    const std::string path = join_path(folder, kMemoName);
    if (!exists(path)) return {};
    const std::string text = read_file(path, kMaxMemoBytes);
    const std::string header = kMemoHeader + std::string(16, '0') + "\n";
    if (text.size() < header.size()) return {};
    const std::string body = text.substr(header.size());
    if (!text.starts_with(kMemoHeader + hex64(hash64(body)) + "\n")) return {};
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      MemoEntry e;
      std::istringstream in(line);
      std::string hash;
      in >> hash >> e.stamp.device >> e.stamp.inode >> e.stamp.size >> e.stamp.modified >> e.stamp.changed;
      if (!in || in.get() != ' ' || !std::getline(in, e.path) || hash.size() != 32 ||
          !read_hex(std::string_view(hash).substr(0, 16), e.hash.high) ||
          !read_hex(std::string_view(hash).substr(16), e.hash.low))
        return {};
      out.push_back(std::move(e));
    }
  } catch (const Error& e) {
    debug("[data] the hashes of data files can't be read: {}", e.what());
    return {};
  }
  return out;
}

// Adds the entries to the memo. Entries that another process writes at the same time may be lost; their files
// are then hashed again.
void write_memo(const std::string& folder, const std::vector<MemoEntry>& added) {
  std::set<std::string> replaced;
  for (const MemoEntry& e : added) replaced.insert(memo_key(e));
  std::vector<MemoEntry> all;
  for (MemoEntry& e : read_memo(folder))
    if (!replaced.contains(memo_key(e))) all.push_back(std::move(e));
  all.insert(all.end(), added.begin(), added.end());
  std::string body;
  for (std::size_t k = all.size() - std::min(all.size(), kMaxMemoEntries); k < all.size(); ++k)
    body += memo_line(all[k]);
  try {
    make_dirs(folder);
    DurableFile memo = DurableFile::create(join_path(folder, kMemoName));
    memo.append(kMemoHeader + hex64(hash64(body)) + "\n" + body);
    memo.commit();
  } catch (const Error& e) {
    debug("[data] the hashes of data files are not remembered: {}", e.what());
  }
}

FileStamp stamp_of(const std::string& path) {
  const auto info = file_info(path);
  if (!info) throw UsageError("[data] {} does not exist", path);
  if (info->kind == FileInfo::folder)
    throw UsageError("[data] {} is a folder, expected a file. Give the files in it", path);
  if (info->kind != FileInfo::file)
    throw UsageError("[data] {} is not a regular file. redco reads data several times: save them in a file",
                     path);
  return file_stamp(path);
}

// The path in the memo; "" if the memo can't have it.
std::string memo_path(const std::string& path) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(path, error).string();
  return error || whole.find('\n') != std::string::npos ? "" : whole;
}

}  // namespace

std::vector<ContentHash> content_hashes(const std::vector<std::string>& paths, const std::string& folder,
                                        const std::function<void(i64 done, i64 total)>& progress) {
  std::map<std::string, MemoEntry> memo;
  for (MemoEntry& e : read_memo(folder)) {
    std::string key = memo_key(e);
    memo.insert_or_assign(std::move(key), std::move(e));
  }
  std::vector<ContentHash> out;
  std::vector<std::string> names;
  std::vector<std::size_t> unknown;
  i64 total = 0;
  for (const std::string& p : paths) {
    ContentHash& h = out.emplace_back();
    h.stamp = stamp_of(p);
    names.push_back(memo_path(p));
    const auto it = memo.find(memo_key({names.back(), h.stamp, {}}));
    if (it != memo.end() && it->second.stamp == h.stamp) {
      h.hash = it->second.hash;
      h.remembered = true;
    } else {
      unknown.push_back(out.size() - 1);
      total += h.stamp.size;
    }
  }
  if (unknown.empty()) return out;

  const double begin = wall_seconds();
  std::mutex mutex;
  i64 done = 0;
  const auto count = [&](i64 n) {
    const std::lock_guard lock(mutex);
    done += n;
    if (progress) progress(done, total);
  };
  std::size_t next = 0;
  OrderedWork<std::size_t, Hash128> work(
      std::min(usable_cpus(), static_cast<int>(std::min<std::size_t>(unknown.size(), 1024))),
      [&](std::size_t k, int) { return hash_file(paths[k], count); },
      [&](Hash128 h) { out[unknown[next++]].hash = h; });
  for (const std::size_t k : unknown) work.add(k);
  work.finish();
  std::vector<MemoEntry> added;
  for (const std::size_t k : unknown) {
    if (stamp_of(paths[k]) != out[k].stamp)
      throw ContentsError("{}: the file changed while it was read. Start again when it is complete",
                          paths[k]);
    if (!names[k].empty() && begin - 1e-9 * static_cast<double>(out[k].stamp.changed) >= kMemoAge)
      added.push_back({names[k], out[k].stamp, out[k].hash});
  }
  if (!added.empty()) write_memo(folder, added);
  return out;
}

}  // namespace redco
