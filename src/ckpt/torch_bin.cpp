#include "ckpt/torch_bin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/strict_json.h"
#include "base/words.h"
#include "ckpt/torch_pickle.h"

namespace redco::ckpt {
namespace {

constexpr i64 kMaxPickleBytes = 32 << 20;
constexpr i64 kMaxDirectoryBytes = 256 << 20;

// An entry of the archive, and the place of its bytes in the file.
struct Entry {
  std::string name;
  i64 header, begin, size;
};

class Archive {
 public:
  explicit Archive(const ReadFile& file) : file_(file) {
    if (file.size() < 22) fail("the file has {} bytes, too few for a PyTorch file", file.size());
    find_directory();
    read_directory();
  }

  const Entry* find(const std::string& name) const {
    const auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // Reads a small entry. Its checksum is not checked: torch.serialization.set_crc32_options allows files
  // without.
  std::string read(const Entry& e, i64 max_bytes) const {
    if (e.size > max_bytes) fail("{} has {} bytes, expected at most {}", shown(e.name), e.size, max_bytes);
    std::string bytes(static_cast<size_t>(e.size), '\0');
    file_.pread_exact(e.begin, bytes.data(), e.size);
    return bytes;
  }

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> f, A&&... a) const {
    throw ContentsError("{}: {}", file_.path(), fmt::format(f, std::forward<A>(a)...));
  }

  [[noreturn]] void refuse_program() const {
    fail("the file is a TorchScript program, expected a state dict");
  }

 private:
  template <class T>
  static T number(const std::string& s, size_t at) {
    T v;
    std::memcpy(&v, s.data() + at, sizeof v);
    return v;
  }
  std::string bytes(i64 begin, i64 n) const {
    if (begin < 0 || n < 0 || n > file_.size() || begin > file_.size() - n)
      fail("its directory refers to bytes after its end; it is truncated or not a zip archive");
    std::string s(static_cast<size_t>(n), '\0');
    file_.pread_exact(begin, s.data(), n);
    return s;
  }
  i64 checked(u64 v) const {
    if (v > static_cast<u64>(file_.size()))
      fail("its directory has a size above the file's {}", file_.size());
    return static_cast<i64>(v);
  }

