// metrics.jsonl and TensorBoard's files as their readers see them: decoded here by a small protobuf reader
// and a separate bitwise CRC.
#include "train/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/temp_dir.h"

namespace redco::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// CRC with Castagnoli's polynomial, bit by bit, and TensorFlow's mask.
std::uint32_t masked_crc(const std::string& s) {
  std::uint32_t crc = ~0u;
  for (const unsigned char c : s) {
    crc ^= c;
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
T number_at(const std::string& s, std::size_t at) {
  T v{};
  std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}

// The records of a file; checks every length and checksum.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at < file.size()) {
    EXPECT_LE(at + 12, file.size());
    const auto n = number_at<std::uint64_t>(file, at);
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 8), masked_crc(file.substr(at, 8)));
    if (at + 16 + n > file.size()) {
      ADD_FAILURE() << "a record of " << n << " bytes";
      break;
    }
    out.push_back(file.substr(at + 12, n));
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 12 + n), masked_crc(out.back()));
    at += 16 + n;
  }
  return out;
}

struct Field {
  int number;
  std::uint64_t value = 0;  // varint, or the bits of a fixed one
  std::string bytes;
};
std::vector<Field> fields(const std::string& message) {
  std::vector<Field> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t v = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const unsigned char c = message[at++];
      v |= static_cast<std::uint64_t>(c & 0x7F) << shift;
      if (c < 0x80) break;
    }
    return v;
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint();
    Field f{static_cast<int>(tag >> 3)};
    switch (tag & 7) {
      case 0:
        f.value = varint();
        break;
      case 1:
        f.value = number_at<std::uint64_t>(message, at);
        at += 8;
        break;
      case 2: {
        const auto n = varint();
        f.bytes = message.substr(at, n);
        at += n;
        break;
      }
      case 5:
        f.value = number_at<std::uint32_t>(message, at);
        at += 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return out;
    }
    out.push_back(f);
  }
  return out;
}
const Field* find(const std::vector<Field>& all, int number) {
  for (const Field& f : all)
    if (f.number == number) return &f;
  return nullptr;
}
std::string bytes_of(const std::vector<Field>& all, int number) {
  const Field* f = find(all, number);
  return f ? f->bytes : "";
}

struct Scalar {
  std::int64_t step;
  std::string tag;
  float value;
  bool operator==(const Scalar&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  return out << s.step << " " << s.tag << " " << s.value;
}

// What TensorBoard shows for a folder: the scalars of all files in the order of their names, without those
// that a later process repeats.
std::vector<Scalar> shown(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(folder)) files.push_back(f.path());
  std::sort(files.begin(), files.end());
  std::vector<Scalar> out;
  for (const std::string& file : files) {
    const auto all = records(slurp(file));
    EXPECT_GE(all.size(), 2u);
    EXPECT_EQ(bytes_of(fields(all[0]), 3), "brain.Event:2");
    for (const std::string& r : all) {
      const auto event = fields(r);
      EXPECT_GT(number_at<double>(std::string(reinterpret_cast<const char*>(&find(event, 1)->value), 8), 0),
                1e9);
      const std::int64_t step = find(event, 2) ? static_cast<std::int64_t>(find(event, 2)->value) : 0;
      if (const Field* session = find(event, 7)) {
        EXPECT_EQ(find(fields(session->bytes), 1)->value, 1u);  // START
        std::erase_if(out, [&](const Scalar& s) { return s.step >= step; });
      }
      if (const Field* summary = find(event, 5))
        for (const Field& v : fields(summary->bytes)) {
          const auto value = fields(v.bytes);
          const Field* simple = find(value, 2);
          if (!simple) continue;
          const auto bits = static_cast<std::uint32_t>(simple->value);
          float x = 0;
          std::memcpy(&x, &bits, 4);
          out.push_back({step, bytes_of(value, 1), x});
        }
    }
  }
  return out;
}

