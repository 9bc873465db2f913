// Text pairs: tables and parallel files, tokens of a pair, and every kind of bad pair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "data/builtin/builtin.h"
#include "data/labelled/table_reader.h"
#include "data/text/example_index.h"
#include "data/text/pair_lines.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using test::spill;

const std::string kPairFixtures = REDCO_FIXTURES;
using Texts = std::vector<std::pair<std::string, std::string>>;

class Pairs : public ::testing::Test {
 protected:
  Pairs() { settings_.max_source_length = settings_.max_target_length = 64; }
  std::string file(const std::string& name, const std::string& text) {
    spill(dir_ / name, text);
    return dir_ / name;
  }
  ExampleIndex build(const std::vector<std::string>& files, bool skip_bad = false) {
    PairSettings s = settings_;
    DataSettings d;
    d.format = format_;
    s.format = pair_format(d, files);
    const PairLines lines(*bytes_, s);
    return ExampleIndex::open(
        build_example_index({.paths = files,
                             .fingerprint = lines.fingerprint(),
                             .open = [&] { return open_pairs(files, lines.settings()); },
                             .read = [&](const ExampleRecord& r) { return lines.read(r); },
                             .skip_bad = skip_bad,
                             .references = true},
                            lines.vocab_size(), dir_ / "cache"),
        files);
  }
  Texts texts(const std::vector<std::string>& files, bool skip_bad = false) {
    const ExampleIndex index = build(files, skip_bad);
    Texts out;
    for (i64 i = 0; i < index.size(); ++i) {
      const ExampleEntry entry = index.entry(i);
      const StoredExample e = index.read(entry);
      const auto middle = e.ids.begin() + e.prompt_tokens;
      EXPECT_EQ(entry.first_target, e.prompt_tokens);
      EXPECT_EQ(entry.targets, e.ids.end() - middle);
      EXPECT_EQ(e.ids.back(), 256);  // the end token
      out.emplace_back(std::string(e.ids.begin(), middle), std::string(middle, e.ids.end() - 1));
      EXPECT_EQ(out.back().second, e.reference);
    }
    return out;
  }
  std::string refused(const std::string& name, const std::string& text) {
    return error_text<Error>([&] { build({file(name, text)}); });
  }

  test::TempDir dir_{test::TempDir::in_memory};
  std::unique_ptr<Tokenizer> bytes_ = load_tokenizer("bytes");
  PairSettings settings_;
  std::optional<std::string> format_;
};

const Texts kTwo = {{"one two", "eins zwei"}, {"a \"b\", c", "x"}};

TEST_F(Pairs, AllFormatsGiveTheSamePairs) {
  EXPECT_EQ(texts({file("a.jsonl", R"({"source": "one two", "target": "eins zwei", "id": 7})"
                                   "\n\n"
                                   R"({"target": "x", "source": "a \"b\", c"})")}),
            kTwo);
  EXPECT_EQ(texts({file("a.tsv", "target\tmore\tsource\neins zwei\t?\tone two\n\nx\t\ta \"b\", c\n")}), kTwo);
  EXPECT_EQ(texts({file("a.csv",
                        "\xEF\xBB\xBFsource,target\r\none two,eins zwei\r\n\"a \"\"b\"\", c\",\"x\"\r\n")}),
            kTwo);
  settings_.fields.source = "translation.en";
  settings_.fields.target = "translation.de";
  EXPECT_EQ(texts({file("b.jsonl", R"({"translation": {"en": "one two", "de": "eins zwei"}})"
                                   "\n"
                                   R"({"translation": {"de": "x", "en": "a \"b\", c"}})")}),
            kTwo);
  settings_.fields.source = "3";
  settings_.fields.target = "1";
  EXPECT_EQ(texts({file("b.tsv", "eins zwei\t?\tone two\nx\t\ta \"b\", c\n")}), kTwo);
  settings_.header = true;
  EXPECT_EQ(texts({file("c.tsv", "1\t2\t3\neins zwei\t?\tone two\nx\t\ta \"b\", c\n")}), kTwo);
  format_ = "parallel";
  EXPECT_EQ(texts({file("a.en", "one two\n"), file("a.de", "eins zwei"), file("b.en", "a \"b\", c\r\n"),
                   file("b.de", "x\n")}),
            kTwo);
  settings_.source_prefix = "say: ";
  EXPECT_EQ(texts({dir_ / "b.en", dir_ / "b.de"}), (Texts{{"say: a \"b\", c", "x"}}));
}

TEST_F(Pairs, EncodingsOfFiles) {
  const std::string mark = "\xEF\xBB\xBF";
  const std::string jsonl = R"({"source": "one two", "target": "eins zwei"})"
                            "\r\n"
                            R"({"source": "a \"b\", c", "target": "x"})"
                            "\r\n";
  EXPECT_EQ(texts({file("a.jsonl", mark + jsonl)}), kTwo);
  EXPECT_EQ(texts({file("a.tsv", mark + "source\ttarget\r\none two\teins zwei\r\na \"b\", c\tx\r\n")}), kTwo);
  EXPECT_THAT(refused("b.tsv", std::string("s\0o\0u\0r\0", 8)),
              HasSubstr("b.tsv: the file is UTF-16LE, expected UTF-8."));
  format_ = "parallel";
  EXPECT_EQ(texts({file("a.en", mark + "one two\r\na \"b\", c\r\n"), file("a.de", mark + "eins zwei\nx\n")}),
            kTwo);
  file("b.de", std::string("\xFF\xFEx\0", 4));
  EXPECT_THAT(error_text<Error>([&] {
                texts({dir_ / "a.en", dir_ / "b.de"});
              }),
              HasSubstr("b.de: the file is UTF-16, expected UTF-8."));
}

