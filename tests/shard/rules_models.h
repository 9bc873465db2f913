// Parameter lists of transformers as Hugging Face names and shapes them, in memory order (linear (out, in)),
// with what each tensor is and where it must be cut.
#pragma once

#include <string>
#include <vector>

#include "shard/rules.h"

namespace redco::testing {

enum Cut { kWhole = -1, kColumn = 0, kRow = 1, kRows = 0 };  // kRows: of a table

struct Model {
  std::vector<ParamInfo> params;  // without hints
  std::vector<ParamKind> kinds;
  std::vector<int> dims;

  void add(const std::string& name, Shape shape, ParamKind kind, int dim) {
    params.push_back({name, std::move(shape)});
    kinds.push_back(kind);
    dims.push_back(dim);
  }
  // A linear and, if wanted, its bias, which follows a column split.
  void linear(const std::string& name, i64 out, i64 in, int cut, bool bias = false) {
    add(name + ".weight", {out, in}, ParamKind::linear, cut);
    if (bias) add(name + ".bias", {out}, ParamKind::bias, cut == kColumn ? 0 : -1);
  }
  // A fused tensor's parts, as the ParamTree names them.
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

Model gptj(int layers);
Model llama(int layers);

}  // namespace redco::testing
