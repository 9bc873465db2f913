// The families of the one decoder: each reads a config into the table of switches. What a family does not
// read is the default of DecoderArchitecture.
#pragma once

#include "models/config.h"
#include "models/decoder/architecture.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_afmoe(ModelConfig& c);
DecoderArchitecture read_apertus(ModelConfig& c);
DecoderArchitecture read_arcee(ModelConfig& c);
DecoderArchitecture read_bamba(ModelConfig& c);
DecoderArchitecture read_biogpt(ModelConfig& c);
DecoderArchitecture read_bloom(ModelConfig& c);
DecoderArchitecture read_cohere(ModelConfig& c);  // cohere, cohere2
DecoderArchitecture read_cwm(ModelConfig& c);
DecoderArchitecture read_deepseek(ModelConfig& c);  // deepseek_v2, deepseek_v3
DecoderArchitecture read_dots1(ModelConfig& c);
DecoderArchitecture read_ernie4_5(ModelConfig& c);
DecoderArchitecture read_ernie4_5_moe(ModelConfig& c);
DecoderArchitecture read_exaone(ModelConfig& c);
DecoderArchitecture read_exaone4(ModelConfig& c);  // exaone4, exaone_moe
DecoderArchitecture read_falcon(ModelConfig& c);
DecoderArchitecture read_falcon_h1(ModelConfig& c);
DecoderArchitecture read_gemma(ModelConfig& c);  // gemma, gemma2, gemma3_text, vaultgemma
DecoderArchitecture read_glm(ModelConfig& c);    // glm, glm4
DecoderArchitecture read_glm4_moe(ModelConfig& c);
DecoderArchitecture read_glm4_moe_lite(ModelConfig& c);
DecoderArchitecture read_gpt2(ModelConfig& c);
// A decoder of an encoder-decoder model: with cross-attention.
DecoderArchitecture read_gpt2_cross(ModelConfig& c);
DecoderArchitecture read_gpt_bigcode(ModelConfig& c);
DecoderArchitecture read_gpt_neo(ModelConfig& c);
DecoderArchitecture read_gpt_neox(ModelConfig& c);
DecoderArchitecture read_gpt_oss(ModelConfig& c);
DecoderArchitecture read_gptj(ModelConfig& c);                                  // gptj, codegen
DecoderArchitecture read_gemma_with(ModelConfig& c, DecoderDefaults defaults);  // with defaults of the sizes
DecoderArchitecture read_granite(ModelConfig& c);
DecoderArchitecture read_granite_moe(ModelConfig& c);  // granitemoe, granitemoeshared
DecoderArchitecture read_helium(ModelConfig& c);
DecoderArchitecture read_hyperclovax(ModelConfig& c);
DecoderArchitecture read_hunyuan(ModelConfig& c);         // hunyuan_v1_dense, hunyuan_v1_moe
DecoderArchitecture read_granite_hybrid(ModelConfig& c);  // granitemoehybrid
// Without the MLP.
DecoderArchitecture read_granite_with(ModelConfig& c, const DecoderDefaults& defaults);
// A mixture in all layers, of experts of the width s.inner, and an MLP of this width (0: none) that all
// tokens share; only the latter if num_local_experts is 0.
void read_granite_mixture(ModelConfig& c, DecoderArchitecture& s, i64 shared_inner);
DecoderArchitecture read_hy_v3(ModelConfig& c);
DecoderArchitecture read_internlm3(ModelConfig& c);  // internlm3, iquestcoder
DecoderArchitecture read_jais2(ModelConfig& c);
DecoderArchitecture read_jamba(ModelConfig& c);
DecoderArchitecture read_lfm2(ModelConfig& c);   // lfm2, lfm2_moe
DecoderArchitecture read_llama(ModelConfig& c);  // llama, mistral, qwen2, qwen3
DecoderArchitecture read_llama4(ModelConfig& c);
DecoderArchitecture read_mamba(ModelConfig& c);  // mamba, falcon_mamba
DecoderArchitecture read_mellum(ModelConfig& c);
DecoderArchitecture read_minicpm3(ModelConfig& c);
DecoderArchitecture read_minimax_m2(ModelConfig& c);
DecoderArchitecture read_ministral(ModelConfig& c);
DecoderArchitecture read_ministral3(ModelConfig& c);
DecoderArchitecture read_mixtral(ModelConfig& c);
DecoderArchitecture read_modernbert_decoder(ModelConfig& c);
DecoderArchitecture read_mpt(ModelConfig& c);
DecoderArchitecture read_nanochat(ModelConfig& c);
DecoderArchitecture read_nemotron(ModelConfig& c);
DecoderArchitecture read_nemotron_h(ModelConfig& c);
DecoderArchitecture read_olmo(ModelConfig& c);   // olmo, olmo2, olmo3
DecoderArchitecture read_olmoe(ModelConfig& c);  // olmoe, flex_olmo
DecoderArchitecture read_openai_gpt(ModelConfig& c);
DecoderArchitecture read_opt(ModelConfig& c);
DecoderArchitecture read_persimmon(ModelConfig& c);
DecoderArchitecture read_phi(ModelConfig& c);
DecoderArchitecture read_phi3(ModelConfig& c);
DecoderArchitecture read_phimoe(ModelConfig& c);
DecoderArchitecture read_qwen3_5(ModelConfig& c);  // qwen3_5_text, qwen3_5_moe_text
DecoderArchitecture read_qwen3_next(ModelConfig& c);
DecoderArchitecture read_qwen_moe(ModelConfig& c);  // qwen2_moe, qwen3_moe
DecoderArchitecture read_seed_oss(ModelConfig& c);
DecoderArchitecture read_smollm3(ModelConfig& c);
DecoderArchitecture read_solar_open(ModelConfig& c);
DecoderArchitecture read_stablelm(ModelConfig& c);
DecoderArchitecture read_starcoder2(ModelConfig& c);
DecoderArchitecture read_xglm(ModelConfig& c);
DecoderArchitecture read_youtu(ModelConfig& c);

}  // namespace redco
