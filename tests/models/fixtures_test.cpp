// The families against PyTorch: hidden states, logits, loss and every gradient, on every mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

const Mesh kMeshes[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}};

class Fixtures : public ::testing::TestWithParam<std::tuple<const char*, Mesh>> {};

TEST_P(Fixtures, ForwardAndGradients) {
  const auto& [name, mesh] = GetParam();
  expect_matches(fixture(name), run_model(fixture(name), mesh));
}

std::string fixture_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string text = info.param;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string param_name(const ::testing::TestParamInfo<Fixtures::ParamType>& info) {
  const auto& [name, mesh] = info.param;
  std::string text = fmt::format("{}_{}x{}", name, mesh.dp(), mesh.mp());
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Families, Fixtures,
    ::testing::Combine(::testing::Values("gpt2", "gptj", "opt", "llama", "t5", "t5-v1_1", "bart",
                                         "bert-seqcls", "bert-mlm", "roberta-seqcls", "vit", "vit-gpt2",
                                         "whisper", "mlp-mixer", "performer", "mlp", "mamba2", "dit", "deit",
                                         "deit-teacher", "dinov2", "dinov2-gated"),
                       ::testing::ValuesIn(kMeshes)),
    param_name);

// Other settings (scripts/make_model_fixtures.py), with three heads, so that two shards are uneven.
INSTANTIATE_TEST_SUITE_P(
    Variants, Fixtures,
    ::testing::Combine(::testing::Values("gpt2-variants", "gpt2-upcast", "gptj-tied", "opt-postnorm",
                                         "opt-nobias", "llama-tied-bias", "llama-rope-linear",
                                         "llama-rope-llama3", "llama-rope-yarn", "mistral-window",
                                         "qwen2-window", "t5-variants", "bart-variants", "bart-untied",
                                         "bert-variants", "roberta-mlm", "qwen3", "gemma", "gemma2", "gemma3",
                                         "mixtral"),
                       ::testing::ValuesIn(kMeshes)),
    param_name);

// Families whose differences are switches of the one decoder.
INSTANTIATE_TEST_SUITE_P(
    Decoders, Fixtures,
    ::testing::Combine(
        ::testing::Values(
            "phi3", "gpt_neox", "falcon", "bloom", "starcoder2", "olmo2", "cohere2", "qwen2_moe", "qwen3_moe",
            "deepseek_v3", "phi", "phi3-longrope", "llama-rope-dynamic", "gpt_neox-sequential", "falcon-mqa",
            "falcon-alibi", "bloom-variants", "mpt", "gpt_bigcode", "gpt_bigcode-heads", "stablelm",
            "stablelm-parallel", "olmo", "olmo3", "granite", "cohere", "glm", "glm4", "smollm3", "nemotron",
            "exaone4", "deepseek_v2", "gemma3-images", "mixtral-balanced", "qwen2_moe-balanced", "gpt_oss",
            "gpt_oss-mxfp4", "olmoe", "glm4_moe", "dots1", "ernie4_5", "helium", "seed_oss", "arcee",
            "hunyuan_v1_dense", "hunyuan_v1_moe", "granitemoe", "granitemoeshared", "apertus", "phimoe",
            "ernie4_5_moe", "gpt_neo", "codegen", "codegen-uneven", "biogpt", "ministral", "ministral3",
            "mistral3-images", "cwm", "internlm3", "iquestcoder", "exaone", "vaultgemma", "hyperclovax",
            "jais2", "minimax_m2", "glm4_moe_lite", "youtu", "solar_open", "exaone_moe", "openai-gpt",
            "nanochat", "flex_olmo", "minicpm3", "persimmon", "xglm", "modernbert-decoder",
            "modernbert-decoder-class", "hy_v3", "afmoe", "mellum", "llama4_text", "llama4_text-equal"),
        ::testing::ValuesIn(kMeshes)),
    param_name);

// Decoders with recurrent layers (scripts/make_hybrid_fixtures.py).
INSTANTIATE_TEST_SUITE_P(
    Hybrids, Fixtures,
    ::testing::Combine(::testing::Values("granitemoehybrid", "granitemoehybrid-dense", "bamba", "nemotron_h",
                                         "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "lfm2", "lfm2_moe",
                                         "falcon_h1", "falcon_h1-norm", "mamba", "falcon_mamba", "jamba",
                                         "granitemoehybrid-balanced", "qwen3_next-balanced"),
                       ::testing::ValuesIn(kMeshes)),
    param_name);

