// Small random transformers for tests: blocks of random kinds that run with any placement of any parameter.
#pragma once

#include <string>
#include <vector>

#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/ranks.h"

namespace redco::testing {

class RandomModel {
 public:
  static constexpr i64 kB = 3, kT = 4, kC = 12, kHeads = 6, kKvHeads = 3, kD = 2, kF = 10, kV = 11;

  explicit RandomModel(u64 seed) : seed_(seed) {
    Random r(seed);
    tied_ = r.below(2);
    rms_ = r.below(2);
    add("wte", {kV, kC});
    if (!tied_) add("head", {kV, kC});
    for (i64 n = 1 + r.below(2), l = 0; l < n; ++l) {
      Block b;
      b.parallel = r.below(2);
      b.grouped = r.below(2);
      b.gated = r.below(2);
      b.causal = r.below(2);
      b.rope = r.below(2);
      b.dropout = r.below(2);
      b.activation = static_cast<Unary>(static_cast<int>(Unary::gelu) + r.below(4));
      const i64 kv = b.grouped ? kKvHeads : kHeads;
      b.first = static_cast<int>(shapes_.size());
      add("norm1.w", {kC});
      add("norm1.b", {kC});
      add("q", {kHeads * kD, kC});
      add("k", {kv * kD, kC});
      add("v", {kv * kD, kC});
      add("o", {kC, kHeads * kD});
      add("o.b", {kC});
      add("norm2.w", {kC});
      add("up", {kF, kC});
      add("up.b", {kF});
      add("gate", {kF, kC});
      add("down", {kC, kF});
      add("down.b", {kC});
      blocks_.push_back(b);
    }
    Random ids(seed + 1);
    for (i64 i = 0; i < kB * kT; ++i) {
      ids_.push_back(static_cast<i32>(ids.below(kV)));
      labels_.push_back(ids.below(5) == 0 ? -100 : static_cast<i32>(ids.below(kV)));
    }
  }

  const std::vector<Shape>& shapes() const { return shapes_; }
  std::vector<double> values(size_t i) const {
    return Random(seed_ * 100 + i).values(numel(shapes_[i]), -0.6, 0.6);
  }
  // Attention weights are cut at heads (q: at groups), like the standard rules do.
  i64 unit(size_t i) const {
    const std::string& n = names_[i];
    if (n == "q" || n == "o") return kD * kHeads / kKvHeads;
    return n == "k" || n == "v" ? kD : 1;
  }
  std::string name(size_t i) const { return names_[i]; }

  // Sum of the cross-entropies for the given placements of parameters and batch fields.
  Tensor loss(const std::vector<Tensor>& p, const Layout& batch) const {
    Context& c = Context::current();
    const Tensor ids = from_ids({kB, kT}, ids_, batch);
    std::vector<i32> at(kB * kT);
    for (i64 i = 0; i < kB * kT; ++i) at[i] = static_cast<i32>(i % kT);
    const Tensor positions = from_ids({kB, kT}, at, batch);
    Tensor x = embedding(p[0], ids);
    for (const Block& b : blocks_) {
      const Tensor* w = &p[b.first];
      c.random_scope = std::to_string(b.first);
      auto norm = [&](const Tensor& h, const Tensor& weight, const Tensor& bias) {
        return rms_ ? rms_norm(h, weight, 1e-5) : layer_norm(h, weight, bias, 1e-5);
      };
      auto heads = [&](const Tensor& h, const Tensor& weight) {
        const Tensor y = linear(h, weight);
        return reshape(y, {kB, kT, y.size(-1) / kD, kD});
      };
      auto turn = [&](const Tensor& h) {
        static const auto freq = std::make_shared<std::vector<float>>(std::vector<float>{0.7f});
        return b.rope ? rope(h, positions, {freq, false, 1}) : h;
      };
      const Tensor h = norm(x, w[0], w[1]);
      const AttentionOptions o{.scale = 0.7,
                               .causal = b.causal,
                               .dropout = b.dropout ? 0.2 : 0,
                               .dropout_key = c.key("attention")};
      const Tensor a = attention(turn(heads(h, w[2])), turn(heads(h, w[3])), heads(h, w[4]), o);
      const Tensor attended = linear(reshape(a, {kB, kT, kHeads * kD}), w[5], w[6]);
      if (!b.parallel) x = x + attended;
      const Tensor m = b.parallel ? h : norm(x, w[7], Tensor());
      Tensor up = unary(b.activation, linear(m, w[8], w[9]));
      if (b.gated) up = up * linear(m, w[10]);
      Tensor down = linear(up, w[11], w[12]);
      if (b.dropout) down = dropout(down, 0.2, c.key("mlp"));
      x = b.parallel ? redco::add({x, attended + down}) : x + down;
    }
    c.random_scope = "";
    return sum_all(cross_entropy(linear(x, p[tied_ ? 0 : 1]), from_ids({kB, kT}, labels_, batch)));
  }

 private:
  struct Block {
    bool parallel, grouped, gated, causal, rope, dropout;
    Unary activation;
    int first;
  };
  void add(const char* name, Shape s) {
    names_.push_back(name);
    shapes_.push_back(std::move(s));
  }
  u64 seed_;
  bool tied_, rms_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::vector<Block> blocks_;
  std::vector<i32> ids_, labels_;
};

}  // namespace redco::testing
