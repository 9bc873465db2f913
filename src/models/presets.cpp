// Published architectures by name: the config.json of their checkpoints.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "models/model.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

struct Preset {
  const char* name;
  Json (*family)();
  Json settings;  // added to the family's, or replacing them
};

// openai-community/gpt2*
Json gpt2() {
  return {{"architectures", Json::array({"GPT2LMHeadModel"})},
          {"model_type", "gpt2"},
          {"vocab_size", 50257},
          {"n_positions", 1024},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", 0.1},
          {"embd_pdrop", 0.1},
          {"attn_pdrop", 0.1},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.02},
          {"bos_token_id", 50256},
          {"eos_token_id", 50256},
          {"tie_word_embeddings", true}};
}

// EleutherAI/gpt-j-6b
Json gptj() {
  return {{"architectures", Json::array({"GPTJForCausalLM"})},
          {"model_type", "gptj"},
          {"vocab_size", 50400},
          {"n_positions", 2048},
          {"rotary_dim", 64},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.02},
          {"bos_token_id", 50256},
          {"eos_token_id", 50256},
          {"tie_word_embeddings", false}};
}

// facebook/opt-*
Json opt() {
  return {{"architectures", Json::array({"OPTForCausalLM"})},
          {"model_type", "opt"},
          {"vocab_size", 50272},
          {"max_position_embeddings", 2048},
          {"do_layer_norm_before", true},
          {"_remove_final_layer_norm", false},
          {"activation_function", "relu"},
          {"dropout", 0.1},
          {"attention_dropout", 0.0},
          {"layerdrop", 0.0},
          {"init_std", 0.02},
          {"pad_token_id", 1},
          {"bos_token_id", 2},
          {"eos_token_id", 2},
          {"tie_word_embeddings", true}};
}

Json llama_like(const char* architecture, const char* model_type) {
  return {{"architectures", Json::array({architecture})},
          {"model_type", model_type},
          {"hidden_act", "silu"},
          {"initializer_range", 0.02},
          {"rope_theta", 10000.0},
          {"rope_scaling", nullptr},
          {"tie_word_embeddings", false}};
}

Json with(Json base, const Json& more) {
  base.update(more);
  return base;
}

// huggyllama/llama-*
Json llama() {
  return with(llama_like("LlamaForCausalLM", "llama"), {{"vocab_size", 32000},
                                                        {"max_position_embeddings", 2048},
                                                        {"rms_norm_eps", 1e-6},
                                                        {"bos_token_id", 1},
                                                        {"eos_token_id", 2}});
}
// meta-llama/Llama-2-*-hf
Json llama2() { return with(llama(), {{"max_position_embeddings", 4096}, {"rms_norm_eps", 1e-5}}); }
// meta-llama/Meta-Llama-3-8B, meta-llama/Llama-3.2-1B
Json llama3() {
  return with(llama2(), {{"vocab_size", 128256},
                         {"max_position_embeddings", 8192},
                         {"rope_theta", 500000.0},
                         {"bos_token_id", 128000},
                         {"eos_token_id", 128001}});
}
// mistralai/Mistral-7B-v0.1
Json mistral() {
  return with(llama_like("MistralForCausalLM", "mistral"), {{"vocab_size", 32000},
                                                            {"max_position_embeddings", 32768},
                                                            {"sliding_window", 4096},
                                                            {"rms_norm_eps", 1e-5},
                                                            {"bos_token_id", 1},
                                                            {"eos_token_id", 2}});
}
// Qwen/Qwen2-*
Json qwen2() {
  return with(llama_like("Qwen2ForCausalLM", "qwen2"), {{"max_position_embeddings", 131072},
                                                        {"rope_theta", 1000000.0},
                                                        {"rms_norm_eps", 1e-6},
                                                        {"use_sliding_window", false},
                                                        {"sliding_window", 131072},
                                                        {"bos_token_id", 151643},
                                                        {"eos_token_id", 151643}});
}