// Encoders and encoder-decoders.
INSTANTIATE_TEST_SUITE_P(
    Encoders, Fixtures,
    ::testing::Combine(::testing::Values("distilbert", "modernbert", "xlm-roberta-class", "mpnet",
                                         "mpnet-class", "electra", "electra-class", "albert", "albert-class",
                                         "distilbert-mlm", "modernbert-class", "nomic_bert",
                                         "nomic_bert-class", "deberta_v2", "deberta-v2-mlm",
                                         "deberta-v2-conv", "deberta-v2-absolute",
                                         "deberta-v2-unused-table-class", "modernbert-untied", "camembert",
                                         "marian", "m2m_100", "pegasus", "mbart", "plbart", "blenderbot",
                                         "blenderbot-small", "mt5", "umt5", "ernie", "data2vec-text", "esm",
                                         "esm-absolute", "bart-class", "gte", "gte-class",
                                         "jina_embeddings_v3", "eurobert", "eurobert-class", "megatron-bert",
                                         "roformer", "roberta-prelayernorm", "xlm-roberta-xl"),
                       ::testing::ValuesIn(kMeshes)),
    param_name);

// Models that embed images and texts.
INSTANTIATE_TEST_SUITE_P(Pairs, Fixtures,
                         ::testing::Combine(::testing::Values("clip", "clip-argmax", "siglip"),
                                            ::testing::ValuesIn(kMeshes)),
                         param_name);

// Parameters that are sharded over the replicas too, and gathered by the ops that use them.
class ShardedParameters : public ::testing::TestWithParam<const char*> {};
TEST_P(ShardedParameters, GiveTheSameNumbers) {
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{3, 1}, Mesh{2, 2}})
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(fmt::format("dp {} x mp {}, recompute {}", mesh.dp(), mesh.mp(), recompute));
      expect_matches(fixture(GetParam()),
                     run_model(fixture(GetParam()), mesh,
                               {.recompute = recompute, .storage = {.sharding = StateSharding::parameters}}));
    }
}
INSTANTIATE_TEST_SUITE_P(Families, ShardedParameters,
                         ::testing::Values("gpt2", "gptj", "opt", "llama", "t5", "bart", "bert-seqcls", "vit",
                                           "vit-gpt2", "performer", "qwen3", "gemma2", "mixtral", "mamba2",
                                           "granitemoehybrid", "nemotron_h", "qwen3_next", "dit", "falcon",
                                           "olmo2", "deepseek_v3", "albert", "dinov2", "deberta-v2-conv",
                                           "siglip", "mixtral-balanced", "qwen2_moe-balanced", "falcon_h1",
                                           "lfm2", "mamba", "phimoe"),
                         fixture_name);

// Weights of a storage type, and fp32 weights with the same values. With groups, a product of one row (the
// pooler of one example) rounds the row to 16 bits: by 1 / 65278 = 1.5e-5 of the largest in a group.
void expect_same(const Results& stored, const Results& wide, DType type, const std::string& what) {
  ASSERT_EQ(stored.size(), wide.size());
  for (const auto& [name, values] : wide)
    EXPECT_LT(distance(stored.at(name), values), is_grouped(type) ? 2e-5 + 2.0 / 65536 : 2e-5)
        << name << ", " << what;
}

// Weights of a storage type give what fp32 weights with the same values give, on any mesh.
class StoredWeights : public ::testing::TestWithParam<const char*> {};
TEST_P(StoredWeights, GiveWhatTheirValuesGive) {
  const std::string folder = fixture(GetParam());
  for (const DType type : {DType::bf16, DType::q8, DType::q4}) {
    const Results wide = run_model(folder, {1, 1}, {.gradients = false, .rounded = type});
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}, Mesh{1, 3}}) {
      const Results stored = run_model(folder, mesh, {.gradients = false, .storage = {.weights = type}});
      expect_same(stored, wide, type,
                  fmt::format("{} on dp {} x mp {}", name_of(type), mesh.dp(), mesh.mp()));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Families, StoredWeights,
                         ::testing::Values("gpt2", "gptj", "opt", "llama", "t5", "bart", "bert-seqcls", "vit",
                                           "vit-gpt2", "qwen3", "gemma2", "mixtral", "mamba2",
                                           "granitemoehybrid", "nemotron_h", "qwen3_next", "dit", "phi3",
                                           "bloom", "qwen2_moe", "deepseek_v3", "gpt_oss-mxfp4"),
                         fixture_name);

