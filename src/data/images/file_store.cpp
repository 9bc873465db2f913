#include "data/images/file_store.h"

#include <zip.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"

namespace redco {

namespace {

// Maximum depth of folders; also ends cycles of links.
constexpr int kMaxFolders = 32;
constexpr i64 kMaxFiles = 20'000'000;

bool is_left_behind(std::string_view part) { return part.starts_with('.') || part == "__MACOSX"; }

// Whether an archive's entry is a file to list.
bool is_file(std::string_view name) {
  if (name.empty() || name.ends_with('/')) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (is_left_behind(name.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

void list_folder(const std::string& path, const std::string& prefix, int depth,
                 std::vector<std::string>& out) {
  if (depth > kMaxFolders)
    throw ContentsError("{}: folders are nested more than {} deep. Check for cyclic links", path,
                        kMaxFolders);
  for (const std::string& name : list_dir(path)) {
    if (is_left_behind(name)) continue;
    const std::string whole = join_path(path, name);
    const auto info = file_info(whole);
    if (!info) continue;  // a dangling link
    if (info->kind == FileInfo::folder) list_folder(whole, prefix + name + "/", depth + 1, out);
    if (info->kind == FileInfo::file) out.push_back(prefix + name);
    if (static_cast<i64>(out.size()) > kMaxFiles)
      throw ContentsError("{}: more than {} files", path, kMaxFiles);
  }
}

}  // namespace

struct FileStore::Zip {
  zip_t* archive = nullptr;
  std::unordered_map<std::string, zip_uint64_t> entries;
  std::mutex mutex;  // libzip reads one entry at a time

  ~Zip() {
    if (archive) zip_discard(archive);
  }
};

FileStore::FileStore(std::string path, std::unique_ptr<Zip> zip)
    : path_(std::move(path)), zip_(std::move(zip)) {}
FileStore::FileStore(FileStore&&) noexcept = default;
FileStore& FileStore::operator=(FileStore&&) noexcept = default;
FileStore::~FileStore() = default;

FileStore FileStore::open(const std::string& path) {
  const auto info = file_info(path);
  if (!info) throw UsageError("[data] {} does not exist, expected a folder or a .zip", path);
  if (info->kind == FileInfo::folder) return {path, nullptr};
  auto zip = std::make_unique<Zip>();
  int code = 0;
  zip->archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!zip->archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw ContentsError("[data] {}: neither a folder nor a readable zip archive: {}", path, why);
  }
  const zip_int64_t n = zip_get_num_entries(zip->archive, 0);
  if (n > kMaxFiles) throw ContentsError("[data] {}: more than {} files", path, kMaxFiles);
  for (zip_int64_t i = 0; i < n; ++i) {
    const char* name = zip_get_name(zip->archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    if (!name || !is_file(name)) continue;
    if (!zip->entries.emplace(name, static_cast<zip_uint64_t>(i)).second)
      throw ContentsError("[data] {}: the archive has two entries {}", path, excerpt(name));
  }
  return {path, std::move(zip)};
}

std::vector<std::string> FileStore::names() const {
  std::vector<std::string> out;
  if (!zip_) {
    list_folder(path_, "", 0, out);
  } else {
    for (const auto& entry : zip_->entries) out.push_back(entry.first);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool FileStore::has(const std::string& name) const {
  if (zip_) return zip_->entries.count(name) != 0;
  const auto info = file_info(join_path(path_, name));
  return info && info->kind == FileInfo::file;
}

std::string FileStore::where(const std::string& name) const {
  return zip_ ? path_ + ":" + excerpt(name, 200) : join_path(path_, name);
}

std::string FileStore::read(const std::string& name) const {
  const auto fail = [&](const std::string& why) { throw ContentsError("[data] {}: {}", where(name), why); };
  if (!has(name)) fail("the file does not exist");
  if (!zip_) return read_file(join_path(path_, name), kMaxFile);

  const std::lock_guard<std::mutex> lock(zip_->mutex);
  const zip_uint64_t index = zip_->entries.at(name);
  zip_stat_t info;
  zip_stat_init(&info);
  if (zip_stat_index(zip_->archive, index, 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE))
    fail("the archive has no size for it");
  if (info.size > static_cast<zip_uint64_t>(kMaxFile))
    fail(fmt::format("{} are more than the maximum of {} per file", human_bytes(info.size),
                     human_bytes(kMaxFile)));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(zip_->archive, index, 0),
                                                               zip_fclose);
  if (!file) fail(zip_strerror(zip_->archive));
  // Grows with the data: the size in the archive's header may be wrong.
  std::string bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(std::min<size_t>(std::max<size_t>(2 * before, 1 << 16), info.size + 1));
    const zip_int64_t n = zip_fread(file.get(), bytes.data() + before, bytes.size() - before);
    if (n < 0) fail(fmt::format("damaged: {}", zip_file_strerror(file.get())));
    bytes.resize(before + static_cast<size_t>(n));
    if (n == 0 || bytes.size() > info.size) break;  // libzip compares the checksum at the end
  }
  if (bytes.size() != info.size)
    fail(fmt::format("damaged: {} bytes, but the archive's directory says {}", bytes.size(), info.size));
  return bytes;
}

}  // namespace redco
