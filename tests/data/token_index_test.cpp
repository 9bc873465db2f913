#include "data/text/token_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "data/text/lm_windows.h"
#include "support/temp_dir.h"
#include "tokenizers/tokenizer.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;

void spill_gz(const std::string& path, const std::string& bytes) {
  gzFile f = gzopen(path.c_str(), "wb");
  gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(f);
}

template <class F>
std::pair<ExitCode, std::string> failure_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {ExitCode::ok, ""};
}

class TokenIndexTest : public ::testing::Test {
 protected:
  TokenIndexTest() {
    std::string name = std::filesystem::temp_directory_path() / "redco-data-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~TokenIndexTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string cache() const { return folder_ + "/cache"; }
  TokenIndex build(TextFiles text, const Tokenizer& t) const {
    return TokenIndex::open(build_token_index(text, t, cache()));
  }
  static std::vector<i32> all(const TokenIndex& index) {
    std::vector<i32> ids(static_cast<std::size_t>(index.size()));
    index.read(0, ids);
    return ids;
  }

  std::string folder_;
  std::unique_ptr<Tokenizer> bytes_ = load_tokenizer("bytes");
  std::unique_ptr<Tokenizer> gpt2_ = load_tokenizer(std::string(REDCO_FIXTURES) + "/tokenizers/gpt2");
};

std::vector<i32> ids_of(std::string_view text) {
  std::vector<i32> ids;
  for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// LLaMA 2's tokenizer puts <s> before a text, so each document begins with it, as lines of JSONL do.
TEST_F(TokenIndexTest, ADocumentBeginsWithTheTokenThatTheTokenizerAdds) {
  const auto llama = load_tokenizer(std::string(REDCO_FIXTURES) + "/tokenizers/llama2");
  const std::optional<i32> bos = llama->special().bos;
  ASSERT_TRUE(bos);
  EXPECT_EQ(document_bos(*llama), bos);
  EXPECT_EQ(document_bos(*bytes_), std::nullopt);
  spill(file("a.txt"), "one\n\ntwo\n");
  spill(file("b.txt"), "");
  const std::vector<i32> one = llama->encode("one"), two = llama->encode("two");
  EXPECT_EQ(one[0], *bos);
  std::vector<i32> expected = one;
  if (const auto eos = llama->special().eos) expected.push_back(*eos);
  expected.insert(expected.end(), two.begin(), two.end());
  if (const auto eos = llama->special().eos) expected.push_back(*eos);
  EXPECT_EQ(all(build({{file("a.txt"), file("b.txt")}, Documents::line}, *llama)), expected);
  std::erase(expected, *bos);
  EXPECT_EQ(all(build({.paths = {file("a.txt"), file("b.txt")}, .documents = Documents::line, .bos = false},
                      *llama)),
            expected);
}

TEST_F(TokenIndexTest, ADocumentIsAFileAndItsEos) {
  spill(file("a.txt"), "Hello\r\nworld\n");
  spill(file("b.txt"), "");
  spill_gz(file("c.txt.gz"), "more");
  const auto index = build({{file("a.txt"), file("b.txt"), file("c.txt.gz")}}, *bytes_);
  auto expected = ids_of("Hello\nworld\n");
  expected.push_back(256);
  for (i32 id : ids_of("more")) expected.push_back(id);
  expected.push_back(256);
  EXPECT_EQ(all(index), expected);
  EXPECT_EQ(index.n_documents(), 2);  // the empty file doesn't count
  EXPECT_EQ(index.text_bytes(), 16);
  EXPECT_EQ(index.max_id(), 256);
  std::vector<i32> part(3);
  index.read(11, part);
  EXPECT_EQ(part, (std::vector<i32>{'\n', 256, 'm'}));
  index.verify();
}

TEST_F(TokenIndexTest, LinesAndParagraphs) {
  spill(file("a.txt"), "\n\none\r\ntwo\n\n\nthree\nfour");
  const auto lines = build({{file("a.txt")}, Documents::line}, *bytes_);
  EXPECT_EQ(lines.n_documents(), 4);
  EXPECT_EQ(bytes_->decode(all(lines)),
            "one<|endoftext|>two<|endoftext|>three<|endoftext|>four<|endoftext|>");
  const auto paragraphs = build({{file("a.txt")}, Documents::paragraph}, *bytes_);
  EXPECT_EQ(paragraphs.n_documents(), 2);
  EXPECT_EQ(bytes_->decode(all(paragraphs)), "one\ntwo<|endoftext|>three\nfour<|endoftext|>");
}

TEST_F(TokenIndexTest, EncodingsOfTextFiles) {
  using std::string_literals::operator""s;
  int n = 0;
  std::string path;
  for (const Documents documents : {Documents::file, Documents::line, Documents::paragraph})
    for (const auto* tokenizer : {&bytes_, &gpt2_}) {
      const auto ids = [&](const std::string& bytes) {
        path = file(std::to_string(n++) + ".txt");
        spill(path, bytes);
        return all(build({{path}, documents}, **tokenizer));
      };
      const auto plain = ids("Hello\nw\xC3\xB6rld\n");
      EXPECT_EQ(ids("\xEF\xBB\xBFHello\nw\xC3\xB6rld\n"), plain);
      EXPECT_EQ(ids("Hello\r\nw\xC3\xB6rld\r\n"), plain);
      EXPECT_EQ(ids("\xEF\xBB\xBFHello\r\nw\xC3\xB6rld\n"), plain);
      EXPECT_NE(ids("Hello\rw\xC3\xB6rld\n"), plain);  // not a line end
      const auto [code, message] = failure_of([&] { ids("\xFF\xFEH\0i\0"s); });
      EXPECT_EQ(code, ExitCode::contents);
      EXPECT_EQ(message,
                path + ": the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8");
    }
}

// Files are read in parts of 64 KiB and 1 MiB. A character or line end at the border of two parts is kept
// together, and an error gives a bad byte's offset in the file.
TEST_F(TokenIndexTest, LineEndsAndCharactersAtTheBordersOfParts) {
  std::string text, dos;
  for (int k = 0; dos.size() < (5u << 18); ++k) {
    const std::string line = std::string(static_cast<std::size_t>(k % 7), 'x') + "\xE4\xB8\xAD";
    text += line + "\n";
    dos += line + "\r\n";
  }
  spill(file("unix.txt"), text);
  spill(file("dos.txt"), dos);
  for (const Documents documents : {Documents::file, Documents::line})
    for (const auto* t : {&bytes_, &gpt2_}) {
      const auto expected = build({{file("unix.txt")}, documents}, **t);
      const auto index = build({{file("dos.txt")}, documents}, **t);
      EXPECT_EQ(all(index), all(expected));
      if (documents == Documents::file) EXPECT_EQ(index.text_bytes(), expected.text_bytes());
    }
  const std::size_t at = dos.rfind('\xE4');
  dos[at] = 'x';
  spill(file("bad.txt"), "\xEF\xBB\xBF" + dos);
  for (const Documents documents : {Documents::file, Documents::line})
    EXPECT_THAT(failure_of([&] {
                  build({{file("bad.txt")}, documents}, *gpt2_);
                }).second,
                ::testing::HasSubstr(": byte " + std::to_string(at + 4) + " (0xB8) is not UTF-8."));
  spill(file("cut.txt"), text.substr(0, text.size() - 2));
  EXPECT_THAT(failure_of([&] { build({{file("cut.txt")}}, *gpt2_); }).second,
              ::testing::HasSubstr(": byte " + std::to_string(text.size() - 4) + " (0xE4) is not UTF-8."));
}

// The last token of each document is marked, also if it is the last of a piece of 65536 tokens.
TEST_F(TokenIndexTest, LastTokensOfDocumentsAreMarked) {
  std::string text;
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (std::size_t k = 0; at < 140000; ++k) {
    // The first document fills one piece exactly.
    const std::size_t n = k == 0 ? 65535 : 1 + k * 37 % 300;
    text += std::string(n, 'x') + "\n";
    at += n + 1;
    ends.push_back(at - 1);
  }
  spill(file("a.txt"), text);
  const auto index = build({{file("a.txt")}, Documents::line}, *bytes_);
  ASSERT_EQ(index.size(), static_cast<i64>(at));
  std::vector<std::uint8_t> expected(at), all_ends(at);
  for (const std::size_t e : ends) expected[e] = 1;
  std::vector<i32> ids(at);
  index.read(0, ids, all_ends);
  EXPECT_EQ(all_ends, expected);
  for (const i64 begin : {0, 3, 65530, 65535, 65536, 131071}) {
    std::vector<i32> some(13);
    std::vector<std::uint8_t> part(13);
    index.read(begin, some, part);
    EXPECT_EQ(part, std::vector<std::uint8_t>(expected.begin() + begin, expected.begin() + begin + 13))
        << begin;
    EXPECT_EQ(some, std::vector<i32>(ids.begin() + begin, ids.begin() + begin + 13)) << begin;
  }
}

// A text of several blocks has the ids of the whole text.
TEST_F(TokenIndexTest, LongTextsInBlocks) {
  std::string text;
  for (int k = 0; text.size() < (5u << 20) / 2; ++k)
    text += "The " + std::to_string(k * 7919) +
            "th line's end, with caf\xC3\xA9 and \xE4\xB8\xAD\xE6\x96\x87.\n\n  Then";
  spill_gz(file("a.txt"), text);
  const auto index = build({{file("a.txt")}}, *gpt2_);
  auto expected = gpt2_->encode(text, false);
  expected.push_back(511);
  EXPECT_EQ(all(index), expected);
  EXPECT_EQ(index.text_bytes(), static_cast<i64>(text.size()));
}

// Without a place to cut, not even a line break, the text is cut every 16 MiB between two characters.
TEST_F(TokenIndexTest, TextWithoutLineBreaks) {
  std::string text;
  while (text.size() < (17u << 20)) text += "\xE4\xB8\xAD";
  spill(file("a.txt"), text);
  const auto index = build({{file("a.txt")}}, *bytes_);
  ASSERT_EQ(index.size(), static_cast<i64>(text.size()) + 1);
  std::vector<i32> around(6);
  index.read((16 << 20) - 3, around);
  EXPECT_EQ(around, ids_of(text.substr((16 << 20) - 3, 6)));
}

TEST_F(TokenIndexTest, TheCacheIsUsedWhileNothingChanges) {
  spill(file("a.txt"), "some text");
  const TextFiles text{{file("a.txt")}};
  const std::string path = build_token_index(text, *bytes_, cache());
  const auto time = std::filesystem::last_write_time(path);
  EXPECT_EQ(build_token_index(text, *bytes_, cache()), path);
  EXPECT_EQ(std::filesystem::last_write_time(path), time);
  EXPECT_NE(build_token_index(text, *gpt2_, cache()), path);
  EXPECT_NE(build_token_index({{file("a.txt")}, Documents::line}, *bytes_, cache()), path);
  const std::string hash = TokenIndex::open(path).data_hash();

  spill(file("a.txt"), "other text!");
  const std::string other = build_token_index(text, *bytes_, cache());
  EXPECT_NE(other, path);
  EXPECT_NE(TokenIndex::open(other).data_hash(), hash);

  // A damaged index is rebuilt.
  std::string damaged = slurp(other);
  damaged.back() ^= 1;
  spill(other, damaged);
  EXPECT_EQ(failure_of([&] { TokenIndex::open(other).verify(); }).first, ExitCode::contents);
  EXPECT_EQ(build_token_index(text, *bytes_, cache()), other);
  TokenIndex::open(other).verify();
}

TEST_F(TokenIndexTest, OnlyCompleteHeadersAreAccepted) {
  spill(file("a.txt"), "some text");
  const std::string path = build_token_index({{file("a.txt")}}, *bytes_, cache());
  const std::string good = slurp(path);
  for (std::size_t k = 0; k < 112; ++k) {  // any byte of the header
    std::string bad = good;
    bad[k] ^= 0x40;
    spill(path, bad);
    EXPECT_EQ(failure_of([&] { TokenIndex::open(path); }).first, ExitCode::contents) << k;
  }
  for (std::size_t n : {std::size_t{0}, std::size_t{50}, std::size_t{112}, good.size() - 1}) {
    spill(path, good.substr(0, n));
    EXPECT_EQ(failure_of([&] { TokenIndex::open(path); }).first, ExitCode::contents) << n;
  }
  spill(path, good + "xx");
  EXPECT_EQ(failure_of([&] { TokenIndex::open(path); }).first, ExitCode::contents);
  EXPECT_EQ(failure_of([&] { TokenIndex::open(file("none")); }).first, ExitCode::usage);
}

TEST_F(TokenIndexTest, ReadDetectsIdsOutOfRange) {
  spill(file("a.txt"), "aaaa");
  const std::string path = build_token_index({{file("a.txt")}}, *bytes_, cache());
  std::string bad = slurp(path);
  bad[112 + 3] = 0x7F;  // the second token's upper byte
  spill(path, bad);
  const auto index = TokenIndex::open(path);
  std::vector<i32> ids(2);
  EXPECT_EQ(failure_of([&] { index.read(0, ids); }).first, ExitCode::contents);
}

TEST_F(TokenIndexTest, UnigramEntropy) {
  spill(file("a.txt"), "aabb");  // with the eos token: frequencies 2, 2, 1 of 5
  const auto index = build({{file("a.txt")}}, *bytes_);
  const double expected = -(0.8 * std::log(0.4) + 0.2 * std::log(0.2));
  EXPECT_NEAR(index.unigram_entropy(), expected, 1e-14);
}

TEST_F(TokenIndexTest, BadInput) {
  using ::testing::HasSubstr;
  auto fails = [&](TextFiles text, const Tokenizer& t) { return failure_of([&] { build(text, t); }); };
  EXPECT_EQ(fails({}, *bytes_).first, ExitCode::usage);
  auto [code, message] = fails({{file("none.txt")}}, *bytes_);
  EXPECT_EQ(code, ExitCode::usage);
  EXPECT_THAT(message, HasSubstr("none.txt"));
  EXPECT_EQ(fails({{folder_}}, *bytes_).first, ExitCode::usage);

  spill(file("empty.txt"), "");
  std::tie(code, message) = fails({{file("empty.txt")}}, *bytes_);
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("empty.txt"));

  spill_gz(file("good.gz"), std::string(100000, 'x') + "y");
  std::string cut = slurp(file("good.gz"));
  spill(file("cut.gz"), cut.substr(0, cut.size() - 9));
  EXPECT_EQ(fails({{file("cut.gz")}}, *bytes_).first, ExitCode::contents);
  spill(file("plain.gz"), "no gzip at all");
  EXPECT_EQ(fails({{file("plain.gz")}}, *bytes_).first, ExitCode::contents);

  spill(file("latin.txt"), "caf\xE9 au lait");
  std::tie(code, message) = fails({{file("latin.txt")}}, *gpt2_);
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("byte 3 (0xE9)"));
  EXPECT_EQ(build({{file("latin.txt")}}, *bytes_).size(), 13);  // any bytes are valid here
  // No temporary file remains.
  for (const auto& e : std::filesystem::directory_iterator(cache()))
    EXPECT_EQ(e.path().extension(), ".tokens") << e.path();
}

