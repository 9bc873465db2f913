// Records of JSONL files as examples; rows of tokens, their log-probabilities; answers of the model itself.
#include "pipeline/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/grad.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "pipeline/rollouts.h"
#include "pipeline/token_rows.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "tensor/transfer.h"

namespace redco {
namespace {

using namespace redco::testing;
using test::spill;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Records, FieldsAreCheckedAndNamed) {
  const Record r(R"({"text": "a", "n": 3, "x": 0.5, "list": [1, 2.5], "texts": ["p", "q"], "no": null,
                     "turns": [{"role": "user"}]})",
                 "data.jsonl:7");
  EXPECT_EQ(r.text("text"), "a");
  EXPECT_EQ(r.text("other", "b"), "b");
  EXPECT_EQ(r.integer("n"), 3);
  EXPECT_EQ(r.number("x"), 0.5);
  EXPECT_THAT(r.numbers("list"), ElementsAre(1, 2.5));
  EXPECT_THAT(r.texts("texts"), ElementsAre("p", "q"));
  EXPECT_EQ(r.records("turns").at(0).text("role"), "user");
  EXPECT_TRUE(r.has("n"));
  EXPECT_FALSE(r.has("no"));
  EXPECT_EQ(error_text<ContentsError>([&] { r.text("txt"); }),
            "data.jsonl:7: no \"txt\"; did you mean \"text\"?");
  EXPECT_EQ(error_text<ContentsError>([&] { r.text("n"); }),
            "data.jsonl:7: \"n\" is of type number; expected a text");
  EXPECT_EQ(error_text<ContentsError>([&] { r.integer("x"); }),
            "data.jsonl:7: \"x\" is of type number; expected an integer");
}

TEST(Records, AllRanksReadWhatTheFirstOneStored) {
  test::TempDir dir;
  spill(dir / "a.jsonl", "{\"v\": [1, 2], \"id\": \"first\"}\n\n{\"v\": []}\n{\"v\": [3]}\n");
  const auto read = [](const Record& r) -> std::optional<Example> {
    Example e;
    for (const float x : r.numbers("v")) e.ids["v"].push_back(static_cast<i32>(x));
    if (e.ids["v"].empty()) return std::nullopt;
    return e;
  };
  const DataRequest request{.files = {dir / "a.jsonl"}, .cache = dir / "cache", .fingerprint = "1"};
  std::string fingerprint;
  on_mesh({2, 1}, [&](Context& c) {
    const auto data = read_jsonl(request, read);
    ASSERT_EQ(data->size(), 2);
    EXPECT_THAT(data->get(0).ids.at("v"), ElementsAre(1, 2));
    EXPECT_EQ(data->get(0).id, "\"first\"");
    EXPECT_THAT(data->get(1).ids.at("v"), ElementsAre(3));
    EXPECT_EQ(data->length(0), 2);
    EXPECT_EQ(data->get(1).ordinal, 1);
    if (c.rank() == 0) fingerprint = data->fingerprint();
  });
  on_one_rank([&](Context&) {
    // Found: `read` is not called again. The same examples elsewhere have the same fingerprint.
    EXPECT_EQ(read_jsonl(request, [](const Record&) -> std::optional<Example> { throw 1; })->size(), 2);
    DataRequest moved = request;
    moved.cache = dir / "other";
    moved.fingerprint = "2";
    EXPECT_EQ(read_jsonl(moved, read)->fingerprint(), fingerprint);
    spill(dir / "a.jsonl", "{\"v\": [1]}\n{\"w\": [1]}\n");
    EXPECT_THAT(error_text<ContentsError>([&] { read_jsonl(request, read); }),
                HasSubstr("a.jsonl:2: no \"v\""));
    spill(dir / "a.jsonl", "{\"v\": []}\n");
    EXPECT_THAT(error_text<ContentsError>([&] { read_jsonl(request, read); }), HasSubstr("has no examples"));
  });
}

