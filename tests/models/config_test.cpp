// Every key of a config is read, inert or an error, and older spellings give the same model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "models/hf_keys.h"
#include "models/model.h"
#include "models/rope_config.h"

namespace redco {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool is_text_encoder(const std::string& family) {
  static const std::set<std::string> kEncoders = {"bert",
                                                  "roberta",
                                                  "xlm-roberta",
                                                  "camembert",
                                                  "distilbert",
                                                  "electra",
                                                  "albert",
                                                  "mpnet",
                                                  "modernbert",
                                                  "nomic_bert",
                                                  "deberta-v2",
                                                  "ernie",
                                                  "data2vec-text",
                                                  "gte",
                                                  "jina_embeddings_v3",
                                                  "eurobert",
                                                  "megatron-bert",
                                                  "roformer",
                                                  "roberta-prelayernorm",
                                                  "xlm-roberta-xl"};
  return kEncoders.contains(family);
}

// Half of a model that embeds images and texts.
bool is_tower(const std::string& family) {
  return family.starts_with("clip_") || family.starts_with("siglip_");
}

// Small models of each family, with only the required keys.
Json minimal(const std::string& family) {
  if (family == "gpt2")
    return {{"model_type", family}, {"vocab_size", 11}, {"n_embd", 8}, {"n_layer", 2}, {"n_head", 2}};
  if (family == "openai-gpt")
    return {{"model_type", family}, {"vocab_size", 11}, {"n_embd", 8}, {"n_layer", 2}, {"n_head", 2}};
  if (family == "gptj")
    return {{"model_type", family}, {"vocab_size", 11}, {"n_embd", 8},
            {"n_layer", 2},         {"n_head", 2},      {"rotary_dim", 4}};
  if (family == "codegen")
    return {{"model_type", family}, {"vocab_size", 11}, {"n_embd", 8},
            {"n_layer", 2},         {"n_head", 2},      {"rotary_dim", 4}};
  if (family == "gpt_neo")
    return {{"model_type", family}, {"vocab_size", 11}, {"hidden_size", 8},
            {"num_layers", 2},      {"num_heads", 2},   {"attention_types", {{{"global"}, 2}}}};
  if (family == "biogpt" || family == "persimmon" || family == "modernbert-decoder")
    return {{"model_type", family},   {"vocab_size", 11},         {"hidden_size", 8},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"intermediate_size", 16}};
  if (family == "solar_open" || family == "qwen3_5_moe_text")  // all layers are mixtures
    return {{"model_type", family},   {"vocab_size", 11},         {"hidden_size", 8},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"num_key_value_heads", 2}};
  if (family == "xglm")
    return {{"model_type", family}, {"vocab_size", 11},     {"d_model", 8},
            {"num_layers", 2},      {"attention_heads", 2}, {"ffn_dim", 16}};
  if (family == "opt")
    return {{"model_type", family},   {"vocab_size", 11},         {"hidden_size", 8},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"ffn_dim", 16}};
  if (family == "gpt_bigcode")
    return {{"model_type", family}, {"vocab_size", 11}, {"n_embd", 8}, {"n_layer", 2}, {"n_head", 2}};
  if (family == "bloom")
    return {{"model_type", family}, {"vocab_size", 11}, {"hidden_size", 8}, {"n_layer", 2}, {"n_head", 2}};
  if (family == "mpt")
    return {{"model_type", family}, {"vocab_size", 11}, {"d_model", 8}, {"n_layers", 2}, {"n_heads", 2}};
  if (family == "falcon")
    return {{"model_type", family},
            {"vocab_size", 11},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2}};
  if (family == "gpt_neox" || family == "stablelm")  // a quarter of a head is rotated
    return {{"model_type", family},   {"vocab_size", 11},         {"hidden_size", 16},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"intermediate_size", 16}};
  if (family == "t5" || family == "mt5" || family == "umt5")
    return {{"model_type", family}, {"vocab_size", 11}, {"d_model", 8},
            {"d_ff", 16},           {"num_layers", 2},  {"num_heads", 2}};
  if (family == "bart" || family == "mbart" || family == "marian" || family == "pegasus" ||
      family == "m2m_100" || family == "whisper" || family == "plbart" || family.starts_with("blenderbot"))
    return {{"model_type", family},         {"vocab_size", 11},      {"d_model", 8},
            {"encoder_layers", 2},          {"decoder_layers", 2},   {"encoder_attention_heads", 2},
            {"decoder_attention_heads", 2}, {"encoder_ffn_dim", 16}, {"decoder_ffn_dim", 16}};
  if (family == "vit" || family == "deit")
    return {{"model_type", family},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2},
            {"intermediate_size", 16}};
  if (family == "dinov2")
    return {{"model_type", family}, {"hidden_size", 8}, {"num_hidden_layers", 2}, {"num_attention_heads", 2}};
  if (family == "mlp-mixer")
    return {{"model_type", family},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"tokens_mlp_dim", 4},
            {"channels_mlp_dim", 16}};
  if (family == "mamba2")
    return {{"model_type", family}, {"vocab_size", 11}, {"hidden_size", 8}, {"num_hidden_layers", 2},
            {"num_heads", 4},       {"head_dim", 4},    {"n_groups", 2},    {"state_size", 3}};
  if (family == "mamba" || family == "falcon_mamba")
    return {{"model_type", family}, {"vocab_size", 11}, {"hidden_size", 8}, {"num_hidden_layers", 2}};
  if (family == "nemotron_h")
    return {{"model_type", family},
            {"vocab_size", 11},
            {"hidden_size", 8},
            {"num_attention_heads", 2},
            {"intermediate_size", 16},
            {"num_key_value_heads", 2},
            {"layers_block_type", {"linear_attention", "mlp"}}};
  if (family == "granitemoehybrid" || family == "bamba")
    return {{"model_type", family},     {"vocab_size", 11},         {"hidden_size", 8},
            {"num_hidden_layers", 2},   {"num_attention_heads", 2}, {"intermediate_size", 16},
            {"num_key_value_heads", 2}, {"mamba_n_heads", 4}};
  if (family == "dit")
    return {{"model_type", family},
            {"vocab_size", 11},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2}};
  if (family == "cnn") return {{"model_type", family}};
  if (family == "mlp") return {{"model_type", family}, {"input_size", 3}, {"hidden_sizes", {8, 8}}};
  if (family == "clip" || family == "siglip")
    return {{"model_type", family},
            {"text_config", minimal(family + "_text_model")},
            {"vision_config", minimal(family + "_vision_model")}};
  if (family == "gemma3") return {{"model_type", family}, {"text_config", minimal("gemma3_text")}};
  if (family == "qwen3_5" || family == "qwen3_5_moe")
    return {{"model_type", family}, {"text_config", minimal(family + "_text")}};
  if (family == "llama4") return {{"model_type", family}, {"text_config", minimal("llama4_text")}};
  if (family == "mistral3") return {{"model_type", family}, {"text_config", minimal("ministral3")}};
  if (is_tower(family))
    return {{"model_type", family},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2},
            {"intermediate_size", 16}};
  if (family == "vision-encoder-decoder")
    return {{"model_type", family}, {"encoder", minimal("vit")}, {"decoder", minimal("gpt2")}};
  if (family == "distilbert")
    return {{"model_type", family}, {"vocab_size", 11}, {"dim", 8},
            {"n_layers", 2},        {"n_heads", 2},     {"hidden_dim", 16}};
  if (family == "esm")
    return {{"model_type", family},   {"vocab_size", 11},       {"hidden_size", 8},
            {"pad_token_id", 1},      {"num_hidden_layers", 2}, {"num_attention_heads", 2},
            {"intermediate_size", 16}};
  if (family == "deberta-v2")
    return {{"model_type", family},   {"vocab_size", 11},          {"hidden_size", 8},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2},  {"intermediate_size", 16},
            {"pos_att_type", "c2p"},  {"relative_attention", true}};
  if (is_text_encoder(family) || family == "performer")
    return {{"model_type", family},   {"vocab_size", 11},         {"hidden_size", 8},
            {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"intermediate_size", 16}};
  Json decoder = {{"model_type", family},    {"vocab_size", 11},         {"hidden_size", 8},
                  {"num_hidden_layers", 2},  {"num_attention_heads", 2}, {"intermediate_size", 16},
                  {"num_key_value_heads", 2}};
  if (family == "helium") decoder["head_dim"] = 4;
  if (family == "gpt_oss") decoder["rope_parameters"] = {{"rope_type", "default"}};
  return decoder;
}