// Qwen/Qwen3-*
Json qwen3() {
  return with(llama_like("Qwen3ForCausalLM", "qwen3"), {{"vocab_size", 151936},
                                                        {"max_position_embeddings", 40960},
                                                        {"head_dim", 128},
                                                        {"rope_theta", 1000000.0},
                                                        {"rms_norm_eps", 1e-6},
                                                        {"attention_bias", false},
                                                        {"use_sliding_window", false},
                                                        {"sliding_window", nullptr},
                                                        {"bos_token_id", 151643},
                                                        {"eos_token_id", 151645}});
}
// google/gemma-*
Json gemma() {
  return {{"architectures", Json::array({"GemmaForCausalLM"})},
          {"model_type", "gemma"},
          {"vocab_size", 256000},
          {"max_position_embeddings", 8192},
          {"head_dim", 256},
          {"hidden_act", "gelu_pytorch_tanh"},
          {"attention_bias", false},
          {"attention_dropout", 0.0},
          {"initializer_range", 0.02},
          {"rope_theta", 10000.0},
          {"rms_norm_eps", 1e-6},
          {"pad_token_id", 0},
          {"bos_token_id", 2},
          {"eos_token_id", 1},
          {"tie_word_embeddings", true}};
}
// google/gemma-2-*
Json gemma2() {
  Json j = with(gemma(), {{"architectures", Json::array({"Gemma2ForCausalLM"})},
                          {"model_type", "gemma2"},
                          {"hidden_activation", "gelu_pytorch_tanh"},
                          {"query_pre_attn_scalar", 256},
                          {"sliding_window", 4096},
                          {"attn_logit_softcapping", 50.0},
                          {"final_logit_softcapping", 30.0}});
  j.erase("hidden_act");
  return j;
}
// google/gemma-3-1b-pt
Json gemma3() {
  Json j = with(gemma2(), {{"architectures", Json::array({"Gemma3ForCausalLM"})},
                           {"model_type", "gemma3_text"},
                           {"vocab_size", 262144},
                           {"max_position_embeddings", 32768},
                           {"sliding_window", 512},
                           {"sliding_window_pattern", 6},
                           {"attn_logit_softcapping", nullptr},
                           {"final_logit_softcapping", nullptr},
                           {"rope_theta", 1000000.0},
                           {"rope_local_base_freq", 10000.0},
                           {"rope_scaling", nullptr}});
  return j;
}
// mistralai/Mixtral-8x7B-v0.1
Json mixtral() {
  return with(llama_like("MixtralForCausalLM", "mixtral"), {{"vocab_size", 32000},
                                                            {"max_position_embeddings", 32768},
                                                            {"sliding_window", nullptr},
                                                            {"rope_theta", 1000000.0},
                                                            {"rms_norm_eps", 1e-5},
                                                            {"num_local_experts", 8},
                                                            {"num_experts_per_tok", 2},
                                                            {"output_router_logits", false},
                                                            {"router_aux_loss_coef", 0.02},
                                                            {"bos_token_id", 1},
                                                            {"eos_token_id", 2}});
}

// google-t5/t5-*
Json t5() {
  return {{"architectures", Json::array({"T5ForConditionalGeneration"})},
          {"model_type", "t5"},
          {"is_encoder_decoder", true},
          {"vocab_size", 32128},
          {"n_positions", 512},
          {"relative_attention_num_buckets", 32},
          {"relative_attention_max_distance", 128},
          {"feed_forward_proj", "relu"},
          {"dropout_rate", 0.1},
          {"layer_norm_epsilon", 1e-6},
          {"initializer_factor", 1.0},
          {"decoder_start_token_id", 0},
          {"pad_token_id", 0},
          {"eos_token_id", 1},
          {"tie_word_embeddings", true}};
}
// google/t5-v1_1-*; google/flan-t5-*
Json t5_v1_1() { return with(t5(), {{"feed_forward_proj", "gated-gelu"}, {"tie_word_embeddings", false}}); }
// facebook/bart-base, facebook/bart-large
Json bart() {
  return {{"architectures", Json::array({"BartForConditionalGeneration"})},
          {"model_type", "bart"},
          {"is_encoder_decoder", true},
          {"vocab_size", 50265},
          {"max_position_embeddings", 1024},
          {"activation_function", "gelu"},
          {"dropout", 0.1},
          {"attention_dropout", 0.1},
          {"activation_dropout", 0.1},
          {"encoder_layerdrop", 0.0},
          {"decoder_layerdrop", 0.0},
          {"scale_embedding", false},
          {"init_std", 0.02},
          {"bos_token_id", 0},
          {"pad_token_id", 1},
          {"eos_token_id", 2},
          {"decoder_start_token_id", 2},
          {"forced_eos_token_id", 2},
          {"tie_word_embeddings", true}};
}

