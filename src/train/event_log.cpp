#include "train/event_log.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace redco {

namespace {

u32 masked_crc(const std::string& s) {
  // CRC-32C with the usual pre- and post-inversion, then TensorFlow's mask.
  const u32 crc = ~crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<char*>(s.data())),
                               static_cast<int>(s.size()), ~0u);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void varint(std::string& out, u64 v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}
void text_field(std::string& out, int field, const std::string& s) {
  varint(out, static_cast<u64>(field) << 3 | 2);
  varint(out, s.size());
  out += s;
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

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void write_all(int fd, const std::string& s, const char* what) {
  size_t at = 0;
  while (at < s.size()) {
    const ssize_t n = ::write(fd, s.data() + at, s.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError("[log] writing {}: {}", what, std::strerror(errno));
    at += static_cast<size_t>(n);
  }
}

}  // namespace

// Event: wall_time 1 (double), step 2 (int64), file_version 3 (string), summary 5 {value 1 {tag 1,
// simple_value 2 (float)}}.
std::string tensorboard_record(double wall_time, i64 step,
                               const std::vector<std::pair<std::string, double>>& values) {
  std::string event, summary;
  varint(event, 1 << 3 | 1);
  put<double>(event, wall_time);
  varint(event, 2 << 3 | 0);
  varint(event, static_cast<u64>(step));
  for (const auto& [tag, v] : values) {
    std::string value;
    text_field(value, 1, tag);
    varint(value, 2 << 3 | 5);
    put<float>(value, static_cast<float>(v));
    text_field(summary, 1, value);
  }
  text_field(event, 5, summary);
  return framed(event);
}

std::string tensorboard_header(double wall_time) {
  std::string event;
  varint(event, 1 << 3 | 1);
  put<double>(event, wall_time);
  text_field(event, 3, "brain.Event:2");
  return framed(event);
}

MetricsLog::MetricsLog(const std::string& workdir, i64 keep_until) {
  const std::string path = join_path(workdir, "metrics.jsonl");
  if (exists(path)) {
    // Lines of steps that will be made again; a line cut by a crash.
    const std::string old = read_file(path, i64{1} << 32);
    std::string kept;
    for (size_t at = 0; at < old.size();) {
      const size_t end = old.find('\n', at);
      if (end == std::string::npos) break;
      const std::string line = old.substr(at, end + 1 - at);
      const auto j = nlohmann::json::parse(line, nullptr, false);
      if (j.is_object() && j.contains("step") && j["step"].is_number() && j["step"].get<i64>() <= keep_until)
        kept += line;
      at = end + 1;
    }
    if (kept.size() != old.size()) write_file_durable(path, kept);
  }
  jsonl_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (jsonl_ < 0) throw IoError("[log] opening {}: {}", path, std::strerror(errno));
  const std::string folder = join_path(workdir, "tensorboard");
  make_dirs(folder);
  const std::string events =
      join_path(folder, fmt::format("events.out.tfevents.{}.{}.redco", static_cast<i64>(now()), getpid()));
  events_ = ::open(events.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (events_ < 0) throw IoError("[log] opening {}: {}", events, std::strerror(errno));
  write_all(events_, tensorboard_header(now()), "TensorBoard events");
}

MetricsLog::~MetricsLog() {
  if (jsonl_ >= 0) ::close(jsonl_);
  if (events_ >= 0) ::close(events_);
}

void MetricsLog::write(i64 step, const std::vector<std::pair<std::string, double>>& values) {
  nlohmann::ordered_json j = {{"step", step}};
  for (const auto& [name, v] : values) {
    if (!std::isfinite(v)) {
      j[name] = nullptr;
    } else if (v == std::floor(v) && std::fabs(v) < 1e15) {
      j[name] = static_cast<i64>(v);
    } else {
      j[name] = v;
    }
  }
  write_all(jsonl_, j.dump() + "\n", "metrics.jsonl");
  write_all(events_, tensorboard_record(now(), step, values), "TensorBoard events");
}

}  // namespace redco