std::unique_ptr<Model> make_from(const Json& json) {
  return make_model(ModelConfig(json.dump(), "config.json"));
}
std::unique_ptr<Model> make(const std::string& family, const Json& more = Json::object()) {
  Json json = minimal(family);
  json.update(more);
  return make_from(json);
}
std::string error_of(const std::string& family, const Json& more) {
  try {
    make(family, more);
  } catch (const ContentsError& e) {
    return e.what();
  }
  return "no error";
}
bool has(const Model& m, const std::string& name) {
  for (const ParamSpec& s : m.params().specs)
    if (s.name == name) return true;
  return m.params().aliases.count(name) > 0;
}

TEST(ModelConfigs, EveryFamilyNeedsItsSizes) {
  for (const std::string& family : model_families()) {
    const Json whole = minimal(family);
    EXPECT_NO_THROW(make_from(whole)) << family;
    for (const auto& [key, value] : whole.items()) {
      if (key == "model_type" || key == "rotary_dim" || key == "num_key_value_heads") continue;
      if (family == "vit" || family == "deit" || family == "dinov2" || family == "clip" ||
          family == "siglip" || family == "esm" || is_text_encoder(family) || is_tower(family))
        continue;  // they have defaults of the base model
      Json json = whole;
      json.erase(key);
      EXPECT_THROW(make_from(json), ContentsError) << family << " without " << key;
    }
  }
}

// Folders of older versions name the towers' configs again, and the second ones count.
TEST(ModelConfigs, TheOlderConfigOfATowerTakesItsPlace) {
  const auto rows = [](const Json& more) {
    const auto model = make("clip", more);
    for (const ParamSpec& s : model->params().specs)
      if (s.name == "text_model.embeddings.token_embedding.weight") return s.shape;
    return Shape();
  };
  EXPECT_EQ(rows({{"text_config_dict", nullptr}}), (Shape{49408, 8}));
  EXPECT_EQ(rows({{"text_config_dict", {{"hidden_size", 16}, {"vocab_size", 7}}}}), (Shape{7, 16}));
  EXPECT_EQ(rows({{"text_config", nullptr}}), (Shape{49408, 512}));
}

// As in files of nomic-embed-text, whose model has no head.
TEST(ModelConfigs, AnEncoderWithoutHeadMayHaveNamesWithoutPrefix) {
  const auto model = make("nomic_bert", {{"architectures", {"NomicBertModel"}}});
  EXPECT_EQ(model->canonical_name("emb_ln.weight"), "nomic_bert.emb_ln.weight");
  EXPECT_EQ(model->canonical_name("encoder.layers.0.norm1.bias"), "nomic_bert.encoder.layers.0.norm1.bias");
}

// transformers' masks read the key of every decoder (gte-Qwen2).
TEST(ModelConfigs, ADecoderThatIsNotCausalEmbedsTexts) {
  const auto model = make("qwen2", {{"is_causal", false}});
  EXPECT_EQ(model->task(), ModelTask::feature_extraction);
  EXPECT_FALSE(has(*model, "lm_head.weight"));
  EXPECT_EQ(model->canonical_name("lm_head.weight"), "");
  EXPECT_EQ(make("qwen2", {{"is_causal", true}})->task(), ModelTask::causal_lm);
  EXPECT_THAT(error_of("mistral", {{"is_causal", false}, {"sliding_window", 8}}), HasSubstr("is_causal"));
}

// As transformers writes it for models without windows.
TEST(ModelConfigs, APatternOfZeroMeansNoWindows) {
  EXPECT_EQ(error_of("exaone4", {{"sliding_window", nullptr}, {"sliding_window_pattern", 0}}), "no error");
}

// transformers' classes have no such key, so it can't change what they compute. redco's own families have no
// such class: the key is an error.
TEST(ModelConfigs, UnknownKeysAreListedOrErrors) {
  for (const std::string& family : model_families()) {
    ::testing::internal::CaptureStderr();
    const std::string error = error_of(family, {{"no_alibi", true}, {"unsloth_fixed", true}});
    const std::string log = ::testing::internal::GetCapturedStderr();
    if (hf_keys(family)) {
      EXPECT_EQ(error, "no error") << family;
      EXPECT_THAT(log, AllOf(HasSubstr("config.json"), HasSubstr(family + ": no_alibi, unsloth_fixed")))
          << family;
    } else {
      EXPECT_THAT(error, AllOf(HasSubstr("config.json"), HasSubstr("no_alibi=true"),
                               HasSubstr("ignore_config_keys")));
    }
    EXPECT_EQ(error_of(family, {{"no_alibi", nullptr}}), "no error");
    EXPECT_THAT(error_of(family, {{"quantization_config", {{"bits", 4}}}}), HasSubstr("not supported"));
    EXPECT_THAT(error_of(family, {{"add_cross_attention", true}}), HasSubstr("not supported"));
  }
  EXPECT_THAT(error_of("gpt2", {{"model_type", "rwkv"}}), AllOf(HasSubstr("rwkv"), HasSubstr("qwen2")));
  EXPECT_THAT(error_of("gpt2", {{"model_type", "gemma3n"}}), HasSubstr("redco lacks embeddings per layer"));
  for (const char* other : {"longt5", "led", "big_bird", "bigbird_pegasus", "longformer", "reformer"})
    EXPECT_THAT(error_of("gpt2", {{"model_type", other}}),
                AllOf(HasSubstr(other), HasSubstr("this family is not supported")));
  Json json = minimal("cnn");
  json["alibi"] = true;
  EXPECT_NO_THROW(make_model(ModelConfig(json.dump(), "config.json", {}, {"alibi"})));
}