// openai/whisper-*
Json whisper() {
  return {{"architectures", Json::array({"WhisperForConditionalGeneration"})},
          {"model_type", "whisper"},
          {"is_encoder_decoder", true},
          {"vocab_size", 51865},
          {"num_mel_bins", 80},
          {"max_source_positions", 1500},
          {"max_target_positions", 448},
          {"activation_function", "gelu"},
          {"dropout", 0.0},
          {"attention_dropout", 0.0},
          {"activation_dropout", 0.0},
          {"encoder_layerdrop", 0.0},
          {"decoder_layerdrop", 0.0},
          {"scale_embedding", false},
          {"init_std", 0.02},
          {"bos_token_id", 50257},
          {"pad_token_id", 50257},
          {"eos_token_id", 50257},
          {"decoder_start_token_id", 50258},
          {"tie_word_embeddings", true}};
}
// openai/whisper-large-v3*
Json whisper_v3() { return with(whisper(), {{"vocab_size", 51866}, {"num_mel_bins", 128}}); }

// google-bert/bert-*-uncased
Json bert() {
  return {{"architectures", Json::array({"BertForMaskedLM"})},
          {"model_type", "bert"},
          {"vocab_size", 30522},
          {"max_position_embeddings", 512},
          {"type_vocab_size", 2},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", 0.1},
          {"attention_probs_dropout_prob", 0.1},
          {"layer_norm_eps", 1e-12},
          {"initializer_range", 0.02},
          {"pad_token_id", 0}};
}
// FacebookAI/roberta-*
Json roberta() {
  return with(bert(), {{"architectures", Json::array({"RobertaForMaskedLM"})},
                       {"model_type", "roberta"},
                       {"vocab_size", 50265},
                       {"max_position_embeddings", 514},
                       {"type_vocab_size", 1},
                       {"layer_norm_eps", 1e-5},
                       {"bos_token_id", 0},
                       {"pad_token_id", 1},
                       {"eos_token_id", 2}});
}

Json gpt_size(i64 width, i64 layers, i64 heads) {
  return {{"n_embd", width}, {"n_layer", layers}, {"n_head", heads}};
}
Json opt_size(i64 width, i64 layers, i64 heads) {
  return {{"hidden_size", width},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"ffn_dim", 4 * width},
          {"word_embed_proj_dim", width}};
}
// state-spaces/mamba2-*, in transformers' names
Json mamba2() {
  return {{"architectures", Json::array({"Mamba2ForCausalLM"})},
          {"model_type", "mamba2"},
          {"vocab_size", 50288},
          {"head_dim", 64},
          {"state_size", 128},
          {"n_groups", 1},
          {"expand", 2},
          {"conv_kernel", 4},
          {"chunk_size", 256},
          {"hidden_act", "silu"},
          {"use_bias", false},
          {"use_conv_bias", true},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.1},
          {"residual_in_fp32", true},
          {"rescale_prenorm_residual", false},
          {"time_step_min", 0.001},
          {"time_step_max", 0.1},
          {"time_step_floor", 1e-4},
          {"bos_token_id", 0},
          {"eos_token_id", 0},
          {"pad_token_id", 0},
          {"tie_word_embeddings", true}};
}
// mistralai/Mamba-Codestral-7B-v0.1
Json codestral_mamba() {
  return with(mamba2(), {{"vocab_size", 32768},
                         {"n_groups", 8},
                         {"bos_token_id", 0},
                         {"eos_token_id", 0},
                         {"pad_token_id", 0},
                         {"tie_word_embeddings", false}});
}

