// The arguments of kernels besides their operands: names of functions, and settings of one call.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/types.h"

namespace redco::kernels {

enum class Unary : std::uint8_t {
  neg,
  abs,
  sign,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  square,
  sin,
  cos,
  tanh,
  sigmoid,
  erf,
  relu,        // max(x, 0)
  step,        // x > 0 ? 1 : 0
  gelu,        // x Phi(x), exact by erf
  gelu_tanh,   // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))  (Hugging Face gelu_new, gelu_pytorch_tanh,
               // gelu_fast)
  gelu_quick,  // x sigmoid(1.702 x)
  silu,        // x sigmoid(x)
  softplus,    // log(1 + exp(x)), without overflow
};
// The activations x gate(x): fused, and composed of other ops for second derivatives.
constexpr bool has_gate(Unary op) {
  return op == Unary::gelu || op == Unary::gelu_tanh || op == Unary::gelu_quick || op == Unary::silu;
}
// Whether the derivative needs y = op(x), not x.
constexpr bool saves_output(Unary op) {
  return op == Unary::exp || op == Unary::sqrt || op == Unary::rsqrt || op == Unary::reciprocal ||
         op == Unary::tanh || op == Unary::sigmoid;
}

enum class Binary : std::uint8_t { add, sub, mul, div, max, min, eq, lt, le };  // comparisons give 0 or 1

// The local block of a tensor in its global shape: element i has the coordinates offset + index. At most 4
// dims; with fewer, the leading coordinates are 0; callers merge further dims.
struct Block4 {
  i64 offset[4];
  i64 size[4];
};

// Attention of q [B, Tq, H, D] to k, v [B, >= keys, Hkv, D], where H % Hkv == 0 and head h uses k/v head
// h / (H / Hkv).
struct Attention {
  i64 keys = 0;  // Tk: of k and v, the first so many tokens
  double scale = 1;
  double softcap = 0;      // > 0: scores are softcap * tanh(scale q k^T / softcap)
  bool causal = false;     // query i attends to keys <= i + Tk - Tq
  i64 window = 0;          // > 0: and to keys > i + Tk - Tq - window (sliding window)
  i64 ahead = -1;          // >= 0: and to keys <= i + Tk - Tq + ahead (a window to both sides)
  bool segmented = false;  // the key mask gives segments: queries attend to keys of the same segment only
  // Dropout of the probabilities. The coordinates of an element are (batch, head, query, key); the offsets
  // are those of this rank's part.
  double dropout = 0;
  u64 dropout_key = 0;
  i64 batch_offset = 0, head_offset = 0;
  // ALiBi (Press et al. 2022): slopes[h] * (j - i - Tk + Tq) is added to the score of query i and key j. One
  // slope per head of the whole tensor; null: none.
  std::shared_ptr<const std::vector<float>> slopes;
};

// Rotary position embedding (Su et al. 2021). Rotates the first 2 inv_freq of D dims by the angle position *
// inv_freq and copies the rest. interleaved: pairs (2i, 2i+1) (GPT-J), else (i, i + rotary/2) (LLaMA); sign
// -1 is the inverse. cos and sin are multiplied by attention_factor.
struct Rope {
  std::shared_ptr<const std::vector<float>> inv_freq;
  bool interleaved = false;
  int sign = 1;
  double attention_factor = 1;
};

// A convolution of images [channels, height, width].
struct ConvShape {
  i64 channels = 0, height = 0, width = 0, outputs = 0;
  i64 kernel_height = 0, kernel_width = 0;
  std::array<i64, 2> stride = {1, 1}, padding = {0, 0};  // of height and width
  i64 out_height() const { return (height + 2 * padding[0] - kernel_height) / stride[0] + 1; }
  i64 out_width() const { return (width + 2 * padding[1] - kernel_width) / stride[1] + 1; }
  i64 image() const { return channels * height * width; }
  i64 out_image() const { return outputs * out_height() * out_width(); }
  i64 taps() const { return channels * kernel_height * kernel_width; }
};

// Windows over planes [height, width]. Pixels outside the image count as 0 in a mean and are never the
// maximum.
struct PoolShape {
  i64 height = 0, width = 0;
  std::array<i64, 2> kernel = {1, 1}, stride = {1, 1}, padding = {0, 0};
  i64 out_height() const { return (height + 2 * padding[0] - kernel[0]) / stride[0] + 1; }
  i64 out_width() const { return (width + 2 * padding[1] - kernel[1]) / stride[1] + 1; }
};

// Gated MLPs of a mixture of experts.
struct MixtureOfExperts {
  Unary activation = Unary::silu;
  bool bf16 = false;  // products may read their operands rounded to bf16
  i64 per_row = 0;    // experts that a row uses at most
  // limit > 0: the inner layers are combined as g sigmoid(alpha g) (u + 1), where g is the output of gate, at
  // most `limit`, and u that of up, in [-limit, limit] (gpt-oss); `activation` is not used.
  double limit = 0, alpha = 1;
};

// What an op reads with ids.
enum class IdUse : std::uint8_t {
  row,      // rows of a table
  element,  // elements of the last dim
  label,    // classes of a loss
};
// The ids that an op accepts: [least, end), and one that means "ignored". All fit in 32 bits.
struct IdRange {
  IdUse use = IdUse::row;
  i64 least = 0, end = 0;
  std::optional<i64> ignored = std::nullopt;
};

// One step of AdamW (Loshchilov & Hutter 2019), in PyTorch's order of operations: g *= grad_scale; m = b1 m +
// (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr * wd * p; p -= lr / bias1 * m / (sqrt(v / bias2) + eps).
struct AdamW {
  // In double, because 1 - beta2 computed from an fp32 0.999 has a relative error of 1e-5.
  double lr, beta1, beta2, eps, weight_decay, bias1, bias2, grad_scale;  // bias1 = 1 - beta1^step
  friend bool operator==(const AdamW&, const AdamW&) = default;
};

// One step of SGD: d = grad_scale g + weight_decay p; b = momentum b + d; p -= lr b.
struct Sgd {
  double lr, momentum, weight_decay, grad_scale;
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

}  // namespace redco::kernels