// last_hidden_state() is what transformers' model without head returns: the last of hidden_states.
class LastHiddenState : public ::testing::TestWithParam<const char*> {};
TEST_P(LastHiddenState, IsTheInputOfTheHead) {
  const auto model = load_model(fixture(GetParam()));
  const i64 C = model->hidden_size();
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context& c) {
      ParamTree params =
          make_params(model->params(), shard_specs(model->params().specs, c.mesh().mp()).layouts, {});
      initialize(params, 3);
      const bool decodes = model->generates_text();
      const Tensor ids = from_ids({2, 3}, std::vector<i32>{3, 1, 2, 4, 0, 5});
      std::vector<Tensor> states;
      ApplyOptions with_states;
      with_states.hidden_states = &states;
      Tensor last;
      if (decodes) {
        DecoderInputs in{ids, from_ids({2, 3}, std::vector<i32>{2, 3, 4, 2, 3, 4}), {}};
        if (model->is_encoder_decoder()) in.memory = full({2, 4, C}, 0.25);
        last = model->last_hidden_state(params, in, {});
        model->apply(params, in, with_states);
        ApplyOptions end;
        end.last_position_only = true;
        EXPECT_EQ(model->last_hidden_state(params, in, end).shape(), (Shape{2, 1, C}));
      } else {
        EncoderInputs in{.input_ids = ids};
        if (const ImageShape s = model->image_shape(); s.channels > 0)
          in = {.pixel_values = full({2, s.channels, s.height, s.width}, 0.5)};
        last = model->last_hidden_state(params, in, {});
        model->apply_encoder(params, in, with_states);
      }
      EXPECT_EQ(last.size(-1), C);
      // A last state of ViT is not normed.
      if (model->family() != "vit") EXPECT_EQ(to_values(last), to_values(states.back()));
    });
}
INSTANTIATE_TEST_SUITE_P(Families, LastHiddenState,
                         ::testing::Values("gpt2", "gptj", "opt", "llama", "gemma2", "deepseek_v3", "mamba2",
                                           "t5", "bart", "vit-gpt2", "bert-mlm", "vit", "performer",
                                           "mlp-mixer"),
                         fixture_name);

TEST(LastHiddenState, IsRefusedWhereAFamilyHasNone) {
  const auto model = load_model(fixture("mlp"));
  EXPECT_EQ(model->hidden_size(), 0);
  EXPECT_THROW(model->last_hidden_state({}, EncoderInputs{}, {}), UsageError);
}

// Other ways to store the same weights: shards, half precision, names without the prefix; one tower of two.
class Stored : public ::testing::TestWithParam<const char*> {};
TEST_P(Stored, GivesTheSameLogits) {
  expect_matches(fixture(GetParam()), run_model(fixture(GetParam()), {1, 2}, {.gradients = false}), false);
}
INSTANTIATE_TEST_SUITE_P(Files, Stored,
                         ::testing::Values("llama-sharded", "llama-bf16", "opt-fp16", "gpt2-legacy-names",
                                           "t5-duplicated-names", "bert-legacy-names", "clip-text",
                                           "clip-vision", "siglip-text"),
                         fixture_name);

// The config as transformers 4 wrote it gives the same bits.
class OlderConfig : public ::testing::TestWithParam<const char*> {};
TEST_P(OlderConfig, GivesTheSameModel) {
  const std::string folder = fixture(GetParam());
  const Results old = run_model(folder, {1, 1}, {.config = "config.v4.json", .gradients = false});
  EXPECT_EQ(old, run_model(folder, {1, 1}, {.gradients = false}));
}
INSTANTIATE_TEST_SUITE_P(Configs, OlderConfig,
                         ::testing::Values("gptj", "llama", "gpt2-variants", "opt-postnorm",
                                           "llama-rope-linear", "llama-rope-llama3", "llama-rope-yarn",
                                           "mistral-window", "qwen2-window", "t5", "t5-v1_1", "qwen3",
                                           "gemma", "gemma2", "gemma3", "mixtral", "phi3", "gpt_neox",
                                           "falcon", "bloom", "starcoder2", "olmo2", "cohere2", "qwen2_moe",
                                           "qwen3_moe", "deepseek_v3", "gpt_oss", "clip"),
                         fixture_name);

// Inefficient rules give the same numbers.
TEST(SillyRules, GiveTheSameNumbers) {
  using Dims = std::vector<std::optional<std::string>>;
  struct Case {
    const char* fixture;
    CustomRule rule;
  };
  const std::vector<Case> cases = {
      {"gptj", {".*fc_in.weight", Dims{"mp", std::nullopt}}},
      {"gpt2", {".*c_fc.weight", Dims{"mp", std::nullopt}}},
      {"llama", {".*norm.*weight", Dims{"mp"}}},
      {"opt", {".*out_proj.weight", Dims{std::nullopt, "mp"}}},
      {"llama", {".*self_attn.*weight", Dims{std::nullopt, std::nullopt}}},
      {"gpt2", {".*wte.weight", Dims{std::nullopt, "mp"}}},
      {"t5", {".*relative_attention_bias.weight", Dims{std::nullopt, std::nullopt}}},
      {"t5-v1_1", {".*EncDecAttention.[kv].weight", Dims{"mp", std::nullopt}}},
      {"bart", {".*encoder_attn.*weight", Dims{std::nullopt, std::nullopt}}},
  };
  for (const auto& [name, rule] : cases) {
    SCOPED_TRACE(name);
    SCOPED_TRACE(rule.match);
    for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 3}})
      expect_matches(fixture(name), run_model(fixture(name), mesh, {.rules = {rule}}));
  }
}

