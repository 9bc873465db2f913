// The ops of docs/api.md, with their names.
#include <limits>
#include <variant>

#include "ops/dispatch.h"
#include "python/bindings.h"

namespace redco::python {

namespace {

// dims of a reduction: None (all), an int or a list.
using Dims = std::optional<std::variant<int, std::vector<int>>>;
std::vector<int> dims_or_all(const Tensor& x, const Dims& dims) {
  if (dims && std::holds_alternative<int>(*dims)) return {std::get<int>(*dims)};
  if (dims) return std::get<std::vector<int>>(*dims);
  std::vector<int> all(static_cast<std::size_t>(x.visible()));
  for (int d = 0; d < x.visible(); ++d) all[static_cast<std::size_t>(d)] = d;
  return all;
}

// These functions of the module are methods of tensors too.
constexpr const char* kMethods[] = {
    "exp",         "log",      "sqrt",         "rsqrt", "square",   "abs",      "sin",     "cos",
    "tanh",        "sigmoid",  "relu",         "gelu",  "silu",     "softplus", "softmax", "log_softmax",
    "log_sum_exp", "max_last", "sum_all",      "sum",   "mean",     "clamp",    "cumsum",  "argmax",
    "cummax",      "sort",     "top_k",        "sign",  "pow",      "reshape",  "permute", "transpose",
    "narrow",      "pad_to",   "broadcast_to", "cast",  "to_float", "pick",     "detach",  "watched",
    "erf",         "log1p",    "expm1",        "round", "floor",    "prod",     "cumprod"};

using One = Tensor (*)(const Tensor&);

int dim_of(const Tensor& x, int dim) {
  const int n = x.visible(), d = dim < 0 ? dim + n : dim;
  if (d < 0 || d >= n)
    throw BugError(fmt::format("dim {} of {}; expected {} to {}", dim, describe(x), -n, n - 1));
  return d;
}
// f along a dim, of an op along the last one. f keeps the dims, or with `drops` loses the last one.
template <class F>
auto along(const Tensor& x, int dim, bool drops, const F& f) {
  const int d = dim_of(x, dim), last = x.visible() - 1;
  if (d == last) return f(x);
  if (!drops) {
    const auto back = [&](const Tensor& y) { return transpose(y, d, last); };
    auto y = f(transpose(x, d, last));
    if constexpr (std::is_same_v<decltype(y), Tensor>)
      y = back(y);
    else
      y = {back(y.values), back(y.ids)};
    return y;
  }
  std::vector<int> order;
  for (int i = 0; i <= last; ++i)
    if (i != d) order.push_back(i);
  order.push_back(d);
  return f(permute(x, order));
}

}  // namespace

Tensor watched(const Tensor& x) { return x.node() ? alias(x) : x.watched(); }

void bind_ops(py::module_& m) {
  // Elementwise
  const std::vector<std::pair<const char*, One>> of_one = {{"exp", exp},
                                                           {"log", log},
                                                           {"sqrt", sqrt},
                                                           {"rsqrt", rsqrt},
                                                           {"square", square},
                                                           {"abs", abs},
                                                           {"sin", sin},
                                                           {"cos", cos},
                                                           {"tanh", tanh},
                                                           {"sigmoid", sigmoid},
                                                           {"relu", relu},
                                                           {"gelu", gelu},
                                                           {"silu", silu},
                                                           {"softplus", softplus},
                                                           {"erf", erf},
                                                           {"log1p", log1p},
                                                           {"expm1", expm1},
                                                           {"round", round},
                                                           {"floor", floor},
                                                           {"log_sigmoid", log_sigmoid},
                                                           {"stop_gradient", stop_gradient},
                                                           {"max_last", max_last},
                                                           {"sum_all", sum_all},
                                                           {"zeros_like", zeros_like},
                                                           {"ones_like", ones_like}};
  for (const auto& [name, f] : of_one) m.def(name, f, "x"_a, Free());
  m.def("detach", static_cast<One>(stop_gradient), "x"_a, Free());
  m.def(
      "add", [](const std::vector<Tensor>& terms) { return add(terms); }, "terms"_a, Free());
  m.def("add_bias", &add_bias, "y"_a, "bias"_a, Free());
  m.def("scale", &scale, "x"_a, "factor"_a, Free());
  m.def("add_scalar", &add_scalar, "x"_a, "constant"_a, Free());
  for (const auto& [name, f] : {std::make_pair("maximum", &maximum), {"minimum", &minimum}}) {
    m.def(name, f, "a"_a, "b"_a, Free());
    m.def(
        name,
        [f = f](const Tensor& a, const py::object& b) {
          const Tensor constant = constant_for(a, b);
          const py::gil_scoped_release unlocked;
          return f(a, constant);
        },
        "a"_a, "b"_a);
  }
  m.def(
      "gated",
      [](const std::string& name, const Tensor& gate, const Tensor& up) {
        return activate_gated(name, gate, up);
      },
      "activation"_a, "gate"_a, "up"_a, Free(), "activation(gate) * up, by the Hugging Face name.");
  m.def("activate", &activate, "activation"_a, "x"_a, Free(), "An activation by its Hugging Face name.");
  m.def("where", &where, "condition"_a, "a"_a, "b"_a, Free());
  m.def(
      "where",
      [](const Tensor& c, const py::object& a, const py::object& b) {
        const auto tensor = [](const py::object& x) { return py::isinstance<Tensor>(x); };
        const Tensor like = tensor(a) ? py::cast<Tensor>(a) : tensor(b) ? py::cast<Tensor>(b) : full({}, 0);
        const Tensor x = tensor(a) ? like : constant_for(like, a);
        const Tensor y = tensor(b) ? py::cast<Tensor>(b) : constant_for(like, b);
        const py::gil_scoped_release unlocked;
        return where(c, x, y);
      },
      "condition"_a, "a"_a, "b"_a, "a where the condition is not 0, else b. They may be numbers or arrays.");
  m.def("clamp", &clamp, "x"_a, "low"_a = -std::numeric_limits<double>::infinity(),
        "high"_a = std::numeric_limits<double>::infinity(), Free());
  m.def(
      "clamp", [](const Tensor& x, double low, double high) { return clamp(x, low, high); }, "x"_a,
      py::kw_only(), "min"_a = -std::numeric_limits<double>::infinity(),
      "max"_a = std::numeric_limits<double>::infinity(), Free());
  m.def("cumsum", &cumsum, "x"_a, "dim"_a, "reverse"_a = false, Free());
  m.def("prod", &prod, "x"_a, "dim"_a, Free(), "The product along a dim, which is dropped.");
  m.def("cumprod", &cumprod, "x"_a, "dim"_a, Free());

  // Orders, ids and powers
  m.def(
      "arange", [](i64 n) { return arange(n); }, "n"_a, "ids 0 to n - 1");
  m.def(
      "arange",
      [](i64 start, i64 stop) {
        if (stop < start) throw BugError(fmt::format("arange({}, {}): expected start <= stop", start, stop));
        return arange(stop - start, start);
      },
      "start"_a, "stop"_a, "ids start to stop - 1");
  m.def(
      "one_hot", [](const Tensor& ids, i64 width) { return one_hot(ids, width); }, "ids"_a, "width"_a,
      Free());
  for (const auto& [name, f] :
       {std::pair<const char*, One>{"softmax", softmax}, {"log_softmax", log_softmax}})
    m.def(
        name, [f = f](const Tensor& x, int dim) { return along(x, dim, false, f); }, "x"_a, "dim"_a = -1,
        Free());
  m.def(
      "argmax", [](const Tensor& x, int dim) { return along(x, dim, true, argmax); }, "x"_a, "dim"_a = -1,
      Free(), "ids of the largest elements along a dim; the first of equal ones");
  m.def("take_along", &take_along, "x"_a, "ids"_a, Free());
  const auto pair = [](Ordered o) { return std::make_pair(std::move(o.values), std::move(o.ids)); };
  m.def(
      "top_k",
      [pair](const Tensor& x, i64 k, int dim) {
        return pair(along(x, dim, false, [&](const Tensor& t) { return top_k(t, k); }));
      },
      "x"_a, "k"_a, "dim"_a = -1, Free(), "(values, ids), the largest first.");
  m.def(
      "sort",
      [pair](const Tensor& x, int dim, bool descending) {
        return pair(along(x, dim, false, [&](const Tensor& t) { return sort(t, descending); }));
      },
      "x"_a, "dim"_a = -1, "descending"_a = false, Free(), "(values, ids)");
  m.def("cummax", &cummax, "x"_a, "dim"_a, Free());
  m.def("sign", &sign, "x"_a, Free());
  m.def("pow", &pow, "x"_a, "exponent"_a, Free());

  // Reductions
  m.def(
      "sum",
      [](const Tensor& x, const Dims& dim, bool keepdim) {
        if (!dim && !keepdim) return sum_all(x);
        return sum(x, dims_or_all(x, dim), keepdim);
      },
      "x"_a, "dim"_a = py::none(), "keepdim"_a = false, Free());
  m.def(
      "mean",
      [](const Tensor& x, const Dims& dim, bool keepdim) { return mean(x, dims_or_all(x, dim), keepdim); },
      "x"_a, "dim"_a = py::none(), "keepdim"_a = false, Free());
  m.def(
      "log_sum_exp",
      [](const Tensor& x, int dim, bool keepdim) {
        return along(x, dim, !keepdim, [&](const Tensor& t) { return log_sum_exp(t, keepdim); });
      },
      "x"_a, "dim"_a = -1, "keepdim"_a = false, Free());

  // Shapes and types
  m.def(
      "reshape", [](const Tensor& x, const std::vector<i64>& shape) { return reshape(x, to_shape(shape)); },
      "x"_a, "shape"_a, Free());
  m.def("permute", &permute, "x"_a, "dims"_a, Free());
  const auto several = [&m](const char* name, auto f) {  // also as NAME(x, 2, 3)
    m.def(name, [f](const Tensor& x, const py::args& dims) {
      const auto all = py::cast<std::vector<i64>>(dims);
      const py::gil_scoped_release unlocked;
      return f(x, all);
    });
  };
  several("reshape", [](const Tensor& x, const std::vector<i64>& d) { return reshape(x, to_shape(d)); });
  several("permute", [](const Tensor& x, const std::vector<i64>& d) {
    return permute(x, std::vector<int>(d.begin(), d.end()));
  });
  m.def("transpose", &transpose, "x"_a, "a"_a, "b"_a, Free());
  m.def("narrow", &narrow, "x"_a, "dim"_a, "start"_a, "length"_a, Free());
  m.def("pad_to", &pad_to, "x"_a, "dim"_a, "start"_a, "size"_a, Free());
  m.def(
      "broadcast_to",
      [](const Tensor& x, const std::vector<i64>& shape) { return broadcast_to(x, to_shape(shape)); }, "x"_a,
      "shape"_a, Free());
  m.def(
      "concat", [](const std::vector<Tensor>& parts, int dim) { return concat(parts, dim); }, "parts"_a,
      "dim"_a = 0, Free());
  m.def(
      "stack",
      [](const std::vector<Tensor>& parts, int dim) {
        std::vector<Tensor> out;
        for (const Tensor& t : parts) {
          std::vector<i64> dims(t.shape().begin() + t.hidden(), t.shape().end());
          const int at = dim < 0 ? dim + static_cast<int>(dims.size()) + 1 : dim;
          dims.insert(dims.begin() + at, 1);
          out.push_back(reshape(t, to_shape(dims)));
        }
        return concat(out, dim);
      },
      "parts"_a, "dim"_a = 0, Free());
  m.def(
      "cast", [](const Tensor& x, const std::string& type) { return cast(x, dtype_named(type)); }, "x"_a,
      "dtype"_a, Free());
  m.def(
      "to_float", [](const Tensor& x, const std::string& type) { return to_float(x, dtype_named(type)); },
      "x"_a, "dtype"_a = "float32", Free());

  // Products
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias) {
        return linear(x, w, bias.value_or(Tensor()));
      },
      "x"_a, "weight"_a, "bias"_a = py::none(), Free());
  m.def("matmul", &matmul, "a"_a, "b"_a, "trans_a"_a = false, "trans_b"_a = false, Free());

  // Rows and labels
  m.def(
      "embedding", [](const Tensor& table, const Tensor& ids) { return embedding(table, ids); }, "table"_a,
      "ids"_a, Free());
  m.def("pick", &pick, "x"_a, "ids"_a, Free());
  m.def(
      "segment_sum",
      [](const Tensor& x, const Tensor& ids, i64 n) {
        if (x.visible() < 1 || ids.visible() != 1 || ids.is_float() || ids.size(0) != x.size(0))
          throw BugError(
              fmt::format("segment_sum: x is {} and ids are {}; expected x [N, ...] and int32 ids [N]",
                          describe(x), describe(ids)));
        Shape dims(x.shape().begin() + x.hidden(), x.shape().end());
        dims[0] = n;
        return reshape(scatter_rows(reshape(x, {x.size(0), -1}), ids, n, Layout{}), dims);
      },
      "x"_a, "ids"_a, "n"_a, Free(),
      "[n, ...]: the sum of the rows of x [N, ...] with each id [N]: messages to the nodes of a graph.");
  m.def("cross_entropy", &cross_entropy, "logits"_a, "labels"_a, "label_smoothing"_a = 0.0, Free());

  // Norms
  const auto maybe = [](const std::optional<Tensor>& t) { return t.value_or(Tensor()); };
  m.def(
      "layer_norm",
      [maybe](const Tensor& x, const std::optional<Tensor>& w, const std::optional<Tensor>& b, double eps) {
        return layer_norm(x, maybe(w), maybe(b), eps);
      },
      "x"_a, "weight"_a = py::none(), "bias"_a = py::none(), "eps"_a = 1e-5, Free());
  m.def(
      "rms_norm", [](const Tensor& x, const Tensor& w, double eps) { return rms_norm(x, w, eps); }, "x"_a,
      "weight"_a, "eps"_a = 1e-6, Free());
  m.def(
      "group_norm",
      [maybe](const Tensor& x, i64 groups, const std::optional<Tensor>& w, const std::optional<Tensor>& b,
              double eps) { return group_norm(x, groups, maybe(w), maybe(b), eps); },
      "x"_a, "groups"_a, "weight"_a = py::none(), "bias"_a = py::none(), "eps"_a = 1e-5, Free());
}