// A value that changes what transformers computes, of a key that the family doesn't implement.
TEST(ModelConfigs, KeysOfTransformersAreRefusedUnlessTheirValueChangesNothing) {
  EXPECT_EQ(error_of("llama", {{"sliding_window", nullptr}, {"pretraining_tp", 2}}), "no error");
  EXPECT_EQ(error_of("llama", {{"layer_types", {"full_attention", "full_attention"}}}), "no error");
  EXPECT_THAT(error_of("llama", {{"layer_types", {"full_attention", "sliding_attention"}}}),
              HasSubstr("redco supports only null"));
  Json json = minimal("llama");
  json["sliding_window"] = 4;
  EXPECT_NO_THROW(make_model(ModelConfig(json.dump(), "config.json", {}, {"sliding_window"})));
}

TEST(ModelConfigs, OtherNamesOfAnAttributeCount) {
  Json json = minimal("gpt2");
  json.erase("n_embd");
  json["hidden_size"] = 12;
  EXPECT_EQ(make_from(json)->hidden_size(), 12);
  EXPECT_EQ(make_model(ModelConfig(json.dump(), "config.json", {{"n_embd", "16"}}))->hidden_size(), 16);
  EXPECT_EQ(make_model(ModelConfig(json.dump(), "config.json", {{"hidden_size", "16"}}))->hidden_size(), 16);
  EXPECT_EQ(error_of("gpt2", {{"hidden_size", 8}}), "no error");
  EXPECT_THAT(error_of("gpt2", {{"hidden_size", 16}}), HasSubstr("n_embd=8 contradicts it"));
}

// Keys as the hub's folders have them, with values that change nothing that the model computes.
TEST(ModelConfigs, KeysOfPublishedFoldersAreRead) {
  const std::vector<std::pair<std::string, Json>> published = {
      {"llama",
       {{"transformers.js_config", {{"dtype", "q4"}}}, {"is_llama_config", true}, {"pretraining_tp", 2}}},
      {"llama", {{"eos_token_id", {2, 3}}, {"torch_dtype", "auto"}, {"auto_map", {{"AutoModel", "x.Y"}}}}},
      {"qwen2", {{"sliding_window", 4}, {"use_sliding_window", false}, {"use_mrope", false}}},
      {"qwen2",
       {{"rope_scaling",
         {{"type", "yarn"}, {"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 8}}}}},
      {"opt", {{"activation_dropout", 0.1}, {"prefix", "</s>"}, {"_remove_final_layer_norm", false}}},
      {"cohere2", {{"use_parallel_embedding", true}, {"use_embedding_sharing", true}, {"layer_switch", 4}}},
      {"stablelm", {{"rotary_scaling_factor", 1.0}, {"num_heads", 32}}},
      {"starcoder2", {{"scale_attention_softmax_in_fp32", true}, {"attention_softmax_in_fp32", true}}},
      {"bert", {{"directionality", "bidi"}, {"pooler_type", "first_token_transform"}}},
      {"bart", {{"force_bos_token_to_be_generated", true}, {"num_beams", 4}, {"_num_labels", 3}}},
  };
  for (const auto& [family, keys] : published) EXPECT_EQ(error_of(family, keys), "no error") << keys;
}

// As in transformers: output_router_logits turns the loss on, and DeepSeek's classes have none.
TEST(ModelConfigs, LoadBalancingLoss) {
  const auto coefficient = [](const char* family, Json keys) {
    Json json = minimal(family);
    json.update(keys);
    const auto model = make_model(ModelConfig(json.dump(), "config.json"));
    return model->router_loss() ? model->router_loss()->coefficient : -1;
  };
  for (const char* family : {"mixtral", "qwen2_moe", "qwen3_moe"}) {
    EXPECT_EQ(coefficient(family, {{"router_aux_loss_coef", 0.5}}), -1);
    EXPECT_EQ(coefficient(family, {{"output_router_logits", true}}), 0.001);
    EXPECT_EQ(coefficient(family, {{"output_router_logits", true}, {"router_aux_loss_coef", 0.5}}), 0.5);
  }
  EXPECT_EQ(coefficient("deepseek_v2", {{"output_router_logits", true}}), -1);
  EXPECT_THAT(error_of("mixtral", {{"router_aux_loss_coef", -1}}), HasSubstr("expected 0 or a positive"));
  ::testing::internal::CaptureStderr();
  make_model(ModelConfig(minimal("mixtral").dump(), "config.json", {{"router_aux_loss_coef", "0.5"}}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("without output_router_logits: true"));
}

TEST(ModelConfigs, PythonsNumbersAreRead) {
  Json json = minimal("mamba2");
  json["time_step_limit"] = {0.0, "LIMIT"};
  std::string text = json.dump();
  text.replace(text.find("\"LIMIT\""), 7, "Infinity");
  EXPECT_NO_THROW(make_model(ModelConfig(text, "config.json")));
}

TEST(ModelConfigs, RopeKeysOfOtherTypesAreListed) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(error_of("llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"beta", 1}}}}),
            "no error");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no such keys: beta"));
  EXPECT_EQ(error_of("llama", {{"rope_scaling", {{"type", "mrope"}, {"rope_type", "default"}}}}), "no error");
}

TEST(ModelConfigs, ABadOverrideIsAUsageError) {
  const std::string text = minimal("gpt2").dump();
  try {
    make_model(ModelConfig(text, "config.json", {{"n_head", "3"}}));
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("model.n_head=3"));
  }
  EXPECT_EQ(make_model(ModelConfig(text, "config.json", {{"n_layer", "1"}}))->n_layers(), 1);
}

// All keys of the job that are wrong or missing, each with its place and the nearest key.
TEST(ModelConfigs, KeysOfTheJobAreReportedTogether) {
  ConfigPlaces places;
  places.arch = "model.arch=gpt2";
  places.origins.set("model.arch", "job.yaml:1:9");
  for (const char* key : {"n_layers", "n_head", "embd_pdrop"}) {
    places.origins.set(std::string("model.") + key, std::string("value of ") + key);
    places.origins.set_key(std::string("model.") + key, std::string("key ") + key);
  }
  try {
    make_model(ModelConfig(R"({"model_type": "gpt2", "vocab_size": 11})", "model.arch gpt2",
                           {{"n_layers", "2"}, {"n_head", "\"two\""}, {"embd_pdrop", "1"}}, {}, places));
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "value of n_head: model.n_head=\"two\": expected a whole number\n"
                 "value of embd_pdrop: model.embd_pdrop=1: expected a rate in [0, 1)\n"
                 "key n_layers: unknown key model.n_layers; did you mean model.n_layer?\n"
                 "job.yaml:1:9: model.arch=gpt2 needs model.n_embd, model.n_layer; they are missing");
  }
  // A misspelled key is named even where a check stops for the missing one: n_embd is not a multiple of
  // n_head.
  places.origins.set("model.n_embed", "job.yaml:1:30");
  try {
    make_model(ModelConfig(R"({"model_type": "gpt2", "vocab_size": 11})", "model.arch gpt2",
                           {{"n_embed", "8"}, {"n_head", "2"}}, {}, places));
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "job.yaml:1:30: unknown key model.n_embed; did you mean model.n_embd?\n"
                 "job.yaml:1:9: model.arch=gpt2 needs model.n_embd, model.n_layer; they are missing");
  }
  // Of a file, all keys too, as errors of its contents.
  try {
    make_model(ModelConfig(R"({"model_type": "gpt2", "vocab_size": 11, "n_head": 1, "sliding_window": 4})",
                           "config.json"));
    FAIL();
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("config.json: n_embd, n_layer: missing"), HasSubstr("sliding_window=4")));
  }
}

TEST(ModelConfigs, WrongKeysOfAPartNameTheWholeKey) {
  ConfigPlaces places;
  places.origins.set("model.decoder.n_layers", "job.yaml:2:40");
  try {
    make_model(ModelConfig(minimal("vision-encoder-decoder").dump(), "config.json",
                           {{"decoder", R"({"n_layers": 1})"}}, {}, places));
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "job.yaml:2:40: unknown key model.decoder.n_layers; did you mean model.decoder.n_layer?");
  }
}