// TSV, CSV, parallel files and JSONL give the same examples, plain or compressed.
TEST(Records, AllFormatsAreRead) {
  test::TempDir dir;
  spill(dir / "a.jsonl",
        "{\"source\": \"x, y\", \"target\": \"3\"}\n{\"source\": \"z\", \"target\": \"-4\"}\n");
  spill(dir / "a.csv", "source,target\n\"x, y\",3\n\nz,-4\n");
  spill(dir / "a.tsv", "target\tsource\n3\tx, y\n-4\tz\n");
  spill(dir / "a.src", "x, y\nz\n");
  spill(dir / "a.tgt", "3\n-4\n");
  for (const char* file : {"a.jsonl", "a.csv", "a.tsv", "a.src", "a.tgt"})
    ASSERT_EQ(std::system(("gzip -k '" + (dir / file) + "'").c_str()), 0);
  const auto read = [&](const std::vector<std::string>& files, const std::string& format) {
    DataRequest request{.cache = dir / "cache", .fingerprint = "1"};
    for (const std::string& f : files) request.files.push_back(dir / f);
    DataSettings s;
    if (!format.empty()) s.format = format;
    return read_records(request, s, [](const Record& r) {
      Example e;
      e.text = r.text("source") + "=" + r.text("target");
      return e;
    });
  };
  on_one_rank([&](Context&) {
    std::string fingerprint;
    for (const std::string end : {"", ".gz"})
      for (const auto& [files, format] : std::vector<std::pair<std::vector<std::string>, std::string>>{
               {{"a.jsonl"}, ""}, {{"a.csv"}, ""}, {{"a.tsv"}, ""}, {{"a.src", "a.tgt"}, "parallel"}}) {
        std::vector<std::string> names;
        for (const std::string& f : files) names.push_back(f + end);
        const auto data = read(names, format);
        ASSERT_EQ(data->size(), 2) << files[0];
        EXPECT_EQ(data->get(0).text, "x, y=3");
        EXPECT_EQ(data->get(1).text, "z=-4");
        if (fingerprint.empty()) fingerprint = data->fingerprint();
        EXPECT_EQ(data->fingerprint(), fingerprint);
      }
    // Two files, one after the other.
    EXPECT_EQ(read({"a.csv", "a.csv.gz"}, "")->size(), 4);
    EXPECT_THAT(usage_error([&] { read({"a.src"}, "parallel"); }), HasSubstr("needs pairs of files"));
    EXPECT_THAT(
        usage_error([&] { read({"a.src"}, ""); }),
        HasSubstr(
            "records need one of the formats jsonl, json, csv, tsv, parquet, arrow, webdataset, conll"));
    spill(dir / "b.csv", "source,source\na,b\n");
    EXPECT_THAT(usage_error([&] { read({"b.csv"}, ""); }), HasSubstr("two columns have the name 'source'"));
    spill(dir / "c.csv", "source,target\n\na,b,c\n");
    EXPECT_THAT(error_text<ContentsError>([&] { read({"c.csv"}, ""); }),
                HasSubstr("c.csv:3: the row has 3 cells, but the first row has 2"));
    spill(dir / "c.tgt", "only one\n");
    EXPECT_THAT(error_text<ContentsError>([&] {
                  read({"a.src", "c.tgt"}, "parallel");
                }),
                HasSubstr("a.src:2: the file has more lines than " + (dir / "c.tgt")));
  });
}

