// A checkpoint's manifest: the files it consists of, their sizes and hashes. It is written last, so a folder
// with a manifest that its files agree with is whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco::ckpt {

struct FileRecord {
  std::string path;  // inside the checkpoint's folder, with /
  i64 size;
  std::string
      xxh3;  // 128 bits, 32 lower-case hexadecimal digits (the canonical form, as `xxhsum -H2` prints)
  bool operator==(const FileRecord&) const = default;
};

// Reads the file once. Each writer calls it for its own file, so that nobody reads the whole checkpoint
// again.
FileRecord record_file(const std::string& folder, const std::string& path);

struct Manifest {
  static constexpr i64 kFormatVersion = 1;
  i64 step = 0;
  // The algorithms that a resumed run must repeat: rng, shuffle, packing, init, ...
  std::map<std::string, i64> versions;
  std::vector<FileRecord> files;  // sorted by path
  bool operator==(const Manifest&) const = default;
};

constexpr const char* kManifestPath = "training/manifest.json";

std::string to_json(const Manifest& m);
// ContentsError on anything but a manifest of this format: other versions, missing or unknown keys, wrong
// types, duplicates, paths that leave the folder.
Manifest parse_manifest(std::string_view text, const std::string& where);
Manifest read_manifest(const std::string& checkpoint_folder);

// Why the folder's files are not those of the manifest; nullopt if they are. Files that the manifest doesn't
// list are nobody's business. hashes: reads every byte.
std::optional<std::string> difference(const std::string& checkpoint_folder, const Manifest& m, bool hashes);

}  // namespace redco::ckpt
