// Tokenizer training: results don't depend on the number of threads, the files load, decoding restores the
// text, and invalid input is an error.
#include "tokenizers/train/train_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "support/tokenizers.h"

namespace redco {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Model = TokenizerTraining::Model;

class TrainTokenizer : public testing::Test {
 protected:
  test::TempDir folder_;
  const std::string words_ = std::string(REDCO_FIXTURES) + "/tokenizer-train/words.txt";

  TokenizerTraining options(Model model, const std::string& name = "out") const {
    TokenizerTraining o;
    o.files = {words_};
    o.output = folder_ / name;
    o.model = model;
    o.vocab_size = 500;
    return o;
  }
  std::string trained(const TokenizerTraining& o) const {
    train_tokenizer(o);
    return test::slurp(o.output + "/tokenizer.json") + test::slurp(o.output + "/tokenizer_config.json");
  }
  std::string file(const std::string& name, const std::string& bytes) const {
    test::spill(folder_ / name, bytes);
    return folder_ / name;
  }
  std::string gzip(const std::string& name, const std::string& bytes) const {
    gzFile f = gzopen((folder_ / name).c_str(), "wb");
    EXPECT_EQ(gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
    gzclose(f);
    return folder_ / name;
  }
  void expect_error(TokenizerTraining o, ExitCode expected, const std::string& part) const {
    const auto [code, message] = test::failure_of([&] { train_tokenizer(o); });
    EXPECT_EQ(code, expected) << part;
    EXPECT_THAT(message, HasSubstr(part));
  }
};

TEST_F(TrainTokenizer, TheSameBytesFromAnyNumberOfThreads) {
  // Several blocks of 1 MiB with the same words, so that all threads have work.
  const std::string once = test::slurp(words_);
  std::string text;
  while (text.size() < (std::size_t{3} << 19)) text += once;
  const std::string big = file("big.txt", text);
  for (Model model : {Model::bpe, Model::unigram}) {
    TokenizerTraining o = options(model);
    o.files = {big, words_};
    o.threads = 1;
    const std::string one = trained(o);
    for (int threads : {2, 5}) {
      o.threads = threads;
      EXPECT_TRUE(trained(o) == one) << threads;
    }
    std::swap(o.files[0], o.files[1]);
    EXPECT_TRUE(trained(o) == one);
  }
}

TEST_F(TrainTokenizer, PlainGzipAndJsonLines) {
  const std::string text = test::slurp(words_);
  TokenizerTraining o = options(Model::bpe);
  const std::string expected = trained(o);
  o.files = {gzip("words.txt.gz", text)};
  EXPECT_EQ(trained(o), expected);
  // One JSON line per line of text, including its line break.
  std::string lines = "\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines += json{{"id", at}, {"text", text.substr(at, end - at)}, {"more", {{"text", 1}}}}.dump() + "\r\n";
    at = end;
  }
  o.files = {file("words.jsonl", lines)};
  EXPECT_EQ(trained(o), expected);
  o.files = {gzip("words.jsonl.gz", lines)};
  EXPECT_EQ(trained(o), expected);
}

// Lines that are longer than a block are split between words.
TEST_F(TrainTokenizer, LongLines) {
  std::string words = test::slurp(words_);
  std::replace(words.begin(), words.end(), '\n', ' ');
  std::string line;
  while (line.size() < (std::size_t{5} << 18)) line += words;
  TokenizerTraining o = options(Model::bpe);
  o.files = {file("long.txt", line)};
  const std::string expected = trained(o);
  o.files = {file("long.jsonl", json{{"text", line}}.dump())};
  EXPECT_EQ(trained(o), expected);
}

TEST_F(TrainTokenizer, DecodingRestoresAnyText) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "  two  spaces ",
                                          "\n\n tab\tand\r\nlines\n",
                                          "日本語 Ελληνικά 🙂🏳️‍🌈 \u0301",
                                          "<0x0A> <unk",
                                          "a\nb",
                                          "x=[1,2]",
                                          "don't WE'LL",
                                          "nul\0nul",
                                          "never seen: \u4e01\u4e02\U0001F9FF",
                                          "0"};
  for (Model model : {Model::bpe, Model::unigram}) {
    TokenizerTraining o = options(model);
    // The names of byte tokens and special tokens in a text are plain text.
    std::string names;
    for (int k = 0; k < 50; ++k) names += "<0x0A> <unk> \n<|endoftext|> ";
    o.files.push_back(file("names.txt", names));
    train_tokenizer(o);
    const auto t = load_tokenizer(o.output);
    for (const std::string& text : texts) {
      EXPECT_EQ(t->decode(t->encode(text)), text);
      EXPECT_EQ(t->decode(t->encode(text + "<|endoftext|>" + text), true), text + text);
    }
  }
}

TEST_F(TrainTokenizer, SpecialTokensComeFirstAndHaveRoles) {
  TokenizerTraining o = options(Model::bpe);
  auto t = (train_tokenizer(o), load_tokenizer(o.output));
  EXPECT_EQ(t->special().eos, 0);
  EXPECT_EQ(t->special().bos, 0);
  o.special = {"<pad>", "<s>", "</s>", "<|im_start|>"};
  t = (train_tokenizer(o), load_tokenizer(o.output));
  EXPECT_EQ(t->special().pad, 0);
  EXPECT_EQ(t->special().bos, 1);
  EXPECT_EQ(t->special().eos, 2);
  EXPECT_EQ(t->special().unk, std::nullopt);
  EXPECT_TRUE(t->is_special(3));
  EXPECT_EQ(t->encode("<|im_start|>").front(), 3);
  o.model = Model::unigram;
  t = (train_tokenizer(o), load_tokenizer(o.output));
  EXPECT_EQ(t->special().unk, 0);
  EXPECT_EQ(t->special().pad, 1);
  o.special = {};
  o.model = Model::bpe;
  t = (train_tokenizer(o), load_tokenizer(o.output));
  EXPECT_EQ(t->special().eos, std::nullopt);
}

