// B T H D: batch, tokens, heads and size of a head; M tokens, N outputs and K inputs of a linear layer; R
// rows of C elements.
#include "plan/measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "base/timing.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/square_sum.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "plan/cache_distances.h"
#include "plan/measure_collectives.h"
#include "plan/probes.h"

namespace redco {

namespace {

using kernels::Binary;
using kernels::Unary;

struct Measurement {
  Context& c;
  const MeasureOptions& o;
  Distances d;
  Probes p;
  const Kernels& table;

  Measurement(Context& context, const MeasureOptions& options, int ranks)
      : c(context),
        o(options),
        d(distances_for(options.most_bytes, ranks)),
        p(context, options,
          std::max(static_cast<i64>(d.farthest), options.most_bytes > 0 ? 0 : i64{64} << 20)),
        table(context.queue().kernels()) {}

  i64 size(i64 n) const { return std::max<i64>(16, static_cast<i64>(static_cast<double>(n) * o.largest)); }

  void products(bool bf16);
  void few_rows(DType weights);
  void attention(bool bf16, double dropout);
  void decoding(DType cache);
  void elementwise(i64 bytes);
  void activations(DType type, i64 R, i64 C);
  void norms(DType type, i64 R, i64 C);
  void losses(DType type, i64 R, i64 C);
  void rows(i64 R, i64 C);
  void optimizers(i64 n);
  void convolutions();
  void transfers_behind_products(Group& across, MachineSpeeds& s);
  template <class... A>
  bool has(Kernel<A...> Kernels::*kernel) const {
    return c.has(kernel);
  }
};

void Measurement::products(bool bf16) {
  if (!has(&Kernels::linear) || !has(&Kernels::linear_input_gradient) ||
      !has(&Kernels::linear_weight_gradients))
    return;
  const DType type = bf16 ? DType::bf16 : DType::f32;
  // More rows than those of few_rows().
  const auto rows = [&](i64 n) { return 64 + static_cast<i64>(static_cast<double>(n - 64) * o.largest); };
  for (const i64 M : {rows(64), rows(256), rows(1024)})
    for (const i64 N : {size(96), size(384), size(1536)})
      for (const i64 K : {size(96), size(384), size(1536)}) {
        const auto forward = [&](const View& room) {
          const View x = p.input({M, K}, type);
          const Views w(1, p.input({N, K})), y(1, p.output({M, N}, type));
          if (!room.present) return table.linear_workspace(bf16, x, w, y);
          c.run(&Kernels::linear, bf16, x, w, Views(1, View()), y, room);
          return i64{0};
        };
        const auto input = [&](const View& room) {
          const Views g(1, p.input({M, N}, type)), w(1, p.input({N, K}));
          const View dx = p.output({M, K}, type);
          if (!room.present) return table.linear_input_gradient_workspace(bf16, g, w, dx);
          c.run(&Kernels::linear_input_gradient, bf16, g, w, dx, room);
          return i64{0};
        };
        const auto weight = [&](const View& room) {
          const Views g(1, p.input({M, N}, type)), dw(1, p.output({N, K}));
          const View x = p.input({M, K}, type);
          if (!room.present) return table.linear_weight_gradients_workspace(bf16, g, x, dw);
          c.run(&Kernels::linear_weight_gradients, bf16, g, x, dw, room);
          return i64{0};
        };
        const auto all = [&](const auto& product) {
          const View room = p.workspace(product(View()), DType::f32);
          p.measure([&] { product(room); }, d.ends());
        };
        all(forward);
        all(input);
        all(weight);
      }
}

// Linear layers of a few tokens, which read the weights.
void Measurement::few_rows(DType weights) {
  if (!has(&Kernels::linear)) return;
  for (const i64 M : {i64{1}, kernels::kFewRows / 2, kernels::kFewRows, i64{12}, kernels::kFewWidenedRows})
    for (const i64 N : {size(256), size(1024)}) {
      const i64 K = ceil_div(N, 32) * 32;
      const auto product = [&](const View& room) {
        const View x = p.input({M, K});
        const Views w(1, p.input({N, K}, weights)), y(1, p.output({M, N}));
        if (!room.present) return table.linear_workspace(false, x, w, y);
        c.run(&Kernels::linear, false, x, w, Views(1, View()), y, room);
        return i64{0};
      };
      const View room = p.workspace(product(View()), DType::f32);
      p.measure([&] { product(room); }, d.all());
    }
}

void Measurement::attention(bool bf16, double dropout) {
  if (!has(&Kernels::attention) || !has(&Kernels::attention_backward)) return;
  const DType type = bf16 ? DType::bf16 : DType::f32;
  const i64 H = i64{4} * kernels::threads();
  for (const i64 T : {size(64), size(256), size(1024)})
    for (const i64 D : dropout > 0 ? std::vector<i64>{64} : std::vector<i64>{32, 64, 128}) {
      const kernels::Attention a{.keys = T, .scale = 0.125, .causal = true, .dropout = dropout};
      const Shape x = {1, T, H, D};
      const auto in = [&] { return p.input(x, type); };
      const View sizes = in();
      const View room = p.workspace(table.attention_workspace(a, sizes, sizes), DType::f32);
      p.measure(
          [&] {
            const View q = in(), k = in(), v = in();
            c.run(&Kernels::attention, a, q, k, v, View(), View(), View(), p.output(x, type),
                  p.output({1, H, T}), room);
          },
          {d.middle});
      const View back = p.workspace(table.attention_backward_workspace(a, sizes, sizes), DType::f32);
      p.measure(
          [&] {
            const View q = in(), k = in(), v = in(), out = in(), lse = p.input({1, H, T}), g = in();
            c.run(&Kernels::attention_backward, a, q, k, v, out, lse, g, View(), View(), View(),
                  p.output(x, type), p.output(x, type), p.output(x, type), View(), back);
          },
          {d.middle});
    }
}

// One query for a cache of keys and values.
void Measurement::decoding(DType cache) {
  if (!has(&Kernels::attention)) return;
  const i64 H = i64{4} * kernels::threads(), D = 64;
  for (const i64 T : {size(64), size(1024)}) {
    const kernels::Attention a{.keys = T, .scale = 0.125};
    const Shape q = {1, 1, H, D}, kv = {1, T, H, D};
    const View room = p.workspace(table.attention_workspace(a, p.input(q), p.input(kv, cache)), DType::f32);
    p.measure(
        [&] {
          const View query = p.input(q), k = p.input(kv, cache), v = p.input(kv, cache);
          c.run(&Kernels::attention, a, query, k, v, View(), View(), View(), p.output(q), p.output({1, H, 1}),
                room);
        },
        d.all());
  }
}

void Measurement::activations(DType type, i64 R, i64 C) {
  const Shape s = {R, C};
  for (const Unary f : {Unary::gelu_tanh, Unary::gelu, Unary::silu, Unary::relu, Unary::tanh}) {
    p.measure([&] { c.run(&Kernels::unary, f, p.input(s, type), p.output(s, type)); }, d.all());
    if (!has(&Kernels::unary_backward)) continue;
    p.measure(
        [&] {
          const View x = p.input(s, type), g = p.input(s, type);
          c.run(&Kernels::unary_backward, f, x, g, p.output(s, type));
        },
        d.all());
  }
  for (const Unary f : {Unary::silu, Unary::gelu_tanh}) {
    if (!has(&Kernels::gated) || !has(&Kernels::gated_backward)) break;
    p.measure(
        [&] {
          const View gate = p.input(s, type), up = p.input(s, type);
          c.run(&Kernels::gated, f, gate, up, p.output(s, type));
        },
        d.all());
    p.measure(
        [&] {
          const View gate = p.input(s, type), up = p.input(s, type), g = p.input(s, type);
          c.run(&Kernels::gated_backward, f, gate, up, g, p.output(s, type), p.output(s, type));
        },
        d.all());
  }
  p.measure(
      [&] {
        const View a = p.input(s, type), b = p.input(s, type);
        c.run(&Kernels::binary, Binary::add, a, b, p.output(s, type));
      },
      d.all());
  p.measure([&] { c.run(&Kernels::affine, p.input(s, type), p.output(s, type), 0.5, 0.1); }, d.all());
  p.measure([&] { c.run(&Kernels::copy, p.input(s, type), p.output(s, type)); }, d.all());
  const View sums = p.workspace(table.sum_workspace(p.input(s, type), 1), DType::f64);
  p.measure([&] { c.run(&Kernels::sum, p.input(s, type), 1u, p.output({C}), sums); }, d.all());
  p.measure(
      [&] {
        const DType to = type == DType::f32 ? DType::bf16 : DType::f32;
        c.run(&Kernels::cast, p.input(s, type), p.output(s, to));
      },
      d.all());
  if (has(&Kernels::rope)) {
    const i64 D = 64, H = C / D, T = R;
    if (H == 0) return;
    const View positions = p.ids({1, T}, T);
    kernels::Rope rope;
    rope.inv_freq = std::make_shared<const std::vector<float>>(static_cast<std::size_t>(D / 2), 0.01f);
    p.measure(
        [&] {
          c.run(&Kernels::rope, rope, p.input({1, T, H, D}, type), positions, p.output({1, T, H, D}, type));
        },
        d.all());
  }
}

void Measurement::norms(DType type, i64 R, i64 C) {
  const Shape s = {R, C};
  const View w = p.workspace(C, DType::f32), b = p.workspace(C, DType::f32);
  const View dw = p.workspace(C, DType::f32), db = p.workspace(C, DType::f32);
  const View rows = p.workspace(R, DType::f32), others = p.workspace(R, DType::f32);
  for (const View& v : {w, b, rows, others}) c.run(&Kernels::fill, v, 0.5);
  const View room =
      p.workspace(table.norm_backward_workspace ? table.norm_backward_workspace(R, C, 2) : 0, DType::f32);
  const auto keep = [&](const auto& call) { p.measure(call, d.all(), true); };
  if (has(&Kernels::layer_norm))
    keep([&] { c.run(&Kernels::layer_norm, p.input(s, type), w, b, 1e-5, p.output(s, type), others, rows); });
  if (has(&Kernels::layer_norm_backward))
    keep([&] {
      const View x = p.input(s, type), g = p.input(s, type);
      c.run(&Kernels::layer_norm_backward, x, w, rows, others, g, p.output(s, type), dw, db, room);
    });
  if (has(&Kernels::rms_norm))
    keep([&] { c.run(&Kernels::rms_norm, p.input(s, type), w, 1e-5, p.output(s, type), rows); });
  if (has(&Kernels::rms_norm_backward))
    keep([&] {
      const View x = p.input(s, type), g = p.input(s, type);
      c.run(&Kernels::rms_norm_backward, x, w, rows, g, p.output(s, type), dw, room);
    });
  p.forget();
}

// Of R tokens over a vocabulary of C.
void Measurement::losses(DType type, i64 R, i64 C) {
  const Shape s = {R, C};
  const View ids = p.ids({R}, C), max = p.workspace(R, DType::f32), sums = p.workspace(2 * R, DType::f32);
  const View lse = p.workspace(R, DType::f32), g = p.workspace(R, DType::f32);
  for (const View& v : {max, lse, g}) c.run(&Kernels::fill, v, 0.5);
  const auto keep = [&](const auto& call) { p.measure(call, d.all(), true); };
  keep([&] { c.run(&Kernels::max_last, p.input(s, type), max); });
  if (has(&Kernels::sum_exp_and_target))
    keep([&] { c.run(&Kernels::sum_exp_and_target, p.input(s, type), max, ids, 0, sums.reshaped({2, R})); });
  if (has(&Kernels::cross_entropy) && type == DType::f32)
    keep([&] {
      const View most = p.input({R}), both = p.input({2, R});
      c.run(&Kernels::cross_entropy, most, both, ids, p.output({R}), p.output({R}));
    });
  if (has(&Kernels::cross_entropy_backward))
    keep([&] {
      c.run(&Kernels::cross_entropy_backward, p.input(s, type), ids, lse, g, 0, p.output(s, type));
    });
  if (has(&Kernels::softmax) && type == DType::f32)
    keep([&] { c.run(&Kernels::softmax, p.input(s), p.output(s)); });
  if (has(&Kernels::log_softmax) && type == DType::f32)
    keep([&] { c.run(&Kernels::log_softmax, p.input(s), p.output(s)); });
  if (has(&Kernels::log_softmax_backward) && type == DType::f32)
    keep([&] { c.run(&Kernels::log_softmax_backward, p.input(s), p.input(s), p.output(s)); });
  p.forget();
}

// Rows by index, dropout, and what else is fp32 only.
void Measurement::rows(i64 R, i64 C) {
  const Shape s = {R, C};
  const View ids = p.ids({R}, R);
  const auto keep = [&](const auto& call) { p.measure(call, d.all(), true); };
  keep([&] { c.run(&Kernels::gather_rows, p.input(s), 0, ids, p.output(s)); });
  keep([&] { c.run(&Kernels::scatter_rows, p.input(s), ids, 0, p.output(s)); });
  keep([&] { c.queue().check_ids(ids, {.end = R}); });
  keep([&] {
    const kernels::Block4 block{{0, 0, 0, 0}, {1, 1, R, C}};
    c.run(&Kernels::dropout, 0.1, u64{7}, block, p.input(s), p.output(s));
  });
  keep([&] { c.run(&Kernels::fill, p.output(s), 0.5); });
  keep([&] { c.run(&Kernels::axpy, 1, p.input(s), p.output(s)); });
  keep([&] {  // to another order of dims
    View x = p.input({C, R});
    x.shape = {R, C};
    x.strides = {1, R};
    c.run(&Kernels::copy, x, p.output(s));
  });
  p.forget();
}

void Measurement::optimizers(i64 n) {
  const Shape s = {n};
  const auto out = [&] { return Views(1, p.output(s)); };
  const kernels::AdamW adamw{1e-4, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, 1};
  p.measure(
      [&] {
        const Views w = out(), m = out(), v = out();
        c.run(&Kernels::adamw, adamw, w, Views(1, p.input(s)), m, v);
      },
      d.all());
  const kernels::Sgd sgd{1e-4, 0.9, 0.01, 1};
  p.measure(
      [&] {
        const Views w = out(), b = out();
        c.run(&Kernels::sgd, sgd, w, Views(1, p.input(s)), b);
      },
      d.all());
  p.measure([&] { c.run(&Kernels::average, 0.1, Views(1, p.input(s)), out()); }, d.all());
  p.measure([&] { c.run(&Kernels::round_weights, Views(1, p.input(s)), Views(1, p.output(s, DType::bf16))); },
            d.all());
  const View words = p.workspace(SquareSum::kWords, DType::f64);
  const View room = p.workspace(table.sum_squares_workspace(n), DType::f64);
  p.measure([&] { c.run(&Kernels::sum_squares, Views(1, p.input(s)), words, room); }, d.all());
}

void Measurement::convolutions() {
  if (!has(&Kernels::conv2d)) return;
  const kernels::ConvShape s{.channels = 32,
                             .height = 28,
                             .width = 28,
                             .outputs = 64,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .padding = {1, 1}};
  const i64 B = 8;
  const Shape x = {B, s.channels, s.height, s.width}, y = {B, s.outputs, s.out_height(), s.out_width()};
  const Shape w = {s.outputs, s.channels, 3, 3};
  const View forward = p.workspace(table.conv2d_workspace(s, 1, B), DType::f32);
  p.measure(
      [&] {
        const View in = p.input(x), weight = p.input(w);
        c.run(&Kernels::conv2d, s, in, weight, View(), p.output(y), forward);
      },
      {d.middle});
  const View input = p.workspace(table.conv2d_input_gradient_workspace(s, 1, B), DType::f32);
  p.measure(
      [&] {
        const View g = p.input(y), weight = p.input(w);
        c.run(&Kernels::conv2d_input_gradient, s, g, weight, p.output(x), input);
      },
      {d.middle});
  const View weight = p.workspace(table.conv2d_weight_gradient_workspace(s, 1, B), DType::f32);
  p.measure(
      [&] {
        const View g = p.input(y), in = p.input(x);
        c.run(&Kernels::conv2d_weight_gradient, s, g, in, p.output(w), weight);
      },
      {d.middle});
}

// Kernels whose time follows from the bytes of their operands.
void Measurement::elementwise(i64 bytes) {
  const i64 C = 512, R = std::max<i64>(1, bytes / (4 * C));
  for (const DType type : {DType::f32, DType::bf16}) {
    if (type == DType::bf16 && !table.takes_bf16) continue;
    activations(type, R, C);
    norms(type, R, C);
    losses(type, std::max<i64>(1, R / 8), 8 * C);
  }
  rows(R, C);
  optimizers(R * C);
}

// Host time of an op that is on the tape and runs one small kernel.
double seconds_of_op(Probes& p) {
  const Tensor x = full({16}, 0.5).watched(), y = full({16}, 0.25);
  return p.seconds_of([&] {
    for (int i = 0; i < 16; ++i) static_cast<void>(x * y);
  }) / 16;
}

// All-reduces between hosts while products run. REQUIRES: s.network.
void Measurement::transfers_behind_products(Group& across, MachineSpeeds& s) {
  constexpr i64 M = 256, N = 1024, K = 1024;
  if (!has(&Kernels::linear)) return;
  const SpeedTable& speed = s.network.at(name_of(Collective::all_reduce));
  const double bytes = std::min(8.0 * (1 << 20), speed.axes[0].back()),
               transfer = bytes * speed(std::array{bytes});
  std::vector<float> data(static_cast<std::size_t>(bytes) / sizeof(float));
  const View x = p.input({M, K}), y = p.output({M, N});
  const Views w(1, p.input({N, K}));
  const View room = p.workspace(table.linear_workspace(false, x, w, Views(1, y)), DType::f32);
  const auto product = [&] { c.run(&Kernels::linear, false, x, w, Views(1, View()), Views(1, y), room); };
  const i64 n = across.agree(static_cast<i64>(std::ceil(3 * transfer / p.seconds_of(product, across))));
  const auto products = [&] {
    for (i64 i = 0; i < n; ++i) product();
    c.queue().wait();
  };
  std::vector<double> alone, both;
  const auto timed = [&](std::vector<double>& of, const auto& f) {
    across.barrier();
    const double begin = seconds();
    f();
    of.push_back(seconds() - begin);
  };
  for (int i = 0; i < 5; ++i) {
    timed(alone, products);
    timed(both, [&] {
      Started all_reduce = across.start_all_reduce(data.data(), std::ssize(data));
      products();
      all_reduce.wait();
    });
  }
  double own = std::max(0.0, median(both) - median(alone));
  across.all_reduce<double>(&own, 1);
  own /= across.size();
  p.forget();
  s.transfer_own = own / transfer;
}

std::string now_text() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, "measured %Y-%m-%d %H:%M UTC", &parts)};
}

}  // namespace

