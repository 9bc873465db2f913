#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/seq2seq/seq2seq.h"

namespace redco {

namespace {

HeadGeometry read_stack_heads(ModelConfig& c, const std::vector<std::string>& keys, i64 width) {
  const i64 H = c.integer_as(keys);
  if (width % H != 0) c.fail(keys[0], fmt::format("expected a divisor of d_model={}", width));
  return {H, H, width / H};
}

}  // namespace

Seq2SeqArchitecture read_seq2seq_keys(ModelConfig& c, const Seq2SeqDefaults& d) {
  Seq2SeqArchitecture s;
  s.family = c.text_or("model_type", "bart");
  s.vocab_size = c.integer("vocab_size");
  s.max_length = c.integer_or("max_position_embeddings", 1024);
  s.width = c.integer_as({"d_model", "hidden_size"});
  s.encoder.layers = c.integer_as({"encoder_layers", "num_hidden_layers"}, 0);
  s.decoder.layers = c.integer("decoder_layers", 0);
  s.encoder.heads = read_stack_heads(c, {"encoder_attention_heads", "num_attention_heads"}, s.width);
  s.decoder.heads = read_stack_heads(c, {"decoder_attention_heads"}, s.width);
  s.encoder.inner = c.integer("encoder_ffn_dim");
  s.decoder.inner = c.integer("decoder_ffn_dim");
  s.encoder.layer_dropout = c.rate_or("encoder_layerdrop", d.layer_dropout);
  s.decoder.layer_dropout = c.rate_or("decoder_layerdrop", d.layer_dropout);
  s.activation = c.activation_or("activation_function", d.activation);
  s.dropout = c.rate_or("dropout", d.dropout);
  s.attention_dropout = c.rate_or("attention_dropout", d.attention_dropout);
  s.activation_dropout = c.rate_or("activation_dropout", 0);
  if (c.boolean_or("scale_embedding", d.scales_embedding))
    s.embedding_scale = std::sqrt(static_cast<double>(s.width));
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.start_token = c.token_or("decoder_start_token_id", d.start_token.value_or(-1), s.vocab_size);
  s.padding = c.token_or("pad_token_id", d.padding < s.vocab_size ? d.padding : -1, s.vocab_size);
  s.std = c.number_or("init_std", 0.02);
  if (has_class(c, "ForSequenceClassification")) {
    s.labels = c.labels();
    s.problem_type = c.text_or("problem_type", "");
    s.end_token = c.token_or("eos_token_id", s.vocab_size > 2 ? 2 : -1, s.vocab_size);
    s.head_dropout = c.rate_or("classifier_dropout", 0);
    if (s.start_token < 0 || s.end_token < 0)
      c.fail(s.end_token < 0 ? "eos_token_id" : "decoder_start_token_id", "expected a token's id");
  }
  c.expect("is_encoder_decoder", {"true"});
  c.expect("is_decoder", {"false"});
  c.expect("add_bias_logits", {"false"});
  // Keys of another task's head, or written by early versions.
  c.inert({"classifier_dropout", "classif_dropout", "_num_labels", "output_past", "save_step"});
  return s;
}

Seq2SeqArchitecture read_bart(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.start_token = 2});
  s.embedding_norm = true;
  // Configs of early versions have these keys; other values were other models.
  c.expect("normalize_before", {"false"});
  c.expect("normalize_embedding", {"true"});
  c.expect("add_final_layer_norm", {"false"});
  c.expect("static_position_embeddings", {"false"});
  c.expect("extra_pos_embeddings", {"2"});
  return s;
}

// mBART (Liu et al. 2020): BART with norms before each part. Texts end with the code of their language, with
// which the decoder begins.
Seq2SeqArchitecture read_mbart(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {});
  s.embedding_norm = s.pre_norm = s.rotated_labels = true;
  c.expect("normalize_before", {"true"});
  c.expect("normalize_embedding", {"true"});
  c.expect("add_final_layer_norm", {"true"});
  c.expect("static_position_embeddings", {"false"});
  c.expect("extra_pos_embeddings", {"2"});
  return s;
}

// PLBART (Ahmad et al. 2021), of programs: BART with scaled embeddings, and mBART's codes of languages.
Seq2SeqArchitecture read_plbart(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.attention_dropout = 0.1, .scales_embedding = true});
  s.embedding_norm = s.rotated_labels = true;
  return s;
}

