#include "shard/roles.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "shard/block_roles.h"
#include "shard/param_index.h"
#include "shard/param_kinds.h"

namespace redco {
namespace {

class Finder {
 public:
  Finder(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names)
      : index_(params, names), out_(params.size()) {
    const std::vector<ParamKind> kinds = find_kinds(index_);
    for (int i = 0; i < n(); ++i) out_[i].kind = kinds[i];
  }

  std::vector<RoleInfo> run() {
    if (declares_roles()) {
      take_declared_roles();
    } else {
      find_heads_and_tables();
      find_routers();
      find_layers();
    }
    scope_the_rest();
    attach_vectors();
    return std::move(out_);
  }

 private:
  int n() const { return index_.n(); }
  bool is_matrix(int i) const { return redco::is_matrix(out_[i].kind); }

  bool declares_roles() const {
    for (int i = 0; i < n(); ++i)
      if (index_.param(i).role) return true;
    return false;
  }

  void take_declared_roles() {
    for (int i = 0; i < n(); ++i) {
      const ParamInfo& p = index_.param(i);
      out_[i].order = p.order;
      if (p.role) {
        out_[i].role = *p.role;
      } else if (out_[i].kind == ParamKind::embedding) {
        out_[i].role = Role::embedding;
      }
      const bool table = out_[i].role == Role::embedding || out_[i].role == Role::head;
      if (table && index_.block(i).empty()) vocab_ = std::max(vocab_, index_.out_of(i));
    }
  }