  // Finds the end record, which a comment of up to 64 KiB may follow, and its 64-bit form.
  void find_directory() {
    const i64 tail_size = std::min<i64>(file_.size(), 22 + 65'535);
    const i64 tail_begin = file_.size() - tail_size;
    const std::string tail = bytes(tail_begin, tail_size);
    size_t at = tail.npos;
    for (size_t i = tail.size() - 22 + 1; i-- > 0;)
      if (tail.compare(i, 4, "PK\5\6") == 0 && i + 22 + number<std::uint16_t>(tail, i + 20) == tail.size()) {
        at = i;
        break;
      }
    if (at == tail.npos)
      fail("the directory of a zip archive is missing; the file is truncated or not a PyTorch file");
    count_ = number<std::uint16_t>(tail, at + 10);
    u64 size = number<u32>(tail, at + 12), begin = number<u32>(tail, at + 16);
    limit_ = tail_begin + static_cast<i64>(at);
    if (count_ == 0xFFFF || size == 0xFFFFFFFF || begin == 0xFFFFFFFF) {
      const std::string locator = bytes(limit_ - 20, 20);
      if (locator.compare(0, 4, "PK\6\7") != 0) fail("the 64-bit end of its directory is missing");
      const i64 record_at = checked(number<u64>(locator, 8));
      const std::string record = bytes(record_at, 56);
      if (record.compare(0, 4, "PK\6\6") != 0) fail("the 64-bit end of its directory is missing");
      count_ = number<u64>(record, 32);
      size = number<u64>(record, 40);
      begin = number<u64>(record, 48);
      limit_ = record_at;
    }
    begin_ = checked(begin);
    size_ = checked(size);
    if (size_ > kMaxDirectoryBytes)
      fail("its directory has {} bytes, expected at most {}", size_, kMaxDirectoryBytes);
    if (size_ > limit_ - begin_ || count_ > static_cast<u64>(size_) / 46)
      fail("its directory overlaps what follows it, or has too few bytes for its entries");
  }

  void read_directory() {
    const std::string d = bytes(begin_, size_);
    size_t at = 0;
    for (u64 i = 0; i < count_; ++i) {
      if (d.size() - at < 46 || d.compare(at, 4, "PK\1\2") != 0)
        fail("entry {} of its directory is damaged", i);
      const auto flags = number<std::uint16_t>(d, at + 8), method = number<std::uint16_t>(d, at + 10);
      const size_t name_size = number<std::uint16_t>(d, at + 28),
                   extra_size = number<std::uint16_t>(d, at + 30);
      const size_t comment_size = number<std::uint16_t>(d, at + 32);
      if (d.size() - at - 46 < name_size + extra_size + comment_size)
        fail("entry {} of its directory is damaged", i);
      Entry e{d.substr(at + 46, name_size), 0, 0, 0};
      u64 packed = number<u32>(d, at + 20), size = number<u32>(d, at + 24), header = number<u32>(d, at + 42);
      read_extra(d.substr(at + 46 + name_size, extra_size), size, packed, header, e.name);
      if (flags & 1) fail("{} is encrypted", shown(e.name));
      if (method != 0) {
        if (e.name.find("/code/") != e.name.npos) refuse_program();
        fail("{} is compressed (method {}), expected uncompressed entries, as torch.save writes them",
             shown(e.name), method);
      }
      if (packed != size) fail("{} is stored with two sizes, {} and {}", shown(e.name), packed, size);
      e.size = checked(size);
      e.header = checked(header);
      e.begin = data_of(e);
      const std::string name = e.name;
      if (!entries_.emplace(name, std::move(e)).second) fail("{} is twice in its directory", shown(name));
      at += 46 + name_size + extra_size + comment_size;
    }
    if (at != d.size()) fail("its directory has bytes that belong to no entry");
    // Small archives unpack to huge ones through entries that share bytes.
    std::vector<const Entry*> order;
    for (const auto& [name, e] : entries_) order.push_back(&e);
    std::sort(order.begin(), order.end(),
              [](const Entry* a, const Entry* b) { return a->header < b->header; });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->begin + order[i - 1]->size > order[i]->header)
        fail("{} and {} overlap", shown(order[i - 1]->name), shown(order[i]->name));
  }

  // Reads the 64-bit sizes where the 32-bit fields refer to them.
  void read_extra(const std::string& extra, u64& size, u64& packed, u64& header,
                  const std::string& name) const {
    for (size_t at = 0; extra.size() - at >= 4;) {
      const auto id = number<std::uint16_t>(extra, at);
      const size_t n = number<std::uint16_t>(extra, at + 2);
      at += 4;
      if (n > extra.size() - at) return;  // padding, not a list of fields
      if (id == 1) {
        size_t field = at;
        for (u64* v : {&size, &packed, &header}) {
          if (*v != 0xFFFFFFFF) continue;
          if (field + 8 > at + n) fail("{} lacks its 64-bit sizes", shown(name));
          *v = number<u64>(extra, field);
          field += 8;
        }
        return;
      }
      at += n;
    }
  }

  // The offset of an entry's bytes: after its own header, whose variable part may differ from the
  // directory's.
  i64 data_of(const Entry& e) const {
    const std::string h = bytes(e.header, 30);
    const i64 name_size = number<std::uint16_t>(h, 26), extra_size = number<std::uint16_t>(h, 28);
    if (h.compare(0, 4, "PK\3\4") != 0 || bytes(e.header + 30, name_size) != e.name)
      fail("the header of {} isn't where the directory says", shown(e.name));
    const i64 begin = e.header + 30 + name_size + extra_size;
    if (begin > begin_ || e.size > begin_ - begin) fail("{} overlaps the archive's directory", shown(e.name));
    return begin;
  }