Json mamba2_size(i64 width, i64 layers) {
  return {{"hidden_size", width}, {"num_hidden_layers", layers}, {"num_heads", width / 32}};
}

Json llama_size(i64 width, i64 inner, i64 layers, i64 heads, i64 kv_heads) {
  return {{"hidden_size", width},
          {"intermediate_size", inner},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", kv_heads}};
}

Json t5_size(i64 width, i64 inner, i64 layers, i64 heads, i64 head_width) {
  return {{"d_model", width},   {"d_ff", inner},     {"num_layers", layers}, {"num_decoder_layers", layers},
          {"num_heads", heads}, {"d_kv", head_width}};
}
Json bart_size(i64 width, i64 layers, i64 heads) {
  return {{"d_model", width},
          {"encoder_layers", layers},
          {"decoder_layers", layers},
          {"encoder_attention_heads", heads},
          {"decoder_attention_heads", heads},
          {"encoder_ffn_dim", 4 * width},
          {"decoder_ffn_dim", 4 * width}};
}

Json bert_size(i64 width, i64 layers, i64 heads) {
  return {{"hidden_size", width},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"intermediate_size", 4 * width}};
}

// google/vit-*-patch16-224
Json vit() {
  return {{"architectures", Json::array({"ViTForImageClassification"})},
          {"model_type", "vit"},
          {"image_size", 224},
          {"patch_size", 16},
          {"num_channels", 3},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", 0.0},
          {"attention_probs_dropout_prob", 0.0},
          {"qkv_bias", true},
          {"layer_norm_eps", 1e-12},
          {"initializer_range", 0.02},
          {"num_labels", 1000}};
}

// nlpconnect/vit-gpt2-image-captioning
Json vit_gpt2() {
  Json encoder = with(vit(), bert_size(768, 12, 12));
  encoder.erase("architectures");
  encoder.erase("num_labels");
  Json decoder = with(gpt2(), gpt_size(768, 12, 12));
  decoder.update({{"is_decoder", true}, {"add_cross_attention", true}});
  return {{"architectures", Json::array({"VisionEncoderDecoderModel"})},
          {"model_type", "vision-encoder-decoder"},
          {"encoder", std::move(encoder)},
          {"decoder", std::move(decoder)},
          {"is_encoder_decoder", true},
          {"decoder_start_token_id", 50256},
          {"bos_token_id", 50256},
          {"eos_token_id", 50256},
          {"pad_token_id", 50256},
          {"tie_word_embeddings", false}};
}

// Tolstikhin et al. 2021, table 1; parameters as timm's mixer_*_224.
Json mixer() {
  return {{"architectures", Json::array({"MlpMixerForImageClassification"})},
          {"model_type", "mlp-mixer"},
          {"image_size", 224},
          {"num_channels", 3},
          {"hidden_act", "gelu"},
          {"layer_norm_eps", 1e-6},
          {"initializer_range", 0.02},
          {"num_labels", 1000}};
}
Json mixer_size(i64 patch, i64 width, i64 layers, i64 tokens, i64 channels) {
  return {{"patch_size", patch},
          {"hidden_size", width},
          {"num_hidden_layers", layers},
          {"tokens_mlp_dim", tokens},
          {"channels_mlp_dim", channels}};
}

