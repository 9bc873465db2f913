// Declares parameters in order, with helpers that families share.
#pragma once

#include "nn/param_tree.h"

namespace redco {

class SpecBuilder {
 public:
  explicit SpecBuilder(ModelParams& out) : out_(out) {}

  // A tensor of any rank, stored unchanged. The spec is valid until the next declaration.
  ParamSpec& add(const std::string& name, Shape shape, ParamKind kind, Init init);
  // zero_row: this row is initialized with zeros (-1: none).
  void embedding(const std::string& name, i64 rows, i64 width, double std, i64 zero_row = -1);
  // The same for the positions of an input; always fp32 in memory.
  void positions(const std::string& name, i64 rows, i64 width, double std, i64 zero_row = -1);
  // (rows, heads), sharded with the heads; always fp32 in memory.
  void head_table(const std::string& name, i64 rows, i64 heads, double std);
  // Stored with the model, never trained; zeros if a checkpoint lacks it.
  void buffer(const std::string& name, Shape shape, ParamKind kind);
  void norm(const std::string& prefix, i64 width, bool bias);
  // `prefix.weight` (out, in) and `prefix.bias`. transposed: stored (in, out). The weight's spec is valid
  // until the next declaration: linear(...).role = Role::first.
  ParamSpec& linear(const std::string& prefix, i64 out, i64 in, bool bias, double std,
                    bool transposed = false, HeadsOf heads = {});
  // The kernel of conv2d: `prefix.weight` (out, in, height, width) and `prefix.bias` (out).
  ParamSpec& conv(const std::string& prefix, i64 out, i64 in, i64 height, i64 width, bool bias, double std);
  // A layer of experts: `prefix.NUMBER.layer.weight` (out, in) in files, one parameter `prefix.layer.weight`
  // (count, out, in) here. joined: see StoredAs.
  struct Experts {
    std::string prefix, layer;
    i64 count, out, in;
  };
  ParamSpec& experts(const Experts& e, double std, const std::string& joined, i64 joined_row,
                     i64 joined_rows);
  // A linear layer of the files that the model does not use: never trained, saved unchanged.
  void idle_linear(const std::string& prefix, i64 out, i64 in, double std);
  // Parts of a fused projection stored as one tensor of sum(rows) outputs: `prefix.weight[part]`.
  struct Part {
    std::string name;
    i64 rows;
    HeadsOf heads{};
    std::optional<int> cut{};  // of weight and bias (ParamSpec)
    bool precise = false;
    // > 0: the parts are stored in turn, this many rows of each (a head), until all rows are.
    i64 block = 0;
    std::optional<Role> role{};  // of the weight
  };
  void fused(const std::string& prefix, const std::vector<Part>& parts, i64 in, bool bias, double std,
             bool transposed);
  // Parts of one stored tensor of any rank, along its dim 0: `name[part]` of shape (rows, rest...).
  void parts(const std::string& name, const std::vector<Part>& parts, const Shape& rest, ParamKind kind,
             Init init, bool transposed = false);
  // Files have the tensor `name` of the last fused() or parts() under another name.
  void rename_stored(const std::string& name, const std::string& stored);
  void tie(const std::string& alias, const std::string& name) { out_.aliases[alias] = name; }

 private:
  ModelParams& out_;
};

}  // namespace redco