TEST(Records, TheJobCanSkipBadLines) {
  test::TempDir dir;
  spill(dir / "a.jsonl", "{\"v\": [1]}\n{\"w\": 1}\n[]\n{\"v\": [2]}\n{\"v\": \"x\"}\nno json\n");
  spill(dir / "a.csv", "v,w\n3,1\n4\n5,6,7\n6,2\n");
  spill(dir / "b.jsonl", "{}\n7\n");
  const auto read = [&](const std::string& file, bool skips) {
    const DataRequest request{
        .files = {dir / file}, .cache = dir / "cache", .skip_bad = skips, .fingerprint = "1"};
    return read_records(request, {}, [](const Record& r) {
      Example e;
      if (r.where().find(".csv") != std::string::npos) {
        e.values["v"] = {static_cast<float>(r.number("v"))};
      } else {
        e.values["v"] = r.numbers("v");
      }
      return e;
    });
  };
  on_one_rank([&](Context&) {
    const auto lines = read("a.jsonl", true), cells = read("a.csv", true);
    ASSERT_EQ(lines->size(), 2);
    EXPECT_EQ(lines->get(1).values.at("v")[0], 2);
    EXPECT_THAT(lines->describe(), HasSubstr("4 bad lines skipped (data.skip_bad); the first:\n  " +
                                             (dir / "a.jsonl") + ":2: no \"v\""));
    EXPECT_EQ(read("a.jsonl", true)->describe(), lines->describe());  // from the cache
    ASSERT_EQ(cells->size(), 2);
    EXPECT_EQ(cells->get(1).values.at("v")[0], 6);
    EXPECT_THAT(cells->describe(), HasSubstr("a.csv:3: the row has 1 cell, but the first row has 2"));
    EXPECT_THAT(error_text<ContentsError>([&] { read("a.jsonl", false); }),
                HasSubstr("a.jsonl:2: no \"v\"; its keys are "));
    EXPECT_THAT(error_text<ContentsError>([&] { read("b.jsonl", true); }),
                HasSubstr("has no examples; 2 bad lines, the first:"));
  });
}

// More examples than a block of the table has.
TEST(Records, ADamagedIndexIsBuiltAgain) {
  const test::TempDir dir{test::TempDir::in_memory};
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += fmt::format("{{\"v\": [{}]}}\n", i);
  spill(dir / "a.jsonl", lines);
  const DataRequest request{.files = {dir / "a.jsonl"}, .cache = dir / "cache", .fingerprint = "1"};
  int n_read = 0;
  const auto read = [&] {
    return read_jsonl(request, [&](const Record& r) {
      ++n_read;
      Example e;
      e.values["v"] = r.numbers("v");
      e.ids["input_ids"].resize(static_cast<std::size_t>(r.numbers("v")[0]) % 7);
      return e;
    });
  };
  on_one_rank([&](Context&) {
    const auto check = [&](int expected) {
      const auto data = read();
      ASSERT_EQ(data->size(), 5000);
      for (const i64 i : {0, 4095, 4096, 4999}) {
        EXPECT_EQ(data->get(i).values.at("v")[0], static_cast<float>(i));
        EXPECT_EQ(data->length(i), i % 7);
      }
      EXPECT_EQ(data->describe(), "5000 examples of at most 6 tokens");
      EXPECT_EQ(n_read, expected);
    };
    check(5000);
    check(5000);  // from the cache
    const auto index = *std::filesystem::directory_iterator(dir / "cache");
    const std::string whole = test::slurp(index.path());
    for (const std::size_t at : {std::size_t{0}, std::size_t{20}, whole.size() / 2, whole.size() - 1}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      spill(index.path(), at == 0 ? whole.substr(0, 1000) : bytes);
      n_read = 0;
      check(5000);
      EXPECT_EQ(test::slurp(index.path()), whole) << at;
    }
  });
}

TEST(Records, CellsOfTablesAreReadAsNumbers) {
  const Record r = Record::of_line(R"({"n": "-3", "x": "0.5", "word": "3a"})", "t.csv:4", true);
  EXPECT_EQ(r.integer("n"), -3);
  EXPECT_EQ(r.number("x"), 0.5);
  EXPECT_EQ(error_text<ContentsError>([&] { r.number("word"); }),
            "t.csv:4: \"word\" is '3a'; expected a number");
  EXPECT_EQ(error_text<ContentsError>([&] { r.integer("x"); }),
            "t.csv:4: \"x\" is '0.5'; expected an integer");
}

const char* kModel =
    R"({"model_type": "gpt2", "vocab_size": 257, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 24})";

struct Small {
  Small() {
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    params.emplace(make_params(model->params(),
                               shard_specs(model->params().specs, Context::current().mesh().mp()).layouts));
    initialize(*params, 1);
  }
  std::unique_ptr<Model> model = make_model({kModel, "test"});
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_pipeline("lm");
  std::optional<ParamTree> params;
};