void bind_more_ops(py::module_& m) {
  const auto maybe = [](const std::optional<Tensor>& t) { return t.value_or(Tensor()); };
  // Attention and sequences
  m.def(
      "attention",
      [maybe](const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal, i64 window,
              i64 ahead, double softcap, const std::optional<Tensor>& key_mask,
              const std::optional<Tensor>& bias, bool segmented) {
        AttentionOptions o;
        o.scale = scale;
        o.causal = causal;
        o.window = window;
        o.ahead = ahead;
        o.softcap = softcap;
        o.segmented = segmented;
        return attention(q, k, v, o, maybe(key_mask), maybe(bias));
      },
      "q"_a, "k"_a, "v"_a, "scale"_a, "causal"_a = false, "window"_a = 0, "ahead"_a = -1, "softcap"_a = 0.0,
      "key_mask"_a = py::none(), "bias"_a = py::none(), "segmented"_a = false, Free());
  m.def(
      "rope",
      [](const Tensor& x, const Tensor& positions, const std::vector<float>& inv_freq, bool interleaved,
         double attention_factor) {
        RopeOptions o;
        o.inv_freq = std::make_shared<const std::vector<float>>(inv_freq);
        o.interleaved = interleaved;
        o.attention_factor = attention_factor;
        return rope(x, positions, o);
      },
      "x"_a, "positions"_a, "inv_freq"_a, "interleaved"_a = false, "attention_factor"_a = 1.0, Free());
  m.def("rope_frequencies", &rope_frequencies, "theta"_a, "rotary"_a);
  m.def(
      "dropout",
      [](const Tensor& x, double rate, const std::string& site) {
        return dropout(x, rate, Context::current().key(site));
      },
      "x"_a, "rate"_a, "site"_a, Free(),
      "Dropout with the key of (seed, step, scope, site). Use it in training only: `if ctx.train`.");
  m.def(
      "linear_recurrence",
      [maybe](const Tensor& log_decay, const Tensor& k, const Tensor& q, const Tensor& v,
              const std::optional<Tensor>& initial, const std::optional<Tensor>& segments, i64 chunk) {
        const Recurrence r = linear_recurrence({.log_decay = log_decay,
                                                .k = k,
                                                .q = q,
                                                .v = v,
                                                .initial = maybe(initial),
                                                .segments = maybe(segments)},
                                               chunk);
        return std::make_pair(r.y, r.state);
      },
      "log_decay"_a, "k"_a, "q"_a, "v"_a, "initial"_a = py::none(), "segments"_a = py::none(), "chunk"_a = 64,
      Free());
  m.def(
      "selective_scan",
      [maybe](const Tensor& dt, const Tensor& x, const Tensor& rates, const Tensor& k, const Tensor& q,
              const std::optional<Tensor>& initial, const std::optional<Tensor>& segments) {
        const Recurrence r = selective_scan({.dt = dt,
                                             .x = x,
                                             .rates = rates,
                                             .k = k,
                                             .q = q,
                                             .initial = maybe(initial),
                                             .segments = maybe(segments)});
        return std::make_pair(r.y, r.state);
      },
      "dt"_a, "x"_a, "rates"_a, "k"_a, "q"_a, "initial"_a = py::none(), "segments"_a = py::none(), Free(),
      "Mamba's recurrence: y and the last state.");
  m.def("linear_scan", &linear_scan, "a"_a, "b"_a, "dim"_a, "reverse"_a = false, Free(),
        "h[i] = a[i] h[i - 1] + b[i] along a dim.");
  m.def(
      "causal_conv1d",
      [maybe](const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
              const std::optional<Tensor>& before, const std::optional<Tensor>& segments) {
        return causal_conv1d(x, w, maybe(bias), maybe(before), maybe(segments));
      },
      "x"_a, "weight"_a, "bias"_a = py::none(), "before"_a = py::none(), "segments"_a = py::none(), Free());

  // Experts
  m.def("top_k_mask", &top_k_mask, "x"_a, "k"_a, Free());
  m.def(
      "experts",
      [](const Tensor& x, const Tensor& weights, const Tensor& chosen, const Tensor& gate, const Tensor& up,
         const Tensor& down, i64 per_row) {
        ExpertsOptions o;
        o.per_row = per_row;
        return experts(x, weights, chosen, {.gate = gate, .up = up, .down = down}, o);
      },
      "x"_a, "weights"_a, "chosen"_a, "gate"_a, "up"_a, "down"_a, "per_row"_a = 1, Free());

  // Images
  using Two = std::array<i64, 2>;
  m.def(
      "conv2d",
      [maybe](const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, Two stride, Two padding) {
        return conv2d(x, w, maybe(bias), {stride, padding});
      },
      "x"_a, "weight"_a, "bias"_a = py::none(), "stride"_a = Two{1, 1}, "padding"_a = Two{0, 0}, Free());
  m.def(
      "conv2d_input_gradient",
      [](const Tensor& g, const Tensor& w, i64 height, i64 width, Two stride, Two padding) {
        return conv2d_input_gradient(g, w, height, width, {stride, padding});
      },
      "g"_a, "weight"_a, "height"_a, "width"_a, "stride"_a = Two{1, 1}, "padding"_a = Two{0, 0}, Free(),
      "PyTorch's conv_transpose2d.");
  m.def(
      "avg_pool2d",
      [](const Tensor& x, Two kernel, Two stride, Two padding) {
        return avg_pool2d(x, {kernel, stride, padding});
      },
      "x"_a, "kernel"_a = Two{2, 2}, "stride"_a = Two{2, 2}, "padding"_a = Two{0, 0}, Free());
  m.def(
      "max_pool2d",
      [](const Tensor& x, Two kernel, Two stride, Two padding) {
        return max_pool2d(x, {kernel, stride, padding});
      },
      "x"_a, "kernel"_a = Two{2, 2}, "stride"_a = Two{2, 2}, "padding"_a = Two{0, 0}, Free());
  m.def("upsample", &upsample, "x"_a, "rows"_a, "columns"_a, Free());

  // Creating tensors
  m.def(
      "zeros",
      [](const std::vector<i64>& s, const std::string& t) { return zeros(to_shape(s), dtype_named(t)); },
      "shape"_a, "dtype"_a = "float32");
  m.def(
      "full",
      [](const std::vector<i64>& s, double x, const std::string& t) {
        return full(to_shape(s), x, dtype_named(t));
      },
      "shape"_a, "value"_a, "dtype"_a = "float32");
  m.def(
      "label_mask", [](const Tensor& labels) { return label_mask(labels, DType::f32); }, "labels"_a, Free());
  // Random numbers: of a batch (dim 0 is counted in the global batch), or, with `like`, of anything else.
  const auto random = [&m](const char* name, Tensor (*of_batch)(const Shape&, u64),
                           Tensor (*placed)(const Shape&, u64, const Layout&), const char* doc) {
    m.def(
        name,
        [=](const std::vector<i64>& shape, const std::string& site, const std::optional<Tensor>& like,
            bool batch) {
          const u64 key = Context::current().key(site);
          if (like) return placed(to_shape(shape), key, like->layout());
          return batch ? of_batch(to_shape(shape), key) : placed(to_shape(shape), key, Layout{});
        },
        "shape"_a, "site"_a, "like"_a = py::none(), "batch"_a = true, Free(), doc);
  };
  random("random_uniform", random_uniform, random_uniform,
         "Uniform in [0, 1), by the key of (seed, step, scope, site). Dim 0 is the batch; batch=False: it is "
         "not. like: with the placement of this parameter.");
  random("random_normal", random_normal, random_normal, "Standard normal numbers; as random_uniform.");

  // Gradients
  const auto gradients = [](const Tensor& loss, const std::vector<Tensor>& inputs, bool create_graph,
                            bool retain) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      REDCO_CHECK(inputs[i].node(),
                  "[grad] input {}, {}, is not on the tape. Compute the loss from x = x.watched(), and give "
                  "this x",
                  i, describe(inputs[i]));
    auto out = grad(loss, inputs, {.create_graph = create_graph, .retain = retain});
    if (!loss.node())
      throw UsageError(
          "[grad] the loss {} depends on no input. Compute it from the tensors that x.watched() returns, outside "
          "of no_grad()",
          describe(loss));
    return out;
  };
  m.def(
      "grad",
      [gradients](const Tensor& loss, const Tensor& input, bool create_graph, bool retain) {
        return gradients(loss, {input}, create_graph, retain)[0];
      },
      "loss"_a, "input"_a, "create_graph"_a = false, "retain"_a = false, Free());
  m.def("grad", gradients, "loss"_a, "inputs"_a, "create_graph"_a = false, "retain"_a = false, Free(),
        "Gradients of a one-element loss with respect to x = x.watched(), or a list of such tensors.");
  m.def(
      "vjp",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
         const std::vector<Tensor>& inputs, bool create_graph, bool retain) {
        return vjp(outputs, cotangents, inputs, {.create_graph = create_graph, .retain = retain});
      },
      "outputs"_a, "cotangents"_a, "inputs"_a, "create_graph"_a = false, "retain"_a = false, Free());
  m.def("watched", &watched, "x"_a,
        "x, for gradients with respect to it. Gradients through it also reach what x is computed from; "
        "x.detach().watched() is a constant for them.");
  m.def(
      "recompute",
      [](const py::object& f, const Tensor& x) {
        const auto g = callback<Tensor, const Tensor&>(f);
        const py::gil_scoped_release unlocked;
        return recompute(g, x);
      },
      "f"_a, "x"_a, "f(x), computed again in the backward pass instead of kept.");
  m.def(
      "vmap",
      [](const py::object& f, const std::vector<Tensor>& xs) {
        const auto g = callback<std::vector<Tensor>, const std::vector<Tensor>&>(glue("listed")(f));
        const py::gil_scoped_release unlocked;
        return vmap(g, xs);
      },
      "f"_a, "xs"_a, "f on all slices along dim 0 together.");

  const py::object tensor = m.attr("Tensor");
  for (const char* name : kMethods)
    tensor.attr(name) = py::reinterpret_steal<py::object>(PyInstanceMethod_New(m.attr(name).ptr()));
}

}  // namespace redco::python