TEST_F(Pairs, RowsOfCsvMayHaveLineBreaks) {
  EXPECT_EQ(texts({file("a.csv", "source,target\n\"a\nb\",\"\"\"q\"\"\"\n\"c\",d\n")}),
            (Texts{{"a\nb", "\"q\""}, {"c", "d"}}));
  TableReader t(dir_ / "a.csv", TableReader::Kind::csv);
  std::vector<std::string> cells;
  for (const i64 line : {1, 2, 4}) {
    EXPECT_TRUE(t.next(cells));
    EXPECT_EQ(t.line_number(), line);
  }
  EXPECT_FALSE(t.next(cells));
  spill(dir_ / "b.csv", "a,,\n,\n\"\",b\n");
  TableReader empty(dir_ / "b.csv", TableReader::Kind::csv);
  EXPECT_TRUE(empty.next(cells));
  EXPECT_THAT(cells, ElementsAre("a", "", ""));
  EXPECT_TRUE(empty.next(cells));
  EXPECT_THAT(cells, ElementsAre("", ""));
  EXPECT_TRUE(empty.next(cells));
  EXPECT_THAT(cells, ElementsAre("", "b"));
}

// Ids of sources and targets against transformers (scripts/make_seq2seq_fixtures.py).
TEST_F(Pairs, IdsEqualTransformers) {
  std::ifstream in(kPairFixtures + "/seq2seq/pairs.jsonl");
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  int n = 0;
  for (std::string line; std::getline(in, line); ++n) {
    const Json j = Json::parse(line);
    auto& t = tokenizers[j["tokenizer"]];
    if (!t) t = load_tokenizer(kPairFixtures + "/tokenizers/" + j["tokenizer"].get<std::string>());
    PairSettings s;
    s.source_prefix = j["prefix"];
    s.max_source_length = j["max_source_length"];
    s.max_target_length = j["max_target_length"];
    const TokenizedExample e =
        PairLines(*t, s).read({.text = j["source"], .target = j["target"].get<std::string>()});
    std::vector<i32> expected = j["source_ids"];
    EXPECT_EQ(e.prompt_tokens, static_cast<i64>(expected.size()));
    const std::vector<i32> labels = j["labels"];
    expected.insert(expected.end(), labels.begin(), labels.end());
    EXPECT_EQ(e.ids, expected) << line;
    EXPECT_EQ(e.reference, j["target"].get<std::string>());
  }
  EXPECT_EQ(n, 40);
}

// The codes of src_lang and tgt_lang replace the tokenizer.json's own post-processor.
TEST_F(Pairs, LanguageCodes) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    file(name, test::slurp(kPairFixtures + "/tokenizers/roberta/" + name));
  Json config = Json::parse(test::slurp(dir_ / "tokenizer_config.json"));
  config.update({{"tokenizer_class", "NllbTokenizer"}, {"src_lang", "<pad>"}, {"tgt_lang", "<mask>"}});
  file("tokenizer_config.json", config.dump());
  const auto t = load_tokenizer(dir_.path());
  const auto id = [&](const char* token) { return *t->token_to_id(token); };
  const TokenizedExample e = PairLines(*t, settings_).read({.text = "a", .target = "b"});
  EXPECT_THAT(e.ids, ElementsAre(id("<pad>"), id("a"), id("</s>"), id("<mask>"), id("b"), id("</s>")));
}

