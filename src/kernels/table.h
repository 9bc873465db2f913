// Kernels: the table of a device's kernels; docs/add_a_device.md explains how to fill one.
//
// A kernel computes on views (kernels/view.h); it never allocates, never waits for the host, and checks
// nothing: ops have done that. Operands are row-major unless a comment says "strided". Where a `workspace` is
// an operand, the table also has the number of elements that it needs; they are uninitialized, and their
// number depends only on shapes and on the number of threads that the run plans with. Sizes may be 0. Outputs
// don't overlap inputs unless a comment says "in place". Operands that are lists have views of equal sizes at
// equal places, all row-major; one call replaces a call for each. Sums are accumulated in fp32 or better, in
// an order that depends only on shapes.
#pragma once

#include "kernels/arguments.h"
#include "kernels/view.h"

namespace redco {

// One entry of the table; `run` is null if the device does not have the kernel.
// Types of the first view: f32 and f64; these and bf16; any.
enum class Takes : std::uint8_t { floats, activations, any };
template <class... A>
struct Kernel {
  const char* name;
  Takes takes = Takes::floats;
  void (*run)(const A&...) = nullptr;
};

struct Kernels {
  // Whether the kernels that take activations take them in bf16 too, in any mixture with f32 (binary: of
  // equal shapes; attention: if all of q, k and v are bf16, and more than one query). Arithmetic is in f32,
  // and statistics, weights, masks and workspaces are as with f32. If not, ops widen such operands.
  bool takes_bf16 = false;

  // ---- A device must have these ----
  // Memory. copy: y = x, strided on both sides, any type. Types with groups are copied and cast in whole
  // groups, whose bytes a device is free to choose.
  Kernel<View, double> fill{"fill", Takes::any};
  Kernel<View, View> copy{"copy", Takes::any};
  // Between f32, f64 and i32, between bf16 and f32 or f64, between q8 or q4 and f32, and from blocks to f32.
  Kernel<View, View> cast{"cast", Takes::any};
  Kernel<View, i64, i64, View> replace_id{"replace_id",
                                          Takes::any};  // i32: x, id, by, y: y = x == id ? by : x
  // Elementwise, f32 and f64; in place is allowed. Accuracy in f32: relative error 3e-7, NaN gives NaN; in
  // the left tails of the gelus 3e-7 (1 + |z|), where z is the argument of the exponential.
  Kernel<kernels::Unary, View, View> unary{"unary", Takes::activations};
  Kernel<kernels::Binary, View, View, View> binary{
      "binary", Takes::activations};  // inputs strided, with the shape of the output
  Kernel<View, View, double, double> affine{"affine", Takes::activations};  // x, y, mul, add: y = mul x + add
  Kernel<double, View, View> axpy{"axpy"};                                  // a, x, y: y += a x
  // Reductions. sum: x, bits of the dims summed over, y, workspace (f64).
  Kernel<View, u32, View, View> sum{"sum", Takes::activations};
  i64 (*sum_workspace)(const View& x, u32 over) = nullptr;
  Kernel<View, View> max_last{"max_last",
                              Takes::activations};  // over the last dim; NaN if any element is NaN
  // List x (f32), y: the f64 words of kernels/square_sum.h for all of its elements, workspace (f64); n: the
  // number of elements of the list.
  Kernel<Views, View, View> sum_squares{"sum_squares"};
  i64 (*sum_squares_workspace)(i64 n) = nullptr;
  // y = op(a) op(b): a, trans_a, b, trans_b, y. The last two dims are the stored matrices; the dims before
  // them are batch dims, equal in number, strided in a and b. k may be 0.
  Kernel<View, bool, View, bool, View> matmul{"matmul"};
  // Rows by index. gather_rows (also storage types): table, first, ids, y: y[r] = table[ids[r] - first], 0 if
  // that is outside. scatter_rows: g, ids, first, y: y[i] = sum of g[r] with ids[r] - first == i, in the
  // order of r. pick: x, ids, first, y: y[r] = x[r, ids[r] - first], else 0. unpick: g, ids, first, y: y = 0,
  // y[r, ids[r]
  // - first] = g[r].
  Kernel<View, i64, View, View> gather_rows{"gather_rows", Takes::any};
  Kernel<View, View, i64, View> scatter_rows{"scatter_rows"};
  Kernel<View, View, i64, View> pick{"pick"};
  Kernel<View, View, i64, View> unpick{"unpick"};
  // check_ids: ids, range, found (i32 [3]): the first id that is not in the range: found = {1 + use, id,
  // end}, unless found[0] is set already. The only kernel that checks values; ops submit it before they use
  // ids.
  Kernel<View, kernels::IdRange, View> check_ids{"check_ids", Takes::any};
  // Randomness: Philox4x32-10 (Salmon et al. 2011). The counter of an element is its global coordinates. Word
  // 0 as u32 gives the uniform number (word >> 8) * 2^-24; words 0 and 1 the normal one (Box-Muller). f32.
  Kernel<u64, kernels::Block4, View> uniform{"uniform"};
  Kernel<u64, kernels::Block4, View> normal{"normal"};
  Kernel<double, u64, kernels::Block4, View, View> dropout{"dropout"};  // uniform < rate ? 0 : x / (1 - rate)
  // Optimizers: lists of parameters, f32, in place. adamw: p, g, m, v. sgd: p, g, momentum buffers (an empty
  // list: no momentum). average: rate, x, y: y = (1 - rate) y + rate x. round_weights: x, y (bf16): y = x.
  Kernel<kernels::AdamW, Views, Views, Views, Views> adamw{"adamw"};
  Kernel<kernels::Sgd, Views, Views, Views> sgd{"sgd"};
  Kernel<double, Views, Views> average{"average"};
  Kernel<Views, Views> round_weights{"round_weights"};

