#include "ckpt/manifest.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strict_json.h"

namespace redco::ckpt {
namespace {

using nlohmann::json;
constexpr i64 kMaxManifestBytes = 64 << 20;
constexpr i64 kHashBuffer = 256 << 10;  // stays in the cache between read and hash

// Of the bytes [begin, end).
std::string contents_hash(const ReadFile& file, i64 begin, i64 end) {
  Hasher hasher;
  std::vector<char> buffer(static_cast<size_t>(std::min(kHashBuffer, end - begin)));
  while (begin < end) {
    const i64 n = std::min(kHashBuffer, end - begin);
    file.pread_exact(begin, buffer.data(), n);
    hasher.update(buffer.data(), static_cast<size_t>(n));
    begin += n;
  }
  return hasher.digest128().hex();
}

i64 chunk_count(i64 size, i64 chunk_bytes) {
  return size == 0 || chunk_bytes == 0 ? 1 : (size - 1) / chunk_bytes + 1;
}

bool is_inside(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path.front() == '/' || path.back() == '/') return false;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return path.find('\0') == path.npos;
}

bool is_hash(const std::string& s) {
  return s.size() == 32 && s.find_first_not_of("0123456789abcdef") == s.npos;
}

// Removes a field from an object, so that the remaining fields are unknown ones.
json take(json& object, const char* key, json::value_t type, const std::string& where) {
  auto it = object.find(key);
  if (it == object.end()) throw ContentsError("{}: {} is missing", where, key);
  json value = std::move(*it);
  object.erase(it);
  bool whole_number = type == json::value_t::number_unsigned;
  if (value.type() != type || (whole_number && value.get<u64>() > static_cast<u64>(INT64_MAX)))
    throw ContentsError("{}: {} is {}, expected {}", where, key, shown(value.dump()),
                        whole_number                    ? "an integer >= 0"
                        : type == json::value_t::string ? "a string"
                        : type == json::value_t::array  ? "a list"
                                                        : "an object");
  return value;
}

void expect_empty(const json& object, const std::string& where) {
  if (!object.empty()) throw ContentsError("{}: unknown key {}", where, shown(object.begin().key()));
}

}  // namespace

std::string chunk_hash(const ReadFile& file, i64 chunk, i64 chunk_bytes) {
  return contents_hash(file, chunk * chunk_bytes, std::min((chunk + 1) * chunk_bytes, file.size()));
}

FileRecord record_file(const std::string& folder, const std::string& path, i64 chunk_bytes) {
  REDCO_CHECK(is_inside(path) && chunk_bytes > 0, "{}", path);
  const ReadFile file = ReadFile::open(join_path(folder, path));
  FileRecord r{path, file.size(), {}};
  for (i64 i = 0; i < chunk_count(r.size, chunk_bytes); ++i)
    r.xxh3.push_back(chunk_hash(file, i, chunk_bytes));
  return r;
}

i64 Manifest::chunks_of(const FileRecord& f) const { return chunk_count(f.size, chunk_bytes); }

Manifest::Bytes Manifest::chunk(const FileRecord& f, i64 i) const {
  REDCO_CHECK(i >= 0 && i < chunks_of(f), "chunk {} of {}", i, f.path);
  if (chunk_bytes == 0) return {0, f.size};
  return {i * chunk_bytes, std::min(f.size, (i + 1) * chunk_bytes)};
}

