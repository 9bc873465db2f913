// Facts about a model's parameters that follow directly from names and shapes: words, blocks, biases, widths
// of norms. Part of shard/roles.cpp.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "shard/param_name.h"
#include "shard/role_words.h"
#include "shard/rules.h"

namespace redco {

// Refers to the vectors it was made from; valid while they live. Parameters are numbered from 0 in order of
// definition.
class ParamIndex {
 public:
  ParamIndex(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names);

  int n() const { return static_cast<int>(params_.size()); }
  const ParamInfo& param(int i) const { return params_[i]; }
  const ParamName& name(int i) const { return names_[i]; }
  const Shape& shape(int i) const { return params_[i].shape; }
  int rank(int i) const { return static_cast<int>(shape(i).size()); }
  // Input and output width of a linear (..., out, in).
  i64 in_of(int i) const { return shape(i)[rank(i) - 1]; }
  i64 out_of(int i) const { return shape(i)[rank(i) - 2]; }

  // The words that name the parameter: those of its part ("q" of `...weight[q]`) if they name a role, else
  // those of its last component; while all words are generic, those of the component before are added.
  const NameWords& words(int i) const { return words_[i]; }
  // The words of the last component only.
  NameWords last_words(int i) const { return words_of(names_[i].comps.back()); }

  // The block of a parameter: the deepest numbered module around it that has at least two matrices; "" if
  // there is none.
  const std::string& block(int i) const { return block_[i]; }
  bool has_blocks() const { return last_block_matrix_ >= 0; }
  // Whether a matrix of a block is defined after parameter i.
  bool before_a_block(int i) const { return i < last_block_matrix_; }

  // The bias in a module, or -1.
  int bias_in(const std::string& module) const;
  // Whether a parameter other than i is the bias in i's module.
  bool has_bias(int i) const;
  bool has_matrix(const std::string& module) const { return with_matrix_.contains(module); }
  // Whether a module has a weight with one dim, as norms do.
  bool has_weight_vector(const std::string& module) const { return with_weight_vector_.contains(module); }
  // Whether a norm has this length.
  bool is_width(i64 length) const { return widths_.contains(length); }

 private:
  void find_words();
  void find_blocks();
  void find_widths();

  const std::vector<ParamInfo>& params_;
  const std::vector<ParamName>& names_;
  std::vector<NameWords> words_;
  std::vector<std::string> block_;
  int last_block_matrix_ = -1;                              // -1: the model has no blocks
  std::unordered_map<std::string, int> biases_;             // module -> its bias
  std::set<std::string> with_matrix_, with_weight_vector_;  // modules
  std::set<i64> widths_;
};

// Number of dims longer than 1.
int long_dims(const Shape& s);

}  // namespace redco
