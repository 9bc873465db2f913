// Pipeline embedding: sentence-transformers' numbers of a fixture, pooling and losses against their
// definitions, folders, records, metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/grad.h"
#include "base/error.h"
#include "base/file.h"
#include "ckpt/params_io.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/embedding_losses.h"
#include "pipelines/pipelines.h"
#include "pipelines/pooling.h"
#include "pipelines/sentence_texts.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "support/tensor_file.h"
#include "train/checkpoint_files.h"
#include "train/evaluate.h"
#include "train/step_embeddings.h"

namespace redco {
namespace {

using namespace redco::testing;
using test::EditedTensors;
using test::TempDir;
using ::testing::HasSubstr;

const std::string kSentenceFixture = std::string(REDCO_FIXTURES) + "/bert-sentence";

// A job as job/ makes it from a config.
struct EmbeddingJob {
  explicit EmbeddingJob(const std::string& config, const std::string& folder = "")
      : model(make_model({config, "test"})) {
    settings->weights_folder = folder;
    settings->train.global_batch_size = 8;
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    pipeline->settings = settings;
  }
  void make() {
    const ModelParams all = pipeline->all_params();
    params.emplace(make_params(all, shard_specs(all.specs, Context::current().mesh().mp()).layouts));
    initialize(*params, 1);
  }
  const EmbeddingPipeline& embeds() const { return dynamic_cast<const EmbeddingPipeline&>(*pipeline); }
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_embedding_pipeline();
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

const char* kEncoder =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 257, "hidden_size": 24,
        "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 64,
        "pad_token_id": 256, "initializer_range": 0.2})";
const char* kSmallDecoder =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 257, "hidden_size": 24,
        "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 64,
        "initializer_range": 0.2})";

std::vector<i32> row_ids(const EditedTensors& file, const std::string& name, size_t row) {
  const auto shape = file.shape(name);
  const auto ids = file.values<i64>(name),
             mask = file.values<i64>(name == "input_ids" ? "attention_mask" : "positive_attention_mask");
  std::vector<i32> out;
  for (size_t i = row * shape[1]; i < (row + 1) * shape[1]; ++i)
    if (mask[i]) out.push_back(static_cast<i32>(ids[i]));
  return out;
}

// tests/fixtures/bert-sentence: mean of the tokens, scaled to length 1; cross-entropy of 20 cos in the batch.
TEST(SentenceEmbeddings, TheFixturesEmbeddingsLossAndGradientsAreSentenceTransformers) {
  const EditedTensors expected(kSentenceFixture + "/expected.safetensors");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context& c) {
      EmbeddingJob job(read_file(kSentenceFixture + "/config.json", 1 << 20), kSentenceFixture);
      job.make();
      ckpt::load_params(*job.params, ckpt::ModelFiles::open(kSentenceFixture),
                        [&](const std::string& n) { return job.model->canonical_name(n); }, {});
      const i64 n = 3;
      const BatchShape shape{
          .rows = n, .mine = shard_range(n, 1, mesh.dp(), c.coord().dp()), .length = 13, .target_length = 1};
      std::vector<Example> mine;
      for (i64 i = shape.mine.begin; i < shape.mine.end; ++i) {
        Example& e = mine.emplace_back();
        e.ids["anchor"] = row_ids(expected, "input_ids", static_cast<size_t>(i));
        e.ids["positive"] = row_ids(expected, "positive_input_ids", static_cast<size_t>(i));
      }
      const ParamTree params = job.params->watched();
      const Batch batch = job.pipeline->collate(mine, shape);
      const Embeddings e = job.embeds().embed(params, batch, {});
      const std::vector<double> of = to_values(unit_rows(e.at("anchor")));
      const std::vector<float> theirs = expected.values<float>("embeddings");
      for (size_t i = 0; i < of.size(); ++i) ASSERT_NEAR(of[i], theirs[i], 2e-6) << i;
      Batch all = batch;
      for (const auto& [name, t] : e) all.fields[name] = t;
      const Tensor loss = scale(job.pipeline->loss(params, all, {}).at(0).sum, 1.0 / n);
      EXPECT_NEAR(item(loss), expected.values<float>("loss")[0], 5e-6);  // ten times the file's own error
      const std::string name = "encoder.layer.1.attention.output.dense.weight";
      const std::vector<double> gradient = to_values(grad(loss, {params["bert." + name]})[0]);
      const std::vector<float> wanted = expected.values<float>("grad." + name);
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(gradient[i], wanted[i], 1e-5) << i;
    });
}