  // Embedding tables and LM heads. An LM head is named as such, or it follows the last block and maps to the
  // rows of the largest table.
  void find_heads_and_tables() {
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::embedding) continue;
      out_[i].role = is_bias_table(index_, i) ? Role::bias_table : Role::embedding;
      if (out_[i].role == Role::embedding && index_.block(i).empty())
        vocab_ = std::max(vocab_, index_.out_of(i));
    }
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || index_.rank(i) != 2 || !index_.block(i).empty()) continue;
      const bool by_shape =
          vocab_ > 1 && index_.out_of(i) == vocab_ && index_.has_blocks() && !index_.before_a_block(i);
      if (!names_head(index_, i) && !by_shape) continue;
      out_[i].role = Role::head;
      vocab_ = std::max(vocab_, index_.out_of(i));
    }
  }

  // Routers of a mixture of experts. A router reads the experts' input and has one output per expert. The
  // experts are numbered modules next to it, or the leading dim of stacked weights.
  void find_routers() {
    struct Experts {
      i64 count;
      std::set<i64> widths;
    };
    // By the module that the experts share with the router.
    std::unordered_map<std::string, std::vector<Experts>> experts;
    struct Stack {
      std::set<std::string> members;
      std::set<i64> widths;
    };
    std::map<std::string, Stack> stacks;  // module -> its numbered modules
    for (int i = 0; i < n(); ++i) {
      const ParamName& p = index_.name(i);
      if (out_[i].kind != ParamKind::linear) continue;
      if (index_.rank(i) == 3) {
        for (std::size_t up = 1; up <= 2 && up < p.comps.size(); ++up)
          experts[p.prefix(p.comps.size() - up)].push_back(
              {index_.shape(i)[0], {index_.in_of(i), index_.out_of(i)}});
      } else if (const std::size_t dot = index_.block(i).rfind('.'); dot != std::string::npos) {
        Stack& stack = stacks[index_.block(i).substr(0, dot)];
        stack.members.insert(index_.block(i));
        stack.widths.insert({index_.in_of(i), index_.out_of(i)});
      }
    }
    for (const auto& [module, stack] : stacks) {
      const std::size_t dot = module.rfind('.');
      if (dot != std::string::npos && stack.members.size() > 1)
        experts[module.substr(0, dot)].push_back({static_cast<i64>(stack.members.size()), stack.widths});
    }
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || index_.rank(i) != 2 || index_.block(i).empty()) continue;
      const ParamName& p = index_.name(i);
      bool routes = has_word(index_.words(i), {"router", "gating"});
      for (std::size_t up = 1; up <= 2 && up < p.comps.size(); ++up) {
        const auto it = experts.find(p.prefix(p.comps.size() - up));
        if (it == experts.end()) continue;
        for (const Experts& e : it->second)
          routes |= e.widths.contains(index_.in_of(i)) &&
                    (e.count == index_.out_of(i) ||
                     // the gate of a shared expert
                     (index_.out_of(i) == 1 && has_word(index_.words(i), {"gate"})));
      }
      if (routes) out_[i].role = Role::router;
    }
  }

  // The linears of each block, and those outside all blocks.
  void find_layers() {
    std::vector<std::pair<std::string, std::vector<BlockLayer>>> blocks;
    std::unordered_map<std::string, std::size_t> at;
    for (int i = 0; i < n(); ++i) {
      if (out_[i].kind != ParamKind::linear || out_[i].role != Role::rest) continue;
      const auto [it, fresh] = at.emplace(index_.block(i), blocks.size());
      if (fresh) blocks.push_back({index_.block(i), {}});
      blocks[it->second].second.push_back(make_block_layer(index_, i));
    }
    for (auto& [block, layers] : blocks) {
      find_block_roles(index_, block, layers);
      for (const BlockLayer& l : layers) {
        out_[l.index].role = l.role;
        if (l.role == Role::attention_in) out_[l.index].order = l.qkv == 2 || l.qkv == 3 ? l.qkv - 1 : 0;
      }
    }
  }

  // Matrices without a role alternate within a scope: a block, or the parameters between two blocks.
  void scope_the_rest() {
    int run = 0;
    bool between = false;
    for (int i = 0; i < n(); ++i) {
      if (!is_matrix(i)) continue;
      if (!index_.block(i).empty()) {
        between = false;
        out_[i].scope = index_.block(i);
      } else if (out_[i].role == Role::rest) {
        if (!between) ++run;
        between = true;
        out_[i].scope = "." + std::to_string(run);
      }
    }
  }

  // Whether a bias belongs to the linear defined right before it: in the same module, with as many outputs as
  // the bias has elements (`layer.w1`, `layer.b1`).
  bool bare_weight_of(int weight, int bias) const {
    const ParamName &w = index_.name(weight), &b = index_.name(bias);
    return out_[weight].kind == ParamKind::linear && index_.rank(bias) == 1 &&
           index_.shape(bias)[0] == index_.out_of(weight) && w.comps.size() == b.comps.size() &&
           w.prefix(w.comps.size() - 1) == b.prefix(b.comps.size() - 1);
  }

  // Roles of vectors and biases, and the weight of each bias.
  void attach_vectors() {
    std::unordered_map<std::string, int> weights;
    for (int i = 0; i < n(); ++i)
      if (is_matrix(i)) weights.emplace(index_.name(i).module, i);
    int head = -1, table = -1;
    for (int i = 0; i < n(); ++i) {
      if (out_[i].role == Role::head) head = i;
      if (out_[i].role == Role::embedding && index_.block(i).empty() && index_.out_of(i) == vocab_ &&
          table < 0)
        table = i;
    }
    for (int i = 0; i < n(); ++i) {
      if (is_matrix(i)) continue;
      if (index_.rank(i) == 0) {
        out_[i].role = Role::vector;
        continue;
      }
      const ParamKind kind = out_[i].kind;
      if (kind == ParamKind::bias) {
        out_[i].role = Role::bias;
        const auto it = weights.find(index_.name(i).module);
        if (it != weights.end())
          out_[i].owner = it->second;
        else if (i > 0 && bare_weight_of(i - 1, i))
          out_[i].owner = i - 1;
        else if (index_.block(i).empty() && vocab_ > 1 && long_dims(index_.shape(i)) == 1 &&
                 index_.shape(i).back() == vocab_)
          out_[i].owner = head >= 0 ? head : table;  // cls.predictions.bias, final_logits_bias
        else
          out_[i].role = Role::vector;
      } else if (kind == ParamKind::norm) {
        out_[i].role = Role::norm;
      } else {
        out_[i].role = long_dims(index_.shape(i)) >= 2 ? Role::rest : Role::vector;
        out_[i].scope = index_.block(i).empty() ? ".other" : index_.block(i) + ".other";
      }
    }
  }

  const ParamIndex index_;
  std::vector<RoleInfo> out_;
  i64 vocab_ = 0;  // rows of the largest table outside the blocks, or outputs of the LM head
};

}  // namespace

std::vector<RoleInfo> find_roles(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names) {
  return Finder(params, names).run();
}

}  // namespace redco
