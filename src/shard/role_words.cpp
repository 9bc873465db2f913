#include "shard/role_words.h"

#include <algorithm>

#include "shard/param_name.h"

namespace redco {

bool has_word(const NameWords& words, std::initializer_list<std::string_view> any) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return std::find(any.begin(), any.end(), w) != any.end(); });
}

bool has_word_part(const NameWords& words, std::string_view part) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return w.find(part) != std::string::npos; });
}

bool is_generic(const NameWords& words) {
  return std::all_of(words.begin(), words.end(), [](const std::string& w) {
    return is_index(w) || w == "dense" || w == "linear" || w == "lin" || w == "layer" || w == "proj" ||
           w == "module" || w == "projection" || w == "base" || w == "kernel" || w == "weight" || w == "conv";
  });
}

LayerContext context_of(const NameWords& w) {
  if (has_word_part(w, "mlp") || has_word_part(w, "ffn") || has_word_part(w, "feedforward") ||
      has_word_part(w, "moe") || has_word(w, {"ff", "expert", "experts", "relu", "mixing"}) ||
      (has_word(w, {"feed"}) && has_word(w, {"forward"})))
    return LayerContext::mlp;
  if (has_word_part(w, "attn") || has_word_part(w, "attention") || has_word(w, {"mha", "mhsa", "attend"}))
    return LayerContext::attention;
  return LayerContext::none;
}

int attention_input(const NameWords& words) {
  bool q = false, k = false, v = false;
  for (const std::string& w : words) {
    q |= w == "q" || w == "query" || w == "queries" || w == "wq" || w == "qproj";
    k |= w == "k" || w == "key" || w == "keys" || w == "wk" || w == "kproj";
    v |= w == "v" || w == "value" || w == "values" || w == "val" || w == "wv" || w == "vproj";
    if (w == "qkv" || w == "wqkv" || w == "qk" || w == "querykeyvalue") return 4;
    if (w == "kv" || w == "wkv") k = v = true;
  }
  if (q + k + v > 1) return q ? 4 : 5;
  return q ? 1 : k ? 2 : v ? 3 : 0;
}

bool names_attention_output(const NameWords& w) {
  return has_word(w, {"o", "out", "output", "wo", "oproj", "outproj", "merge", "combine", "unify"});
}

bool names_fully_connected(const NameWords& w) {
  if (has_word(w, {"fc", "ffn", "mlp", "up", "gate", "down", "expand", "widen", "contract", "shrink",
                   "intermediate", "wi"}))
    return true;
  for (std::size_t i = 0; i + 1 < w.size(); ++i)  // linear1, lin_2, w1
    if (is_index(w[i + 1]) && (w[i] == "linear" || w[i] == "lin" || w[i] == "dense" || w[i] == "w" ||
                               w[i] == "layer" || w[i] == "hidden" || w[i] == "wi"))
      return true;
  return false;
}

int pair_hint(const NameWords& w) {
  if (has_word(w, {"up", "gate", "expand", "widen", "wi", "intermediate"})) return 1;
  if (has_word(w, {"down", "contract", "shrink", "out", "output", "wo", "reduce", "squeeze"})) return 2;
  if (has_word(w, {"in", "inner"})) return 1;
  const auto four = std::find(w.begin(), w.end(), "4");  // dense_h_to_4h, dense_4h_to_h
  const auto to = std::find(w.begin(), w.end(), "to");
  if (four != w.end() && to != w.end()) return to < four ? 1 : 2;
  return 0;
}

}  // namespace redco