// The tokenizer adds no end token after a text; targets still end with one, within their maximum length.
TEST_F(Pairs, TargetsEndWithTheEndToken) {
  settings_.max_source_length = 3;
  settings_.max_target_length = 2;
  const PairLines lines(*bytes_, settings_);
  const TokenizedExample e = lines.read({.text = "abcd", .target = "xyz"});
  EXPECT_EQ(e.ids, (std::vector<i32>{'a', 'b', 'c', 'x', 256}));
  EXPECT_TRUE(e.cut);
  EXPECT_EQ(e.reference, "xyz");
  EXPECT_FALSE(lines.read({.text = "abc", .target = "x"}).cut);
  EXPECT_EQ(build({file("a.tsv", "source\ttarget\nabcd\tx\na\tb\na\txy\n")}).n_cut(), 2);
}

TEST_F(Pairs, EveryBadPairIsNamedWithItsReason) {
  const std::string first = R"({"source": "a", "target": "b"})"
                            "\n";
  const struct {
    std::string name, text, reason;
  } cases[] = {
      {"a.jsonl", first + "no json", "a.jsonl:2: not JSON"},
      {"a.jsonl", first + "[1]", "a.jsonl:2: not an object"},
      {"a.jsonl", R"({"source": "a", "target": ""})", "a.jsonl:1: the target is empty"},
      {"a.jsonl", R"({"source": " \n", "target": "b"})", "a.jsonl:1: the source is empty"},
      {"a.jsonl", R"({"source": "a"})", "no \"target\"; its keys are source (data.fields"},
      {"a.jsonl", R"({"source": ["a"], "target": "b"})",
       "\"source\" is a list of texts; expected a text. The path source.0 in data.fields"},
      {"a.jsonl", "\n \n", "the files have no examples"},
      {"a.jsonl", "{\"source\": \"\xFF\", \"target\": \"b\"}", "byte 13 (0xFF) is not UTF-8"},
      {"a.tsv", "source\ttarget\na\tb\nc\n", "a.tsv:3: the row has 1 cell, but the first row has 2"},
      {"a.tsv", "source\ttarget\na\tb\tc\n", "a.tsv:2: the row has 3 cells, but the first row has 2"},
      {"a.tsv", "source\ttarget\na\t\n", "a.tsv:2: the target is empty"},
      {"a.tsv", "text\ttarget\na\tb\n", "data.fields.source=source: "},
      {"a.tsv", "source\tsource\ttarget\n", "has two columns of this name"},
      {"a.tsv", "source\ttarget\n", "the files have no examples"},
      {"a.tsv", "", "the files have no examples"},
      {"a.csv", "source,target\n\"a\",\"b\n", "a.csv:2: the file ends inside a quoted cell"},
      {"a.csv", "source,target\n\"a\"b,c\n", "a.csv:2: b,c after the closing quote of cell 1"},
      {"a.txt", "a\n", "need one of the formats"},
  };
  for (const auto& c : cases) EXPECT_THAT(refused(c.name, c.text), HasSubstr(c.reason)) << c.text;
  settings_.fields.source = "1";
  settings_.fields.target = "5";
  EXPECT_THAT(refused("a.tsv", "a\tb\n"), HasSubstr("data.fields.target=5: the rows of"));
  settings_.fields.target = "0";
  EXPECT_THAT(refused("a.tsv", "a\tb\n"), HasSubstr("expected a column number from 1"));
  format_ = "parallel";
  EXPECT_THAT(refused("a.en", "a\n"), HasSubstr("pairs of files, the source first, but got 1 file"));
  const std::string en = file("a.en", "a\nb\n"), de = file("a.de", "x\ny\nz\n");
  EXPECT_THAT(error_text<ContentsError>([&] {
                build({en, de});
              }),
              HasSubstr("a.en ends after 2 lines, but " + de + " has more"));
  EXPECT_THAT(error_text<ContentsError>([&] {
                build({de, en});
              }),
              HasSubstr("a.en ends after 2 lines, but " + de + " has more"));
  const std::string gap = file("b.de", "x\n\n");
  EXPECT_THAT(error_text<ContentsError>([&] {
                build({en, gap});
              }),
              HasSubstr("a.en:2: the target, line 2 of the second file, is empty; data.skip_bad"));
}

