// Answers equal those of transformers (scripts/make_generation_fixtures.py), and do not depend on the other
// rows.
#include "generate/generate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "ckpt/params_io.h"
#include "generate/forward_pass.h"
#include "generate/sampling.h"
#include "pipelines/text_generation.h"
#include "shard/rules.h"
#include "support/ranks.h"

namespace redco {
namespace {

using nlohmann::json;
using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using redco::testing::Random;

std::string folder(const std::string& name) { return std::string(REDCO_FIXTURES) + "/generation/" + name; }
std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A fixture's model on the current context.
struct Loaded {
  std::unique_ptr<Model> model;
  ParamTree params;
  GenerationTokens tokens;
  explicit Loaded(const std::string& name) {
    const std::string config = folder(name) + "/config.json";
    model = make_model(ModelConfig(text_of(config), config));
    const auto sharded = shard_specs(model->params().specs, Context::current().mesh().mp(), {});
    params = make_params(model->params(), sharded.layouts);
    ckpt::load_params(
        params, ckpt::ModelFiles::open(folder(name)),
        [&](const std::string& n) { return model->canonical_name(n); }, model->params().aliases);
    tokens = generation_tokens(folder(name), ConfigJson::of_file(config), nullptr);
  }
};

GenerationSettings settings_from(const json& j) {
  GenerationSettings s;
  s.max_new_tokens = j.value("max_new_tokens", s.max_new_tokens);
  s.min_new_tokens = j.value("min_new_tokens", s.min_new_tokens);
  s.temperature = j.value("temperature", s.temperature);
  if (j.contains("top_k")) s.top_k = j["top_k"].get<i64>();
  s.top_p = j.value("top_p", s.top_p);
  s.min_p = j.value("min_p", s.min_p);
  s.repetition_penalty = j.value("repetition_penalty", s.repetition_penalty);
  s.no_repeat_ngram_size = j.value("no_repeat_ngram_size", s.no_repeat_ngram_size);
  s.num_beams = j.value("num_beams", s.num_beams);
  s.num_return_sequences = j.value("num_return_sequences", s.num_return_sequences);
  s.length_penalty = j.value("length_penalty", s.length_penalty);
  if (j.contains("early_stopping"))
    s.early_stopping = j["early_stopping"].is_boolean() ? "true" : j["early_stopping"].get<std::string>();
  return s;
}

class Transformers : public ::testing::TestWithParam<std::string> {};

TEST_P(Transformers, AnswersAndScores) {
  const json cases = json::parse(text_of(folder(GetParam()) + "/cases.json"));
  const auto rows = cases["prompts"].get<std::vector<std::vector<i32>>>();
  for (const int mp : {1, 2}) {
    on_mesh({1, mp}, [&](Context&) {
      const Loaded m(GetParam());
      const bool pair = m.model->is_encoder_decoder();
      std::vector<Example> inputs;
      std::vector<GenerationPrompt> prompts;
      for (size_t i = 0; i < rows.size(); ++i) {
        Example e;
        e.ids["prompt"] = rows[i];
        inputs.push_back(e);
        prompts.push_back({pair ? std::vector<i32>{*m.tokens.decoder_start} : rows[i], static_cast<i64>(i)});
      }
      i64 at = 0;
      for (const json& c : cases["searches"]) {
        const GenerationSettings s = settings_from(c["settings"]);
        // Fewer slots than prompts, so that rows are replaced.
        GenerateOptions o{.batch_size = 2 + at++ % 3};
        if (pair)
          o.encode = [&](std::span<const i64> which) {
            return encode_text(*m.model, m.params, inputs, which, "prompt");
          };
        const auto got = generate(*m.model, m.params, prompts, s, m.tokens, o);
        for (size_t i = 0; i < rows.size(); ++i) {
          ASSERT_EQ(got[i].size(), c["answers"][i].size());
          for (size_t k = 0; k < got[i].size(); ++k) {
            EXPECT_EQ(got[i][k].ids, c["answers"][i][k].get<std::vector<i32>>())
                << GetParam() << " mp " << mp << " " << c["settings"] << " prompt " << i << " answer " << k;
            if (s.num_beams == 1) continue;
            // A token's log-probability has an absolute error of about 2e-5 (fp32 logits of up to 40). Scores
            // are sums of at most 14 such terms, divided by length^penalty.
            const double n = static_cast<double>(got[i][k].ids.size());
            EXPECT_NEAR(got[i][k].score, c["scores"][i][k].get<double>(),
                        2e-5 * n / std::pow(n, s.length_penalty))
                << c["settings"] << " prompt " << i;
          }
        }
      }
    });
  }
}

// The same searches with activations in bf16. Answers may leave those of fp32 where two tokens are nearly
// equal, but most first tokens of the fixtures are not.
TEST_P(Transformers, AnswersInBf16) {
  const json cases = json::parse(text_of(folder(GetParam()) + "/cases.json"));
  const auto rows = cases["prompts"].get<std::vector<std::vector<i32>>>();
  for (const int mp : {1, 2}) {
    on_mesh({1, mp}, [&](Context& c) {
      c.compute_dtype = ComputeDType::bf16;
      const Loaded m(GetParam());
      const bool pair = m.model->is_encoder_decoder();
      std::vector<Example> inputs;
      std::vector<GenerationPrompt> prompts;
      for (size_t i = 0; i < rows.size(); ++i) {
        Example e;
        e.ids["prompt"] = rows[i];
        inputs.push_back(e);
        prompts.push_back({pair ? std::vector<i32>{*m.tokens.decoder_start} : rows[i], static_cast<i64>(i)});
      }
      i64 answers = 0, equal = 0;
      for (const json& search : cases["searches"]) {
        GenerateOptions o{.batch_size = 3};
        if (pair)
          o.encode = [&](std::span<const i64> which) {
            return encode_text(*m.model, m.params, inputs, which, "prompt");
          };
        const auto got =
            generate(*m.model, m.params, prompts, settings_from(search["settings"]), m.tokens, o);
        for (size_t i = 0; i < rows.size(); ++i) {
          ASSERT_EQ(got[i].size(), search["answers"][i].size());
          const auto ids = search["answers"][i][0].get<std::vector<i32>>();
          ++answers;
          equal += !ids.empty() && !got[i][0].ids.empty() && ids[0] == got[i][0].ids[0] ? 1 : 0;
        }
      }
      EXPECT_GT(4 * equal, 3 * answers) << GetParam() << " mp " << mp << ": " << equal << " of " << answers;
    });
  }
}

TEST_P(Transformers, SamplingProbabilities) {
  const json cases = json::parse(text_of(folder(GetParam()) + "/cases.json"));
  on_one_rank([&](Context&) {
    const Loaded m(GetParam());
    if (m.model->is_encoder_decoder()) return;  // warpers are the same for every kind of model
    const auto rows = cases["prompts"].get<std::vector<std::vector<i32>>>();
    const auto logits = next_token_logits(*m.model, m.params, rows);
    const size_t V = static_cast<size_t>(m.model->vocab_size());
    for (const json& c : cases["draws"]) {
      const GenerationSettings s = settings_from(c["settings"]);
      for (size_t i = 0; i < rows.size(); ++i) {
        std::vector<float> scores(logits.begin() + static_cast<std::ptrdiff_t>(i * V),
                                  logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * V));
        process<float>(scores, 0, {rows[i], 0, 8}, s, m.tokens);
        const auto p = sampling_probabilities(scores, s);
        for (size_t v = 0; v < V; ++v)
          EXPECT_NEAR(p[v], c["probabilities"][i][v].get<double>(),
                      2e-5)  // error of logits / temperature, as above
              << c["settings"] << " prompt " << i << " token " << v;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Transformers, ::testing::Values("gpt2", "llama", "bart"),
                         [](const auto& info) { return info.param; });

// A random model in double precision, so that rounding decides no choice.
struct RandomGpt2 {
  static constexpr const char* kConfig =
      R"({"model_type": "gpt2", "vocab_size": 47, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 40})";
  std::unique_ptr<Model> model;
  ParamTree params;

  explicit RandomGpt2(const char* config = kConfig) : model(make_model(ModelConfig(config, "random"))) {
    const auto sharded = shard_specs(model->params().specs, Context::current().mesh().mp(), {});
    params = make_params(model->params(), sharded.layouts);
    for (size_t i = 0; i < params.size(); ++i) {
      const ParamSpec& s = params.specs()[i];
      params.values()[i] =
          from_values(s.shape, std::span<const double>(Random(i + 1).values(numel(s.shape), -0.9, 0.9)),
                      sharded.layouts[i]);
    }
  }
};

std::vector<GenerationPrompt> some_prompts(size_t n) {
  Random random(5);
  std::vector<GenerationPrompt> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i].ordinal = static_cast<i64>(100 + i);
    for (i64 k = 1 + random.below(i % 4 == 0 ? 20 : 7); k > 0; --k)
      out[i].ids.push_back(static_cast<i32>(6 + random.below(41)));
  }
  return out;
}

std::vector<std::vector<i32>> ids_of(const std::vector<std::vector<Answer>>& answers) {
  std::vector<std::vector<i32>> out;
  for (const auto& list : answers)
    for (const Answer& a : list) {
      out.push_back(a.ids);
      out.back().push_back(-static_cast<i32>(a.finish));
    }
  return out;
}

TEST(Generate, AnswersDoNotDependOnTheOtherRows) {
  std::vector<GenerationSettings> kinds(6);
  for (auto& s : kinds) s.max_new_tokens = 17;
  kinds[1].temperature = 0.8;
  kinds[1].num_return_sequences = 3;
  kinds[2].num_beams = 3;
  kinds[2].num_return_sequences = 2;
  kinds[3].num_beams = 2;
  kinds[3].no_repeat_ngram_size = 2;
  kinds[4].temperature = 1.1;
  kinds[4].top_k = 9;
  kinds[4].repetition_penalty = 1.4;
  kinds[5].num_beams = 2;
  kinds[5].cache_dtype = CacheDType::bf16;
  for (const GenerationSettings& s : kinds) {
    std::vector<std::vector<i32>> alone;
    GenerationTokens tokens;
    on_one_rank([&](Context&) {
      const RandomGpt2 m;
      const auto prompts = some_prompts(11);
      const auto ask = [&] {
        std::vector<std::vector<i32>> out;
        for (const GenerationPrompt& p : prompts)
          for (auto& ids : ids_of(generate(*m.model, m.params, {&p, 1}, s, tokens))) out.push_back(ids);
        return out;
      };
      // A token of about half of the answers is the end token, so that rows end at different times.
      std::map<i32, i64> having;
      alone = ask();
      for (const auto& ids : alone)
        for (const i32 id : std::set<i32>(ids.begin(), ids.end())) ++having[id];
      const auto far = [&](i64 n) { return std::abs(2 * n - static_cast<i64>(alone.size())); };
      i32 end = 0;
      for (const auto& [id, n] : having)
        if (id > 0 && far(n) < far(having[end])) end = id;
      tokens.eos = {end};
      alone = ask();
    });
    std::set<i32> reasons;
    for (const auto& ids : alone) reasons.insert(ids.back());
    EXPECT_EQ(reasons.size(), 2u) << "eos and length";
    for (const int mp : {1, 2})
      for (const i64 batch : {2, 3, 11}) {
        on_mesh({1, mp}, [&](Context&) {
          const RandomGpt2 m;
          const auto prompts = some_prompts(11);
          const auto got = ids_of(generate(*m.model, m.params, prompts, s, tokens, {.batch_size = batch}));
          EXPECT_EQ(got, alone) << "mp " << mp << " batch " << batch << " beams " << s.num_beams;
        });
      }
  }
}

TEST(Generate, TheLastPositionEndsAnAnswer) {
  on_one_rank([](Context&) {
    const RandomGpt2 m;
    std::vector<GenerationPrompt> prompts = some_prompts(3);
    prompts[1].ids.assign(37, 9);  // 40 positions
    GenerationSettings s;
    s.max_new_tokens = 1000;
    const auto got = generate(*m.model, m.params, prompts, s, {}, {.batch_size = 2});
    EXPECT_EQ(got[1][0].ids.size(), 3u);
    EXPECT_EQ(got[0][0].ids.size(), 40 - prompts[0].ids.size());
    EXPECT_EQ(got[1][0].finish, FinishReason::length);
  });
}

// The first answer ends at the last position, while the others continue for many steps.
TEST(Generate, AnIdleRowStaysWithinThePositions) {
  on_one_rank([](Context&) {
    const RandomGpt2 m;
    std::vector<GenerationPrompt> prompts = some_prompts(3);
    prompts[0].ids.assign(37, 9);  // 40 positions
    prompts[1].ids.resize(2, 7);
    prompts[2].ids.resize(4, 8);
    for (const i64 beams : {1, 2}) {
      GenerationSettings s;
      s.max_new_tokens = 30;
      s.num_beams = beams;
      const auto one_by_one = ids_of(generate(*m.model, m.params, prompts, s, {}, {.batch_size = 1}));
      EXPECT_EQ(ids_of(generate(*m.model, m.params, prompts, s, {}, {.batch_size = 3})), one_by_one);
      EXPECT_EQ(one_by_one[0].size(), 3u + 1);
      EXPECT_EQ(one_by_one[1].size(), 30u + 1);
    }
  });
}

TEST(Generate, AKeptCacheSkipsThePrefixAndGivesTheSameAnswer) {
  on_one_rank([](Context& c) {
    const RandomGpt2 m;
    GenerationSettings s;
    s.max_new_tokens = 4;
    PrefixCache prefix;
    std::vector<i32> ids = {7, 8, 9, 10, 11, 12};
    for (int turn = 0; turn < 4; ++turn) {
      const GenerationPrompt p{ids, turn};
      const i64 before = c.flops();
      const auto fresh = generate(*m.model, m.params, {&p, 1}, s, {})[0][0];
      const i64 all = c.flops();
      const auto kept = generate(*m.model, m.params, {&p, 1}, s, {}, {.prefix = &prefix})[0][0];
      EXPECT_EQ(kept.ids, fresh.ids);
      if (turn > 0) EXPECT_LT(c.flops() - all, all - before);
      EXPECT_EQ(prefix.cache.length(), static_cast<i64>(prefix.ids.size()));
      EXPECT_EQ(prefix.ids.size(), ids.size() + 3);  // the last token is not in the cache
      ids.insert(ids.end(), fresh.ids.begin(), fresh.ids.end());
      if (turn == 1) ids.resize(8);  // a shortened history
      ids.push_back(20);
    }
  });
}

// The cache of a layer with a window drops old columns. One pass of prompt and answer without a cache gives
// the same tokens.
TEST(Generate, AWindowGivesTheAnswersWithoutACache) {
  const char* const config =
      R"({"model_type": "mistral", "vocab_size": 47, "hidden_size": 12, "intermediate_size": 16,
          "num_attention_heads": 3, "num_key_value_heads": 3, "num_hidden_layers": 2, "sliding_window": 7,
          "max_position_embeddings": 400})";
  for (const int mp : {1, 3})
    on_mesh({1, mp}, [&](Context&) {
      const RandomGpt2 m(config);
      const auto prompts = some_prompts(5);
      GenerationSettings s;
      s.max_new_tokens = 180;
      PrefixCache prefix;
      std::vector<std::vector<Answer>> answers =
          generate(*m.model, m.params, prompts, s, {}, {.batch_size = 2});
      answers.push_back(generate(*m.model, m.params, {prompts.data(), 1}, s, {}, {.prefix = &prefix})[0]);
      const CacheView held = prefix.cache.layer(0).read();
      EXPECT_GT(held.first, 0);
      EXPECT_LT(held.entries[0].shape()[1], 100);
      NoGrad off;
      for (size_t i = 0; i < answers.size(); ++i) {
        std::vector<i32> ids = prompts[i % prompts.size()].ids, positions;
        const i64 begin = static_cast<i64>(ids.size());
        ids.insert(ids.end(), answers[i][0].ids.begin(), answers[i][0].ids.end());
        const i64 n = static_cast<i64>(ids.size()), V = m.model->vocab_size();
        for (i64 t = 0; t < n; ++t) positions.push_back(static_cast<i32>(t));
        const DecoderInputs in = {from_ids({1, n}, ids), from_ids({1, n}, positions), {}};
        const auto logits = to_values(m.model->apply(m.params, in, {}));
        for (i64 t = begin; t < n; ++t) {
          const auto row = logits.begin() + (t - 1) * V;
          ASSERT_EQ(std::max_element(row, row + V) - row, ids[t]) << "answer " << i << " token " << t;
        }
      }
    });
}

TEST(Generate, CallbacksStopTextsAndInterrupts) {
  on_mesh({1, 2}, [](Context& c) {
    const RandomGpt2 m;
    GenerationSettings s;
    s.max_new_tokens = 9;
    const auto prompts = some_prompts(4);
    const auto plain = generate(*m.model, m.params, prompts, s, {});
    GenerateOptions o{.batch_size = 2};
    std::map<i64, std::vector<i32>> seen;
    i64 steps = 0;
    o.on_step = [&] { ++steps; };
    o.on_token = [&](i64 prompt, i64 sample, std::span<const i32> ids, bool last) {
      EXPECT_EQ(sample, 0);
      EXPECT_EQ(last, ids.size() == 5);
      seen[prompt].assign(ids.begin(), ids.end());
    };
    o.stops = [](std::span<const i32> ids) { return ids.size() == 5; };
    const auto stopped = generate(*m.model, m.params, prompts, s, {}, o);
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(stopped[i][0].finish, FinishReason::stop);
      EXPECT_EQ(stopped[i][0].ids, std::vector<i32>(plain[i][0].ids.begin(), plain[i][0].ids.begin() + 5));
      if (c.rank() == 0) EXPECT_EQ(seen[static_cast<i64>(i)], stopped[i][0].ids);
    }
    if (c.rank() != 0) EXPECT_TRUE(seen.empty());
    EXPECT_EQ(steps, 10);  // two batches of five
    GenerateOptions ends{.batch_size = 4};
    i64 asked = 0;
    ends.interrupted = [&] { return ++asked == 3; };
    for (const auto& list : generate(*m.model, m.params, prompts, s, {}, ends)) {
      EXPECT_EQ(list[0].finish, FinishReason::interrupted);
      EXPECT_EQ(list[0].ids.size(), 3u);
    }
  });
}

TEST(Generate, NonFiniteScoresAreAnError) {
  on_mesh({1, 2}, [](Context&) {
    RandomGpt2 m;
    for (Tensor& t : m.params.values()) t = full(t.shape(), NAN, DType::f64, t.layout());
    for (const i64 beams : {1, 2}) {
      GenerationSettings s;
      s.num_beams = beams;
      const auto prompts = some_prompts(2);
      try {
        generate(*m.model, m.params, prompts, s, {});
        ADD_FAILURE();
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ExitCode::non_finite) << e.what();
      }
    }
  });
}

}  // namespace
}  // namespace redco