// tests/fixtures/gemma3-sentence, in the form of EmbeddingGemma: attention to both sides, windows, two Dense
// modules.
TEST(SentenceEmbeddings, DenseModulesGiveSentenceTransformersEmbeddingsLossAndGradients) {
  const std::string folder = std::string(REDCO_FIXTURES) + "/gemma3-sentence";
  const EditedTensors expected(folder + "/expected.safetensors");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context& c) {
      EmbeddingJob job(read_file(folder + "/config.json", 1 << 20), folder);
      job.make();
      const auto canonical = [&](const std::string& n) { return job.model->canonical_name(n); };
      ParamTree own = job.params->part("");
      ckpt::load_params(own, ckpt::ModelFiles::open(folder), canonical, {});
      std::vector<SavedPart> parts = own_parts(job.params->part(kExtra));
      ASSERT_EQ(parts.size(), 2u);
      for (SavedPart& p : parts)
        ckpt::load_params(p.tree, ckpt::ModelFiles::open(folder + "/" + p.folder),
                          [](const std::string& n) { return n; }, {});
      const BatchShape shape{
          .rows = 3, .mine = shard_range(3, 1, mesh.dp(), c.coord().dp()), .length = 13, .target_length = 1};
      std::vector<Example> mine;
      for (i64 i = shape.mine.begin; i < shape.mine.end; ++i) {
        Example& e = mine.emplace_back();
        e.ids["anchor"] = row_ids(expected, "input_ids", static_cast<size_t>(i));
        e.ids["positive"] = row_ids(expected, "positive_input_ids", static_cast<size_t>(i));
      }
      const ParamTree params = job.params->watched();
      Batch all = job.pipeline->collate(mine, shape);
      const Embeddings e = job.embeds().embed(params, all, {});
      const std::vector<double> of = to_values(unit_rows(e.at("anchor")));
      const std::vector<float> theirs = expected.values<float>("embeddings");
      ASSERT_EQ(of.size(), theirs.size());
      for (size_t i = 0; i < of.size(); ++i) ASSERT_NEAR(of[i], theirs[i], 2e-6) << i;
      for (const auto& [name, t] : e) all.fields[name] = t;
      const Tensor loss = scale(job.pipeline->loss(params, all, {}).at(0).sum, 1.0 / 3);
      EXPECT_NEAR(item(loss), expected.values<float>("loss")[0], 2e-5);
      const std::vector<std::string> names = {"layers.0.self_attn.k_proj.weight", "2_Dense/linear.weight",
                                              "3_Dense/linear.bias"};
      const std::vector<Tensor> of_names = grad(loss, {params[names[0]], params[names[1]], params[names[2]]});
      for (size_t k = 0; k < names.size(); ++k) {
        const std::vector<double> gradient = to_values(of_names[k]);
        const std::vector<float> wanted = expected.values<float>("grad." + names[k]);
        // ten times what PyTorch's fp32 differs from its fp64
        for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(gradient[i], wanted[i], 2e-4) << names[k] << i;
      }
    });
}

// The pooled value of each mode, in fp64, of rows of 3 and 2 tokens, the first token skipped in row 1.
TEST(SentenceEmbeddings, PoolingFollowsItsDefinitionAndHasAGradient) {
  on_one_rank([](Context&) {
    const std::vector<float> values = {1, -5, 2, 7, -3, 4, 100, 100, /**/ 6, 1, -2, 8, 50, 50, 60, 60};
    const Tensor x = from_values({2, 4, 2}, values).watched();
    Batch b;
    b.shape = {.rows = 2, .mine = {0, 2}, .length = 4};
    const std::vector<i64> tokens = {3, 2}, skip = {0, 1};
    add_pooling_weights(b, "t.", pooling_modes(), tokens, skip);
    const std::map<std::string, std::vector<double>> expected = {
        {"mean", {0, 2, -2, 8}},       {"cls", {1, -5, -2, 8}},
        {"lasttoken", {-3, 4, -2, 8}}, {"weightedmean", {(1 + 4 - 9) / 6.0, (-5 + 14 + 12) / 6.0, -2, 8}},
        {"max", {2, 7, -2, 8}},        {"mean_sqrt_len_tokens", {0, 6 / std::sqrt(3.0), -2, 8}}};
    for (const auto& [mode, wanted] : expected) {
      const Tensor y = pool(x, b, "t.", std::vector{mode});
      const std::vector<double> got = to_values(y);
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << mode << i;
      // Linear in the tokens: the gradient's product with x is the sum of y. Padding gets none.
      const std::vector<double> g = to_values(grad(sum_all(y), {x})[0]);
      double product = 0, total = 0;
      for (size_t i = 0; i < g.size(); ++i) product += g[i] * values[i];
      for (const double v : wanted) total += v;
      EXPECT_NEAR(product, total, 1e-5) << mode;
      for (const size_t padding : {6, 12, 14}) EXPECT_EQ(g[padding], 0) << mode;
    }
    const std::vector<std::string> two = {"cls", "max"};
    EXPECT_EQ(pool(x, b, "t.", two).shape(), (Shape{2, 4}));
  });
}