// The same rule for every weight, and for every bias.
TEST(SillyRules, OneRuleForAllParameters) {
  using Dims = std::vector<std::optional<std::string>>;
  const std::optional<std::string> mp = "mp", none;
  for (const char* name : {"llama", "llama-tied-bias", "qwen2-window", "gpt2", "bart"})
    for (const Dims& weights : {Dims{mp, none}, Dims{none, mp}, Dims{none, none}})
      for (const Dims& biases : {Dims{mp}, Dims{none}}) {
        SCOPED_TRACE(fmt::format("{}, {} and {}", name, format_spec(weights), format_spec(biases)));
        const ModelRun run{.rules = {{".*", weights}, {".*", biases}}};
        for (const Mesh& mesh : {Mesh{1, 2}, Mesh{1, 3}})
          expect_matches(fixture(name), run_model(fixture(name), mesh, run));
      }
}

// A random rule for each parameter, also with weights in groups.
class RandomRules : public ::testing::TestWithParam<const char*> {};
TEST_P(RandomRules, GiveTheSameNumbers) {
  const std::string folder = fixture(GetParam());
  const std::vector<ParamSpec> specs = load_model(folder)->params().specs;
  for (u64 seed = 0; seed < 3; ++seed) {
    Random random(seed);
    std::vector<CustomRule> rules;
    std::string text;
    for (const ParamSpec& s : specs) {
      CustomRule rule{.match = "", .spec = {}};
      for (const char c : s.name) rule.match += std::isalnum(c) ? std::string(1, c) : std::string("\\") + c;
      rule.spec.resize(s.shape.size());
      const u64 cut = random.next() % (s.shape.size() + 1);
      if (cut < s.shape.size()) rule.spec[cut] = "mp";
      text += fmt::format("{} {}\n", s.name, format_spec(rule.spec));
      rules.push_back(rule);
    }
    SCOPED_TRACE(text);
    const Mesh mesh = seed == 0 ? Mesh{1, 2} : seed == 1 ? Mesh{1, 3} : Mesh{2, 2};
    expect_matches(folder, run_model(folder, mesh, {.rules = rules}));
    const DType type = seed == 1 ? DType::q4 : DType::q8;
    expect_same(run_model(folder, mesh, {.rules = rules, .gradients = false, .storage = {.weights = type}}),
                run_model(folder, {1, 1}, {.gradients = false, .rounded = type}), type, name_of(type));
  }
}
INSTANTIATE_TEST_SUITE_P(Families, RandomRules,
                         ::testing::Values("gpt2", "gptj", "opt", "opt-postnorm", "llama", "llama-tied-bias",
                                           "qwen2-window", "qwen3", "gemma3", "mixtral", "t5", "bart",
                                           "bert-mlm", "bert-seqcls", "vit", "vit-gpt2", "mlp-mixer",
                                           "whisper", "performer", "mlp", "mamba2", "granitemoehybrid",
                                           "nemotron_h", "qwen3_next", "gpt_neox", "olmo2", "stablelm",
                                           "qwen2_moe", "deepseek_v3", "gpt_oss", "apertus", "falcon_h1",
                                           "lfm2", "mamba", "phimoe"),
                         fixture_name);

// Blocks that keep only their input give the same gradients as blocks that keep all activations.
TEST(Recompute, GivesTheSameGradients) {
  for (const char* name : {"gpt2", "gptj", "opt-postnorm", "llama", "bert-mlm", "vit", "mlp-mixer",
                           "performer", "mamba2", "granitemoehybrid", "nemotron_h", "qwen3_next", "falcon",
                           "deepseek_v3", "modernbert", "mixtral-balanced", "falcon_h1", "lfm2", "mamba"}) {
    SCOPED_TRACE(name);
    const Results kept = run_model(fixture(name), {1, 2});
    EXPECT_EQ(run_model(fixture(name), {1, 2}, {.recompute = true}), kept);
  }
  // The memory and the bias table are used by several blocks; their gradients are summed in another order.
  for (const char* name : {"t5", "bart", "vit-gpt2", "whisper"}) {
    SCOPED_TRACE(name);
    expect_matches(fixture(name), run_model(fixture(name), {1, 2}, {.recompute = true}));
  }
}

}  // namespace
}  // namespace redco::testing
