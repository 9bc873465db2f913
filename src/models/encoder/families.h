// The families of the one text encoder: each reads a config into the table of switches.
#pragma once

#include "models/config.h"
#include "models/encoder/architecture.h"

namespace redco {

EncoderArchitecture read_albert(ModelConfig& c);
EncoderArchitecture read_bert(ModelConfig& c);       // and its descendants, see bert.cpp
EncoderArchitecture read_clip_text(ModelConfig& c);  // clip_text_model, siglip_text_model: without pooling
EncoderArchitecture read_deberta_v2(ModelConfig& c);
EncoderArchitecture read_distilbert(ModelConfig& c);
EncoderArchitecture read_electra(ModelConfig& c);
EncoderArchitecture read_esm(ModelConfig& c);
EncoderArchitecture read_eurobert(ModelConfig& c);
EncoderArchitecture read_gte(ModelConfig& c);
EncoderArchitecture read_jina_embeddings_v3(ModelConfig& c);
EncoderArchitecture read_megatron_bert(ModelConfig& c);
EncoderArchitecture read_modernbert(ModelConfig& c);
EncoderArchitecture read_mpnet(ModelConfig& c);
EncoderArchitecture read_nomic_bert(ModelConfig& c);
EncoderArchitecture read_roformer(ModelConfig& c);
EncoderArchitecture read_pre_norm_roberta(ModelConfig& c);  // roberta-prelayernorm, xlm-roberta-xl

// Keys that the descendants of BERT share, with its defaults: sizes, heads, types, dropouts, epsilon.
// learned_positions: position_embedding_type has no other value.
EncoderArchitecture read_bert_keys(ModelConfig& c, i64 padding_row, i64 types = 2,
                                   bool learned_positions = true);
// RoBERTa's positions begin after the id of padding.
void count_positions_after_padding(ModelConfig& c, EncoderArchitecture& s);
// Rotary positions in all layers, and none that are learned.
void rotate_all_layers(EncoderArchitecture& s, Rope rope);
// The names of the masked heads of BERT and of RoBERTa.
MaskedHead bert_masked_head(const std::string& activation);
MaskedHead roberta_masked_head();

}  // namespace redco