  const ReadFile& file_;
  u64 count_ = 0;
  i64 begin_ = 0, size_ = 0, limit_ = 0;  // of the directory; its required end
  std::map<std::string, Entry> entries_;
};

// Rejects files that are not zip archives.
void check_kind(const ReadFile& file) {
  char first[16] = {};
  file.pread_exact(0, first, std::min<i64>(file.size(), sizeof first));
  const std::string_view head(first, sizeof first);
  if (head.starts_with("PK")) return;
  if (head.starts_with("version https"))
    throw ContentsError("{}: this is a Git LFS pointer, run `git lfs pull`", file.path());
  if (head[0] == '\x80')
    throw ContentsError(
        "{}: the file has the format of PyTorch before 1.6, which redco doesn't read. Convert it once "
        "with:\n  {}",
        file.path(), conversion_line(parent_path(file.path())));
  throw ContentsError("{}: not a PyTorch file: it doesn't begin like a zip archive", file.path());
}

bool is_row_major(const PickledTensor& t) {
  i64 step = 1;
  for (size_t d = t.shape.size(); d-- > 0;) {
    if (t.shape[d] == 0) return true;
    if (t.shape[d] > 1 && t.steps[d] != step) return false;
    step *= t.shape[d];
  }
  return true;
}

// The entry of a tensor with its storage at [begin, begin + size) of the file.
TensorEntry checked_entry(const PickledTensor& t, i64 begin, i64 size, const std::string& path) {
  auto fail = [&](const std::string& what) { throw ContentsError("{}: {}: {}", path, shown(t.name), what); };
  const i64 width = size_of(t.type);
  if (t.storage_numel > size / width || t.storage_numel * width != size)
    fail(fmt::format("its storage should have {} elements of {} bytes, but has {} bytes", t.storage_numel,
                     width, size));
  i64 numel = 1, last = t.offset;
  bool overflow = false, empty = false;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    empty = empty || t.shape[d] == 0;
    i64 reach = 0;
    overflow = overflow || __builtin_mul_overflow(std::max<i64>(t.shape[d] - 1, 0), t.steps[d], &reach) ||
               __builtin_add_overflow(last, reach, &last) ||
               __builtin_mul_overflow(numel, std::max<i64>(t.shape[d], 1), &numel);
  }
  if (overflow || (!empty && last >= t.storage_numel) || t.offset > t.storage_numel)
    fail(fmt::format("exceeds the {} elements of its storage", t.storage_numel));
  if (!empty && numel > t.storage_numel)
    fail(fmt::format("has {} elements in a storage of {}: expanded tensors are not supported", numel,
                     t.storage_numel));
  TensorEntry e{t.name, t.type, t.shape, begin + t.offset * width, empty ? 0 : numel * width};
  if (!is_row_major(t)) e.strides = t.steps;
  return e;
}

}  // namespace

std::string conversion_line(const std::string& folder) {
  // clone(): safetensors' writer rejects tensors that share memory.
  return fmt::format(
      "cd {} && python3 -c \"import glob, torch; from safetensors.torch import save_file; t = {{}}; "
      "[t.update(torch.load(f, map_location='cpu', weights_only=True)) for f in "
      "glob.glob('pytorch_model*.bin')]; save_file({{k: v.contiguous().clone() for k, v in t.items()}}, "
      "'model.safetensors', metadata={{'format': 'pt'}})\"",
      shell_quote(folder));
}

TensorFile open_torch_bin(const std::string& path) {
  ReadFile file = ReadFile::open(path);
  check_kind(file);
  std::vector<TensorEntry> tensors;
  {
    const Archive archive(file);
    // All entries are in one folder, which has the file's original name.
    std::string folder;
    const Entry* pickle = nullptr;
    for (const auto& [name, e] : archive.entries()) {
      if (!name.ends_with("/data.pkl") || std::count(name.begin(), name.end(), '/') != 1) continue;
      if (pickle) archive.fail("the archive has both {} and {}", shown(pickle->name), shown(name));
      pickle = &e;
      folder = name.substr(0, name.size() - 8);
    }
    if (!pickle) archive.fail("not a PyTorch file: the zip archive has no data.pkl");
    if (archive.find(folder + "constants.pkl")) archive.refuse_program();
    if (const Entry* order = archive.find(folder + "byteorder"))
      if (const std::string o = archive.read(*order, 64); o != "little")
        archive.fail("the byte order is {}, expected little", shown(o));
    const std::string bytes = archive.read(*pickle, kMaxPickleBytes);
    for (const PickledTensor& t : read_torch_pickle(bytes, path)) {
      const Entry* storage = archive.find(folder + "data/" + t.storage);
      if (!storage) archive.fail("{}: its storage {} is missing", shown(t.name), shown(t.storage));
      tensors.push_back(checked_entry(t, storage->begin, storage->size, path));
    }
  }
  return TensorFile(std::move(file), std::move(tensors));
}

}  // namespace redco::ckpt