std::string to_json(const Manifest& m) {
  REDCO_CHECK(m.chunk_bytes > 0, "a manifest of format 1 is not written");
  // One line per file, for people and diff.
  std::string out = fmt::format(
      "{{\n  \"format_version\": {},\n  \"step\": {},\n  \"run\": {},\n  \"versions\": {},\n  "
      "\"chunk_bytes\": {},\n  "
      "\"files\": [",
      Manifest::kFormatVersion, m.step, to_json(m.run).dump(), json(m.versions).dump(), m.chunk_bytes);
  const char* separator = "\n";
  for (const FileRecord& f : m.files) {
    out += fmt::format("{}    {{\"path\": {}, \"size\": {}, \"xxh3\": {}}}", separator, json(f.path).dump(),
                       f.size, json(f.xxh3).dump());
    separator = ",\n";
  }
  return out + "\n  ]\n}\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  json j = parse_strict_json(text, where);
  if (!j.is_object()) throw ContentsError("{}: the file is {}, expected an object", where, j.type_name());
  using Type = json::value_t;
  i64 version = take(j, "format_version", Type::number_unsigned, where).get<i64>();
  if (version < 1 || version > Manifest::kFormatVersion)
    throw ContentsError(
        "{}: format_version is {}, but this redco reads 1 to {}. Use the version that wrote it", where,
        version, Manifest::kFormatVersion);
  Manifest m;
  m.step = take(j, "step", Type::number_unsigned, where).get<i64>();
  if (version > 1) m.run = parse_run_identity(take(j, "run", Type::object, where), where + ": run");
  json versions = take(j, "versions", Type::object, where);
  while (!versions.empty()) {
    std::string name = versions.begin().key();
    m.versions[name] = take(versions, name.c_str(), Type::number_unsigned, where + ": versions").get<i64>();
  }
  m.chunk_bytes = version == 1 ? 0 : take(j, "chunk_bytes", Type::number_unsigned, where).get<i64>();
  if (version > 1 && m.chunk_bytes < 1)
    throw ContentsError("{}: chunk_bytes is 0, expected a positive number", where);
  json files = take(j, "files", Type::array, where);
  expect_empty(j, where);
  m.files.reserve(files.size());
  for (json& f : files) {
    if (!f.is_object())
      throw ContentsError("{}: an entry of files is {}, expected an object", where, f.type_name());
    FileRecord r;
    r.path = take(f, "path", Type::string, where).get<std::string>();
    std::string at = fmt::format("{}: {}", where, shown(r.path));
    r.size = take(f, "size", Type::number_unsigned, at).get<i64>();
    if (version == 1) {
      r.xxh3 = {take(f, "xxh3", Type::string, at).get<std::string>()};
    } else {
      for (const json& hash : take(f, "xxh3", Type::array, at))
        r.xxh3.push_back(hash.is_string() ? hash.get<std::string>() : "");
    }
    expect_empty(f, at);
    if (!is_inside(r.path)) throw ContentsError("{}: expected a path inside the checkpoint", at);
    if (static_cast<i64>(r.xxh3.size()) != m.chunks_of(r))
      throw ContentsError("{}: xxh3 has {} hashes, expected {}", at, r.xxh3.size(), m.chunks_of(r));
    for (const std::string& hash : r.xxh3)
      if (!is_hash(hash)) throw ContentsError("{}: xxh3: expected 32 hexadecimal digits", at);
    m.files.push_back(std::move(r));
  }
  std::sort(m.files.begin(), m.files.end(),
            [](const FileRecord& a, const FileRecord& b) { return a.path < b.path; });
  for (size_t i = 1; i < m.files.size(); ++i)
    if (m.files[i - 1].path == m.files[i].path)
      throw ContentsError("{}: {} is listed twice", where, m.files[i].path);
  return m;
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifestPath);
  if (const auto info = file_info(path); info && info->kind != FileInfo::file)
    throw ContentsError("{}: not a plain file", path);
  return parse_manifest(read_file(path, kMaxManifestBytes), path);
}

std::optional<std::string> missing_bytes(const std::string& folder, const Manifest& m) {
  std::optional<std::string> missing;
  for (const FileRecord& f : m.files) {
    const auto info = file_info(join_path(folder, f.path));
    if (info && info->kind != FileInfo::file)
      throw ContentsError("{}: not a plain file", join_path(folder, f.path));
    if (info && info->size > f.size)
      throw ContentsError("{}: the file has {} bytes, but {} says {}: its contents are damaged",
                          join_path(folder, f.path), info->size, kManifestPath, f.size);
    if (missing) continue;
    if (!info)
      missing = fmt::format("{} is missing", f.path);
    else if (info->size < f.size)
      missing = fmt::format("{} has {} bytes, the manifest says {}", f.path, info->size, f.size);
  }
  return missing;
}

void check_chunk(const std::string& folder, const Manifest& m, const FileRecord& f, i64 i) {
  const Manifest::Bytes b = m.chunk(f, i);
  const std::string hash = contents_hash(ReadFile::open(join_path(folder, f.path)), b.begin, b.end);
  if (hash != f.xxh3[static_cast<size_t>(i)])
    throw ContentsError("{}: damaged contents: bytes {} to {} have the XXH3-128 hash {}, {} says {}",
                        join_path(folder, f.path), b.begin, b.end, hash, kManifestPath,
                        f.xxh3[static_cast<size_t>(i)]);
}

}  // namespace redco::ckpt
