#include "shard/roles.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <unordered_map>

namespace redco {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, std::initializer_list<std::string_view> any) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return std::find(any.begin(), any.end(), w) != any.end(); });
}
bool has_part(const Words& words, std::string_view part) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return w.find(part) != std::string::npos; });
}

// Words that say nothing about a layer's role.
bool is_generic(const Words& words) {
  return std::all_of(words.begin(), words.end(), [](const std::string& w) {
    return is_index(w) || w == "dense" || w == "linear" || w == "lin" || w == "layer" || w == "proj" ||
           w == "module" || w == "projection" || w == "base" || w == "kernel" || w == "weight" || w == "conv";
  });
}

enum class Context : unsigned char { none, attention, mlp };

Context context_of(const Words& w) {
  if (has_part(w, "mlp") || has_part(w, "ffn") || has_part(w, "feedforward") || has_part(w, "moe") ||
      has(w, {"ff", "expert", "experts", "relu", "mixing"}) || (has(w, {"feed"}) && has(w, {"forward"})))
    return Context::mlp;
  if (has_part(w, "attn") || has_part(w, "attention") || has(w, {"mha", "mhsa", "attend"}))
    return Context::attention;
  return Context::none;
}

// Which of q, k, v a layer's own words name: 0 none, 1 q, 2 k, 3 v, 4 fused with q, 5 fused without.
int attention_input(const Words& words) {
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

bool names_attention_output(const Words& w) {
  return has(w, {"o", "out", "output", "wo", "oproj", "outproj", "merge", "combine", "unify"});
}

// Does a layer's own name say 'fully connected', wherever it stands?
bool names_fully_connected(const Words& w) {
  if (has(w, {"fc", "ffn", "mlp", "up", "gate", "down", "expand", "widen", "contract", "shrink",
              "intermediate", "wi"}))
    return true;
  for (std::size_t i = 0; i + 1 < w.size(); ++i)  // linear1, lin_2, w1
    if (is_index(w[i + 1]) && (w[i] == "linear" || w[i] == "lin" || w[i] == "dense" || w[i] == "w" ||
                               w[i] == "layer" || w[i] == "hidden" || w[i] == "wi"))
      return true;
  return false;
}

// 1: by its name the first of a pair, 2: the second, 0: can't tell.
int pair_hint(const Words& w) {
  if (has(w, {"up", "gate", "expand", "widen", "wi", "intermediate"})) return 1;
  if (has(w, {"down", "contract", "shrink", "out", "output", "wo", "reduce", "squeeze"})) return 2;
  if (has(w, {"in", "inner"})) return 1;
  const auto four = std::find(w.begin(), w.end(), "4");  // dense_h_to_4h, dense_4h_to_h
  const auto to = std::find(w.begin(), w.end(), "to");
  if (four != w.end() && to != w.end()) return to < four ? 1 : 2;
  return 0;
}

// A matrix that may be a linear layer of a block.
struct Layer {
  int index = 0;  // into params
  i64 in = 0, out = 0;
  Context context = Context::none;
  int qkv = 0;  // attention_input of its own words
  bool out_name = false;
  bool fc_name = false;
  int hint = 0;       // pair_hint
  std::string group;  // the module it shares with the other layers of its attention or MLP
  bool done = false;  // its role is known
  bool fc = false;    // fully connected, first or second still open
  bool square() const { return in == out; }
};

class Finder {
 public:
  Finder(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names, bool use_hints)
      : params_(params),
        names_(names),
        hints_(use_hints),
        out_(params.size()),
        block_(params.size()),
        own_(params.size()) {}

  std::vector<RoleInfo> run() {
    index_modules();
    find_blocks();
    find_kinds();
    find_heads_and_tables();
    find_routers();
    for (auto& [block, layers] : layers_by_block()) classify_block(block, layers);
    scope_the_rest();
    attach_vectors();
    return std::move(out_);
  }

 private:
  const Shape& shape(int i) const { return params_[i].shape; }
  static int rank(const Shape& s) { return static_cast<int>(s.size()); }
  static int long_dims(const Shape& s) {
    return static_cast<int>(std::count_if(s.begin(), s.end(), [](i64 d) { return d > 1; }));
  }
  i64 in_of(int i) const { return shape(i)[rank(shape(i)) - 1]; }
  i64 out_of(int i) const { return shape(i)[rank(shape(i)) - 2]; }
  int n() const { return static_cast<int>(params_.size()); }
  bool is_matrix(int i) const {
    const ParamKind k = out_[i].kind;
    return k == ParamKind::linear || k == ParamKind::conv || k == ParamKind::embedding;
  }
  bool has_bias(int i) const {
    const auto it = biases_.find(names_[i].module);
    return it != biases_.end() && it->second != i;
  }

  // Which modules have a bias, and each parameter's own words: those of the last component, and of the one
  // before if the last says nothing; of the part if it has one.
  void index_modules() {
    for (int i = 0; i < n(); ++i) {
      const ParamName& p = names_[i];
      if (is_bias_leaf(p.leaf)) biases_.emplace(p.module, i);
      std::size_t last = p.comps.size() - 1;
      own_[i] = words_of(p.comps[last]);
      while (is_generic(own_[i]) && last > 0 && !is_index(p.comps[last - 1])) {
        const Words more = words_of(p.comps[--last]);
        own_[i].insert(own_[i].begin(), more.begin(), more.end());
      }
      if (p.leaf == "embedding" || p.leaf == "table") own_[i].push_back(p.leaf);
      if (!p.part.empty()) {
        const Words part = words_of(p.part);
        if (attention_input(part) || names_fully_connected(part)) own_[i] = part;
      }
    }
  }

  // The block of a parameter is the deepest numbered module around it that has at least two matrices.
  void find_blocks() {
    std::unordered_map<std::string, int> matrices;
    for (int i = 0; i < n(); ++i) {
      if (rank(shape(i)) < 2) continue;
      const ParamName& p = names_[i];
      std::string prefix;
      for (std::size_t d = 0; d + 1 < p.comps.size(); ++d) {
        prefix += (d ? "." : "") + p.comps[d];
        if (is_numbered(p.comps[d])) ++matrices[prefix];
      }
    }
    for (int i = 0; i < n(); ++i) {
      const ParamName& p = names_[i];
      std::string prefix;
      for (std::size_t d = 0; d + 1 < p.comps.size(); ++d) {
        prefix += (d ? "." : "") + p.comps[d];
        if (!is_numbered(p.comps[d])) continue;
        const auto it = matrices.find(prefix);
        if (it != matrices.end() && it->second >= 2) block_[i] = prefix;
      }
      if (!block_[i].empty() && rank(shape(i)) >= 2) last_block_matrix_ = i;
    }
  }
  bool before_a_block(int i) const { return i < last_block_matrix_; }

  void find_kinds() {
    // Widths: lengths of the vectors that belong to no matrix, i.e. of the norms.
    std::set<std::string> modules_with_matrix;
    for (int i = 0; i < n(); ++i)
      if (rank(shape(i)) >= 2) modules_with_matrix.insert(names_[i].module);
    for (int i = 0; i < n(); ++i)
      if (rank(shape(i)) == 1 && !modules_with_matrix.contains(names_[i].module)) widths_.insert(shape(i)[0]);
    for (int i = 0; i < n(); ++i) {
      out_[i].kind = hints_ && params_[i].kind ? *params_[i].kind : find_kind(i, modules_with_matrix);
      if (rank(shape(i)) < 2 && is_matrix(i)) out_[i].kind = ParamKind::other;  // a hint that can't be
      if (out_[i].kind == ParamKind::conv && rank(shape(i)) < 3) out_[i].kind = ParamKind::linear;
    }
  }

  bool is_bias_table(int i) const {
    return rank(shape(i)) == 2 && !is_bias_leaf(names_[i].leaf) &&
           has(own_[i], {"bias", "biases", "bucket", "buckets"}) &&
           has(own_[i],
               {"relative", "rel", "position", "positional", "pos", "distance", "bucket", "buckets"});
  }

  ParamKind find_kind(int i, const std::set<std::string>& modules_with_matrix) const {
    const Shape& s = shape(i);
    const ParamName& p = names_[i];
    const Words& w = own_[i];
    if (rank(s) == 0) return ParamKind::other;
    if (rank(s) == 1) {
      if (is_bias_leaf(p.leaf) && modules_with_matrix.contains(p.module)) return ParamKind::bias;
      if (p.leaf.empty()) return has(w, {"b", "bias"}) ? ParamKind::bias : ParamKind::other;
      const bool lone_bias = is_bias_leaf(p.leaf) && !has_weight_vector(p.module);
      return lone_bias ? ParamKind::bias : ParamKind::norm;
    }
    if (is_bias_leaf(p.leaf)) return ParamKind::bias;  // stacked experts, (1, V)
    const bool table_words = has_part(w, "emb") || has(w, {"position", "positions", "pos", "positional"});
    if (rank(s) >= 3) {
      const bool leading_ones = long_dims(Shape(s.begin(), s.end() - 2)) == 0;
      if (p.leaf.empty() && leading_ones)
        return table_words && long_dims(s) == 2 ? ParamKind::embedding : ParamKind::other;
      if (rank(s) >= 4 || has_part(w, "conv")) return ParamKind::conv;
      const auto bias = biases_.find(p.module);
      const bool conv_bias = bias != biases_.end() && shape(bias->second) == Shape{s[0]};
      return conv_bias ? ParamKind::conv : ParamKind::linear;
    }
    if (is_bias_table(i)) return ParamKind::embedding;
    return is_embedding(i) ? ParamKind::embedding : ParamKind::linear;
  }

  bool has_weight_vector(const std::string& module) const {
    if (weight_vectors_.empty())
      for (int i = 0; i < n(); ++i)
        if (rank(shape(i)) == 1 && !names_[i].leaf.empty() && !is_bias_leaf(names_[i].leaf))
          weight_vectors_.insert(names_[i].module);
    return weight_vectors_.contains(module);
  }

  // (rows, hidden) or a linear?
  bool is_embedding(int i) const {
    const ParamName& p = names_[i];
    const Words& w = own_[i];
    if (has_bias(i) || names_head(i)) return false;
    const bool linear_words =
        has(w, {"proj", "project", "projection", "linear", "dense", "mapping", "patch", "fc", "out",
                "classifier", "head", "logits", "score", "router", "conv", "attn"}) ||
        attention_input(w) >= 4;
    if (linear_words) return false;
    if (has_part(w, "emb") || has(w, {"wte", "wpe", "wtt", "lookup", "codebook"})) return true;
    if (p.comps.size() > 1 && has_part(words_of(p.comps[p.comps.size() - 2]), "emb")) return true;
    if (!block_[i].empty() || last_block_matrix_ < 0) return false;
    if (has(w, {"shared", "vocab", "vocabulary", "token", "tokens", "tok", "word", "words", "position",
                "positions", "pos", "positional", "segment", "segments", "type", "types", "table"}))
      return true;
    // By shape and order: rows of the model's width, before the last block.
    if (!before_a_block(i)) return false;
    if (widths_.contains(in_of(i))) return true;
    // A factorized table (V, E): the next bare matrix maps E to the width.
    for (int j = i + 1; j < n() && block_[j].empty(); ++j)
      if (rank(shape(j)) == 2 && in_of(j) == in_of(i) && widths_.contains(out_of(j)) && out_of(i) > in_of(i))
        return true;
    return false;
  }

  bool names_head(int i) const {
    const Words& w = words_last(i);
    if (has(w, {"unembed", "unembedding", "lmhead"})) return true;
    if (has(w, {"lm"}) && has(w, {"head"})) return true;
    return has_part(w, "emb") && has(w, {"out", "output"});
  }
  Words words_last(int i) const { return words_of(names_[i].comps.back()); }

  // Roles of tables and LM heads. A head is named so, or maps onto the rows of the largest table after the
  // last block.
  void find_heads_and_tables() {
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::embedding) continue;
      out_[i].role = is_bias_table(i) ? Role::bias_table : Role::embedding;
      if (out_[i].role == Role::embedding && block_[i].empty()) vocab_ = std::max(vocab_, out_of(i));
    }
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || rank(shape(i)) != 2 || !block_[i].empty()) continue;
      const bool by_shape =
          vocab_ > 1 && out_of(i) == vocab_ && last_block_matrix_ >= 0 && !before_a_block(i);
      if (!names_head(i) && !by_shape) continue;
      out_[i].role = Role::head;
      vocab_ = std::max(vocab_, out_of(i));
    }
  }

  // A router reads what the experts read and has as many outputs as there are of them: numbered modules
  // beside it, or the leading dim of stacked ones.
  void find_routers() {
    struct Experts {
      i64 count;
      std::set<i64> widths;
    };
    std::unordered_map<std::string, std::vector<Experts>>
        experts;  // by the module they share with the router
    struct Stack {
      std::set<std::string> members;
      std::set<i64> widths;
    };
    std::map<std::string, Stack> stacks;  // of numbered modules, by the module they are in
    for (int i = 0; i < n(); ++i) {
      const ParamName& p = names_[i];
      if (out_[i].kind != ParamKind::linear) continue;
      if (rank(shape(i)) == 3) {
        for (std::size_t up = 1; up <= 2 && up < p.comps.size(); ++up)
          experts[p.prefix(p.comps.size() - up)].push_back({shape(i)[0], {in_of(i), out_of(i)}});
      } else if (const std::size_t dot = block_[i].rfind('.'); dot != std::string::npos) {
        Stack& stack = stacks[block_[i].substr(0, dot)];
        stack.members.insert(block_[i]);
        stack.widths.insert({in_of(i), out_of(i)});
      }
    }
    for (const auto& [module, stack] : stacks) {
      const std::size_t dot = module.rfind('.');
      if (dot != std::string::npos && stack.members.size() > 1)
        experts[module.substr(0, dot)].push_back({static_cast<i64>(stack.members.size()), stack.widths});
    }
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || rank(shape(i)) != 2 || block_[i].empty()) continue;
      const ParamName& p = names_[i];
      bool routes = has(own_[i], {"router", "gating"});
      for (std::size_t up = 1; up <= 2 && up < p.comps.size(); ++up) {
        const auto it = experts.find(p.prefix(p.comps.size() - up));
        if (it == experts.end()) continue;
        for (const Experts& e : it->second)
          routes |= e.widths.contains(in_of(i)) && (e.count == out_of(i) ||
                                                    // of a shared expert
                                                    (out_of(i) == 1 && has(own_[i], {"gate"})));
      }
      if (routes) out_[i].role = Role::router;
    }
  }

  std::vector<std::pair<std::string, std::vector<Layer>>> layers_by_block() {
    std::vector<std::pair<std::string, std::vector<Layer>>> blocks;
    std::unordered_map<std::string, std::size_t> at;
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || out_[i].role != Role::rest) continue;
      const auto [it, fresh] = at.emplace(block_[i], blocks.size());
      if (fresh) blocks.push_back({block_[i], {}});
      blocks[it->second].second.push_back(make_layer(i));
    }
    return blocks;
  }

  Layer make_layer(int i) const {
    const ParamName& p = names_[i];
    Layer l;
    l.index = i;
    l.in = in_of(i);
    l.out = out_of(i);
    // Context and group. The components inside the outermost numbered module tell; without one, all of them.
    const std::size_t block_depth =
        block_[i].empty() ? 0
                          : static_cast<std::size_t>(std::count(block_[i].begin(), block_[i].end(), '.')) + 1;
    std::size_t from = 0;
    for (std::size_t d = 0; d + 1 < p.comps.size(); ++d)
      if (is_index(p.comps[d])) {
        from = d + 1;
        break;
      }
    for (std::size_t d = from; d + 1 < p.comps.size(); ++d) {
      const Context c = context_of(words_of(p.comps[d]));
      if (c != Context::none) l.context = c;
    }
    const std::size_t depth = p.comps.size() - 1;  // of the parent
    l.group = block_depth < depth ? p.prefix(block_depth + 1) : p.prefix(depth);
    if (block_depth == 0 && l.context == Context::none) l.group = p.prefix(depth);
    for (std::size_t d = std::max(block_depth, from); d < depth; ++d)
      if (l.context != Context::none && context_of(words_of(p.comps[d])) == l.context) {
        l.group = p.prefix(d + 1);
        break;
      }
    const Words& w = own_[i];
    l.qkv = l.context == Context::mlp ? 0 : attention_input(w);
    l.out_name = names_attention_output(w);
    l.fc_name = names_fully_connected(w) || (is_index(p.comps.back()) && is_generic(w));
    l.hint = pair_hint(w);
    return l;
  }

  void set(Layer& l, Role role) {
    out_[l.index].role = role;
    if (role == Role::attention_in) out_[l.index].order = l.qkv == 2 || l.qkv == 3 ? l.qkv - 1 : 0;
    l.done = true;
  }

  void classify_block(const std::string& block, std::vector<Layer>& layers) {
    name_attention(layers);
    for (Layer& l : layers)
      if (!l.done && (l.context == Context::mlp || (l.fc_name && l.context == Context::none))) l.fc = true;
    if (!block.empty()) {
      name_attention_by_shape(layers);
      find_pairs_by_shape(layers);
    } else if (last_block_matrix_ < 0) {
      // No blocks at all: a plain network; its linears are fully-connected layers.
      for (Layer& l : layers)
        if (!l.done) l.fc = true;
    } else {
      for (Layer& l : layers)  // pooler, classifier, projections beside the blocks
        if (l.context != Context::mlp) l.fc = false;
    }
    alternate(block, layers);
  }

  // q, k, v by their names; then the output projection: named so inside an attention, or the next one that
  // maps back.
  void name_attention(std::vector<Layer>& layers) {
    std::map<std::string, std::set<int>> named;  // group -> which of q, k, v its layers name
    for (const Layer& l : layers)
      if (l.qkv) named[l.group].insert(l.qkv);
    for (Layer& l : layers) {
      if (!l.qkv) continue;
      const std::set<int>& all = named[l.group];
      if (l.context == Context::attention || l.qkv >= 4 || all.size() >= 2) set(l, Role::attention_in);
    }
    // k and v by name, and a q that isn't named as such: the layer right before them, or the first of two
    // after them.
    for (std::size_t i = 0, end; i < layers.size(); i = end) {
      end = i + 1;
      if (!layers[i].done) continue;
      const std::string& group = layers[i].group;
      bool q = layers[i].qkv == 1 || layers[i].qkv == 4;
      for (; end < layers.size() && layers[end].done && layers[end].group == group; ++end)
        q |= layers[end].qkv == 1 || layers[end].qkv == 4;
      const auto open = [&](std::size_t j) {
        return j < layers.size() && !layers[j].done && layers[j].group == group && !layers[j].out_name;
      };
      if (q) continue;
      if (i > 0 && open(i - 1))
        set(layers[i - 1], Role::attention_in);
      else if (open(end) && end + 1 < layers.size() && layers[end + 1].group == group &&
               !layers[end + 1].done && layers[end + 1].out == layers[end].in &&
               layers[end + 1].in == layers[end].out &&
               (layers[end].square() || layers[end].out == layers[i].out))
        set(layers[end], Role::attention_in);
    }
    // torch's MultiheadAttention: in_proj; GPT-2's c_attn as one tensor.
    for (Layer& l : layers)
      if (!l.done && l.context == Context::attention && !l.out_name &&
          (has(own_[l.index], {"in"}) || has_part(words_last(l.index), "attn")))
        set(l, Role::attention_in);
    std::map<std::string, std::pair<i64, std::set<i64>>>
        open;  // group -> input width, output widths of its q, k, v
    for (const Layer& l : layers)
      if (l.done && !open.contains(l.group)) open[l.group].first = l.in;
    std::map<std::string, std::set<i64>> widths;
    for (const Layer& l : layers)
      if (l.done) widths[l.group].insert(l.out);
    std::set<std::string> waiting;  // groups whose q, k, v have come, and their output not yet
    for (Layer& l : layers) {
      if (l.done) {
        waiting.insert(l.group);
        continue;
      }
      const bool attention = l.context == Context::attention;
      if (attention && l.out_name) {
        set(l, Role::attention_out);
        waiting.erase(l.group);
      } else if (waiting.contains(l.group) && l.out == open[l.group].first && (attention || !l.fc_name) &&
                 (attention || l.in == l.out || widths[l.group].contains(l.in))) {
        set(l, Role::attention_out);
        waiting.erase(l.group);
      } else if (attention && open.contains(l.group)) {
        const i64 width = open[l.group].first;
        const std::set<i64>& heads = widths[l.group];
        const bool touches = l.in == width || l.out == width || heads.contains(l.in) || heads.contains(l.out);
        set(l, touches ? Role::attention_in : Role::shared);
      }
    }
  }

  // What names left open, by shape and order. `w` is the input width of the unit that starts at i.
  void name_attention_by_shape(std::vector<Layer>& layers) {
    const auto free = [&](std::size_t i) { return i < layers.size() && !layers[i].done && !layers[i].fc; };
    for (std::size_t i = 0; i < layers.size();) {
      if (!free(i)) {
        ++i;
        continue;
      }
      const i64 w = layers[i].in;
      const std::size_t taken = attention_length(layers, i, free);
      if (taken == 0) {
        // The second of a pair whose first is known by its name, or the other way round.
        const auto partner = [&](std::size_t j) {
          return j < layers.size() && layers[j].fc && layers[j].in == layers[i].out && layers[j].out == w;
        };
        if ((i > 0 && partner(i - 1)) || partner(i + 1)) layers[i].fc = true;
        ++i;
        continue;
      }
      for (std::size_t j = 0; j < taken; ++j)
        set(layers[i + j], j + 1 < taken ? Role::attention_in : Role::attention_out);
      i += taken;
    }
  }

  // How many layers from i on are one attention: 0, or the number of inputs plus one for the output.
  template <class Free>
  static std::size_t attention_length(const std::vector<Layer>& l, std::size_t i, const Free& free) {
    const i64 w = l[i].in;
    std::size_t run = 0;  // of the same module
    while (free(i + run) && l[i + run].group == l[i].group) ++run;
    const auto reads = [&](std::size_t a, std::size_t b) {
      return std::all_of(l.begin() + a, l.begin() + b, [&](const Layer& x) { return x.in == w; });
    };
    // A module of its own with q, k, v, a gate and the output.
    if (run == 5 && l[i + 4].out == w && reads(i, i + 4) && l[i].out == l[i + 4].in &&
        l[i + 3].out == l[i + 4].in)
      return 5;
    // Three inputs and one back; k and v may read another width (cross-attention) or be narrower (grouped
    // heads).
    if (free(i + 1) && free(i + 2) && free(i + 3) && l[i + 3].out == w) {
      const i64 back = l[i + 3].in;
      const bool same_input = reads(i, i + 3);
      const bool cross = l[i + 1].in == l[i + 2].in && l[i].out == l[i + 1].out && l[i].out == l[i + 2].out;
      // One of them, q, is as wide as what comes back; the other two are alike.
      const auto is_q = [&](std::size_t q, std::size_t k, std::size_t v) {
        return l[q].out == back && l[k].out == l[v].out;
      };
      const bool leads_back = is_q(i, i + 1, i + 2) || is_q(i + 1, i, i + 2) || is_q(i + 2, i, i + 1);
      // Two pairs of one square width in modules of two aren't an attention.
      const bool two_pairs =
          run == 2 && l[i].square() && l[i + 2].group != l[i].group && l[i + 3].group == l[i + 2].group;
      if ((same_input || cross) && leads_back && !two_pairs) return 4;
    }
    // q and fused k, v: different widths.
    if (free(i + 1) && free(i + 2) && reads(i, i + 2) && l[i].out != l[i + 1].out && l[i + 2].out == w &&
        (l[i + 2].in == l[i].out || l[i + 2].in == l[i + 1].out) && l[i + 1].out != w)
      return 3;
    // Fused k, v and then q, in a module of three.
    if (run == 3 && reads(i, i + 2) && l[i].out == 2 * l[i + 1].out && l[i + 2].out == w &&
        l[i + 2].in == l[i + 1].out)
      return 3;
    // q, k, v fused: what comes back is narrower than what went out.
    if (free(i + 1) && l[i + 1].out == w && l[i].out > l[i + 1].in && l[i].out <= 3 * l[i + 1].in &&
        2 * l[i + 1].in >= w && l[i].out != w && l[i + 1].group == l[i].group)
      return 2;
    // Inside a module called attention, whatever it looks like.
    if (l[i].context == Context::attention && run >= 2 && l[i + run - 1].out == w) return run;
    return 0;
  }

  // Unnamed fully-connected pairs: away and back again.
  void find_pairs_by_shape(std::vector<Layer>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].done || layers[i].fc) continue;
      for (std::size_t j = i + 1; j < layers.size() && j <= i + 2; ++j) {
        if (layers[j].done) break;
        if (j == i + 2 && (layers[i + 1].in != layers[i].in || layers[i + 1].out != layers[i].out)) break;
        // One back, or one that reads half of a fused gated pair.
        if (layers[j].out == layers[i].in &&
            (layers[j].in == layers[i].out || 2 * layers[j].in == layers[i].out)) {
          for (std::size_t k = i; k <= j; ++k) layers[k].fc = true;
          break;
        }
      }
    }
  }

  // Rule 1 along the fully-connected layers of a block.
  void alternate(const std::string& block, std::vector<Layer>& layers) {
    const bool plain = block.empty() && last_block_matrix_ < 0;
    const Layer* open = nullptr;  // the last 'first' that waits for its second
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Layer& l = layers[i];
      if (!l.fc || l.done) continue;
      if (open && l.group != open->group &&
          (plain ? l.in != open->out : l.in != open->out && l.out != open->in))
        open = nullptr;  // another network
      bool second = false;
      if (!open) {
        // Defined the other way round: it narrows to the width, and its first comes later.
        second = l.hint == 2 && (l.square() || widths_.contains(l.out)) && !plain &&
                 std::any_of(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, layers.end(),
                             [&](const Layer& x) {
                               return x.fc && x.group == l.group && x.out == l.in && x.in == l.out &&
                                      (x.hint == 1 || !l.square());
                             }) &&
                 (l.square() || !widths_.contains(l.in));
      } else {
        const bool alike = l.in == open->in && l.out == open->out;
        const bool gated = alike && (!l.square() || (l.hint == 1 && open->hint == 1));
        second = !gated && !(l.hint == 1 && l.in != open->out);
      }
      set(l, second ? Role::second : Role::first);
      open = second ? nullptr : &l;
    }
  }

  // Alternation of the rest starts anew in each block, and between blocks.
  void scope_the_rest() {
    int run = 0;
    bool between = false;
    for (int i = 0; i < n(); ++i) {
      if (!is_matrix(i)) continue;
      if (!block_[i].empty()) {
        between = false;
        out_[i].scope = block_[i];
      } else if (out_[i].role == Role::rest) {
        if (!between) ++run;
        between = true;
        out_[i].scope = "." + std::to_string(run);
      }
    }
  }

  // `layer.w1`, `layer.b1`: a bias right after the weight of its length in the same module.
  bool bare_weight_of(int weight, int bias) const {
    const ParamName &w = names_[weight], &b = names_[bias];
    return out_[weight].kind == ParamKind::linear && rank(shape(bias)) == 1 &&
           shape(bias)[0] == out_of(weight) && w.comps.size() == b.comps.size() &&
           w.prefix(w.comps.size() - 1) == b.prefix(b.comps.size() - 1);
  }

  // Vectors and biases: whose are they?
  void attach_vectors() {
    std::unordered_map<std::string, int> weights;
    for (int i = 0; i < n(); ++i)
      if (is_matrix(i)) weights.emplace(names_[i].module, i);
    int head = -1, table = -1;
    for (int i = 0; i < n(); ++i) {
      if (out_[i].role == Role::head) head = i;
      if (out_[i].role == Role::embedding && block_[i].empty() && out_of(i) == vocab_ && table < 0) table = i;
    }
    for (int i = 0; i < n(); ++i) {
      if (is_matrix(i)) continue;
      if (rank(shape(i)) == 0) {
        out_[i].role = Role::vector;
        continue;
      }
      const ParamKind kind = out_[i].kind;
      if (kind == ParamKind::bias) {
        out_[i].role = Role::bias;
        const auto it = weights.find(names_[i].module);
        if (it != weights.end())
          out_[i].owner = it->second;
        else if (i > 0 && bare_weight_of(i - 1, i))
          out_[i].owner = i - 1;
        else if (block_[i].empty() && vocab_ > 1 && long_dims(shape(i)) == 1 && shape(i).back() == vocab_)
          out_[i].owner = head >= 0 ? head : table;  // cls.predictions.bias, final_logits_bias
        else
          out_[i].role = Role::vector;
      } else if (kind == ParamKind::norm) {
        out_[i].role = Role::norm;
      } else {
        out_[i].role = long_dims(shape(i)) >= 2 ? Role::rest : Role::vector;
        out_[i].scope = block_[i].empty() ? ".other" : block_[i] + ".other";
      }
    }
  }

  const std::vector<ParamInfo>& params_;
  const std::vector<ParamName>& names_;
  const bool hints_;
  std::vector<RoleInfo> out_;
  std::vector<std::string> block_;  // of each parameter, empty: none
  std::vector<Words> own_;
  std::unordered_map<std::string, int> biases_;  // module -> its bias
  mutable std::set<std::string> weight_vectors_;
  std::set<i64> widths_;        // lengths of norms
  int last_block_matrix_ = -1;  // -1: the model has no blocks
  i64 vocab_ = 0;               // rows of the largest table outside the blocks, or outputs of the head
};

}  // namespace

std::vector<RoleInfo> find_roles(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names,
                                 bool use_hints) {
  return Finder(params, names, use_hints).run();
}

}  // namespace redco
