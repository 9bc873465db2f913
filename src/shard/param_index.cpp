#include "shard/param_index.h"

#include <algorithm>

namespace redco {

int long_dims(const Shape& s) {
  return static_cast<int>(std::count_if(s.begin(), s.end(), [](i64 d) { return d > 1; }));
}

ParamIndex::ParamIndex(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names)
    : params_(params), names_(names), words_(params.size()), block_(params.size()) {
  find_words();
  find_blocks();
  find_widths();
}

int ParamIndex::bias_in(const std::string& module) const {
  const auto it = biases_.find(module);
  return it == biases_.end() ? -1 : it->second;
}

bool ParamIndex::has_bias(int i) const {
  const int bias = bias_in(names_[i].module);
  return bias >= 0 && bias != i;
}

void ParamIndex::find_words() {
  for (int i = 0; i < n(); ++i) {
    const ParamName& p = names_[i];
    if (is_bias_leaf(p.leaf)) biases_.emplace(p.module, i);
    std::size_t last = p.comps.size() - 1;
    words_[i] = words_of(p.comps[last]);
    while (is_generic(words_[i]) && last > 0 && !is_index(p.comps[last - 1])) {
      const NameWords more = words_of(p.comps[--last]);
      words_[i].insert(words_[i].begin(), more.begin(), more.end());
    }
    if (p.leaf == "embedding" || p.leaf == "table") words_[i].push_back(p.leaf);
    if (!p.part.empty()) {
      const NameWords part = words_of(p.part);
      if (attention_input(part) || names_fully_connected(part)) words_[i] = part;
    }
  }
}

void ParamIndex::find_blocks() {
  std::unordered_map<std::string, int> matrices;  // in each numbered module
  for (int i = 0; i < n(); ++i) {
    if (rank(i) < 2) continue;
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
    if (!block_[i].empty() && rank(i) >= 2) last_block_matrix_ = i;
  }
}

// The vectors in modules without a matrix belong to norms.
void ParamIndex::find_widths() {
  for (int i = 0; i < n(); ++i) {
    if (rank(i) >= 2) with_matrix_.insert(names_[i].module);
    if (rank(i) == 1 && !names_[i].leaf.empty() && !is_bias_leaf(names_[i].leaf))
      with_weight_vector_.insert(names_[i].module);
  }
  for (int i = 0; i < n(); ++i)
    if (rank(i) == 1 && !has_matrix(names_[i].module)) widths_.insert(shape(i)[0]);
}

}  // namespace redco