std::vector<json> lines(const std::string& path) {
  std::vector<json> out;
  std::istringstream in(slurp(path));
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

TEST(MetricsLog, BothFilesHaveTheSameNumbers) {
  TempDir dir(TempDir::in_memory);
  {
    MetricsLog log(dir.path(), 0);
    log.write(5, {{"loss", 2.5}, {"grad_norm", NAN}, {"tokens", 12000}});
    log.write(1LL << 40, {{"loss", -1e-3}});
  }
  const auto m = lines(dir / "metrics.jsonl");
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0]["step"], 5);
  EXPECT_EQ(m[0]["loss"], 2.5);
  EXPECT_TRUE(m[0]["grad_norm"].is_null());
  EXPECT_TRUE(m[0]["tokens"].is_number_integer());
  EXPECT_GT(m[0]["time"].get<double>(), 1e9);
  const auto s = shown(dir / "tensorboard");
  ASSERT_EQ(s.size(), 4u);
  EXPECT_EQ(s[0], (Scalar{5, "loss", 2.5f}));
  EXPECT_TRUE(std::isnan(s[1].value));
  EXPECT_EQ(s[2], (Scalar{5, "tokens", 12000.f}));
  EXPECT_EQ(s[3], (Scalar{1LL << 40, "loss", -1e-3f}));
}

// Resumed after step 20, twice, within the same second: every step is there once, in order.
// HistogramProto: min 1, max 2, num 3, sum 4, sum_squares 5, bucket_limit 6, bucket 7.
TEST(TensorBoard, HistogramsCountTheFiniteNumbers) {
  const std::string record = tensorboard_histogram(1, 7, "w", {0, 1, 1, 3, NAN});
  const auto value = fields(fields(bytes_of(fields(records(record)[0]), 5))[0].bytes);
  EXPECT_EQ(bytes_of(value, 1), "w");
  const auto histogram = fields(bytes_of(value, 5));
  const auto number = [&](int field) {
    double x = 0;
    std::memcpy(&x, &find(histogram, field)->value, 8);
    return x;
  };
  EXPECT_EQ(number(1), 0);
  EXPECT_EQ(number(2), 3);
  EXPECT_EQ(number(3), 4);
  EXPECT_EQ(number(4), 5);
  EXPECT_EQ(number(5), 11);
  const std::string limits = bytes_of(histogram, 6), counts = bytes_of(histogram, 7);
  ASSERT_EQ(limits.size(), 240u);
  ASSERT_EQ(counts.size(), 240u);
  EXPECT_EQ(number_at<double>(limits, 29 * 8), 3);
  double total = 0;
  for (std::size_t i = 0; i < 30; ++i) total += number_at<double>(counts, i * 8);
  EXPECT_EQ(total, 4);
  EXPECT_EQ(number_at<double>(counts, 0), 1);
  EXPECT_EQ(number_at<double>(counts, 29 * 8), 1);
}

TEST(MetricsLog, AResumedRunWritesEachStepOnce) {
  TempDir dir(TempDir::in_memory);
  for (int part = 0; part < 3; ++part) {
    MetricsLog log(dir.path(), part == 0 ? 0 : 20);
    for (i64 step = part == 0 ? 10 : 30; step <= 40; step += 10)
      log.write(step, {{"loss", static_cast<double>(step) + part * 0.25}});
  }
  std::vector<double> in_lines;
  for (const auto& j : lines(dir / "metrics.jsonl")) in_lines.push_back(j["loss"]);
  EXPECT_THAT(in_lines, ElementsAre(10, 20, 30.5, 40.5));
  EXPECT_THAT(shown(dir / "tensorboard"), ElementsAre(Scalar{10, "loss", 10}, Scalar{20, "loss", 20},
                                                      Scalar{30, "loss", 30.5}, Scalar{40, "loss", 40.5}));
}