MachineSpeeds measure_speeds(Context& context, const SpeedKey& key, const MeasureOptions& options) {
  const Context::Use use(context);
  MachineSpeeds s;
  s.key = key;
  Measurement m(context, options, key.ranks);
  s.op_s = seconds_of_op(m.p);
  m.products(false);
  if (m.table.takes_bf16) m.products(true);
  for (const DType weights : {DType::f32, DType::bf16, DType::q8, DType::q4}) m.few_rows(weights);
  for (const bool bf16 : {false, true})
    if (!bf16 || m.table.takes_bf16)
      for (const double dropout : {0.0, 0.1}) m.attention(bf16, dropout);
  for (const DType cache : {DType::f32, DType::bf16}) m.decoding(cache);
  for (const i64 bytes : {i64{32} << 10, i64{2} << 20})
    m.elementwise(std::max<i64>(8192, static_cast<i64>(static_cast<double>(bytes) * options.largest)));
  m.convolutions();
  s.kernels = m.p.tables();
  s.kernels[kAnyKernel] = s.kernels.at("affine f32");

  Group& world = context.world();
  if (world.size() > 1) {
    const RankPlace at = place_of_rank(world);
    if (at.hosts == 1) {
      s.collectives = measure_collectives(world, m.p);
    } else {
      const auto on_host = world.split(at.host);
      const auto across = world.split(at.place);
      if (at.least_ranks > 1) s.collectives = measure_collectives(*on_host, m.p);
      if (at.place == 0) {
        warm_up(*across);
        s.network = measure_collectives(*across, m.p);
        s.network_hosts = across->size();
        m.transfers_behind_products(*across, s);
      }
      world.barrier();
    }
  }
  s.origin = now_text();
  return s;
}

}  // namespace redco