std::vector<Preset> presets() {
  return {
      {"gpt2", gpt2, gpt_size(768, 12, 12)},
      {"gpt2-medium", gpt2, gpt_size(1024, 24, 16)},
      {"gpt2-large", gpt2, gpt_size(1280, 36, 20)},
      {"gpt2-xl", gpt2, gpt_size(1600, 48, 25)},
      {"gpt-j-6b", gptj, gpt_size(4096, 28, 16)},
      {"llama-7b", llama, llama_size(4096, 11008, 32, 32, 32)},
      {"llama-13b", llama, llama_size(5120, 13824, 40, 40, 40)},
      {"llama-30b", llama, llama_size(6656, 17920, 60, 52, 52)},
      {"llama-65b", llama, with(llama_size(8192, 22016, 80, 64, 64), {{"rms_norm_eps", 1e-5}})},
      {"llama2-7b", llama2, llama_size(4096, 11008, 32, 32, 32)},
      {"llama2-13b", llama2, llama_size(5120, 13824, 40, 40, 40)},
      {"llama2-70b", llama2, llama_size(8192, 28672, 80, 64, 8)},
      {"llama3-8b", llama3, llama_size(4096, 14336, 32, 32, 8)},
      {"llama3.2-1b", llama3,
       with(llama_size(2048, 8192, 16, 32, 8), {{"head_dim", 64},
                                                {"max_position_embeddings", 131072},
                                                {"rope_scaling",
                                                 {{"rope_type", "llama3"},
                                                  {"factor", 32.0},
                                                  {"low_freq_factor", 1.0},
                                                  {"high_freq_factor", 4.0},
                                                  {"original_max_position_embeddings", 8192}}},
                                                {"tie_word_embeddings", true}})},
      {"mistral-7b", mistral, llama_size(4096, 14336, 32, 32, 8)},
      {"qwen2-0.5b", qwen2,
       with(llama_size(896, 4864, 24, 14, 2),
            {{"vocab_size", 151936}, {"max_window_layers", 24}, {"tie_word_embeddings", true}})},
      {"qwen2-7b", qwen2,
       with(llama_size(3584, 18944, 28, 28, 4), {{"vocab_size", 152064}, {"max_window_layers", 28}})},
      {"qwen3-0.6b", qwen3, with(llama_size(1024, 3072, 28, 16, 8), {{"tie_word_embeddings", true}})},
      {"qwen3-1.7b", qwen3, with(llama_size(2048, 6144, 28, 16, 8), {{"tie_word_embeddings", true}})},
      {"qwen3-4b", qwen3, with(llama_size(2560, 9728, 36, 32, 8), {{"tie_word_embeddings", true}})},
      {"qwen3-8b", qwen3, llama_size(4096, 12288, 36, 32, 8)},
      {"qwen3-14b", qwen3, llama_size(5120, 17408, 40, 40, 8)},
      {"qwen3-32b", qwen3, llama_size(5120, 25600, 64, 64, 8)},
      {"gemma-2b", gemma, llama_size(2048, 16384, 18, 8, 1)},
      {"gemma-7b", gemma, llama_size(3072, 24576, 28, 16, 16)},
      {"gemma2-2b", gemma2, llama_size(2304, 9216, 26, 8, 4)},
      {"gemma2-9b", gemma2, llama_size(3584, 14336, 42, 16, 8)},
      {"gemma2-27b", gemma2,
       with(llama_size(4608, 36864, 46, 32, 16), {{"head_dim", 128}, {"query_pre_attn_scalar", 144}})},
      {"gemma3-1b", gemma3, llama_size(1152, 6912, 26, 4, 1)},
      {"mixtral-8x7b", mixtral, llama_size(4096, 14336, 32, 32, 8)},
      {"mixtral-8x22b", mixtral,
       with(llama_size(6144, 16384, 56, 48, 8), {{"max_position_embeddings", 65536}})},
      {"mamba2-130m", mamba2, mamba2_size(768, 24)},
      {"mamba2-370m", mamba2, mamba2_size(1024, 48)},
      {"mamba2-780m", mamba2, mamba2_size(1536, 48)},
      {"mamba2-1.3b", mamba2, mamba2_size(2048, 48)},
      {"mamba2-2.7b", mamba2, mamba2_size(2560, 64)},
      {"mamba-codestral-7b", codestral_mamba, mamba2_size(4096, 64)},
      {"opt-125m", opt, opt_size(768, 12, 12)},
      {"opt-350m", opt,
       with(opt_size(1024, 24, 16), {{"word_embed_proj_dim", 512}, {"do_layer_norm_before", false}})},
      {"opt-1.3b", opt, opt_size(2048, 24, 32)},
      {"opt-2.7b", opt, opt_size(2560, 32, 32)},
      {"opt-6.7b", opt, opt_size(4096, 32, 32)},
      {"opt-13b", opt, opt_size(5120, 40, 40)},
      {"opt-30b", opt, opt_size(7168, 48, 56)},
      {"opt-66b", opt, opt_size(9216, 64, 72)},
      {"opt-175b", opt, opt_size(12288, 96, 96)},
      {"t5-small", t5, t5_size(512, 2048, 6, 8, 64)},
      {"t5-base", t5, t5_size(768, 3072, 12, 12, 64)},
      {"t5-large", t5, t5_size(1024, 4096, 24, 16, 64)},
      {"t5-3b", t5, t5_size(1024, 16384, 24, 32, 128)},
      {"t5-11b", t5, t5_size(1024, 65536, 24, 128, 128)},
      {"t5-v1_1-small", t5_v1_1, t5_size(512, 1024, 8, 6, 64)},
      {"t5-v1_1-base", t5_v1_1, t5_size(768, 2048, 12, 12, 64)},
      {"t5-v1_1-large", t5_v1_1, t5_size(1024, 2816, 24, 16, 64)},
      {"t5-v1_1-xl", t5_v1_1, t5_size(2048, 5120, 24, 32, 64)},
      {"t5-v1_1-xxl", t5_v1_1, t5_size(4096, 10240, 24, 64, 64)},
      {"flan-t5-small", t5_v1_1, t5_size(512, 1024, 8, 6, 64)},
      {"flan-t5-base", t5_v1_1, t5_size(768, 2048, 12, 12, 64)},
      {"flan-t5-large", t5_v1_1, t5_size(1024, 2816, 24, 16, 64)},
      {"flan-t5-xl", t5_v1_1, t5_size(2048, 5120, 24, 32, 64)},
      {"flan-t5-xxl", t5_v1_1, t5_size(4096, 10240, 24, 64, 64)},
      {"bart-base", bart, bart_size(768, 6, 12)},
      {"bart-large", bart, bart_size(1024, 12, 16)},
      {"whisper-tiny", whisper, bart_size(384, 4, 6)},
      {"whisper-base", whisper, bart_size(512, 6, 8)},
      {"whisper-small", whisper, bart_size(768, 12, 12)},
      {"whisper-medium", whisper, bart_size(1024, 24, 16)},
      {"whisper-large-v3", whisper_v3, bart_size(1280, 32, 20)},
      {"whisper-large-v3-turbo", whisper_v3, with(bart_size(1280, 32, 20), {{"decoder_layers", 4}})},
      {"bert-base-uncased", bert, bert_size(768, 12, 12)},
      {"bert-large-uncased", bert, bert_size(1024, 24, 16)},
      {"roberta-base", roberta, bert_size(768, 12, 12)},
      {"roberta-large", roberta, bert_size(1024, 24, 16)},
      {"vit-base-patch16-224", vit, bert_size(768, 12, 12)},
      {"vit-large-patch16-224", vit, bert_size(1024, 24, 16)},
      {"vit-gpt2", vit_gpt2, Json::object()},
      {"mixer-s-32", mixer, mixer_size(32, 512, 8, 256, 2048)},
      {"mixer-s-16", mixer, mixer_size(16, 512, 8, 256, 2048)},
      {"mixer-b-32", mixer, mixer_size(32, 768, 12, 384, 3072)},
      {"mixer-b-16", mixer, mixer_size(16, 768, 12, 384, 3072)},
      {"mixer-l-16", mixer, mixer_size(16, 1024, 24, 512, 4096)},
  };
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& p : presets()) names.push_back(p.name);
  return names;
}

std::string preset_config(const std::string& name) {
  for (const Preset& p : presets())
    if (name == p.name) return with(p.family(), p.settings).dump(2) + "\n";
  const std::string near = nearest(name, preset_names());
  throw UsageError("[model] model.preset={}: no such preset{}; known: {}", excerpt(name),
                   near.empty() ? "" : fmt::format("; did you mean {}?", near),
                   fmt::join(preset_names(), ", "));
}

}  // namespace redco