TEST(SentenceEmbeddings, LossesFollowTheirDefinitions) {
  constexpr i64 n = 5, d = 3;
  Random random(3);
  const std::vector<double> a = random.values(n * d), b = random.values(n * d), c = random.values(n * d);
  const std::vector<float> scores = {0.5, 0.25, 0.5, 1, 0};
  const auto cosine = [&](const std::vector<double>& u, i64 i, const std::vector<double>& v, i64 j) {
    double uv = 0, uu = 0, vv = 0;
    for (i64 k = 0; k < d; ++k) {
      uv += u[i * d + k] * v[j * d + k];
      uu += u[i * d + k] * u[i * d + k];
      vv += v[j * d + k] * v[j * d + k];
    }
    return uv / std::sqrt(uu * vv);
  };
  double forward = 0, backward = 0, ordered = 1, squared = 0;
  for (i64 i = 0; i < n; ++i) {
    double rows = 0, columns = 0;
    for (i64 j = 0; j < n; ++j) {
      rows += std::exp(20 * cosine(a, i, b, j)) + std::exp(20 * cosine(a, i, c, j));
      columns += std::exp(20 * cosine(a, j, b, i));
      if (scores[i] < scores[j]) ordered += std::exp(20 * (cosine(a, i, b, i) - cosine(a, j, b, j)));
    }
    forward += std::log(rows) - 20 * cosine(a, i, b, i);
    backward += std::log(columns) - 20 * cosine(a, i, b, i);
    squared += std::pow(cosine(a, i, b, i) - scores[i], 2);
  }
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context&) {
      const auto rows = [&](const std::vector<double>& v) {
        return from_values({n, d}, std::vector<float>(v.begin(), v.end()), batch_layout());
      };
      const Tensor x = rows(a), y = rows(b), z = rows(c), s = from_values({n}, scores, batch_layout());
      EXPECT_NEAR(item(info_nce(x, y, {z}, 20, false)), forward, 1e-5 * forward);
      EXPECT_NEAR(item(info_nce(x, y, {z}, 20, true)), (forward + backward) / 2, 1e-5 * forward);
      EXPECT_NEAR(item(cosent(x, y, s, 20)), std::log(ordered), 1e-5 * std::log(ordered));
      EXPECT_NEAR(item(cosine_squared_error(x, y, s)), squared, 1e-5 * squared);
    });
}

TEST(SentenceEmbeddings, MatryoshkaIsTheSumOverFirstFeatures) {
  on_one_rank([](Context&) {
    EmbeddingJob job(kEncoder);
    Random random(5);
    const auto rows = [&] {
      const auto v = random.values(4 * 24);
      return from_values({4, 24}, std::vector<float>(v.begin(), v.end()));
    };
    Batch all;
    all.shape = {.rows = 4, .mine = {0, 4}, .length = 1, .target_length = 1};
    all.fields = {{"anchor", rows()}, {"positive", rows()}};
    const auto loss = [&](std::vector<i64> dims, std::vector<double> weights) {
      job.settings->embedding.matryoshka_dims = std::move(dims);
      job.settings->embedding.matryoshka_weights = std::move(weights);
      return item(job.pipeline->loss(ParamTree({}, {}), all, {}).at(0).sum);
    };
    const double whole = loss({}, {}), eight = loss({8}, {});
    EXPECT_NE(whole, eight);
    EXPECT_NEAR(loss({24, 8}, {}), whole + eight, 1e-4);
    EXPECT_NEAR(loss({24, 8}, {1, 0.5}), whole + eight / 2, 1e-4);
    job.settings->embedding.matryoshka_weights = {};
    job.settings->embedding.matryoshka_dims = {25};
    EXPECT_THAT(error_text<UsageError>([&] { job.pipeline->params(); }),
                HasSubstr("embedding.matryoshka_dims has 25, but an embedding has 24 features"));
  });
}

