#include "models/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/registry.h"
#include "base/user_code.h"
#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"
#include "models/families.h"
#include "models/missing_families.h"
#include "models/plugin_families.h"
#include "models/seq2seq/seq2seq.h"
#include "nn/activations_by_name.h"
#include "nn/cache_forms.h"

namespace redco {

const char* name_of(ModelTask task) {
  switch (task) {
    case ModelTask::causal_lm:
      return "causal-lm";
    case ModelTask::seq2seq_lm:
      return "seq2seq-lm";
    case ModelTask::image_captioning:
      return "image-captioning";
    case ModelTask::speech_to_text:
      return "speech-to-text";
    case ModelTask::masked_lm:
      return "masked-lm";
    case ModelTask::sequence_classification:
      return "sequence-classification";
    case ModelTask::token_classification:
      return "token-classification";
    case ModelTask::question_answering:
      return "question-answering";
    case ModelTask::multiple_choice:
      return "multiple-choice";
    case ModelTask::feature_extraction:
      return "feature-extraction";
    case ModelTask::image_classification:
      return "image-classification";
    case ModelTask::vector_regression:
      return "vector-regression";
    case ModelTask::text_to_image:
      return "text-to-image";
    case ModelTask::image_text_contrastive:
      return "image-text-contrastive";
  }
  return "";
}

namespace {
// Calls a function of a family. The code of a plugin's family is its author's.
template <class F>
auto in_family(const std::string& name, const char* function, F&& f) {
  const PluginFamily* plugin = plugin_family(name);
  if (!plugin) return f();
  return in_user_code(
      [name, function, plugin](const std::string& why) {
        return fmt::format("[model] {} of the family {} ({}) failed{}", function, name, plugin->origin, why);
      },
      f);
}
}  // namespace

// A pass of the family; UsageError if the options ask for what it does not have.
template <class F>
Tensor Model::pass(const ApplyOptions& o, const char* function, const F& f) const {
  if (!attends_ && (o.causal || o.attention_bias.defined()))
    throw UsageError(
        "[model] the layers of the family '{}' have no scores of attention: omit causal and "
        "attention_bias",
        family_);
  if (!o.activations) return in_family(family_, function, f);
  if (o.cache) throw UsageError("[model] a pass with a cache reads and replaces no activations");
  o.activations->begin();
  const Tensor y = in_family(family_, function, f);
  o.activations->end(family_);
  return y;
}

Tensor Model::apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  REDCO_CHECK(in.input_ids.defined(), "apply() needs DecoderInputs::input_ids, which has no value");
  REDCO_CHECK(is_encoder_decoder() || !in.memory.defined(),
              "apply() got DecoderInputs::memory, and the family '{}' has no encoder", family_);
  const Tensor logits = pass(o, "decode()", [&] { return decode(p, in, o); });
  if (o.cache) o.cache->advance(in.input_ids.size(1));
  return logits;
}
ModelCache Model::make_cache(const CacheOptions& o) const {
  ModelCache::Layers layers, memories;
  for (i64 i = 0; i < n_layers_; ++i) {
    layers.push_back(std::make_unique<ColumnCache>(o, window(i)));
    if (is_encoder_decoder()) memories.push_back(std::make_unique<MemoryCache>(o));
  }
  return {std::move(layers), std::move(memories), o.capacity};
}
i64 Model::window(i64) const { return 0; }
Tensor Model::decode(const ParamTree&, const DecoderInputs&, const ApplyOptions&) const {
  throw BugError(fmt::format("{} ({}) has no decoder", family_, name_of(task_)));
}
Tensor Model::encode(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const {
  return pass(o, "encode_memory()", [&] { return encode_memory(p, in, o); });
}
Tensor Model::apply_encoder(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const {
  return pass(o, "encode_outputs()", [&] { return encode_outputs(p, in, o); });
}
Tensor Model::encode_memory(const ParamTree&, const EncoderInputs&, const ApplyOptions&) const {
  throw BugError(fmt::format("{} ({}) has no encoder for a decoder", family_, name_of(task_)));
}
Tensor Model::encode_outputs(const ParamTree&, const EncoderInputs&, const ApplyOptions&) const {
  throw BugError(fmt::format("{} ({}) is not an encoder-only model", family_, name_of(task_)));
}

namespace {

ApplyOptions without_head(const Model& model, ApplyOptions o) {
  if (model.hidden_size() == 0)
    throw UsageError("[model] the family '{}' has no last_hidden_state(): it sets no hidden_size_",
                     model.family());
  o.head = false;
  return o;
}

const Tensor& checked_hidden(const Model& model, const Tensor& x) {
  REDCO_CHECK(x.visible() == 3 && x.size(-1) == model.hidden_size(),
              "the family '{}' returned {} as last hidden state; expected hidden_size={} columns "
              "(ApplyOptions::head is false)",
              model.family(), describe(x), model.hidden_size());
  return x;
}

}  // namespace

Tensor Model::last_hidden_state(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  return checked_hidden(*this, apply(p, in, without_head(*this, o)));
}
Tensor Model::last_hidden_state(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const {
  return checked_hidden(*this, apply_encoder(p, in, without_head(*this, o)));
}

std::vector<i32> Model::decoder_input_ids(std::span<const i32> labels) const {
  if (decoder_start_token_id_ < 0)
    throw UsageError(
        "[model] the {} config has no decoder_start_token_id, the first token of an output; set "
        "model.decoder_start_token_id",
        family_);
  std::vector<i32> out;
  out.reserve(labels.size());
  for (size_t t = 0; t < labels.size(); ++t) {
    out.push_back(t == 0 ? decoder_start_token_id_ : labels[t - 1]);
    if (out.back() >= 0) continue;
    if (pad_token_id_ < 0)
      throw UsageError(
          "[model] the {} config has no pad_token_id, which replaces ignored labels; set model.pad_token_id",
          family_);
    out.back() = pad_token_id_;
  }
  return out;
}

std::vector<i32> Model::positions(std::span<const i32> mask, bool generating) const {
  std::vector<i32> out(mask.size());
  i32 seen = 0;
  for (size_t t = 0; t < mask.size(); ++t) {
    seen += mask[t];
    out[t] = generating ? std::max(seen - 1, 0) : static_cast<i32>(t);
  }
  return out;
}

namespace {

struct Family {
  const char* model_type;
  std::unique_ptr<Model> (*make)(ModelConfig&);
  const char* language_model = "";  // transformers' class of a causal language model
  bool vocabulary = true;
  ArchNeeds arch = {};
};
using Start = ArchNeeds::Start;
// The registry of families.
constexpr Family kFamilies[] = {
    {"gpt2", make_decoder<read_gpt2>, "GPT2LMHeadModel"},
    {"openai-gpt", make_decoder<read_openai_gpt>, "OpenAIGPTLMHeadModel"},
    {"gpt_neo", make_decoder<read_gpt_neo>, "GPTNeoForCausalLM"},
    {"gptj", make_decoder<read_gptj>, "GPTJForCausalLM"},
    {"codegen", make_decoder<read_gptj>, "CodeGenForCausalLM"},
    {"xglm", make_decoder<read_xglm>, "XGLMForCausalLM"},
    {"opt", make_decoder<read_opt>, "OPTForCausalLM"},
    {"biogpt", make_decoder<read_biogpt>, "BioGptForCausalLM"},
    {"llama", make_decoder<read_llama>, "LlamaForCausalLM"},
    {"llama4_text", make_decoder<read_llama4>, "Llama4ForCausalLM"},
    {"llama4", make_llama4},
    {"mistral", make_decoder<read_llama>, "MistralForCausalLM"},
    {"mistral3", make_mistral3},
    {"ministral", make_decoder<read_ministral>, "MinistralForCausalLM"},
    {"ministral3", make_decoder<read_ministral3>, "Ministral3ForCausalLM"},
    {"qwen2", make_decoder<read_llama>, "Qwen2ForCausalLM"},
    {"qwen3", make_decoder<read_llama>, "Qwen3ForCausalLM"},
    {"gemma", make_decoder<read_gemma>, "GemmaForCausalLM"},
    {"gemma2", make_decoder<read_gemma>, "Gemma2ForCausalLM"},
    {"gemma3_text", make_decoder<read_gemma>, "Gemma3ForCausalLM"},
    {"gemma3", make_gemma3},
    {"vaultgemma", make_decoder<read_gemma>, "VaultGemmaForCausalLM"},
    {"mixtral", make_decoder<read_mixtral>, "MixtralForCausalLM"},
    {"minimax_m2", make_decoder<read_minimax_m2>, "MiniMaxM2ForCausalLM"},
    {"phi3", make_decoder<read_phi3>, "Phi3ForCausalLM"},
    {"phimoe", make_decoder<read_phimoe>, "PhimoeForCausalLM"},
    {"phi", make_decoder<read_phi>, "PhiForCausalLM"},
    {"gpt_neox", make_decoder<read_gpt_neox>, "GPTNeoXForCausalLM"},
    {"persimmon", make_decoder<read_persimmon>, "PersimmonForCausalLM"},
    {"falcon", make_decoder<read_falcon>, "FalconForCausalLM"},
    {"bloom", make_decoder<read_bloom>, "BloomForCausalLM"},
    {"mpt", make_decoder<read_mpt>, "MptForCausalLM"},
    {"starcoder2", make_decoder<read_starcoder2>, "Starcoder2ForCausalLM"},
    {"gpt_bigcode", make_decoder<read_gpt_bigcode>, "GPTBigCodeForCausalLM"},
    {"stablelm", make_decoder<read_stablelm>, "StableLmForCausalLM"},
    {"olmo", make_decoder<read_olmo>, "OlmoForCausalLM"},
    {"olmo2", make_decoder<read_olmo>, "Olmo2ForCausalLM"},
    {"olmo3", make_decoder<read_olmo>, "Olmo3ForCausalLM"},
    {"granite", make_decoder<read_granite>, "GraniteForCausalLM"},
    {"hyperclovax", make_decoder<read_hyperclovax>, "HyperCLOVAXForCausalLM"},
    {"granitemoe", make_decoder<read_granite_moe>, "GraniteMoeForCausalLM"},
    {"granitemoeshared", make_decoder<read_granite_moe>, "GraniteMoeSharedForCausalLM"},
    {"cohere", make_decoder<read_cohere>, "CohereForCausalLM"},
    {"cohere2", make_decoder<read_cohere>, "Cohere2ForCausalLM"},
    {"glm", make_decoder<read_glm>, "GlmForCausalLM"},
    {"glm4", make_decoder<read_glm>, "Glm4ForCausalLM"},
    {"smollm3", make_decoder<read_smollm3>, "SmolLM3ForCausalLM"},
    {"internlm3", make_decoder<read_internlm3>, "LlamaForCausalLM"},
    {"iquestcoder", make_decoder<read_internlm3>, "LlamaForCausalLM"},
    {"cwm", make_decoder<read_cwm>, "CwmForCausalLM"},
    {"exaone", make_decoder<read_exaone>, "LlamaForCausalLM"},
    {"nemotron", make_decoder<read_nemotron>, "NemotronForCausalLM"},
    {"jais2", make_decoder<read_jais2>, "Jais2ForCausalLM"},
    {"exaone4", make_decoder<read_exaone4>, "Exaone4ForCausalLM"},
    {"exaone_moe", make_decoder<read_exaone4>, "ExaoneMoeForCausalLM"},
    {"qwen2_moe", make_decoder<read_qwen_moe>, "Qwen2MoeForCausalLM"},
    {"qwen3_moe", make_decoder<read_qwen_moe>, "Qwen3MoeForCausalLM"},
    {"mellum", make_decoder<read_mellum>, "MellumForCausalLM"},
    {"olmoe", make_decoder<read_olmoe>, "OlmoeForCausalLM"},
    {"flex_olmo", make_decoder<read_olmoe>, "FlexOlmoForCausalLM"},
    {"glm4_moe", make_decoder<read_glm4_moe>, "Glm4MoeForCausalLM"},
    {"glm4_moe_lite", make_decoder<read_glm4_moe_lite>, "Glm4MoeLiteForCausalLM"},
    {"solar_open", make_decoder<read_solar_open>, "SolarOpenForCausalLM"},
    {"dots1", make_decoder<read_dots1>, "Dots1ForCausalLM"},
    {"ernie4_5", make_decoder<read_ernie4_5>, "Ernie4_5ForCausalLM"},
    {"ernie4_5_moe", make_decoder<read_ernie4_5_moe>, "Ernie4_5_MoeForCausalLM"},
    {"helium", make_decoder<read_helium>, "HeliumForCausalLM"},
    {"hunyuan_v1_dense", make_decoder<read_hunyuan>, "HunYuanDenseV1ForCausalLM"},
    {"hunyuan_v1_moe", make_decoder<read_hunyuan>, "HunYuanMoEV1ForCausalLM"},
    {"hy_v3", make_decoder<read_hy_v3>, "HYV3ForCausalLM"},
    {"seed_oss", make_decoder<read_seed_oss>, "SeedOssForCausalLM"},
    {"arcee", make_decoder<read_arcee>, "ArceeForCausalLM"},
    {"apertus", make_decoder<read_apertus>, "ApertusForCausalLM"},
    {"afmoe", make_decoder<read_afmoe>, "AfmoeForCausalLM"},
    {"nanochat", make_decoder<read_nanochat>, "NanoChatForCausalLM"},
    {"modernbert-decoder", make_decoder<read_modernbert_decoder>, "ModernBertDecoderForCausalLM"},
    {"gpt_oss", make_decoder<read_gpt_oss>, "GptOssForCausalLM"},
    {"deepseek_v2", make_decoder<read_deepseek>, "DeepseekV2ForCausalLM"},
    {"deepseek_v3", make_decoder<read_deepseek>, "DeepseekV3ForCausalLM"},
    {"minicpm3", make_decoder<read_minicpm3>, "MiniCPM3ForCausalLM"},
    {"youtu", make_decoder<read_youtu>, "YoutuForCausalLM"},
    {"granitemoehybrid", make_decoder<read_granite_hybrid>, "GraniteMoeHybridForCausalLM"},
    {"falcon_h1", make_decoder<read_falcon_h1>, "FalconH1ForCausalLM"},
    {"bamba", make_decoder<read_bamba>, "BambaForCausalLM"},
    {"nemotron_h", make_decoder<read_nemotron_h>, "NemotronHForCausalLM"},
    {"qwen3_next", make_decoder<read_qwen3_next>, "Qwen3NextForCausalLM"},
    {"qwen3_5_text", make_decoder<read_qwen3_5>, "Qwen3_5ForCausalLM"},
    {"qwen3_5_moe_text", make_decoder<read_qwen3_5>, "Qwen3_5MoeForCausalLM"},
    {"qwen3_5", make_qwen3_5},
    {"qwen3_5_moe", make_qwen3_5},
    {"lfm2", make_decoder<read_lfm2>, "Lfm2ForCausalLM"},
    {"lfm2_moe", make_decoder<read_lfm2>, "Lfm2MoeForCausalLM"},
    {"mamba", make_decoder<read_mamba>, "MambaForCausalLM"},
    {"falcon_mamba", make_decoder<read_mamba>, "FalconMambaForCausalLM"},
    {"jamba", make_decoder<read_jamba>, "JambaForCausalLM"},
    {"mamba2", make_mamba2, "Mamba2ForCausalLM"},
    {"t5", make_t5, "", true, {.start = Start::padding}},
    {"mt5", make_t5, "", true, {.start = Start::padding}},
    {"umt5", make_t5, "", true, {.start = Start::padding}},
    {"bart", make_seq2seq<read_bart>, "", true, {.own_padding = true, .start = Start::end}},
    {"mbart", make_seq2seq<read_mbart>},
    {"plbart", make_seq2seq<read_plbart>},
    {"blenderbot", make_seq2seq<read_blenderbot>, "", true, {.own_padding = true, .start = Start::end}},
    {"blenderbot-small", make_seq2seq<read_blenderbot>, "", true, {.own_padding = true, .start = Start::end}},
    {"marian", make_seq2seq<read_marian>},
    {"pegasus", make_seq2seq<read_pegasus>},
    {"whisper",
     make_seq2seq<read_whisper>,
     "",
     true,
     {.own_padding = true, .start = Start::end, .start_token = "<|startoftranscript|>"}},
    {"m2m_100", make_seq2seq<read_m2m_100>},
    {"bert", make_encoder<read_bert>},
    {"roberta", make_encoder<read_bert>},
    {"xlm-roberta", make_encoder<read_bert>},
    {"camembert", make_encoder<read_bert>},
    {"data2vec-text", make_encoder<read_bert>},
    {"ernie", make_encoder<read_bert>},
    {"esm", make_encoder<read_esm>},
    {"distilbert", make_encoder<read_distilbert>},
    {"mpnet", make_encoder<read_mpnet>},
    {"electra", make_encoder<read_electra>},
    {"albert", make_encoder<read_albert>},
    {"deberta-v2", make_encoder<read_deberta_v2>},
    {"modernbert", make_encoder<read_modernbert>},
    {"nomic_bert", make_encoder<read_nomic_bert>},
    {"gte", make_encoder<read_gte>},
    {"jina_embeddings_v3", make_encoder<read_jina_embeddings_v3>},
    {"eurobert", make_encoder<read_eurobert>},
    {"roformer", make_encoder<read_roformer>},
    {"megatron-bert", make_encoder<read_megatron_bert>},
    {"roberta-prelayernorm", make_encoder<read_pre_norm_roberta>},
    {"xlm-roberta-xl", make_encoder<read_pre_norm_roberta>},
    {"vit", make_vit, "", false},
    {"deit", make_deit, "", false},
    {"dinov2", make_dinov2, "", false},
    {"clip", make_dual_encoder, "", true, {.add_parts = add_towers}},
    {"clip_text_model", make_dual_encoder},
    {"clip_vision_model", make_dual_encoder, "", false},
    {"siglip", make_dual_encoder, "", true, {.add_parts = add_towers}},
    {"siglip_text_model", make_dual_encoder},
    {"siglip_vision_model", make_dual_encoder, "", false},
    {"vision-encoder-decoder", make_vision_encoder_decoder, "", true, {.add_parts = add_encoder_and_decoder}},
    {"cnn", make_cnn, "", false},
    {"mlp", make_mlp, "", false},
    {"mlp-mixer", make_mlp_mixer, "", false},
    {"performer", make_performer},
    {"dit", make_dit},
};

const Family* built_in_family(const std::string& name) {
  const auto* f = std::ranges::find_if(kFamilies, [&](const Family& f) { return name == f.model_type; });
  return f == std::end(kFamilies) ? nullptr : f;
}

Registry<PluginFamily>& plugin_families() {
  static auto& families = *new Registry<PluginFamily>("family");
  return families;
}

// The name is the registry's, whatever the constructor of the family sets.
struct FamilyName : Model {
  static constexpr std::string Model::*member() { return &FamilyName::family_; }
};

}  // namespace

void add_family(const PluginFamily& family) {
  const bool python = family.origin.ends_with(".py");
  const std::string macro =
      fmt::format("{}(\"{}\", {})", python ? "ModelFamily" : "REDCO_MODEL", family.name, family.architecture);
  const bool legal = std::ranges::all_of(family.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!legal)
    throw UsageError(
        "[plugins] {}: {}: expected a name of lower-case letters, digits, - and _. Use another name",
        family.origin, macro);
  plugin_families().add(family, macro, built_in_family(family.name) != nullptr);
}

const PluginFamily* plugin_family(const std::string& name) { return plugin_families().find(name); }

bool has_class(ModelConfig& c, const char* ending) {
  const auto names = nlohmann::json::parse(c.json("architectures"));
  return names.is_array() && !names.empty() && names[0].is_string() &&
         names[0].get<std::string>().ends_with(ending);
}

std::vector<std::string> model_families() {
  std::vector<std::string> out;
  for (const Family& f : kFamilies) out.push_back(f.model_type);
  for (const PluginFamily& f : plugin_families().all()) out.push_back(f.name);
  return out;
}

const ArchNeeds& arch_needs(const std::string& model_type) {
  static constexpr ArchNeeds kNone;
  const Family* f = built_in_family(model_type);
  return f ? f->arch : kNone;
}

bool family_has_vocabulary(const std::string& model_type) {
  if (const Family* f = built_in_family(model_type)) return f->vocabulary;
  const PluginFamily* f = plugin_family(model_type);
  return !f || f->vocabulary;
}

std::string language_model_class(const std::string& model_type) {
  const Family* f = built_in_family(model_type);
  return f ? f->language_model : "";
}

std::unique_ptr<Model> make_model(ModelConfig config) {
  const std::string type = config.text_or("model_type", "");
  if (const Family* f = built_in_family(type)) return f->make(config);
  if (const PluginFamily* f = plugin_family(type)) {
    std::unique_ptr<Model> model = in_family(type, "the constructor", [&] { return f->make(config); });
    (*model).*FamilyName::member() = type;
    return model;
  }
  const std::string lacks = lacking_for(type);
  config.fail("model_type", fmt::format("this family is not supported{}; supported: {}, and those of plugins "
                                        "(plugins: [./x.so])",
                                        lacks.empty() ? "" : " (redco lacks " + lacks + ")",
                                        fmt::join(model_families(), ", ")));
}

}  // namespace redco
