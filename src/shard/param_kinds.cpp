#include "shard/param_kinds.h"

namespace redco {
namespace {

// Whether a matrix is a table (rows, hidden) and not a linear.
bool is_embedding(const ParamIndex& x, int i) {
  const ParamName& p = x.name(i);
  const NameWords& w = x.words(i);
  if (x.has_bias(i) || names_head(x, i)) return false;
  const bool linear_words =
      has_word(w, {"proj", "project", "projection", "linear", "dense", "mapping", "patch", "fc", "out",
                   "classifier", "head", "logits", "score", "router", "conv", "attn"}) ||
      attention_input(w) >= 4;
  if (linear_words) return false;
  if (has_word_part(w, "emb") || has_word(w, {"wte", "wpe", "wtt", "lookup", "codebook"})) return true;
  if (p.comps.size() > 1 && has_word_part(words_of(p.comps[p.comps.size() - 2]), "emb")) return true;
  if (!x.block(i).empty() || !x.has_blocks()) return false;
  if (has_word(w, {"shared", "vocab", "vocabulary", "token", "tokens", "tok", "word", "words", "position",
                   "positions", "pos", "positional", "segment", "segments", "type", "types", "table"}))
    return true;
  // By shape and order: before the last block, with rows of the model's width.
  if (!x.before_a_block(i)) return false;
  if (x.is_width(x.in_of(i))) return true;
  // A factorized table (V, E): a later matrix outside the blocks maps E to the width.
  for (int j = i + 1; j < x.n() && x.block(j).empty(); ++j)
    if (x.rank(j) == 2 && x.in_of(j) == x.in_of(i) && x.is_width(x.out_of(j)) && x.out_of(i) > x.in_of(i))
      return true;
  return false;
}

ParamKind find_kind(const ParamIndex& x, int i) {
  const Shape& s = x.shape(i);
  const int rank = x.rank(i);
  const ParamName& p = x.name(i);
  const NameWords& w = x.words(i);
  if (rank == 0) return ParamKind::other;
  if (rank == 1) {
    if (is_bias_leaf(p.leaf) && x.has_matrix(p.module)) return ParamKind::bias;
    if (p.leaf.empty()) return has_word(w, {"b", "bias"}) ? ParamKind::bias : ParamKind::other;
    const bool lone_bias = is_bias_leaf(p.leaf) && !x.has_weight_vector(p.module);
    return lone_bias ? ParamKind::bias : ParamKind::norm;
  }
  if (is_bias_leaf(p.leaf)) return ParamKind::bias;  // stacked experts, (1, V)
  const bool table_words =
      has_word_part(w, "emb") || has_word(w, {"position", "positions", "pos", "positional"});
  if (rank >= 3) {
    const bool leading_ones = long_dims(Shape(s.begin(), s.end() - 2)) == 0;
    if (p.leaf.empty() && leading_ones)
      return table_words && long_dims(s) == 2 ? ParamKind::embedding : ParamKind::other;
    if (rank >= 4 || has_word_part(w, "conv")) return ParamKind::conv;
    const int bias = x.bias_in(p.module);
    return bias >= 0 && x.shape(bias) == Shape{s[0]} ? ParamKind::conv : ParamKind::linear;
  }
  if (is_bias_table(x, i)) return ParamKind::embedding;
  return is_embedding(x, i) ? ParamKind::embedding : ParamKind::linear;
}

}  // namespace

std::vector<ParamKind> find_kinds(const ParamIndex& x) {
  std::vector<ParamKind> kinds;
  for (int i = 0; i < x.n(); ++i) {
    ParamKind k = x.param(i).kind ? *x.param(i).kind : find_kind(x, i);
    if (x.rank(i) < 2 && is_matrix(k)) k = ParamKind::other;  // a hint that does not fit the shape
    if (k == ParamKind::conv && x.rank(i) < 3) k = ParamKind::linear;
    kinds.push_back(k);
  }
  return kinds;
}

bool is_matrix(ParamKind k) {
  return k == ParamKind::linear || k == ParamKind::conv || k == ParamKind::embedding;
}

bool is_bias_table(const ParamIndex& x, int i) {
  return x.rank(i) == 2 && !is_bias_leaf(x.name(i).leaf) &&
         has_word(x.words(i), {"bias", "biases", "bucket", "buckets"}) &&
         has_word(x.words(i),
                  {"relative", "rel", "position", "positional", "pos", "distance", "bucket", "buckets"});
}

bool names_head(const ParamIndex& x, int i) {
  const NameWords w = x.last_words(i);
  if (has_word(w, {"unembed", "unembedding", "lmhead"})) return true;
  if (has_word(w, {"lm"}) && has_word(w, {"head"})) return true;
  return has_word_part(w, "emb") && has_word(w, {"out", "output"});
}

}  // namespace redco