// Of an encoder and of a decoder, whose embedding is that of the last token: alone or in a padded batch.
TEST(SentenceEmbeddings, AnEmbeddingDoesNotDependOnTheOtherTexts) {
  for (const char* config : {kEncoder, kSmallDecoder})
    on_mesh({1, 2}, [&](Context&) {
      EmbeddingJob job(config);
      job.make();
      std::vector<Example> texts;
      for (const char* line : {R"({"text": "a red kite"})", R"({"query": "a much longer text about boats"})"})
        texts.push_back(*job.pipeline->request(line, "here"));
      const auto together = job.pipeline->predict(*job.params, texts, {});
      const auto alone = job.pipeline->predict(*job.params, std::span(texts).first(1), {});
      const auto numbers = [](const std::string& line) {
        return nlohmann::json::parse(line).at("embedding").get<std::vector<double>>();
      };
      const auto first = numbers(together[0]), same = numbers(alone[0]), other = numbers(together[1]);
      ASSERT_EQ(first.size(), 24u);
      double length = 0, product = 0;
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_NEAR(first[i], same[i], 1e-6);
        length += first[i] * first[i];
        product += first[i] * other[i];
      }
      EXPECT_NEAR(length, 1, 1e-6);
      EXPECT_LT(product, 0.999);
    });
}

TEST(SentenceEmbeddings, EvaluationsSearchPairsAndCorrelateScores) {
  TempDir dir(TempDir::in_memory);
  on_mesh({2, 1}, [&](Context&) {
    for (const std::string name : {"paraphrases", "similarity"}) {
      EmbeddingJob job(kEncoder);
      job.make();
      const auto data = job.pipeline->open(
          {.evaluation = true, .files = {"builtin:" + name}, .cache = dir / "cache", .max_length = 64});
      const Evaluation e = evaluate_sets(*job.pipeline, *job.params, {{data}}, 16, 0, false);
      std::vector<std::string> names;
      for (const auto& [metric, value] : e.metrics) names.push_back(metric);
      if (name == "paraphrases")
        EXPECT_THAT(names,
                    ::testing::ElementsAre("loss", "mrr_10", "ndcg_10", "recall_1", "recall_10", "recall_5"));
      else
        EXPECT_THAT(names, ::testing::ElementsAre("loss", "pearson", "spearman"));
    }
  });
}

TEST(SentenceFolders, AreReadAndWrittenAsSentenceTransformersDoes) {
  const SentenceFolder f = read_sentence_folder(kSentenceFixture);
  EXPECT_TRUE(f.found && f.normalize && f.include_prompt && !f.lower_case);
  EXPECT_THAT(f.pooling, ::testing::ElementsAre("mean"));
  EXPECT_EQ(f.max_seq_length, 40);
  EXPECT_FALSE(read_sentence_folder("").found);

  TempDir dir(TempDir::in_memory);
  SentenceFolder g = f;
  g.pooling = {"lasttoken"};
  g.normalize = false;
  g.dense = {{"2_Dense", 40, 12, false, "linear"}, {"3_Dense", 12, 40, true, "tanh"}};
  g.prompts = {{"query", "find: "}, {"passage", "text: "}};
  g.default_prompt_name = "query";
  g.dot_product = true;
  for (const auto& [path, text] : g.files(40)) {
    make_dirs(parent_path(dir / path));
    write_file_durable(dir / path, text);
  }
  const SentenceFolder again = read_sentence_folder(dir.path());
  EXPECT_EQ(again.pooling, g.pooling);
  EXPECT_FALSE(again.normalize);
  ASSERT_EQ(again.dense.size(), 2u);
  EXPECT_EQ(again.dense[0].activation, "linear");
  EXPECT_EQ(again.dense[1].in, 12);
  EXPECT_EQ(again.width(40), 40);
  EXPECT_TRUE(again.dot_product);
  EXPECT_EQ(again.prompts, g.prompts);
  EXPECT_EQ(again.prompt_of({"document", "passage"}), "text: ");
  EXPECT_EQ(again.default_prompt_name, "query");

  const auto problem = [&](const std::string& path, const std::string& text) {
    write_file_durable(dir / path, text);
    return error_text<ContentsError>([&] { read_sentence_folder(dir.path()); });
  };
  EXPECT_THAT(problem("config_sentence_transformers.json", R"({"similarity_fn_name": "euclidean"})"),
              HasSubstr("similarity_fn_name is 'euclidean'; supported are cosine and dot"));
  EXPECT_THAT(problem("3_Dense/config.json", R"({"in_features": 13, "out_features": 4})"),
              HasSubstr("3_Dense has in_features=13, but the module before gives 12 features"));
  EXPECT_THAT(problem("3_Dense/config.json",
                      R"({"in_features": 12, "out_features": 4, "activation_function": "mine.Act"})"),
              HasSubstr("activation_function is mine.Act; supported are Identity"));
  EXPECT_THAT(
      problem("3_Dense/config.json", R"({"in_features": 12, "out_features": 4, "use_residual": true})"),
      HasSubstr("use_residual is true; redco supports false"));
  EXPECT_THAT(problem("3_Dense/config.json", R"({"in_features": 0, "out_features": 4})"),
              HasSubstr("in_features is 0; expected a number of features"));
  EXPECT_THAT(problem("1_Pooling/config.json", R"({"pooling_mode": "median"})"),
              HasSubstr("no pooling mode 'median'; known are mean, cls"));
  EXPECT_THAT(problem("1_Pooling/config.json", R"({"pooling_mode_cls_token": 1})"),
              HasSubstr("pooling_mode_cls_token is 1; expected true or false"));
  EXPECT_THAT(problem("modules.json", R"([{"type": "a.Transformer", "path": "0_Transformer"}])"),
              HasSubstr("the model is in the folder 0_Transformer"));
  EXPECT_THAT(
      problem("modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Dense", "path": ""}])"),
      HasSubstr("the modules are Transformer, Dense; pipeline embedding supports"));
  EXPECT_THAT(problem("modules.json", R"([{"type": "a.Pooling", "path": "../x"}])"),
              HasSubstr("leads out of"));
  EXPECT_THAT(problem("modules.json", "[1]"), HasSubstr("expected a list of objects"));
}