TEST_F(Pairs, BadPairsAreSkippedAndCounted) {
  const std::string bad = file("a.tsv", "source\ttarget\na\tb\nc\nd\te\n\tf\n");
  EXPECT_EQ(texts({bad}, true), (Texts{{"a", "b"}, {"d", "e"}}));
  const ExampleIndex index = build({bad}, true);
  EXPECT_EQ(index.n_bad(), 2);
  EXPECT_THAT(index.bad_lines(), HasSubstr("a.tsv:3: the row has 1 cell"));
  EXPECT_THAT(index.bad_lines(), HasSubstr("a.tsv:5: the source is empty"));
  EXPECT_THAT(refused("b.tsv", "source\ttarget\na\t\n"), HasSubstr("data.skip_bad=true skips"));
}

TEST_F(Pairs, LengthsComeFromTheSettingsOrTheModel) {
  DataSettings d;
  EXPECT_EQ(PairSettings::of(d, 128, 512).max_target_length, 128);
  d.max_source_length = 512;
  d.max_target_length = 64;
  EXPECT_EQ(PairSettings::of(d, 128, 512).max_source_length, 512);
  EXPECT_THAT(usage_error([&] { PairSettings::of(d, 128, 256); }),
              HasSubstr("data.max_source_length=512 is more than the model's 256 positions"));
  d = {};
  EXPECT_THAT(usage_error([&] { PairSettings::of(d, 0, 256); }),
              HasSubstr("data.max_source_length is missing"));
}

TEST_F(Pairs, BuiltInStrings) {
  for (const std::string name : {"copy", "reverse", "sort"}) {
    const Texts train = texts(data_files({"builtin:" + name}, false, dir_.path())),
                eval = texts(data_files({"builtin:" + name}, true, dir_.path()));
    ASSERT_EQ(train.size(), 4000u);
    ASSERT_EQ(eval.size(), 200u);
    const std::set<std::pair<std::string, std::string>> seen(train.begin(), train.end());
    for (const auto& [source, target] : eval) {
      EXPECT_EQ(seen.count({source, target}), 0u);
      std::string changed = source;
      if (name == "reverse") std::reverse(changed.begin(), changed.end());
      if (name == "sort") std::sort(changed.begin(), changed.end());
      EXPECT_EQ(target, changed);
    }
  }
}

// Damaged files give rows or an error.
TEST_F(Pairs, DamagedTables) {
  const std::string whole = "source,target\n\"a, \"\"b\"\"\",c\n\"line\nbreak\",d\ne,f\n";
  std::mt19937_64 random(5);
  int read = 0, refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = whole;
    for (std::size_t k = 1 + random() % 3; k > 0; --k) {
      const std::size_t at = random() % bytes.size();
      const char some[] = {'"', ',', '\n', '\t', '\r', '\0', '\xFF', 'x'};
      if (random() % 3 == 0) {
        bytes.erase(at, 1 + random() % 4);
      } else {
        bytes[at] = some[random() % sizeof some];
      }
      if (bytes.empty()) bytes = "x";
    }
    spill(dir_ / "m.csv", bytes);
    for (const auto kind : {TableReader::Kind::csv, TableReader::Kind::tsv}) try {
        TableReader t(dir_ / "m.csv", kind);
        std::vector<std::string> cells;
        std::size_t total = 0;
        while (t.next(cells))
          for (const std::string& c : cells) total += c.size();
        EXPECT_LE(total, bytes.size());
        ++read;
      } catch (const ContentsError& e) {
        EXPECT_THAT(e.what(), HasSubstr("m.csv:"));
        ++refused;
      }
  }
  EXPECT_GT(read, 1500);
  EXPECT_GT(refused, 100);
  spill(dir_ / "wide.tsv", std::string(TableReader::kMaxColumns + 1, '\t'));
  TableReader wide(dir_ / "wide.tsv", TableReader::Kind::tsv);
  std::vector<std::string> cells;
  EXPECT_THROW(wide.next(cells), ContentsError);
}

}  // namespace
}  // namespace redco