TEST_F(TrainTokenizer, BertTemplateForTextsAndPairs) {
  for (const Model model : {Model::bpe, Model::unigram}) {
    TokenizerTraining o = options(model);
    o.special = {"[PAD]", "[CLS]", "[SEP]"};
    const auto t = (train_tokenizer(o), load_tokenizer(o.output));
    const i32 cls = *t->special().cls, sep = *t->special().sep;
    std::vector<i32> one = t->encode("word", false), expected = one;
    expected.insert(expected.begin(), cls);
    expected.push_back(sep);
    EXPECT_EQ(t->encode("word"), expected);
    const auto n = static_cast<std::ptrdiff_t>(expected.size());
    expected.insert(expected.end(), one.begin(), one.end());
    expected.push_back(sep);
    const Encoding pair = t->encode_pair("word", "word");
    EXPECT_EQ(pair.ids, expected);
    EXPECT_EQ(std::count(pair.type_ids.begin(), pair.type_ids.begin() + n, 0), n);
    EXPECT_EQ(std::count(pair.type_ids.begin() + n, pair.type_ids.end(), 1), n - 1);
  }
}

TEST_F(TrainTokenizer, FewerTokensThanRequested) {
  TokenizerTraining o = options(Model::bpe);
  o.files = {file("tiny.txt", "ab ab ab\n")};
  EXPECT_EQ(train_tokenizer(o).vocab_size, 1 + 256 + 2);  // "ab", " ab"
  o.model = Model::unigram;
  EXPECT_LT(train_tokenizer(o).vocab_size, 500);
}

TEST_F(TrainTokenizer, InvalidOptions) {
  TokenizerTraining o = options(Model::bpe);
  o.vocab_size = 256;
  expect_error(o, ExitCode::usage, "at least 257");
  o.vocab_size = 0;
  expect_error(o, ExitCode::usage, "--vocab-size is 0");
  o.vocab_size = i64{1} << 40;
  expect_error(o, ExitCode::usage, "--vocab-size");
  o = options(Model::unigram);
  o.vocab_size = 257;
  expect_error(o, ExitCode::usage, "--no-byte-fallback");
  o.vocab_size = 280;
  o.min_frequency = 1;
  expect_error(o, ExitCode::usage, "Raise --vocab-size by at least");
  for (const auto& special : std::vector<std::vector<std::string>>{{"<a>", "<a>"}, {""}, {"\xFF"}}) {
    o = options(Model::bpe);
    o.special = special;
    expect_error(o, ExitCode::usage, "special token");
  }
  o = options(Model::bpe);
  o.split = "gpt5";
  expect_error(o, ExitCode::usage, "gpt2, llama3 or qwen");
  o = options(Model::bpe);
  o.min_frequency = 0;
  expect_error(o, ExitCode::usage, "--min-frequency");
}

TEST_F(TrainTokenizer, InvalidFiles) {
  TokenizerTraining o = options(Model::bpe);
  o.files = {folder_ / "none.txt"};
  expect_error(o, ExitCode::usage, "none.txt");
  o.files = {folder_.path()};
  expect_error(o, ExitCode::usage, "folder");
  o.files = {file("empty.txt", "")};
  expect_error(o, ExitCode::contents, "no text in");
  o.files = {file("empty.jsonl", "{\"text\": \"\"}\n")};
  expect_error(o, ExitCode::contents, "no text in");
  // An error in the second file, after more than one block of valid text.
  const std::string good(std::size_t{3} << 20, 'x');
  o.files = {words_, file("latin.txt", "line\n" + good + "\nna\xEFve\n")};
  o.threads = 2;
  expect_error(o, ExitCode::contents, fmt::format("latin.txt: byte {} (0xEF)", 5 + good.size() + 3));
  const std::string line = "{\"text\": \"a\"}\n";
  o.files = {file("a.jsonl", line + line + "not json\n" + line)};
  expect_error(o, ExitCode::contents, "a.jsonl:3: not a JSON object");
  o.files = {file("b.jsonl", line + "\n[1]\n")};
  expect_error(o, ExitCode::contents, "b.jsonl:3: not a JSON object");
  o.files = {file("c.jsonl", line + "{\"txt\": \"a\"}\n")};
  expect_error(o, ExitCode::contents, "c.jsonl:2: the field \"text\" is missing");
  o.files = {file("d.jsonl", "{\"text\": 7}\n")};
  expect_error(o, ExitCode::contents, "d.jsonl:1: \"text\" is of type number");
  EXPECT_FALSE(std::filesystem::exists(o.output + "/tokenizer.json"));
  o = options(Model::bpe);
  o.output = words_ + "/x";
  EXPECT_NE(test::failure_of([&] { train_tokenizer(o); }).first, ExitCode::ok);
}

}  // namespace
}  // namespace redco