  // ---- For some models; where one is missing, an op that needs it is an error that names it ----
  Kernel<View, i64, View> top_k_mask{"top_k_mask"};  // x, k, y: 1 for the k largest of each row, else 0
  // Convolutions: x [..., B, C, H, W], w [..., O, C, kh, kw], bias [..., O] or absent, y [..., B, O, H', W'];
  // the leading dims are strided in the inputs. input_gradient: dy, w, dx; weight_gradient: dy, x, dw. All
  // have a workspace (elements of y's type); groups: number of independent convolutions (the leading dims).
  Kernel<kernels::ConvShape, View, View, View, View, View> conv2d{"conv2d"};
  i64 (*conv2d_workspace)(const kernels::ConvShape& s, i64 groups, i64 images) = nullptr;
  Kernel<kernels::ConvShape, View, View, View, View> conv2d_input_gradient{"conv2d_input_gradient"};
  i64 (*conv2d_input_gradient_workspace)(const kernels::ConvShape& s, i64 groups, i64 images) = nullptr;
  Kernel<kernels::ConvShape, View, View, View, View> conv2d_weight_gradient{"conv2d_weight_gradient"};
  i64 (*conv2d_weight_gradient_workspace)(const kernels::ConvShape& s, i64 groups, i64 images) = nullptr;
  // Pooling of planes: the last two dims. gate: absent, or of x's (of the transpose: y's) shape: pixels whose
  // gate is not above 0 count as 0. max_pool2d: x, y, from (i32): for each window, the index in its plane of
  // the maximum pixel (the first of equal ones; NaN wins). take_windows: y[window] = x[from[window]];
  // put_windows is its transpose, which adds: x, from, y.
  Kernel<kernels::PoolShape, View, View, View> avg_pool2d{"avg_pool2d"};
  Kernel<kernels::PoolShape, View, View, View> avg_unpool2d{"avg_unpool2d"};
  Kernel<kernels::PoolShape, View, View, View> max_pool2d{"max_pool2d"};
  Kernel<View, View, View> take_windows{"take_windows"};
  Kernel<View, View, View> put_windows{"put_windows"};

