// Declares parameters in order, with the shorthand that families share.
#pragma once

#include "nn/param_tree.h"

namespace redco {

class SpecBuilder {
 public:
  explicit SpecBuilder(ModelParams& out) : out_(out) {}

  // A stored 1-D or n-D tensor as it is.
  void add(const std::string& name, Shape shape, ParamKind kind, Init init);
  // zero_row: begins as zeros (-1: none).
  void embedding(const std::string& name, i64 rows, i64 width, double std, i64 zero_row = -1);
  // (rows, heads): a number for each head, cut with the heads.
  void head_table(const std::string& name, i64 rows, i64 heads, double std);
  // Stored with the model, never trained; zeros where a checkpoint lacks it.
  void buffer(const std::string& name, Shape shape, ParamKind kind);
  void norm(const std::string& prefix, i64 width, bool bias);
  // `prefix.weight` (out, in) and `prefix.bias`. transposed: stored (in, out).
  void linear(const std::string& prefix, i64 out, i64 in, bool bias, double std, bool transposed = false,
              HeadsOf heads = {});
  // A layer of stacked experts: `prefix.NUMBER.layer.weight` (out, in) in files, one parameter (count, out,
  // in) here, `prefix.layer.weight`. joined: as StoredAs says.
  struct Experts {
    std::string prefix, layer;
    i64 count, out, in;
  };
  void experts(const Experts& e, double std, const std::string& joined, i64 joined_row, i64 joined_rows);
  // A linear layer that files hold and nothing reads: never trained, saved as it came.
  void idle_linear(const std::string& prefix, i64 out, i64 in, double std);
  // Parts of a fused projection stored as one tensor of sum(rows) outputs: `prefix.weight[part]`.
  struct Part {
    std::string name;
    i64 rows;
    HeadsOf heads{};
  };
  void fused(const std::string& prefix, const std::vector<Part>& parts, i64 in, bool bias, double std,
             bool transposed);
  void tie(const std::string& alias, const std::string& name) { out_.aliases[alias] = name; }

 private:
  ModelParams& out_;
};

}  // namespace redco