TEST(TokenRows, LogProbsAreThoseOfTheAnswer) {
  on_one_rank([](Context&) {
    Small s;
    Batch b;
    b.shape = {.rows = 2, .mine = {0, 2}, .length = 6};
    const std::vector<TokenRow> rows = {{{10, 11, 12, 13}, 2}, {{20, 21, 22, 23, 24, 25}, 5}};
    EXPECT_EQ(add_token_rows(b, *s.model, rows, "a."), 3);
    const std::vector<double> got = to_values(token_log_probs(*s.model, *s.params, b, {}, "a."));
    const std::vector<double> all =
        to_values(log_softmax(s.model->apply(*s.params, decoder_inputs(b, "a."), {})));
    for (i64 r = 0; r < 2; ++r)
      for (i64 t = 0; t < 6; ++t) {
        const TokenRow& row = rows[r];
        const bool counts = t + 1 >= row.first && t + 1 < static_cast<i64>(row.ids.size());
        const double expected = counts ? all[(r * 6 + t) * 257 + row.ids[t + 1]] : 0;
        EXPECT_NEAR(got[r * 6 + t], expected, 1e-5) << r << " " << t;
      }
    EXPECT_THAT(error_text<BugError>([&] {
                  add_token_rows(b, *s.model, std::vector<TokenRow>{{{1}, 0}, {{1}, 1}});
                }),
                HasSubstr("a row has 1 tokens, and its answer begins at 0"));
  });
}

TEST(TokenRows, LogSigmoidIsExactFarFromZero) {
  on_one_rank([](Context&) {
    const std::vector<double> x = {-200, -20, -1, 0, 1, 20, 200};
    const std::vector<double> got = to_values(log_sigmoid(from_values({7}, std::span<const double>(x))));
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(got[i], std::min(x[i], 0.0) - std::log1p(std::exp(-std::abs(x[i]))), 1e-12) << x[i];
    // Its derivative is sigmoid(-x): 1/2 at 0, where a training with DPO begins.
    const Tensor at = from_values({7}, std::span<const double>(x)).watched();
    const std::vector<double> slope = to_values(grad(sum_all(log_sigmoid(at)), {at})[0]);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope[i], 1 / (1 + std::exp(x[i])), 1e-12) << x[i];
  });
}

// The answers and their log-probabilities do not depend on the replicas; the log-probabilities are those of
// the sampling distribution at temperature 1.
TEST(Rollouts, AreTheSameOnAllRanksAndReplicas) {
  const std::vector<std::vector<i32>> prompts = {{1, 2, 3}, {4}, {5, 6}, {7, 8, 9, 10}, {11}};
  TextGeneration g;
  g.settings.temperature = 1;
  g.settings.max_new_tokens = 6;
  g.settings.num_return_sequences = 2;
  g.tokens = {.eos = {256}, .pad = 256};
  std::vector<std::vector<Rollout>> one;
  on_one_rank([&](Context&) {
    Small s;
    one = sample(*s.pipeline, *s.params, prompts, g, 100);
    ASSERT_EQ(one.size(), prompts.size());
    for (const auto& answers : one) {
      ASSERT_EQ(answers.size(), 2u);
      for (const Rollout& r : answers) {
        ASSERT_EQ(r.ids.size(), r.log_probs.size());
        for (const float p : r.log_probs) EXPECT_LT(p, 0);
      }
    }
    EXPECT_NE(one[0][0].ids, one[0][1].ids);
    EXPECT_NE(sample(*s.pipeline, *s.params, prompts, g, 200)[0][0].ids, one[0][0].ids);
  });
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{3, 1}, Mesh{1, 2}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context&) {
      Small s;
      const auto other = sample(*s.pipeline, *s.params, prompts, g, 100);
      ASSERT_EQ(other.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        for (std::size_t k = 0; k < 2; ++k) {
          EXPECT_EQ(other[i][k].ids, one[i][k].ids) << i;
          EXPECT_EQ(other[i][k].text, one[i][k].text);
          for (std::size_t t = 0; t < one[i][k].log_probs.size(); ++t)
            EXPECT_NEAR(other[i][k].log_probs[t], one[i][k].log_probs[t], 1e-5);
        }
    });
}

}  // namespace
}  // namespace redco