TEST_F(TokenIndexTest, AVocabularyLargerThanTheModelIsAnError) {
  spill(file("a.txt"), "text");
  const auto index = build({{file("a.txt")}}, *bytes_);
  index.check_vocab(257);
  auto [code, message] = failure_of([&] { index.check_vocab(256); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, ::testing::HasSubstr("does not fit the model"));
  check_vocab(*gpt2_, 512);
  EXPECT_EQ(failure_of([&] { check_vocab(*gpt2_, 511); }).first, ExitCode::contents);
}

TEST_F(TokenIndexTest, EveryTokenButTheFirstIsATargetOnce) {
  for (int n : {1, 2, 7, 8, 9, 63}) {  // tokens besides the eos token
    std::string text;
    for (int k = 0; k < n; ++k) text += static_cast<char>('0' + k);
    spill(file("a.txt"), text);
    const auto index = build({{file("a.txt")}}, *bytes_);
    const auto tokens = all(index);
    for (i64 length : {1, 2, 8, 100}) {
      const LmWindows windows(index, length);
      EXPECT_EQ(windows.size(), (n + length - 1) / length);
      std::vector<i32> targets;
      i64 sum = 0;
      for (i64 w = 0; w < windows.size(); ++w) {
        const auto window = windows.read(w);
        ASSERT_EQ(static_cast<i64>(window.size()), windows.length(w));
        ASSERT_GE(window.size(), 2u);
        ASSERT_LE(windows.length(w), length + 1);
        EXPECT_EQ(window[0], tokens[targets.size()]);  // overlap by one
        targets.insert(targets.end(), window.begin() + 1, window.end());
        sum += windows.n_targets(w);
      }
      EXPECT_EQ(targets, std::vector<i32>(tokens.begin() + 1, tokens.end()));
      EXPECT_EQ(sum, windows.n_targets());
    }
  }
}

TEST_F(TokenIndexTest, TooFewTokens) {
  spill(file("a.txt"), "a");
  const auto qwen_like = load_tokenizer(std::string(REDCO_FIXTURES) + "/tokenizers/gpt2");
  const auto two = build({{file("a.txt")}}, *qwen_like);  // a and the eos token: one target
  EXPECT_EQ(LmWindows(two, 5).size(), 1);
  EXPECT_EQ(failure_of([&] { LmWindows(two, 0); }).first, ExitCode::usage);
  // A tokenizer without an eos token and one token of text.
  std::filesystem::copy(std::string(REDCO_FIXTURES) + "/tokenizers/gpt2/tokenizer.json",
                        file("tokenizer.json"));
  const auto no_eos = load_tokenizer(file("tokenizer.json"));
  const auto one = build({{file("a.txt")}}, *no_eos);
  ASSERT_EQ(one.size(), 1);
  EXPECT_EQ(failure_of([&] { LmWindows(one, 5); }).first, ExitCode::contents);
}

}  // namespace
}  // namespace redco
