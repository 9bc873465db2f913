// A checkpoint's manifest: its files with sizes and hashes. It is written last, so a folder whose files match
// its manifest is complete.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/types.h"
#include "workdir/run_identity.h"

namespace redco::ckpt {

// Chunk size of the hashes (64 MiB); the last chunk is shorter.
constexpr i64 kChunkBytes = i64{64} << 20;

struct FileRecord {
  std::string path;  // relative to the checkpoint's folder, with /
  i64 size;
  // XXH3-128 of each chunk, 32 lower-case hexadecimal digits (the canonical form, as `xxhsum -H2` prints). An
  // empty file has one empty chunk.
  std::vector<std::string> xxh3;
  bool operator==(const FileRecord&) const = default;
};

// The hash of a chunk of a file.
std::string chunk_hash(const ReadFile& file, i64 chunk, i64 chunk_bytes);
// Reads the file once. Each writer calls it for its own files, so no rank reads the whole checkpoint.
FileRecord record_file(const std::string& folder, const std::string& path, i64 chunk_bytes = kChunkBytes);

struct Manifest {
  static constexpr i64 kFormatVersion = 2;
  i64 step = 0;
  RunIdentity run;  // the run that made the checkpoint
  // Format 1 has one hash per file: 0.
  i64 chunk_bytes = kChunkBytes;
  // Versions of the algorithms that a resumed run must repeat: rng, shuffle, packing, init, ...
  std::map<std::string, i64> versions;
  std::vector<FileRecord> files;  // sorted by path
  bool operator==(const Manifest&) const = default;

  i64 chunks_of(const FileRecord& f) const;
  struct Bytes {
    i64 begin, end;
  };
  Bytes chunk(const FileRecord& f, i64 i) const;  // REQUIRES: 0 <= i < chunks_of(f)
};

// Files in a checkpoint's folder.
constexpr const char* kManifestPath = "training/manifest.json";
constexpr const char* kStatePath = "training/state.json";
constexpr const char* kJobPath = "training/job.yaml";

std::string to_json(const Manifest& m);  // format 2. REQUIRES: chunk_bytes > 0
// Reads formats 1 and 2. ContentsError on anything else: newer formats, missing or unknown keys, wrong types,
// duplicates, paths outside the folder.
Manifest parse_manifest(std::string_view text, const std::string& where);
// ContentsError also if the manifest is not a plain file. REQUIRES: it exists.
Manifest read_manifest(const std::string& checkpoint_folder);

// The first listed file that is missing or shorter than in the manifest: "config.json is missing"; nullopt:
// none. ContentsError: a file that is longer, or not a plain file. Files outside the manifest are ignored.
std::optional<std::string> missing_bytes(const std::string& checkpoint_folder, const Manifest& m);

// Reads chunk i of a file and compares its hash. ContentsError for a damaged chunk; the message names the
// file and the byte range.
void check_chunk(const std::string& checkpoint_folder, const Manifest& m, const FileRecord& f, i64 i);

}  // namespace redco::ckpt