// Blenderbot (Roller et al. 2020): norms before each part. The small models have BART's norms; that of the
// decoder's embedding is before the positions are added. Positions begin with row 0.
Seq2SeqArchitecture read_blenderbot(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.start_token = 1, .padding = 0});
  const bool small = s.family == "blenderbot-small";
  s.first_row = 0;
  s.pre_norm = !small;
  s.embedding_norm = s.norms_tokens = small;
  c.expect("normalize_before", {small ? "false" : "true"});
  c.expect("normalize_embedding", {small ? "true" : "false"});
  c.expect("add_final_layer_norm", {small ? "false" : "true"});
  c.expect("static_position_embeddings", {"false"});
  // Settings of generation, and keys that no version of transformers reads.
  c.inert({"encoder_no_repeat_ngram_size", "extra_pos_embeddings", "force_bos_token_to_be_generated",
           "layernorm_variant", "extra_layer_norm", "do_blenderbot_90_layernorm", "unk_token_id"});
  return s;
}

// Marian (Junczys-Dowmunt et al. 2018; OPUS-MT): sinusoids, no norm after the embedding.
Seq2SeqArchitecture read_marian(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.start_token = 58100, .padding = 58100});
  s.positions = SourcePositions::sinusoids;
  if (c.integer_or("decoder_vocab_size", s.vocab_size) != s.vocab_size)
    c.fail("decoder_vocab_size", fmt::format("supported: vocab_size={}", s.vocab_size));
  c.expect("share_encoder_decoder_embeddings", {"true"});
  c.expect("normalize_before", {"false"});
  c.expect("normalize_embedding", {"false"});
  c.expect("add_final_layer_norm", {"false"});
  c.expect("static_position_embeddings", {"true"});
  c.inert({"extra_pos_embeddings"});  // no version of transformers reads it
  return s;
}

// PEGASUS (Zhang et al. 2020): norms before each part, sinusoids.
Seq2SeqArchitecture read_pegasus(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.start_token = 0, .padding = 0});
  s.positions = SourcePositions::sinusoids;
  s.pre_norm = true;
  c.expect("normalize_before", {"true"});
  c.expect("normalize_embedding", {"false"});
  c.expect("add_final_layer_norm", {"true"});
  c.expect("static_position_embeddings", {"true"});
  c.inert({"extra_pos_embeddings"});
  return s;
}

// M2M-100 (Fan et al. 2021) and NLLB (2022): norms before each part, sinusoids that skip padding.
Seq2SeqArchitecture read_m2m_100(ModelConfig& c) {
  Seq2SeqArchitecture s = read_seq2seq_keys(c, {.start_token = 2,
                                                .attention_dropout = 0.1,
                                                .scales_embedding = true,
                                                .activation = "relu",
                                                .layer_dropout = 0.05});
  s.positions = SourcePositions::counted_sinusoids;
  s.pre_norm = true;
  s.logits_bias = false;
  if (s.padding < 0) c.fail("pad_token_id", "expected a token's id; positions are counted from it");
  if (s.width < 4 || s.width % 2 != 0)
    c.fail("d_model", "expected an even number of at least 4, for sinusoids");
  return s;
}

// Whisper (Radford et al. 2022): speech to text. Keys are projected without bias, positions of the encoder
// are a stored table.
Seq2SeqArchitecture read_whisper(ModelConfig& c) {
  constexpr i32 kStart = 50257;
  const bool usual = c.integer("vocab_size") > kStart;
  Seq2SeqArchitecture s = read_seq2seq_keys(
      c, {.start_token = usual ? std::optional(kStart) : std::nullopt, .padding = 50256, .dropout = 0});
  s.positions = SourcePositions::stored_sinusoids;
  s.pre_norm = true;
  s.logits_bias = s.key_bias = false;
  s.max_length = c.integer_or("max_target_positions", 448);
  s.audio = {c.integer_or("num_mel_bins", 80), 2 * c.integer_or("max_source_positions", 1500)};
  if (s.width < 4 || s.width % 2 != 0)
    c.fail("d_model", "expected an even number of at least 4, for sinusoids");
  c.expect("scale_embedding", {"false"});
  c.expect("apply_spec_augment", {"false"});
  c.expect("use_weighted_layer_sum", {"false"});
  // Of spectral augmentation, of another task's head, and of the alignment of words.
  c.inert({"mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
           "mask_feature_length", "mask_feature_min_masks", "classifier_proj_size", "median_filter_width"});
  return s;
}

}  // namespace redco
