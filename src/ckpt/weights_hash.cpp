#include "ckpt/weights_hash.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/timing.h"
#include "base/tolerate.h"
#include "base/user_folders.h"
#include "ckpt/manifest.h"

namespace redco::ckpt {

namespace {

using HashJson = nlohmann::json;

constexpr i64 kMostKeptBytes = 16 << 20;

bool is_weights_file(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".index.json");
}

HashJson to_json(const FileStamp& s) { return {s.device, s.inode, s.size, s.modified, s.changed}; }

// Where the hashes of a file are kept; "": nowhere.
std::string kept_path(const std::string& path) {
  const std::string folder = user_cache_folder();
  if (folder.empty()) return "";
  std::error_code none;
  const std::string canonical = std::filesystem::canonical(path, none).string();
  return join_path(join_path(folder, "hashes"), hash128(canonical).hex() + ".json");
}

std::optional<std::vector<std::string>> kept_hashes(const std::string& kept, const FileStamp& stamp) {
  std::error_code none;
  if (kept.empty() || !std::filesystem::is_regular_file(kept, none)) return std::nullopt;
  try {
    const HashJson j = HashJson::parse(read_file(kept, kMostKeptBytes), nullptr, false);
    if (j.is_object() && j.contains("stamp") && j["stamp"] == to_json(stamp) && j.contains("xxh3"))
      return j["xxh3"].get<std::vector<std::string>>();
  } catch (const Error&) {  // hashed again
  } catch (const HashJson::exception&) {
  }
  return std::nullopt;
}

// Whether a later change of the file gets a new time: not within the resolution of the file system's clock,
// which is a timer's tick, or up to 2 s where times are whole seconds.
bool is_settled(const FileStamp& s) {
  const i64 last = std::max(s.modified, s.changed);
  return wall_seconds() - 1e-9 * static_cast<double>(last) > (last % 1'000'000'000 == 0 ? 2.0 : 0.05);
}

std::vector<std::string> hashes_of(const std::string& folder, const std::string& name) {
  const std::string path = join_path(folder, name);
  const FileStamp stamp = file_stamp(path);
  const std::string kept = kept_path(path);
  if (auto hashes = kept_hashes(kept, stamp)) return *hashes;
  const std::vector<std::string> hashes = record_file(folder, name).xxh3;
  if (!kept.empty() && is_settled(stamp) && file_stamp(path) == stamp)
    tolerate("[hash] the hash of " + path + " is not kept", [&] {
      make_dirs(parent_path(kept));
      write_file_durable(kept, HashJson{{"path", path}, {"stamp", to_json(stamp)}, {"xxh3", hashes}}.dump());
    });
  return hashes;
}

}  // namespace

std::string weights_hash(const std::string& folder) {
  std::optional<Manifest> manifest;
  if (exists(join_path(folder, kManifestPath))) manifest = read_manifest(folder);
  Hasher all;
  for (const std::string& name : list_dir(folder)) {
    if (!is_weights_file(name)) continue;
    const FileRecord* listed = nullptr;
    if (manifest && manifest->chunk_bytes == kChunkBytes)
      for (const FileRecord& f : manifest->files)
        if (f.path == name && f.size == file_size(join_path(folder, name))) listed = &f;
    std::string text = name;
    for (const std::string& hash : listed ? listed->xxh3 : hashes_of(folder, name)) text += " " + hash;
    text += "\n";
    all.update(text.data(), text.size());
  }
  return kWeightsHash + all.digest128().hex();
}

}  // namespace redco::ckpt
