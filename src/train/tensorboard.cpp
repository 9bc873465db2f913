#include "train/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/timing.h"
#include "base/utf8.h"

namespace redco {

namespace {

// CRC-32C of each byte value.
constexpr std::array<u32, 256> kCrcs = [] {
  std::array<u32, 256> table{};
  for (u32 i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0x82F63B78u : 0);
  }
  return table;
}();

// CRC-32C, then TensorFlow's mask.
u32 masked_crc(const std::string& s) {
  u32 crc = ~0u;
  for (const char c : s) crc = (crc >> 8) ^ kCrcs[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// --- protobuf's wire format: a tag (field << 3 | type), then the value; type 0 varint, 1 eight bytes, 2 a
// length and as many bytes, 5 four bytes ---

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void varint(std::string& out, u64 v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}
void int_field(std::string& out, int field, i64 v) {
  varint(out, static_cast<u64>(field) << 3 | 0);
  varint(out, static_cast<u64>(v));
}
void bytes_field(std::string& out, int field, const std::string& s) {
  varint(out, static_cast<u64>(field) << 3 | 2);
  varint(out, s.size());
  out += s;
}

// Event: wall_time 1 (double), step 2 (int64), file_version 3 (string), summary 5, session_log 7.
std::string event_begin(double wall_time, i64 step) {
  std::string event;
  varint(event, 1 << 3 | 1);
  put<double>(event, wall_time);
  int_field(event, 2, step);
  return event;
}

std::string framed(const std::string& data) {
  std::string length, out;
  put<u64>(length, data.size());
  out = length;
  put<u32>(out, masked_crc(length));
  out += data;
  put<u32>(out, masked_crc(data));
  return out;
}

// A record of a summary with one value.
std::string event_of_value(double wall_time, i64 step, const std::string& value) {
  std::string event = event_begin(wall_time, step), summary;
  bytes_field(summary, 1, value);
  bytes_field(event, 5, summary);
  return framed(event);
}

// Markdown's code: every line indented by four spaces.
std::string as_code(const std::string& text) {
  std::string out = "    ";
  const std::size_t bad = find_invalid_utf8(text);
  for (char c : bad == std::string::npos ? text : text.substr(0, bad) + "...") {
    if (c == '\r') continue;
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

}  // namespace

std::string tensorboard_header(double wall_time) {
  std::string event;
  varint(event, 1 << 3 | 1);
  put<double>(event, wall_time);
  bytes_field(event, 3, "brain.Event:2");
  return framed(event);
}

// SessionLog: status 1, START = 1.
std::string tensorboard_start(double wall_time, i64 step) {
  std::string event = event_begin(wall_time, step), session;
  int_field(session, 1, 1);
  bytes_field(event, 7, session);
  return framed(event);
}

// Summary: value 1; Value: tag 1, simple_value 2 (float).
std::string tensorboard_record(double wall_time, i64 step,
                               const std::vector<std::pair<std::string, double>>& values) {
  std::string event = event_begin(wall_time, step), summary;
  for (const auto& [tag, v] : values) {
    std::string value;
    bytes_field(value, 1, tag);
    varint(value, 2 << 3 | 5);
    put<float>(value, static_cast<float>(v));
    bytes_field(summary, 1, value);
  }
  bytes_field(event, 5, summary);
  return framed(event);
}

// Value: tag 1, histo 5. HistogramProto: min 1, max 2, num 3, sum 4, sum_squares 5 (doubles), bucket_limit 6
// and bucket 7 (packed doubles): bucket i counts the numbers up to its limit.
std::string tensorboard_histogram(double wall_time, i64 step, const std::string& tag,
                                  const std::vector<float>& elements) {
  constexpr int kBins = 30;
  double low = 0, high = 0, sum = 0, squares = 0;
  i64 n = 0;
  for (const double x : elements) {
    if (!std::isfinite(x)) continue;
    low = n == 0 ? x : std::min(low, x);
    high = n == 0 ? x : std::max(high, x);
    sum += x;
    squares += x * x;
    ++n;
  }
  std::string histogram, limits, counts, value;
  const double width = high > low ? (high - low) / kBins : 1;
  std::array<double, kBins> bins{};
  for (const double x : elements)
    if (std::isfinite(x)) bins[std::min(kBins - 1, static_cast<int>((x - low) / width))] += 1;
  for (int i = 0; i < kBins; ++i) {
    put<double>(limits, i + 1 == kBins && high > low ? high : low + (i + 1) * width);
    put<double>(counts, bins[i]);
  }
  int field = 1;
  for (const double x : {low, high, static_cast<double>(n), sum, squares}) {
    varint(histogram, static_cast<u64>(field++) << 3 | 1);
    put<double>(histogram, x);
  }
  bytes_field(histogram, 6, limits);
  bytes_field(histogram, 7, counts);
  bytes_field(value, 1, tag);
  bytes_field(value, 5, histogram);
  return event_of_value(wall_time, step, value);
}

// Value: tag 1, tensor 8, metadata 9. SummaryMetadata: plugin_data 1 {plugin_name 1}, data_class 4 (TENSOR =
// 2). TensorProto: dtype 1 (DT_STRING = 7), tensor_shape 2 {dim 2 {size 1}}, string_val 8.
std::string tensorboard_text(double wall_time, i64 step, const std::string& tag, const TextTable& table) {
  REDCO_CHECK(!table.empty() && !table[0].empty());
  std::string plugin, metadata, shape, tensor, value;
  bytes_field(plugin, 1, "text");
  bytes_field(metadata, 1, plugin);
  int_field(metadata, 4, 2);
  for (const std::size_t n : {table.size(), table[0].size()}) {
    std::string dim;
    int_field(dim, 1, static_cast<i64>(n));
    bytes_field(shape, 2, dim);
  }
  int_field(tensor, 1, 7);
  bytes_field(tensor, 2, shape);
  for (std::size_t r = 0; r < table.size(); ++r) {
    REDCO_CHECK(table[r].size() == table[0].size(), "row {} of {} cells", r, table[r].size());
    for (const std::string& cell : table[r]) bytes_field(tensor, 8, r == 0 ? cell : as_code(cell));
  }
  bytes_field(value, 1, tag);
  bytes_field(value, 8, tensor);
  bytes_field(value, 9, metadata);
  return event_of_value(wall_time, step, value);
}

EventFile::EventFile(const std::string& folder, i64 first_step) {
  make_dirs(folder);
  // Readers take the files of a folder in the order of their names.
  i64 stamp = static_cast<i64>(wall_seconds());
  constexpr std::string_view kPrefix = "events.out.tfevents.";
  for (const std::string& name : list_dir(folder))
    if (name.starts_with(kPrefix)) {
      const i64 other = std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10);
      if (other >= stamp && other < i64{1} << 40) stamp = other + 1;
    }
  path_ = join_path(folder, fmt::format("{}{:010}.{}.redco", kPrefix, stamp, ::getpid()));
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw IoError("[log] opening {}: {}", path_, std::strerror(errno));
  write(tensorboard_header(wall_seconds()));
  write(tensorboard_start(wall_seconds(), first_step));
}

EventFile::~EventFile() {
  if (fd_ >= 0) ::close(fd_);
}

void EventFile::scalars(i64 step, const std::vector<std::pair<std::string, double>>& values) {
  write(tensorboard_record(wall_seconds(), step, values));
}

void EventFile::histogram(i64 step, const std::string& tag, const std::vector<float>& elements) {
  write(tensorboard_histogram(wall_seconds(), step, tag, elements));
}

void EventFile::text(i64 step, const std::string& tag, const TextTable& table) {
  write(tensorboard_text(wall_seconds(), step, tag, table));
}

void EventFile::write(const std::string& record) {
  std::size_t at = 0;
  while (at < record.size()) {
    const ssize_t n = ::write(fd_, record.data() + at, record.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      // An incomplete record would make the following ones unreadable.
      if (::ftruncate(fd_, size_) != 0) debug("[log] {} can't be cut", path_);
      throw IoError("[log] writing {}: {}", path_, std::strerror(error));
    }
    at += static_cast<std::size_t>(n);
  }
  size_ += static_cast<i64>(record.size());
}

}  // namespace redco