TEST(SentenceTexts, ReadPairsTripletsAndScores) {
  const auto tokenizer = load_tokenizer("bytes");
  SentenceFolder folder;
  folder.include_prompt = false;
  folder.lower_case = true;
  const SentenceTexts texts(*tokenizer, folder, {"p: ", "q: ", "d: "}, {}, 8);
  const auto read = [&](const char* line) { return texts.read(Record(line, "x.jsonl:1")); };
  const auto text = [&](const std::vector<i32>& ids) { return tokenizer->decode(ids); };
  const Example pair = read(R"({"query": "A", "passage": ["B"], "neg": ["C", "D"]})");
  EXPECT_EQ(text(pair.ids.at("anchor")), "q: a");
  EXPECT_EQ(pair.ids.at("anchor.skip"), std::vector<i32>{3});
  EXPECT_EQ(text(pair.ids.at("negative.1")), "d: d");
  const Example scored = read(R"({"sentence1": "abcdefghij", "sentence2": "B", "label": 4})");
  EXPECT_EQ(text(scored.ids.at("anchor")), "p: abcde");  // 8 tokens
  EXPECT_EQ(scored.values.at("score").at(0), 4);
  EXPECT_EQ(read(R"({"anchor": "a", "positive": "b", "negative_1": "c", "negative_2": "d"})")
                .ids.count("negative.1"),
            1u);
  // Rows without names: lists of texts in JSON lines
  const Example unnamed = read(R"({"1": "A", "2": "B", "3": "C"})");
  EXPECT_EQ(text(unnamed.ids.at("positive")) + text(unnamed.ids.at("negative.0")), "d: bd: c");
  const auto problem = [&](const char* line) { return error_text<ContentsError>([&] { read(line); }); };
  EXPECT_THAT(problem(R"({"1": "a", "2": "b", "3": "0.5"})"), HasSubstr("column 3 is a number"));
  EXPECT_EQ(text(read(R"({"query": "a", "passages": {"passage_text": ["B", "C"], "is_selected": [0, 1]}})")
                     .ids.at("positive")),
            "d: c");
  EXPECT_THAT(problem(R"({"query": "a", "passages": {"passage_text": ["B"], "is_selected": [0]}})"),
              HasSubstr("none of the passages is selected"));
  EXPECT_THAT(problem(R"({"anchor": "a"})"),
              HasSubstr("x.jsonl:1: no positive; expected one of the keys positive"));
  EXPECT_THAT(problem(R"({"anchor": "a", "positive": ["b", "c"]})"), HasSubstr("\"positive\" has 2 texts"));
  EXPECT_THAT(problem(R"({"anchor": "a", "positive": "b", "negative": "c", "score": 1})"),
              HasSubstr("both a score (\"score\") and negatives"));
  EXPECT_EQ(text(texts.request(Record(R"({"document": "X"})", "here")).ids.at("text")), "d: x");
  EXPECT_THAT(
      error_text<ContentsError>([&] { texts.request(Record(R"({"txt": "X"})", "here")); }),
      HasSubstr("here: no text; expected one of the keys text, prompt, query and document; its keys are txt. "
                "Rename the key"));
}

}  // namespace
}  // namespace redco
