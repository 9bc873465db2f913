#include "ckpt/manifest.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "ckpt/strict_json.h"

namespace redco::ckpt {
namespace {

using nlohmann::json;
constexpr i64 kMaxManifestBytes = 64 << 20;
constexpr i64 kHashBuffer = 4 << 20;

std::string contents_hash(const ReadFile& file) {
  Hasher hasher;
  std::vector<char> buffer(static_cast<size_t>(std::min(kHashBuffer, file.size())));
  for (i64 at = 0; at < file.size();) {
    i64 n = std::min(static_cast<i64>(buffer.size()), file.size() - at);
    file.pread_exact(at, buffer.data(), n);
    hasher.update(buffer.data(), static_cast<size_t>(n));
    at += n;
  }
  return hasher.digest128().hex();
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

// A field of an object, taken out so that what is left over is unknown.
json take(json& object, const char* key, json::value_t type, const std::string& where) {
  auto it = object.find(key);
  if (it == object.end()) throw ContentsError("{}: {} is missing", where, key);
  json value = std::move(*it);
  object.erase(it);
  bool whole_number = type == json::value_t::number_unsigned;
  if (value.type() != type || (whole_number && value.get<u64>() > static_cast<u64>(INT64_MAX)))
    throw ContentsError("{}: {}: came {}, expected {}", where, key, shown(value.dump()),
                        whole_number                    ? "a whole number from 0 on"
                        : type == json::value_t::string ? "a string"
                        : type == json::value_t::array  ? "a list"
                                                        : "an object");
  return value;
}

void expect_empty(const json& object, const std::string& where) {
  if (!object.empty()) throw ContentsError("{}: unknown key {}", where, shown(object.begin().key()));
}

}  // namespace

FileRecord record_file(const std::string& folder, const std::string& path) {
  REDCO_CHECK(is_inside(path), "{}", path);
  ReadFile file = ReadFile::open(join_path(folder, path));
  return {path, file.size(), contents_hash(file)};
}

std::string to_json(const Manifest& m) {
  // One line a file, so that people and diff can read it.
  std::string out =
      fmt::format("{{\n  \"format_version\": {},\n  \"step\": {},\n  \"versions\": {},\n  \"files\": [",
                  Manifest::kFormatVersion, m.step, json(m.versions).dump());
  const char* separator = "\n";
  for (const FileRecord& f : m.files) {
    out += fmt::format("{}    {{\"path\": {}, \"size\": {}, \"xxh3\": \"{}\"}}", separator,
                       json(f.path).dump(), f.size, f.xxh3);
    separator = ",\n";
  }
  return out + "\n  ]\n}\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  json j = parse_strict_json(text, where);
  if (!j.is_object()) throw ContentsError("{}: came {}, expected an object", where, j.type_name());
  using Type = json::value_t;
  i64 version = take(j, "format_version", Type::number_unsigned, where).get<i64>();
  if (version != Manifest::kFormatVersion)
    throw ContentsError("{}: format_version is {}, this redco reads {}; it was written by another version",
                        where, version, Manifest::kFormatVersion);
  Manifest m;
  m.step = take(j, "step", Type::number_unsigned, where).get<i64>();
  json versions = take(j, "versions", Type::object, where);
  while (!versions.empty()) {
    std::string name = versions.begin().key();
    m.versions[name] = take(versions, name.c_str(), Type::number_unsigned, where + ": versions").get<i64>();
  }
  json files = take(j, "files", Type::array, where);
  expect_empty(j, where);
  m.files.reserve(files.size());
  for (json& f : files) {
    if (!f.is_object()) throw ContentsError("{}: files: came {}, expected an object", where, f.type_name());
    FileRecord r;
    r.path = take(f, "path", Type::string, where).get<std::string>();
    std::string at = fmt::format("{}: {}", where, shown(r.path));
    r.size = take(f, "size", Type::number_unsigned, at).get<i64>();
    r.xxh3 = take(f, "xxh3", Type::string, at).get<std::string>();
    expect_empty(f, at);
    if (!is_inside(r.path)) throw ContentsError("{}: expected a path inside the checkpoint", at);
    if (!is_hash(r.xxh3)) throw ContentsError("{}: xxh3: expected 32 hexadecimal digits", at);
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
  std::string path = join_path(folder, kManifestPath);
  return parse_manifest(read_file(path, kMaxManifestBytes), path);
}

std::optional<std::string> difference(const std::string& folder, const Manifest& m, bool hashes) {
  for (const FileRecord& f : m.files) {
    auto info = file_info(join_path(folder, f.path));
    if (!info || info->kind != FileInfo::file) return fmt::format("{} is missing", f.path);
    if (info->size != f.size)
      return fmt::format("{} has {} bytes, the manifest says {}", f.path, info->size, f.size);
  }
  if (hashes)
    for (const FileRecord& f : m.files)
      if (record_file(folder, f.path) != f)
        return fmt::format("{} has other contents than the manifest says", f.path);
  return std::nullopt;
}

}  // namespace redco::ckpt