TEST(MetricsLog, AnIncompleteLastLineIsRemoved) {
  TempDir dir(TempDir::in_memory);
  const std::string whole = "{\"step\":10,\"loss\":1}\n{\"step\":10,\"eval_loss\":2}\n";
  for (const std::string tail :
       {"{\"step\":20,\"lo", "{\"step\":2", "\n{\"step\":30}\n{\"st", "{\"step\":30}\n"}) {
    spill(dir / "metrics.jsonl", whole + tail);
    { MetricsLog log(dir.path(), 10); }
    EXPECT_THAT(slurp(dir / "metrics.jsonl"), ::testing::StartsWith(whole));
    EXPECT_LE(slurp(dir / "metrics.jsonl").size(), whole.size() + 1) << tail;
  }
  // Long files are read in pieces.
  std::string long_one;
  for (int i = 1; i <= 60000; ++i) long_one += "{\"step\":" + std::to_string(i) + ",\"loss\":0.123456}\n";
  spill(dir / "metrics.jsonl", long_one);
  { MetricsLog log(dir.path(), 50000); }
  EXPECT_EQ(slurp(dir / "metrics.jsonl"), long_one.substr(0, long_one.find("{\"step\":50001,")));
}

// Less is better for a loss, more for an accuracy; what has no direction has no best.
TEST(MetricsLog, KeepsTheBestOfEachEvaluationMetric) {
  TempDir dir(TempDir::in_memory);
  const auto best = [&](const std::string& name) { return ckpt::read_best_metrics(dir.path()).at(name); };
  {
    MetricsLog log(dir.path(), 0);
    EXPECT_TRUE(ckpt::read_best_metrics(dir.path()).empty());
    log.write(10, {{"loss", 1}, {"eval_loss", 3}, {"eval_accuracy", 0.5}, {"eval_length", 7}});
    log.write(20, {{"loss", 1}, {"eval_loss", 2}, {"eval_accuracy", 0.25}, {"eval_length", 7}});
    log.write(30, {{"eval_loss", 1}, {"eval_accuracy", NAN}});
    log.write(40, {{"eval_loss", 1}, {"eval_accuracy", 0.5}});
  }
  EXPECT_EQ(ckpt::read_best_metrics(dir.path()).size(), 2u);
  EXPECT_EQ(best("eval_loss").value, 1);
  EXPECT_EQ(best("eval_loss").step, 30);
  EXPECT_EQ(best("eval_accuracy").step, 10);
  // A run that resumes at step 20 forgets what it will make again.
  { MetricsLog log(dir.path(), 20); }
  EXPECT_EQ(best("eval_loss").value, 2);
  EXPECT_EQ(best("eval_loss").step, 20);
  EXPECT_EQ(best("eval_accuracy").value, 0.5);
}

// The text plugin's tensor: strings of shape [rows, columns], shown verbatim.
TEST(TensorBoard, TextsAreATable) {
  const auto all = records(
      tensorboard_text(1.5e9, 7, "eval_outputs", {{"prompt", "prediction"}, {"<b>\n*x*", "bad \xff byte"}}));
  ASSERT_EQ(all.size(), 1u);
  const auto event = fields(all[0]);
  EXPECT_EQ(find(event, 2)->value, 7u);
  const auto value = fields(bytes_of(fields(bytes_of(event, 5)), 1));
  EXPECT_EQ(bytes_of(value, 1), "eval_outputs");
  const auto metadata = fields(bytes_of(value, 9));
  EXPECT_EQ(bytes_of(fields(bytes_of(metadata, 1)), 1), "text");
  EXPECT_EQ(find(metadata, 4)->value, 2u);  // DATA_CLASS_TENSOR
  const auto tensor = fields(bytes_of(value, 8));
  EXPECT_EQ(find(tensor, 1)->value, 7u);  // DT_STRING
  std::vector<std::uint64_t> shape;
  for (const Field& dim : fields(bytes_of(tensor, 2))) shape.push_back(find(fields(dim.bytes), 1)->value);
  EXPECT_THAT(shape, ElementsAre(2, 2));
  std::vector<std::string> cells;
  for (const Field& f : tensor)
    if (f.number == 8) cells.push_back(f.bytes);
  EXPECT_THAT(cells, ElementsAre("prompt", "prediction", "    <b>\n    *x*", "    bad ..."));
}

}  // namespace
}  // namespace redco::test
