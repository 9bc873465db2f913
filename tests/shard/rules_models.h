// Parameter lists of transformers with Hugging Face names and shapes in memory order (linear: (out, in)), and
// for each tensor its kind and the dim where it must be cut.
#pragma once

#include <string>
#include <vector>

#include "shard/rules.h"

namespace redco::testing {

enum Cut { kWhole = -1, kColumn = 0, kRow = 1, kRows = 0 };  // kRows: rows of a table

struct Model {
  std::vector<ParamInfo> params;  // without kinds
  std::vector<ParamKind> kinds;
  std::vector<int> dims;

  void add(const std::string& name, Shape shape, ParamKind kind, int dim) {
    params.push_back({name, std::move(shape)});
    kinds.push_back(kind);
    dims.push_back(dim);
  }
  // A linear and optionally its bias, which is cut with the columns.
  void linear(const std::string& name, i64 out, i64 in, int cut, bool bias = false) {
    add(name + ".weight", {out, in}, ParamKind::linear, cut);
    if (bias) add(name + ".bias", {out}, ParamKind::bias, cut == kColumn ? 0 : -1);
  }
  // The parts of a fused tensor, named as in ParamTree.
  void fused(const std::string& name, const std::vector<std::string>& parts, i64 out, i64 in, int cut,
             bool bias) {
    for (const std::string& p : parts) add(name + ".weight[" + p + "]", {out, in}, ParamKind::linear, cut);
    if (bias)
      for (const std::string& p : parts)
        add(name + ".bias[" + p + "]", {out}, ParamKind::bias, cut == kColumn ? 0 : -1);
  }
  void norm(const std::string& name, i64 width, bool bias = false) {
    add(name + ".weight", {width}, ParamKind::norm, kWhole);
    if (bias) add(name + ".bias", {width}, ParamKind::norm, kWhole);
  }
  void table(const std::string& name, i64 rows, i64 width, int cut = kRows) {
    add(name + ".weight", {rows, width}, ParamKind::embedding, cut);
  }
  void conv(const std::string& name, i64 out, i64 in, i64 k, int cut, bool bias = true) {
    add(name + ".weight", {out, in, k, k}, ParamKind::conv, cut);
    if (bias) add(name + ".bias", {out}, ParamKind::bias, cut == kColumn ? 0 : -1);
  }
};

}  // namespace redco::testing
