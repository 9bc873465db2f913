#include "ckpt/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest example() {
  Manifest m;
  m.step = 20;
  m.run = {std::string(32, '1'), {{"", 5}, {std::string(32, '2'), 7}}};
  m.versions = {{"rng", 1}, {"shuffle", 2}};
  m.files = {{"config.json", 3, {std::string(32, 'a')}},
             {"training/s \"x\".json", 0, {std::string(32, '0')}}};
  return m;
}

std::string refusal(const std::string& text) {
  try {
    parse_manifest(text, "M");
  } catch (const ContentsError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 2), "M:");
    return e.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, RoundTrips) {
  EXPECT_EQ(parse_manifest(to_json(example()), "M"), example());
  EXPECT_EQ(parse_manifest(to_json(Manifest{}), "M"), Manifest{});
}

TEST(Manifest, HashesEqualXxhsum) {
  TempDir dir;
  spill(dir / "x", "abc");  // printf abc | xxhsum -H2
  EXPECT_EQ(record_file(dir.path(), "x"), (FileRecord{"x", 3, {"06b05ab6733a618578af5f94892f3950"}}));
  spill(dir / "empty", "");
  EXPECT_THAT(record_file(dir.path(), "empty").xxh3, ElementsAre("99aa06d3014798d86001c324468d497f"));
  // In chunks: the hashes of the pieces.
  spill(dir / "ab", "ab");
  spill(dir / "c", "c");
  EXPECT_THAT(record_file(dir.path(), "x", 2).xxh3,
              ElementsAre(record_file(dir.path(), "ab").xxh3[0], record_file(dir.path(), "c").xxh3[0]));
  EXPECT_EQ(record_file(dir.path(), "ab", 2).xxh3.size(), 1u);
}

// As redco wrote it before format 2.
TEST(Manifest, Format1IsRead) {
  const std::string hash(32, 'a');
  const Manifest m = parse_manifest(
      "{\"format_version\": 1, \"step\": 20, \"versions\": {\"rng\": 1}, \"files\": [{\"path\": \"a\", "
      "\"size\": "
      "100000000, \"xxh3\": \"" +
          hash + "\"}]}",
      "M");
  EXPECT_EQ(m.step, 20);
  ASSERT_EQ(m.files.size(), 1u);
  EXPECT_EQ(m.chunks_of(m.files[0]), 1);
  EXPECT_EQ(m.chunk(m.files[0], 0).end, 100'000'000);
  EXPECT_THAT(m.files[0].xxh3, ElementsAre(hash));
}

TEST(Manifest, EveryWrongFieldIsAnError) {
  std::string good = to_json(example());
  EXPECT_THAT(refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal(good.substr(0, good.size() / 2)), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20", "\"step\": -20")), HasSubstr("step is -20"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20", "\"step\": 20.5")), HasSubstr("step is 20.5"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20", "\"step\": 9223372036854775808")), HasSubstr("step is"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20,", "")), HasSubstr("step is missing"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20", "\"step\": 20, \"step\": 20")),
              HasSubstr("appears twice"));
  EXPECT_THAT(refusal(replaced(good, "\"step\": 20", "\"stop\": 1, \"step\": 20")),
              HasSubstr("unknown key stop"));
  for (const char* version : {"0", "3"})
    EXPECT_THAT(
        refusal(replaced(good, "\"format_version\": 2", std::string("\"format_version\": ") + version)),
        HasSubstr("Use the version"));
  EXPECT_THAT(refusal(replaced(good, "\"chunk_bytes\": 67108864", "\"chunk_bytes\": 0")),
              HasSubstr("chunk_bytes is 0"));
  EXPECT_THAT(refusal(replaced(good, "\"chunk_bytes\": 67108864", "\"chunk_bytes\": 2")),
              HasSubstr("has 1 hashes, expected 2"));
  EXPECT_THAT(refusal(replaced(good, "\"rng\":1", "\"rng\":\"1\"")), HasSubstr("rng is"));
  EXPECT_THAT(refusal(replaced(good, "\"size\": 3", "\"size\": -3")), HasSubstr("size is -3"));
  EXPECT_THAT(refusal(replaced(good, "\"size\": 3", "\"size\": 3, \"x\": 1")), HasSubstr("unknown key x"));
  EXPECT_THAT(refusal(replaced(good, std::string(32, 'a'), std::string(31, 'a'))),
              HasSubstr("32 hexadecimal"));
  EXPECT_THAT(refusal(replaced(good, std::string(32, 'a'), std::string(32, 'A'))),
              HasSubstr("32 hexadecimal"));
  EXPECT_THAT(refusal(replaced(good, "training/s \\\"x\\\".json", "config.json")), HasSubstr("listed twice"));
  for (const char* path : {"", "/etc/passwd", "../x", "a/../x", "a//b", "a/", "./a", "a\\u0000b"})
    EXPECT_THAT(refusal(replaced(good, "config.json", path)), HasSubstr("path inside")) << path;
}

TEST(Manifest, MissingAndDamagedBytesAreNamed) {
  TempDir dir;
  make_dirs(dir / "training");
  spill(dir / "a", "12345");
  spill(dir / "training/b", "xyz");
  Manifest m;
  m.chunk_bytes = 2;
  m.files = {record_file(dir.path(), "a", 2), record_file(dir.path(), "training/b", 2)};
  spill(dir / "unlisted", "");
  const auto check_all = [&] {
    for (const FileRecord& f : m.files)
      for (i64 i = 0; i < m.chunks_of(f); ++i) check_chunk(dir.path(), m, f, i);
  };
  EXPECT_EQ(missing_bytes(dir.path(), m), std::nullopt);
  EXPECT_NO_THROW(check_all());
  spill(dir / "a", "12x45");
  EXPECT_EQ(missing_bytes(dir.path(), m), std::nullopt);
  EXPECT_THAT(error_text<ContentsError>(check_all), HasSubstr("/a: damaged contents: bytes 2 to 4 have"));
  spill(dir / "a", "1234");
  EXPECT_EQ(missing_bytes(dir.path(), m), "a has 4 bytes, the manifest says 5");
  // A crash can't cause either, so these are errors, even if other files are missing.
  remove_file(dir / "a");
  EXPECT_EQ(missing_bytes(dir.path(), m), "a is missing");
  spill(dir / "training/b", "xyz1");
  EXPECT_THAT(error_text<ContentsError>([&] { missing_bytes(dir.path(), m); }),
              HasSubstr("b: the file has 4 bytes"));
  spill(dir / "training/b", "xyz");
  make_dirs(dir / "a");
  EXPECT_THAT(error_text<ContentsError>([&] { missing_bytes(dir.path(), m); }), HasSubstr("/a: not a plain"));
}

TEST(Manifest, ChangedBytesNeverCrash) {
  std::mt19937 gen(2);
  std::string good = to_json(example());
  auto stop = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  int tries = 0, refused = 0;
  for (int i = 0; i < 20'000 && std::chrono::steady_clock::now() < stop; ++i) {
    std::string text = good;
    for (u32 k = 1 + gen() % 3; k > 0; --k) {
      size_t at = gen() % text.size();
      if (gen() % 2) {
        text[at] = static_cast<char>(gen());
      } else {
        text.erase(at, 1 + gen() % 5);
      }
    }
    ++tries;
    refused += refusal(text) != "accepted";
  }
  EXPECT_GT(2 * refused, tries);
}

}  // namespace
}  // namespace redco::ckpt