// The other keys of a part, like its vocabulary, stay.
TEST(ModelConfigs, PartsAreOverriddenByKey) {
  const auto model = make_model(ModelConfig(minimal("vision-encoder-decoder").dump(), "config.json",
                                            {{"decoder", R"({"n_layer": 1})"}}));
  EXPECT_EQ(model->n_layers(), 1);
  EXPECT_EQ(model->vocab_size(), 11);
  EXPECT_THAT(model->config_json(), HasSubstr("\"n_embd\": 8"));
}

struct Bad {
  const char* family;
  Json settings;
  const char* says;
};

TEST(ModelConfigs, UnsupportedValuesAreErrorsWithTheSupportedOnes) {
  const std::vector<Bad> cases = {
      {"gpt2", {{"activation_function", "xielu"}}, "supported: gelu"},
      {"gpt2", {{"n_head", 3}}, "expected a divisor of n_embd=8"},
      {"gpt2", {{"n_layer", "two"}}, "whole number"},
      {"gpt2", {{"n_layer", 2.5}}, "whole number"},
      {"gpt2", {{"n_embd", 0}}, "at least 1"},
      {"gpt2", {{"vocab_size", -1}}, "at least 1"},
      {"gpt2", {{"resid_pdrop", 1.0}}, "[0, 1)"},
      {"gpt2", {{"attn_pdrop", -0.1}}, "[0, 1)"},
      {"gpt2", {{"layer_norm_epsilon", 0}}, "above 0"},
      {"gpt2", {{"scale_attn_weights", "yes"}}, "true or false"},
      {"gpt2", {{"n_special", 3}}, "supported: 0"},
      {"gptj", {{"rotary_dim", nullptr}}, "expected a whole number"},
      {"gptj", {{"rotary_dim", 6}}, "head width 4"},
      {"gptj", {{"rotary_dim", 3}}, "even"},
      {"gptj", {{"rotary", false}}, "supported: true"},
      {"opt", {{"layerdrop", 0.1}}, "supported: 0.0"},
      {"opt", {{"pad_token_id", 11}}, "less than vocab_size=11"},
      {"llama", {{"num_key_value_heads", 3}}, "expected a divisor of num_attention_heads="},
      {"llama", {{"hidden_act", "geglu"}}, "supported: gelu"},
      {"llama", {{"head_dim", 3}}, "even head width"},
      {"llama", {{"partial_rotary_factor", 0.5}}, "supported: 1"},
      {"llama", {{"sliding_window", 4}}, "redco supports only null"},
      {"llama",
       {{"rope_scaling", {{"type", "xdrope"}, {"factor", 2.0}}}},
       "supported: default, linear, dynamic, llama3, yarn, longrope"},
      {"llama", {{"rope_scaling", {{"type", "dynamic"}}}}, "factor: missing"},
      {"llama",
       {{"rope_parameters", {{"rope_type", "longrope"}}}},
       "short_factor: expected 2 numbers above 0"},
      {"llama", {{"rope_scaling", {{"type", "linear"}}}}, "factor: missing"},
      {"llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 0}}}}, "above 0"},
      {"llama", {{"rope_scaling", {{"type", "linear"}, {"factor", "4"}}}}, "finite number"},
      {"llama", {{"rope_scaling", {{"type", "linear"}, {"rope_type", "default"}}}}, "rope_type is 'default'"},
      {"llama", {{"rope_scaling", "linear"}}, "expected an object"},
      {"llama", {{"rope_scaling", {{"type", 4}}}}, "expected a string"},
      {"llama", {{"rope_theta", 0}}, "above 0"},
      {"llama", {{"rope_theta", 5.0}, {"rope_parameters", {{"rope_theta", 10000.0}}}}, "keep one of them"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}, {"rope_parameters", {{"rope_theta", 1e4}}}},
       "keep one of them"},
      {"mistral", {{"sliding_window", 0}}, "at least 1"},
      {"qwen2", {{"layer_types", {"full_attention"}}}, "num_hidden_layers=2"},
      {"qwen2", {{"layer_types", {"full_attention", "linear_attention"}}}, "supported: full_attention"},
      {"qwen2", {{"layer_types", {"full_attention", "sliding_attention"}}}, "use_sliding_window"},
      {"qwen2", {{"use_mrope", true}}, "supported: false"},
      {"qwen3", {{"layer_types", {"full_attention", "sliding_attention"}}}, "use_sliding_window"},
      {"gemma", {{"use_bidirectional_attention", true}}, "supported: false"},
      {"gemma",
       {{"hidden_act", "gelu"}, {"hidden_activation", "relu"}},
       "hidden_act means gelu_pytorch_tanh"},
      {"gemma", {{"sliding_window", 4}}, "redco supports only null"},
      {"gemma2", {{"attn_logit_softcapping", 0}}, "above 0, or null"},
      {"gemma2", {{"final_logit_softcapping", -1.0}}, "above 0, or null"},
      {"gemma2", {{"query_pre_attn_scalar", 0}}, "above 0"},
      {"gemma2", {{"sliding_window", nullptr}}, "sliding_attention need it"},
      {"gemma2", {{"sliding_window_size", 8}}, "sliding_window=4096 contradicts it"},
      {"gemma2", {{"layer_types", {"full_attention"}}}, "num_hidden_layers=2"},
      {"gemma3_text",
       {{"rope_parameters", {{"rope_type", "default"}}}},
       "full_attention and sliding_attention"},
      {"gemma3_text", {{"rope_local_base_freq", 0}}, "above 0"},
      {"gemma3_text", {{"sliding_window_pattern", 0}}, "at least 1"},
      {"gemma3_text",
       {{"rope_theta", 5.0}, {"rope_parameters", {{"full_attention", {{"rope_theta", 6.0}}}}}},
       "keep one of them"},
      {"mixtral", {{"num_experts_per_tok", 9}}, "expected at most num_local_experts=8"},
      {"mixtral", {{"num_local_experts", 4}, {"num_experts", 8}}, "keep one of them"},
      {"mixtral", {{"output_router_logits", 1}}, "true or false"},
      {"mixtral", {{"router_jitter_noise", 0.1}}, "supported: 0"},
      {"mixtral", {{"hidden_act", "relu2"}}, "inside experts"},
      {"mixtral", {{"sliding_window", 0}}, "at least 1"},
      {"phi3", {{"partial_rotary_factor", 1.5}}, "at most 1"},
      {"phi3", {{"partial_rotary_factor", 0.75}}, "expected an even number"},
      {"phi3", {{"attention_bias", true}}, "supported: false"},
      {"gpt_neox",
       {{"rotary_pct", 0.5}, {"rope_parameters", {{"partial_rotary_factor", 0.25}}}},
       "keep one of them"},
      {"falcon", {{"new_decoder_architecture", true}, {"parallel_attn", false}}, "needs true"},
      {"falcon", {{"new_decoder_architecture", true}, {"num_kv_heads", 3}}, "expected a divisor"},
      {"falcon", {{"num_ln_in_parallel_attn", 2}}, "supported: 1"},
      {"falcon", {{"attention_dropout", 0.1}}, "supported: 0.0"},
      {"mpt", {{"attn_config", {{"alibi", false}}}}, "alibi: not supported"},
      {"mpt", {{"attn_config", {{"clip_qkv", "a"}}}}, "expected a number"},
      {"gpt_bigcode", {{"num_key_value_heads", 2}}, "supported: 1"},
      {"starcoder2", {{"norm_type", "rms"}}, "supported"},
      {"olmo", {{"clip_qkv", -1.0}}, "above 0"},
      {"olmo3", {{"layer_types", {"full_attention"}}}, "num_hidden_layers=2"},
      {"cohere2", {{"use_qk_norm", true}}, "supported: false"},
      {"smollm3", {{"no_rope_layers", {1}}}, "num_hidden_layers=2"},
      {"smollm3", {{"layer_types", {"full_attention", "sliding_attention"}}}, "sliding_attention need it"},
      {"qwen2_moe", {{"num_experts", 2}}, "expected at most num_experts=2"},
      {"qwen2_moe", {{"layer_types", {"full_attention", "sliding_attention"}}}, "use_sliding_window"},
      {"qwen3_moe", {{"mlp_only_layers", 1}}, "expected a list"},
      {"deepseek_v3", {{"n_group", 7}}, "expected a divisor of n_routed_experts"},
      {"deepseek_v3", {{"n_group", 4}, {"topk_group", 5}}, "at most n_group"},
      {"deepseek_v3", {{"n_routed_experts", 16}, {"n_group", 8}, {"topk_group", 1}}, "fewer experts"},
      {"deepseek_v3", {{"scoring_func", "softmax"}}, "supported"},
      {"deepseek_v2", {{"topk_method", "noaux_tc"}}, "supported"},
      {"gpt_oss", {{"quantization_config", {{"quant_method", "gptq"}}}}, "quant_method mxfp4"},
      {"gpt_oss", {{"swiglu_limit", 0}}, "swiglu_limit"},
      {"hunyuan_v1_moe",
       {{"num_experts", 4}, {"moe_topk", {2, 1}}},
       "the same number of experts in all layers"},
      {"hunyuan_v1_moe", {{"num_experts", 4}, {"moe_topk", Json::array()}}, "expected a number"},
      {"granitemoe", {{"num_local_experts", 0}}, "expected at least 1"},
      {"apertus", {{"hidden_act", "silu"}}, "supported: \"xielu\""},
      {"phimoe", {{"num_experts_per_tok", 1}}, "supported: 2"},
      {"phimoe", {{"router_jitter_noise", -1}}, "expected 0 or a positive number"},
      {"phimoe",
       {{"rope_scaling", {{"type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {1, 1}}}}},
       "short_mscale"},
      {"lfm2", {{"layer_types", {"conv", "mamba"}}}, "supported: full_attention, conv"},
      {"lfm2", {{"full_attn_idxs", 1}}, "expected a list of layers"},
      {"falcon_h1", {{"ssm_multipliers", {1, 2}}}, "expected a list of 5 numbers"},
      {"falcon_h1", {{"mamba_d_ssm", 10}, {"mamba_n_heads", 4}}, "are not mamba_d_ssm=10"},
      {"mamba", {{"time_step_max", 0.0001}}, "expected at least time_step_min"},
      {"jamba", {{"attn_layer_offset", 8}}, "expected less than attn_layer_period=8"},
      {"granitemoehybrid", {{"layer_types", {"mamba"}}}, "expected a list of num_hidden_layers=2 texts"},
      {"granitemoehybrid", {{"layer_types", {"mamba", "conv"}}}, "supported: full_attention"},
      {"granitemoehybrid", {{"mamba_n_groups", 3}}, "expected a divisor of mamba_n_heads=4"},
      {"bamba", {{"mamba_d_head", 3}}, "4 heads of mamba_d_head=3 are not mamba_expand times hidden_size=8"},
      {"bamba", {{"attn_layer_indices", {2}}}, "expected numbers below num_hidden_layers=2"},
      {"nemotron_h", {{"layers_block_type", {"conv"}}}, "supported: linear_attention"},
      {"nemotron_h", {{"layers_block_type", {"moe"}}, {"n_group", 3}}, "expected a divisor of n_routed"},
      {"qwen3_next", {{"linear_num_key_heads", 3}}, "expected a divisor of linear_num_value_heads=32"},
      {"qwen3_next", {{"layer_types", {"sliding_attention", "conv"}}}, "supported: full_attention"},
      {"mamba2", {{"num_heads", 3}}, "3 heads of head_dim=4 are not expand=2 times hidden_size=8"},
      {"mamba2", {{"n_groups", 3}}, "expected a divisor of num_heads=4"},
      {"mamba2", {{"time_step_limit", {0.0, "Infinity"}}}, "expected [low, high]"},
      {"mamba2", {{"time_step_limit", {0.5, 0.1}}}, "expected low <= high"},
      {"mamba2", {{"time_step_max", 1e-5}}, "expected at least time_step_min=0.001"},
      {"mamba2", {{"rms_norm", false}}, "supported: true"},
      {"t5", {{"feed_forward_proj", "gated"}}, "gated-ACTIVATION"},
      {"t5", {{"feed_forward_proj", "gated-geglu"}}, "gated-ACTIVATION"},
      {"t5", {{"dense_act_fn", "geglu"}}, "supported: gelu"},
      {"t5", {{"relative_attention_num_buckets", 3}}, "at least 4"},
      {"t5", {{"relative_attention_max_distance", 16}}, "more than relative_attention_num_buckets/2=16"},
      {"t5", {{"decoder_start_token_id", 11}}, "less than vocab_size=11"},
      {"t5", {{"head_dim", 8}, {"d_kv", 4}}, "d_kv=4 contradicts it"},
      {"t5", {{"is_encoder_decoder", false}}, "supported: true"},
      {"t5", {{"initializer_factor", 0}}, "above 0"},
      {"bart", {{"encoder_attention_heads", 3}}, "expected a divisor of d_model=8"},
      {"bart", {{"decoder_attention_heads", 3}}, "expected a divisor of d_model=8"},
      {"bart", {{"num_hidden_layers", 3}}, "encoder_layers=2 contradicts it"},
      {"bart", {{"encoder_layerdrop", 1.5}}, "[0, 1)"},
      {"bart", {{"normalize_before", true}}, "supported: false"},
      {"bart", {{"activation_dropout", 1.5}}, "[0, 1)"},
      {"whisper", {{"apply_spec_augment", true}}, "supported: false"},
      {"whisper",
       {{"d_model", 2}, {"encoder_attention_heads", 1}, {"decoder_attention_heads", 1}},
       "expected an even number of at least 4"},
      {"bert", {{"architectures", {"BertForNextSentencePrediction"}}}, "supported: BertForMaskedLM"},
      {"mpnet", {{"relative_attention_num_buckets", 64}}, "supported: 32"},
      {"mpnet", {{"max_position_embeddings", 2}}, "expected more than 2"},
      {"modernbert", {{"classifier_pooling", "max"}}, "supported"},
      {"deberta-v2", {{"pos_att_type", "p2p"}}, "supported: c2p, p2c"},
      {"deberta-v2", {{"position_buckets", 3}}, "at least 4"},
      {"deberta-v2", {{"conv_kernel_size", 2}}, "expected an odd number"},
      {"deberta-v2", {{"conv_kernel_size", 3}, {"conv_groups", 3}}, "a divisor of hidden_size=8"},
      {"marian", {{"decoder_vocab_size", 12}}, "supported: vocab_size=11"},
      {"marian", {{"share_encoder_decoder_embeddings", false}}, "supported: true"},
      {"m2m_100", {{"pad_token_id", nullptr}}, "positions are counted from it"},
      {"m2m_100", {{"d_model", 2}}, "at least 4"},
      {"bert", {{"architectures", "BertForMaskedLM"}}, "list of names"},
      {"bert", {{"position_embedding_type", "relative_key"}}, "supported: \"absolute\""},
      {"bert", {{"is_decoder", true}}, "supported: false"},
      {"bert", {{"tie_word_embeddings", false}}, "supported: true"},
      {"bert", {{"id2label", {{"0", "a"}}}, {"num_labels", 2}}, "names 1 classes"},
      {"roberta", {{"pad_token_id", nullptr}}, "positions are counted from it"},
      {"roberta", {{"max_position_embeddings", 2}}, "no position is left"},
      {"vit", {{"image_size", 30}}, "is not divisible into patches"},
      {"vit", {{"image_size", {32, "a"}}}, "[height, width]"},
      {"vit", {{"patch_size", {8, 8, 8}}}, "[height, width]"},
      {"vit", {{"architectures", {"ViTForMaskedImageModeling"}}}, "ViTForImageClassification"},
      {"vit", {{"architectures", {"DeiTForImageClassificationWithTeacher"}}}, "ViTForImageClassification"},
      {"dinov2", {{"mlp_ratio", 0}}, "a number above 0"},
      {"clip_text_model", {{"num_attention_heads", 3}}, "a divisor of hidden_size=8"},
      {"clip_text_model", {{"architectures", {"CLIPModel"}}}, "CLIPTextModelWithProjection"},
      {"clip_vision_model", {{"architectures", {"CLIPTextModel"}}}, "supported: CLIPVisionModel"},
      {"siglip_vision_model", {{"vision_use_head", false}}, "supported: true"},
      {"siglip",
       {{"vision_config", {{"model_type", "siglip_vision_model"}}}},
       "hidden_size=768 in vision_config"},
      {"vision-encoder-decoder", {{"encoder", nullptr}}, "encoder"},
      {"mlp-mixer", {{"patch_size", 15}}, "is not divisible into patches"},
      {"mlp-mixer", {{"tokens_mlp_dim", 0}}, "at least 1"},
      {"mlp-mixer", {{"architectures", {"MlpMixer"}}}, "supported: [\"MlpMixerForImageClassification\"]"},
      {"performer", {{"num_attention_heads", 3}}, "expected a divisor of hidden_size=8"},
      {"performer", {{"num_random_features", 0}}, "at least 1"},
      {"performer", {{"kernel_epsilon", 0}}, "above 0"},
      {"mlp", {{"hidden_sizes", 40}}, "the widths of the hidden layers, such as [40, 40]"},
      {"mlp", {{"hidden_sizes", {8, 0}}}, "the widths of the hidden layers"},
      {"mlp", {{"problem_type", "multi_label_classification"}}, "supported: regression"},
      {"vision-encoder-decoder", {{"encoder", minimal("bert")}}, "config.json: encoder: model_type=\"bert\""},
      {"vision-encoder-decoder", {{"decoder", {{"n_embd", 8}}}}, "config.json: decoder: model_type"},
      {"vision-encoder-decoder", {{"decoder_start_token_id", 11}}, "less than vocab_size=11"},
  };
  for (const Bad& c : cases)
    EXPECT_THAT(error_of(c.family, c.settings), HasSubstr(c.says)) << c.family << " " << c.settings.dump();
}

TEST(ModelConfigs, RopeSpellingsAgree) {
  const auto frequencies = [](const Json& json) {
    ModelConfig c(json.dump(), "config.json");
    const RopeOptions o = read_rope(c, 16, 64).usual;
    return std::make_pair(*o.inv_freq, o.attention_factor);
  };
  const Json llama3 = {{"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 32}};
  Json v4 = llama3, v5 = llama3, both = llama3;
  v4["type"] = "llama3";
  both["type"] = both["rope_type"] = "llama3";
  v5["rope_type"] = "llama3";
  v5["rope_theta"] = 500.0;
  const auto expected = frequencies({{"rope_parameters", v5}});
  EXPECT_EQ(frequencies({{"rope_theta", 500.0}, {"rope_scaling", v4}}), expected);
  EXPECT_EQ(frequencies({{"rope_theta", 500.0}, {"rope_scaling", both}}), expected);
  EXPECT_EQ(frequencies({{"rope_theta", 500.0}, {"rope_scaling", nullptr}, {"rope_parameters", v5}}),
            expected);
  EXPECT_NE(frequencies({{"rope_theta", 500.0}}), expected);
  EXPECT_EQ(frequencies({{"rope_theta", 500.0}}), frequencies({{"rope_parameters", {{"rope_theta", 500}}}}));
  EXPECT_EQ(frequencies(Json::object()), frequencies({{"rope_theta", 10000}}));
  EXPECT_EQ(frequencies({{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 1.0}}}}),
            frequencies({{"rope_scaling", Json::object()}}));
}

TEST(ModelConfigs, SettingsAddAndRemoveParameters) {
  EXPECT_TRUE(make("gpt2")->params().aliases.count("lm_head.weight"));
  EXPECT_FALSE(make("gpt2", {{"tie_word_embeddings", false}})->params().aliases.count("lm_head.weight"));
  EXPECT_FALSE(make("gptj")->params().aliases.count("lm_head.weight"));
  const auto tied = make("gptj", {{"tie_word_embeddings", true}});
  EXPECT_TRUE(tied->params().aliases.count("lm_head.weight"));
  EXPECT_TRUE(has(*tied, "lm_head.bias"));

  const auto opt = make("opt");
  EXPECT_TRUE(has(*opt, "model.decoder.final_layer_norm.weight"));
  EXPECT_TRUE(has(*opt, "model.decoder.layers.1.fc1.bias"));
  EXPECT_FALSE(has(*opt, "model.decoder.project_in.weight"));
  const auto post = make("opt", {{"do_layer_norm_before", false}, {"word_embed_proj_dim", 4}});
  EXPECT_FALSE(has(*post, "model.decoder.final_layer_norm.weight"));
  EXPECT_TRUE(has(*post, "model.decoder.project_out.weight"));
  EXPECT_FALSE(has(*make("opt", {{"enable_bias", false}}), "model.decoder.layers.0.self_attn.q_proj.bias"));

  EXPECT_FALSE(has(*make("llama"), "model.layers.0.self_attn.q_proj.bias"));
  EXPECT_TRUE(has(*make("llama", {{"attention_bias", true}}), "model.layers.0.self_attn.o_proj.bias"));
  EXPECT_TRUE(has(*make("qwen2"), "model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(has(*make("qwen2"), "model.layers.0.self_attn.o_proj.bias"));
  EXPECT_FALSE(has(*make("mistral", {{"sliding_window", nullptr}}), "model.layers.0.self_attn.q_proj.bias"));

  EXPECT_TRUE(has(*make("qwen3"), "model.layers.0.self_attn.q_norm.weight"));
  EXPECT_TRUE(make("gemma")->params().aliases.count("lm_head.weight"));
  EXPECT_FALSE(has(*make("gemma"), "model.layers.0.pre_feedforward_layernorm.weight"));
  EXPECT_TRUE(has(*make("gemma2"), "model.layers.0.post_feedforward_layernorm.weight"));
  EXPECT_TRUE(has(*make("gemma3_text", {{"attention_bias", true}}), "model.layers.1.self_attn.o_proj.bias"));
  const auto mixtral = make("mixtral", {{"num_experts", 3}});
  for (const ParamSpec& s : mixtral->params().specs)
    if (s.stored.stacked > 0) {
      EXPECT_EQ(s.shape[0], 3) << s.name;
      EXPECT_THAT(s.stored.tensor(2), HasSubstr("block_sparse_moe.experts.2.w"));
    }

  const std::string wi = "encoder.block.1.layer.1.DenseReluDense.wi", head = "lm_head.weight";
  EXPECT_TRUE(has(*make("t5"), wi + ".weight"));
  EXPECT_TRUE(make("t5")->params().aliases.count(head));
  // gated-gelu means the tanh form (see the fixture). The keys derived from it take precedence.
  const auto gated = make("t5", {{"feed_forward_proj", "gated-gelu"}, {"tie_word_embeddings", false}});
  EXPECT_TRUE(has(*gated, wi + "_1.weight"));
  EXPECT_FALSE(gated->params().aliases.count(head));
  EXPECT_FALSE(
      has(*make("t5", {{"feed_forward_proj", "gated-gelu"}, {"is_gated_act", false}}), wi + "_1.weight"));
  const auto uneven = make("t5", {{"num_decoder_layers", 1}});
  EXPECT_FALSE(has(*uneven, "decoder.block.1.layer.0.SelfAttention.q.weight"));
  EXPECT_EQ(uneven->n_layers(), 1);
  // Only the first layer of a stack holds the bias table.
  EXPECT_TRUE(has(*gated, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"));
  EXPECT_FALSE(has(*gated, "decoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"));
  EXPECT_EQ(make("bart")->params().aliases.count("model.encoder.embed_tokens.weight"), 1u);
  EXPECT_TRUE(make("bart", {{"tie_word_embeddings", false}})->params().aliases.empty());

  EXPECT_EQ(make("bert")->task(), ModelTask::masked_lm);
  EXPECT_TRUE(make("roberta")->params().aliases.count("lm_head.decoder.weight"));
  const auto classes = [](const std::string& family, const std::string& architecture,
                          const std::string& out) {
    const auto model =
        make(family, {{"architectures", {architecture}}, {"id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}}});
    EXPECT_EQ(model->task(), ModelTask::sequence_classification);
    EXPECT_EQ(model->params().specs.back().name, out);
    EXPECT_EQ(model->params().specs.back().shape, Shape{3});
  };
  classes("bert", "BertForSequenceClassification", "classifier.bias");
  classes("roberta", "RobertaForSequenceClassification", "classifier.out_proj.bias");

  // A memory of another width is projected; the unused pooler is kept and not trained.
  EXPECT_FALSE(has(*make("vision-encoder-decoder"), "enc_to_dec_proj.weight"));
  Json narrow = minimal("vit");
  narrow.update({{"hidden_size", 4}, {"num_attention_heads", 1}});
  const auto captions = make("vision-encoder-decoder", {{"encoder", narrow}});
  EXPECT_TRUE(has(*captions, "enc_to_dec_proj.bias"));
  EXPECT_TRUE(has(*captions, "decoder.transformer.h.1.crossattention.c_attn.weight[k]"));
  EXPECT_FALSE(has(*captions, "decoder.transformer.h.1.crossattention.c_attn.weight[q]"));
  for (const ParamSpec& s : captions->params().specs)
    EXPECT_EQ(s.trained(), !s.name.starts_with("encoder.pooler")) << s.name;
}

TEST(ModelConfigs, TwoStacksHaveADecoderStartToken) {
  const auto bart = make("bart");  // transformers' defaults: 2 begins, 1 pads
  const std::vector<i32> labels = {4, -100, 6, 2};
  EXPECT_EQ(bart->decoder_input_ids(labels), (std::vector<i32>{2, 4, 1, 6}));
  EXPECT_TRUE(bart->is_encoder_decoder());
  EXPECT_EQ(bart->length_limit(), 1024);
  const auto t5 = make("t5", {{"decoder_start_token_id", 3}});
  EXPECT_EQ(t5->decoder_input_ids(labels), (std::vector<i32>{3, 4, 0, 6}));
  EXPECT_EQ(t5->max_length(), 512);
  EXPECT_EQ(t5->length_limit(), Model::kNoLimit);
  // A missing key is an error.
  const auto error = [&](const Json& settings) {
    try {
      make("t5", settings)->decoder_input_ids(labels);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error(Json::object()), HasSubstr("model.decoder_start_token_id"));
  EXPECT_THAT(error({{"decoder_start_token_id", 3}, {"pad_token_id", nullptr}}),
              HasSubstr("model.pad_token_id"));
}

TEST(ModelConfigs, StoredNamesBecomeCanonical) {
  const auto gpt2 = make("gpt2"), gptj = make("gptj"), opt = make("opt"), llama = make("llama");
  EXPECT_EQ(gpt2->canonical_name("h.1.mlp.c_fc.bias"), "transformer.h.1.mlp.c_fc.bias");
  EXPECT_EQ(gpt2->canonical_name("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(gpt2->canonical_name("transformer.h.0.attn.bias"), "");
  EXPECT_EQ(gpt2->canonical_name("h.0.attn.masked_bias"), "");
  EXPECT_EQ(gptj->canonical_name("wte.weight"), "transformer.wte.weight");
  EXPECT_EQ(gptj->canonical_name("transformer.h.0.attn.bias"), "");
  EXPECT_EQ(gptj->canonical_name("lm_head.bias"), "lm_head.bias");
  for (const char* prefix : {"model.decoder.", "decoder.", ""})
    EXPECT_EQ(opt->canonical_name(std::string(prefix) + "layers.0.fc1.bias"),
              "model.decoder.layers.0.fc1.bias");
  EXPECT_EQ(opt->canonical_name("decoder.version"), "");
  EXPECT_EQ(llama->canonical_name("layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(llama->canonical_name("model.layers.0.self_attn.rotary_emb.inv_freq"), "");
  EXPECT_EQ(llama->canonical_name("norm.weight"), "model.norm.weight");
  const auto t5 = make("t5"), bart = make("bart");
  EXPECT_EQ(t5->canonical_name("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"), "");
  EXPECT_EQ(t5->canonical_name("shared.weight"), "shared.weight");
  EXPECT_EQ(bart->canonical_name("encoder.layers.0.fc1.bias"), "model.encoder.layers.0.fc1.bias");
  EXPECT_EQ(bart->canonical_name("model.decoder.version"), "");
  EXPECT_EQ(bart->canonical_name("encoder.version"), "");
  EXPECT_EQ(bart->canonical_name("final_logits_bias"), "final_logits_bias");
  const auto bert = make("bert");
  EXPECT_EQ(bert->canonical_name("encoder.layer.0.output.LayerNorm.gamma"),
            "bert.encoder.layer.0.output.LayerNorm.weight");
  EXPECT_EQ(bert->canonical_name("cls.predictions.transform.LayerNorm.beta"),
            "cls.predictions.transform.LayerNorm.bias");
  for (const char* skipped : {"bert.embeddings.position_ids", "embeddings.position_ids",
                              "bert.pooler.dense.bias", "cls.seq_relationship.weight"})
    EXPECT_EQ(bert->canonical_name(skipped), "") << skipped;
}

TEST(ModelConfigs, PositionsFollowTheMask) {
  const std::vector<i32> left = {0, 0, 1, 1}, right = {1, 1, 0, 0};
  const auto gpt2 = make("gpt2"), opt = make("opt");
  EXPECT_EQ(gpt2->positions(left, false), (std::vector<i32>{0, 1, 2, 3}));
  EXPECT_EQ(gpt2->positions(left, true), (std::vector<i32>{0, 0, 0, 1}));
  EXPECT_EQ(opt->positions(left, true), (std::vector<i32>{1, 1, 2, 3}));
  EXPECT_EQ(opt->positions(right, false), (std::vector<i32>{2, 3, 1, 1}));
}

TEST(ModelConfigs, TheSavedConfigEqualsTheOneRead) {
  const auto model =
      make_model(ModelConfig(minimal("llama").dump(), "config.json", {{"rms_norm_eps", "1e-5"}}));
  Json expected = minimal("llama");
  expected["rms_norm_eps"] = 1e-5;
  EXPECT_EQ(Json::parse(model->config_json()), expected);
}

TEST(ModelConfigs, HostileTextIsAnError) {
  for (const std::string text : {"", "[]", "{", "{\"vocab_size\": 1e400}", "\xff", "null"})
    EXPECT_THROW(make_model(ModelConfig(text, "config.json")), ContentsError) << text;
  EXPECT_THROW(
      ModelConfig("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", "config.json"),
      ContentsError);
}

}  // namespace
}  // namespace redco