  // ---- Fused; where one is missing, the op is composed of the kernels above ----
  // Linear layers with one input, all in one call: bf16, x [..., K], weights [N_i, K] (f32 or a storage
  // type), biases [N_i] or absent, y_i [..., N_i] = x w_i^T + b_i, workspace (f32). input_gradient: bf16, g_i
  // [..., N_i], weights, dx = sum over i of g_i w_i, workspace. weight_gradients: bf16, g_i, x, dw_i = g_i^T
  // x, workspace. x, g, y and dx are f32 or bf16, or everything is f64. bf16: products may read their
  // operands rounded to bf16.
  Kernel<bool, View, Views, Views, Views, View> linear{"linear", Takes::any};
  i64 (*linear_workspace)(bool bf16, const View& x, const Views& weights, const Views& y) = nullptr;
  Kernel<bool, Views, Views, View, View> linear_input_gradient{"linear_input_gradient", Takes::any};
  i64 (*linear_input_gradient_workspace)(bool bf16, const Views& g, const Views& weights,
                                         const View& dx) = nullptr;
  Kernel<bool, Views, View, Views, View> linear_weight_gradients{"linear_weight_gradients", Takes::any};
  i64 (*linear_weight_gradients_workspace)(bool bf16, const Views& g, const View& x,
                                           const Views& dw) = nullptr;
  // unary_backward: x (or y, of an op that saves_output), g, dx = g op'(x).
  Kernel<kernels::Unary, View, View, View> unary_backward{"unary_backward", Takes::activations};
  // gated: gate, up, y = op(gate) up, for an op that has_gate. backward: gate, up, g, dgate = g up op'(gate),
  // dup = g op(gate).
  Kernel<kernels::Unary, View, View, View> gated{"gated", Takes::activations};
  Kernel<kernels::Unary, View, View, View, View, View> gated_backward{"gated_backward", Takes::activations};
  Kernel<View, View> softmax{"softmax"};  // over the last dim; a row of all -inf becomes zeros
  // log_softmax: over the last dim; a row of all -inf becomes NaN. backward: y, g, dx = g - exp(y) sum(g).
  Kernel<View, View> log_softmax{"log_softmax"};
  Kernel<View, View, View> log_softmax_backward{"log_softmax_backward"};
  // layer_norm: x, w, b (absent: 1 and 0), eps, y, mean, rstd. backward: x, w, mean, rstd, g, dx, dw, db
  // (absent: not computed), workspace. rms_norm: x, w, eps, y, rstd (Zhang & Sennrich 2019). backward: x, w,
  // rstd, g, dx, dw, workspace.
  Kernel<View, View, View, double, View, View, View> layer_norm{"layer_norm", Takes::activations};
  Kernel<View, View, View, View, View, View, View, View, View> layer_norm_backward{"layer_norm_backward",
                                                                                   Takes::activations};
  Kernel<View, View, double, View, View> rms_norm{"rms_norm", Takes::activations};
  Kernel<View, View, View, View, View, View, View> rms_norm_backward{"rms_norm_backward", Takes::activations};
  i64 (*norm_backward_workspace)(i64 rows, i64 channels, int gradients) = nullptr;
  // Attention without a Tq x Tk matrix (Dao et al. 2022). q, k, v (of q's type or bf16), key mask (i32 [B,
  // keys]; 0: no query attends to the key) or absent, bias [1 or B, 1 or H, Tq, keys] or absent, sinks [1 or
  // B, H] (a further score of each head, without a value) or absent, out [B, Tq, H, D], lse [B, H, Tq] (log
  // sum exp of the scores; -inf for a query without keys and sinks, whose out is 0), workspace. backward: q,
  // k, v, out, lse, g, mask, bias, sinks, dq, dk, dv, dbias (absent: not computed), workspace.
  Kernel<kernels::Attention, View, View, View, View, View, View, View, View, View> attention{
      "attention", Takes::activations};
  i64 (*attention_workspace)(const kernels::Attention& a, const View& q, const View& k) = nullptr;
  Kernel<kernels::Attention, View, View, View, View, View, View, View, View, View, View, View, View, View,
         View>
      attention_backward{"attention_backward", Takes::activations};
  i64 (*attention_backward_workspace)(const kernels::Attention& a, const View& q, const View& k) = nullptr;
  Kernel<kernels::Rope, View, View, View> rope{
      "rope", Takes::activations};  // x [B, T, H, D], positions i32 [B, T], y
  // Cross-entropy over a sharded vocabulary. sum_exp_and_target: x [R, V], max [R], ids, first, sums [2, R]:
  // sum exp(x - max), and x[r, ids[r] - first] (0 if outside). cross_entropy: max, sums, ids, loss, lse.
  // backward: x, ids, lse, g, first, dx = (exp(x - lse) - (c + first == id)) g. Rows with ids < 0 get 0.
  Kernel<View, View, View, i64, View> sum_exp_and_target{"sum_exp_and_target", Takes::activations};
  Kernel<View, View, View, View, View> cross_entropy{"cross_entropy"};
  Kernel<View, View, View, View, i64, View> cross_entropy_backward{"cross_entropy_backward",
                                                                   Takes::activations};
  // A mixture of experts: x [R, C], weights [R, E], chosen [R, E] (0: not used), gate and up [E, I, C], down
  // [E, C, I] (each of the type of x or a storage type), hidden ([R per_row, 2 I]: for the backward, or
  // absent), workspace, y [R, C] = sum over e of weights[r, e] down_e (act(gate_e x) * (up_e x)), the biases
  // of gate and up [E, I] (or absent). backward (f32, f64): the same up to hidden, g, workspace, dx,
  // dweights, dgate, dup, ddown, the two biases and their gradients. Absent gradients are not computed.
  Kernel<kernels::MixtureOfExperts, View, View, View, View, View, View, View, View, View, View, View> experts{
      "experts"};
  Kernel<kernels::MixtureOfExperts, View, View, View, View, View, View, View, View, View, View, View, View,
         View, View, View, View, View, View>
      experts_backward{"experts_backward"};
  // matrices: their type
  i64 (*experts_workspace)(const kernels::MixtureOfExperts& m, i64 rows, i64 width, i64 inner, DType matrices,
                           bool hidden, bool backward) = nullptr;
};

// A device: its kernels and its memory.
struct Device {
  const char* name = "";
  Kernels kernels;
  // Address space for *bytes, which may be lowered to what there is; memory becomes resident when it is used.
  // Null if the system refuses.
  DevicePtr (*reserve)(i64* bytes) = nullptr;
  void (*release)(const DevicePtr& p, i64 bytes) = nullptr;
  // Copies between the host's memory and the device's.
  void (*write)(const void* from, const DevicePtr& to, i64 bytes) = nullptr;
  void (*read)(const DevicePtr& from, void* to, i64 bytes) = nullptr;
};

// The CPU (src/kernels/cpu).
const Device& cpu_device();

}  // namespace redco
