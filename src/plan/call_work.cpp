// B T H D: batch, tokens, heads and size of a head; M tokens, N outputs and K inputs of a linear layer.
#include "plan/call_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/cpu/products/limits.h"
#include "kernels/reuse.h"
#include "ops/elementwise.h"

namespace redco {

namespace {

// Trailing operands that are workspaces.
int workspaces_of(std::string_view kernel) {
  for (const char* name : {"sum", "sum_squares", "layer_norm_backward", "rms_norm_backward", "linear",
                           "linear_input_gradient", "linear_weight_gradients", "attention",
                           "attention_backward", "conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"})
    if (kernel == name) return 1;
  return 0;
}

double bytes_in(const SmallVector<View, 12>& views) {
  double sum = 0;
  for (const View& v : views) sum += static_cast<double>(kernels::bytes_touched(v));
  return sum;
}

double number(i64 n) { return static_cast<double>(std::max<i64>(1, n)); }

// A product of a linear layer: M rows, N outputs in total, K inputs.
void set_product(CallWork& w, const char* kernel, bool bf16, DType weights, i64 m, i64 n, i64 k) {
  w.type = WorkClass::products;
  const bool stored = is_grouped(weights) || (weights == DType::bf16 && !bf16);
  // Blocks that are only read from files are about as fast as int4, byte by byte.
  const DType measured = is_grouped(weights) && weights != DType::q8 ? DType::q4 : weights;
  w.kind = fmt::format("{} {}{}", kernel, bf16 ? "bf16" : "f32",
                       stored ? std::string(" ") + name_of(measured) : std::string());
  w.at = {number(m), number(n), number(k)};
  w.units = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  // Linear layers of few rows read the weight once: their speed is one of bytes.
  if (std::string_view(kernel) != "linear" || m > kernels::kFewWidenedRows) return;
  w.kind = fmt::format("few_rows {}", name_of(measured));
  w.units = static_cast<double>(bytes_of(weights, n * k));
  w.at = {number(m), std::max(1.0, w.units)};
}

void set_linear(CallWork& w, const KernelCall& c) {
  const auto& o = c.operands;
  i64 n = 0;
  for (const View& v : o[1]) n += v.shape[0];
  set_product(w, "linear", c.flags[0], o[1][0].dtype, o[0][0].leading(), n, o[0][0].last());
}
void set_input_gradient(CallWork& w, const KernelCall& c) {
  const auto& o = c.operands;
  i64 n = 0;
  for (const View& v : o[1]) n += v.shape[0];
  set_product(w, c.kernel, c.flags[0], o[1][0].dtype, o[2][0].leading(), n, o[2][0].last());
}
void set_weight_gradients(CallWork& w, const KernelCall& c) {
  const auto& o = c.operands;
  i64 n = 0;
  for (const View& v : o[2]) n += v.shape[0];
  set_product(w, c.kernel, c.flags[0], DType::f32, o[1][0].leading(), n, o[1][0].last());
}

// A matrix product of a batch has the speed of the linear layer's product with the same layout of operands.
void set_matmul(CallWork& w, const KernelCall& c) {
  const View &a = c.operands[0][0], &y = c.operands[2][0];
  const bool trans_a = c.flags[0], trans_b = c.flags[1];
  const i64 m = y.shape[y.rank() - 2], n = y.last();
  const i64 k = trans_a ? a.shape[a.rank() - 2] : a.last();
  const double batch = number(y.leading(2));
  if (trans_a) {
    set_product(w, "linear_weight_gradients", false, DType::f32, k, m, n);
  } else if (trans_b) {
    set_product(w, "linear", false, DType::f32, m, n, k);
  } else {
    set_product(w, "linear_input_gradient", false, DType::f32, m, k, n);
  }
  w.units *= batch * (a.dtype == DType::f64 ? 2 : 1);
}

// Pairs of a query and a key that are not masked.
double pairs_of(const kernels::Attention& a, i64 queries) {
  const auto t = static_cast<double>(queries), keys = static_cast<double>(a.keys);
  double pairs = a.causal ? t * keys - t * (t - 1) / 2 : t * keys;
  if (a.window > 0) pairs = std::min(pairs, t * static_cast<double>(a.window + std::max<i64>(0, a.ahead)));
  return pairs;
}

void set_attention(CallWork& w, const KernelCall& c) {
  const kernels::Attention& a = *c.attention;
  const View &q = c.operands[0][0], &k = c.operands[1][0];
  const i64 B = q.shape[0], T = q.shape[1], H = q.shape[2], D = q.shape[3];
  const bool backward = std::string_view(c.kernel) == "attention_backward";
  const char* type = q.dtype == DType::bf16 ? "bf16" : "f32";
  w.type = WorkClass::attention;
  if (T == 1 && !backward) {  // reads the cache
    w.kind = fmt::format("attention_decode {}", name_of(k.dtype));
    w.units = 2.0 * static_cast<double>(bytes_of(k.dtype, B * a.keys * k.shape[2] * D));
    w.at = {std::max(1.0, w.units)};
    return;
  }
  w.kind = fmt::format("{} {}{}", c.kernel, type, a.dropout > 0 ? " dropout" : "");
  w.at = {number(T), number(D)};
  w.units = (backward ? 10 : 4) * static_cast<double>(B * H * D) * pairs_of(a, T);
}

void set_convolution(CallWork& w, const KernelCall& c) {
  const kernels::ConvShape& s = *c.convolution;
  // The images [..., B, C, H, W] or their gradients come first.
  const i64 images = c.operands[0][0].leading(3);
  w.type = WorkClass::products;
  w.kind = c.kernel;
  w.units =
      2 * static_cast<double>(images) * static_cast<double>(s.out_image()) * static_cast<double>(s.taps());
}

void set_experts(CallWork& w, const KernelCall& c) {
  const View &x = c.operands[0][0], &chosen = c.operands[2][0], &gate = c.operands[3][0];
  const i64 E = std::max<i64>(1, gate.shape[0]), rows = x.shape[0];
  const i64 used = std::min(c.experts->per_row > 0 ? c.experts->per_row : chosen.last(), E);
  const bool backward = std::string_view(c.kernel) == "experts_backward";
  set_product(w, backward ? "linear_weight_gradients" : "linear", c.experts->bf16, gate.dtype,
              std::max<i64>(1, rows * used / E), gate.shape[1], gate.shape[2]);
  // Few rows read a matrix for each row; more rows read each matrix once.
  const bool few = w.kind.starts_with("few_rows");
  double products = 3;
  if (backward) {  // the speeds are those of weight gradients, of which frozen matrices need none
    constexpr std::size_t kFirst = 11;  // dgate, dup, ddown
    i64 trained = 0;
    for (std::size_t i = kFirst; i < kFirst + 3; ++i) trained += c.operands[i][0].present ? 1 : 0;
    products = 1.5 * static_cast<double>(3 + trained);
  }
  w.units *= static_cast<double>(few ? std::min(E, rows * used) : E) * products;
}

// The words after the kernel's name for kernels whose speed depends on the operands' layout.
std::string layout_of(const KernelCall& c) {
  if (std::string_view(c.kernel) == "copy")
    for (const Views& list : c.operands)
      for (const View& v : list)
        if (!v.strides.empty() && v.strides.back() != 1 && v.last() > 1) return " strided";
  return "";
}

}  // namespace

const char* name_of(WorkClass c) {
  switch (c) {
    case WorkClass::products:
      return "products";
    case WorkClass::attention:
      return "attention";
    case WorkClass::optimizer:
      return "optimizer";
    case WorkClass::other:
      return "elementwise";
  }
  return "?";
}

CallWork work_of(const KernelCall& c) {
  const std::string_view kernel = c.kernel;
  CallWork w;
  const int last = static_cast<int>(c.operands.size()) - workspaces_of(kernel);
  for (int i = 0; i < last; ++i)
    for (const View& v : c.operands[static_cast<std::size_t>(i)])
      if (v.present && v.numel() > 0) w.operands.push_back(v);
  if (w.operands.empty()) return w;
  if (kernel == "linear") {
    set_linear(w, c);
  } else if (kernel == "linear_input_gradient") {
    set_input_gradient(w, c);
  } else if (kernel == "linear_weight_gradients") {
    set_weight_gradients(w, c);
  } else if (kernel == "matmul") {
    set_matmul(w, c);
  } else if (c.attention) {
    set_attention(w, c);
  } else if (c.convolution) {
    set_convolution(w, c);
  } else if (c.experts) {
    set_experts(w, c);
  } else {
    // Of a table of rows, only the rows that are read count.
    if (kernel == "gather_rows") {
      w.operands.clear();
      w.operands.push_back(c.operands[2][0]);
    }
    const View& first = c.operands[0].empty() ? w.operands[0] : c.operands[0][0];
    w.kind = fmt::format("{}{}{} {}", kernel, c.unary ? std::string(" ") + name_of(*c.unary) : "",
                         layout_of(c), name_of(first.dtype));
    w.units = bytes_in(w.operands);
    w.at = {std::max(1.0, w.units)};
    if (kernel == "adamw" || kernel == "sgd" || kernel == "average" || kernel == "round_weights" ||
        kernel == "sum_squares")
      w.type = WorkClass::optimizer;
  }
  return w;
}

}  // namespace redco
