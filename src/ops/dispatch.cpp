#include "ops/dispatch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/activity.h"
#include "base/pooled.h"
#include "base/user_line.h"
#include "tensor/profile.h"
#include "tensor/transfer.h"

namespace redco {

// The choices of a context's ops: a table with open addressing. The keys lie one after the other, so a
// look-up touches few cache lines.
class StrategyCache {
 public:
  // The words of a key, at most as many as its maker says.
  class Key {
   public:
    explicit Key(std::size_t most) {
      if (most > kInside) {
        more_.resize(most);
        words_ = more_.data();
      }
    }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;
    void add(i64 word) { words_[size_++] = word; }
    std::size_t size() const { return size_; }
    i64 operator[](std::size_t i) const { return words_[i]; }
    const i64* begin() const { return words_; }
    const i64* end() const { return words_ + size_; }

   private:
    static constexpr std::size_t kInside = 128;
    std::array<i64, kInside> inside_;  // NOLINT: add() writes them
    std::vector<i64> more_;
    i64* words_ = inside_.data();
    std::size_t size_ = 0;
  };
  // The choice with this key; null if there is none yet. Valid until the next add().
  const OpCall::Chosen* find(const Key& key, u64 hash) const;
  const OpCall::Chosen& add(const Key& key, u64 hash, OpCall::Chosen chosen);

 private:
  struct Slot {
    u64 hash = 0;
    u32 first = 0, size = 0;  // of the key's words; 0 words: the slot is free
    u32 choice = 0;
  };
  Slot& free_slot(u64 hash);
  void grow();
  static constexpr std::size_t kMost = 1 << 13;
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of 2, at most half of them used
  std::vector<i64> words_;
  std::vector<OpCall::Chosen> choices_;
};

// The placements of the inputs and outputs on all axes.
struct OpCall::Chosen {
  SmallVector<Layout, 4> in, out;
};

const OpCall::Chosen* StrategyCache::find(const Key& key, u64 hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask; slots_[i].size > 0; i = (i + 1) & mask) {
    const Slot& s = slots_[i];
    if (s.hash == hash && s.size == key.size() && std::equal(key.begin(), key.end(), &words_[s.first]))
      return &choices_[s.choice];
  }
  return nullptr;
}

StrategyCache::Slot& StrategyCache::free_slot(u64 hash) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = hash & mask;
  while (slots_[i].size > 0) i = (i + 1) & mask;
  return slots_[i];
}

void StrategyCache::grow() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const Slot& s : before)
    if (s.size > 0) free_slot(s.hash) = s;
}

const OpCall::Chosen& StrategyCache::add(const Key& key, u64 hash, OpCall::Chosen chosen) {
  if (choices_.size() >= kMost) *this = {};  // shapes that change with each step are forgotten
  if (2 * choices_.size() >= slots_.size()) grow();
  free_slot(hash) = {hash, static_cast<u32>(words_.size()), static_cast<u32>(key.size()),
                     static_cast<u32>(choices_.size())};
  words_.insert(words_.end(), key.begin(), key.end());
  choices_.push_back(std::move(chosen));
  return choices_.back();
}

namespace {

// All that a choice depends on besides the call site and the mesh.
void add_to_key(StrategyCache::Key& key, const Tensors& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    if (!t.defined()) {
      key.add(-1);
      continue;
    }
    // Reducing one operand also changes the others that are the same tensor.
    i64 same = 0;
    for (std::size_t j = 0; j < i; ++j)
      if (inputs[j].defined() && inputs[j].identity() == t.identity()) same = static_cast<i64>(j) + 1;
    key.add(static_cast<i64>(t.dtype()) | t.hidden() << 8 | t.rank() << 16 | same << 32);
    for (i64 d : t.shape()) key.add(d);
  }
}
void add_to_key(StrategyCache::Key& key, const Layout& l, const Mesh& mesh) {
  for (Axis a : mesh.axes())
    key.add(static_cast<i64>(l[a].kind) | static_cast<i64>(l[a].dim) << 8 |
            static_cast<i64>(l[a].unit) << 32);
}

// Two chains, because each step of one waits for the one before.
u64 hash_of(const StrategyCache::Key& key) {
  constexpr u64 kFirst = 0x9e3779b97f4a7c15ull, kSecond = 0xff51afd7ed558ccdull;
  const auto mixed = [](u64 h, i64 x) {
    h = (h ^ static_cast<u64>(x)) * kSecond;
    return h ^ h >> 32;
  };
  u64 a = kFirst, b = kSecond;
  std::size_t i = 0;
  for (; i + 1 < key.size(); i += 2) {
    a = mixed(a, key[i]);
    b = mixed(b, key[i + 1]);
  }
  if (i < key.size()) a = mixed(a, key[i]);
  return mixed(a, static_cast<i64>(b));
}

bool has_partial(const Layout& l, const Mesh& mesh) {
  for (Axis a : mesh.axes())
    if (l[a].is_partial()) return true;
  return false;
}

}  // namespace

bool in_bf16(Context& c) { return c.compute_dtype == ComputeDType::bf16 && c.queue().kernels().takes_bf16; }

DType joint_type(const Tensors& operands) {
  for (const Tensor& t : operands)
    if (t.defined() && t.dtype() != DType::bf16) return t.dtype();
  return DType::bf16;
}

namespace {

// Its memory may be gone, and a planned tensor has none.
[[noreturn]] void foreign(const char* name, size_t i) {
  throw BugError(
      fmt::format("[{}] got a tensor as operand {} that another run or the plan has made. Keep no tensors "
                  "between calls: make them again, or keep their values",
                  name, i + 1));
}

}  // namespace

OpCall::OpCall(const char* name, Tensors inputs, const Accepts& accepts)
    : context_(Context::current()), name_(name), given_(std::move(inputs)) {
  activity::tick();
  if (const Profile* p = context_.profile()) begin_ = p->now();
  const Tensor* first = nullptr;
  const bool takes_bf16 = accepts.bf16 && in_bf16(context_);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const Tensor& t = given_[i];
    if (!t.defined()) continue;
    if (t.arena() != &context_.arena()) foreign(name, i);
    if (!t.is_float()) continue;
    if (t.is_gathered_on_use()) own_inputs()[i] = gathered(t);
    if (is_storage_type(t.dtype())) {
      if ((accepts.stored >> i & 1) != 0 || (takes_bf16 && t.dtype() == DType::bf16)) continue;
      // The same value: an op may save it and differentiate.
      const Tensor& narrow = this->inputs()[i];
      const Tensor wide = widened(narrow);
      wide.set_node(narrow.node(), narrow.node_output());
      own_inputs()[i] = wide;
      widened_ = true;
      continue;
    }
    if (!first) first = &given_[i];
    REDCO_CHECK(t.dtype() == first->dtype(),
                "[{}] has inputs of different types: {} and {}; cast one of them", name, describe(*first),
                describe(t));
  }
  if (Captures* const captures = context_.captures)
    for (const Tensor& t : given_)
      if (t.defined() && t.node()) {
        captures->tensors.push_back(t);
        for (Axis a : context_.mesh().axes()) captures->partial |= t.layout()[a].is_partial();
      }
}

Placement OpCall::Strategies::in(int i) const {
  return inputs_[i].defined() ? inputs_[i].layout()[axis_] : Placement::replicated();
}
int OpCall::Strategies::ranks() const { return Context::current().mesh().size(axis_); }
AxisRole OpCall::Strategies::role() const { return Context::current().mesh().role(axis_); }

void OpCall::Strategies::add(Placements in, Placements out, bool whole_work) {
  entries_.push_back({std::move(in), std::move(out), whole_work});
}
void OpCall::Strategies::all_replicated(int outputs) {
  add(Placements(inputs_.size()), Placements(static_cast<std::size_t>(outputs)), true);
}

// Moves the inputs to the placements of a choice, axis by axis. Returns whether one had to be moved.
bool OpCall::move_inputs(const Chosen& chosen) {
  bool moved = false;
  const Tensors* inputs = &this->inputs();
  for (Axis axis : context_.mesh().axes())
    for (size_t i = 0; i < inputs->size(); ++i) {
      const Tensor& t = (*inputs)[i];
      if (!t.defined() || t.layout()[axis] == chosen.in[i][axis]) continue;
      own_inputs()[i] = redistribute(t, axis, chosen.in[i][axis]);
      inputs = &inputs_;
      moved = true;
    }
  return moved;
}

void OpCall::choose(const Counts& output_numel, Generator generate, const OpChoice& choice) {
  const Mesh& mesh = context_.mesh();
  const Tensors& inputs = this->inputs();
  const auto axes = static_cast<std::size_t>(mesh.axes().size());
  std::size_t most = 3 + output_numel.size() + choice.attributes.size() + axes;
  for (const Tensor& t : inputs) most += 1 + (t.defined() ? t.shape().size() + axes : 0);
  StrategyCache::Key key(most);
  key.add(reinterpret_cast<i64>(generate));
  key.add(static_cast<i64>(inputs.size() << 32 | output_numel.size() << 16 | choice.attributes.size()));
  for (i64 n : output_numel) key.add(n);
  for (i64 a : choice.attributes) key.add(a);
  i64 stationary = 0;
  for (int w : choice.stationary) stationary |= i64{1} << w;
  key.add(stationary);
  add_to_key(key, choice.wish, mesh);
  add_to_key(key, inputs);
  for (const Tensor& t : inputs)
    if (t.defined()) add_to_key(key, t.layout(), mesh);
  const u64 hash = hash_of(key);

  if (!context_.strategies) context_.strategies = std::make_shared<StrategyCache>();
  const Chosen* known = context_.strategies->find(key, hash);
  const bool chosen_before = known;
  if (!known) known = &context_.strategies->add(key, hash, choose_now(output_numel, generate, choice));
  // Reducing an operand replaces it in place. If the same tensor is also another operand (x * x), that
  // operand must be moved back to the placement of the strategy (R -> P and R -> S are free).
  if (!chosen_before || move_inputs(*known)) move_inputs(*known);
  out_layouts_ = known->out;
}

// Chooses axis by axis, and moves the inputs to the choice on an axis before the next one.
OpCall::Chosen OpCall::choose_now(const Counts& output_numel, Generator generate, const OpChoice& choice) {
  const size_t outputs = output_numel.size();
  double elem = 4;
  Tensors& inputs = own_inputs();
  for (const Tensor& t : inputs)
    if (t.defined() && t.is_float()) elem = std::max(elem, static_cast<double>(size_of(t.dtype())));
  Chosen out;
  out.in.resize(inputs.size());
  out.out.resize(outputs);
  for (Axis axis : context_.mesh().axes()) {
    Strategies s(inputs, choice, axis);
    generate(s);
    REDCO_CHECK(!s.entries_.empty(), "[{}] no strategy", name_);
    const int n = s.ranks();
    const Strategies::Entry* best = nullptr;
    double best_cost = 0, best_work = 0;
    for (const auto& e : s.entries_) {
      double cost = 0;
      bool legal = true;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].defined()) continue;
        legal = legal && keeps_groups(inputs[i], axis, e.in[i]);
        const double moved = move_cost(inputs[i], axis, e.in[i]);
        cost += moved;
        for (int w : choice.stationary)
          if (w == static_cast<int>(i) && moved > 0 && !s.in(i).is_partial()) legal = false;
      }
      if (!legal) continue;
      if (s.role() == AxisRole::model && n > 1)
        for (size_t o = 0; o < outputs; ++o)
          if (e.out[o].is_partial()) cost += 2 * elem * static_cast<double>(output_numel[o]);
      const double work = e.whole_work ? 1.0 : 1.0 / n;
      if (!best || cost < best_cost || (cost == best_cost && work < best_work)) {
        best = &e;
        best_cost = cost;
        best_work = work;
      }
    }
    REDCO_CHECK(best, "[{}] no legal strategy on {} for {}", name_, context_.mesh().name(axis),
                describe(inputs[0]));
    for (size_t o = 0; o < outputs; ++o) out.out[o][axis] = best->out[o];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) continue;
      out.in[i][axis] = best->in[i];
      inputs[i] = redistribute(inputs[i], axis, best->in[i]);
    }
  }
  return out;
}

const Layout& OpCall::next_layout() const {
  REDCO_CHECK(outputs_.size() < out_layouts_.size(), "[{}] more outputs than its strategies have", name_);
  return out_layouts_[outputs_.size()];
}

Tensor OpCall::output(const Shape& shape, DType dtype, int hidden) {
  const Layout& layout = next_layout();
  if (is_storage_type(dtype) && widened_) dtype = DType::f32;
  if (dtype == DType::bf16 && has_partial(layout, context_.mesh())) dtype = DType::f32;
  Tensor t(shape, dtype, layout, hidden);
  outputs_.push_back(t);
  return t;
}

Tensor OpCall::output(const Shape& shape, DType dtype, const GradientRoom& room) {
  Tensor t = room.sink ? room.sink->room(room.leaf, shape, dtype, next_layout()) : Tensor();
  if (!t.defined()) return output(shape, dtype);
  outputs_.push_back(t);
  return t;
}

Tensor OpCall::view_of(const Tensor& input, const Shape& shape, int hidden) {
  Tensor t = Tensor::view(input, shape, next_layout(), hidden);
  outputs_.push_back(t);
  return t;
}

namespace {

// The index and value of the first local element that is not finite; nullopt: there is none.
std::optional<std::pair<i64, double>> non_finite(const Tensor& t) {
  if (!t.defined() || t.is_meta() || t.local_numel() == 0) return std::nullopt;
  const auto find = [&](const auto& values) -> std::optional<std::pair<i64, double>> {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i])) return std::pair(static_cast<i64>(i), static_cast<double>(values[i]));
    return std::nullopt;
  };
  if (t.dtype() == DType::f64) return find(host_copy<double>(t));
  if (t.dtype() == DType::f32 || t.dtype() == DType::bf16) return find(host_copy<float>(t));
  return std::nullopt;
}

}  // namespace

void OpCall::check_finite() const {
  const Tensors& given = inputs();
  for (const Tensor& o : outputs_) {
    const auto found = non_finite(o);
    if (!found) continue;
    std::string inputs;
    for (const Tensor& t : given) {
      if (non_finite(t)) return;  // an earlier op made it, or the user did: a mask of -inf
      if (t.defined()) inputs += (inputs.empty() ? "" : ", ") + describe(t);
    }
    throw Error(
        ExitCode::non_finite,
        fmt::format(
            "[debug] op {} is the first whose result is not finite: {} at element {} of {}, in {}. Its "
            "inputs are finite: {}{}",
            name_, found->second, found->first, describe(o), context_.where(), inputs, at_user_line()));
  }
}

void OpCall::account() {
  REDCO_CHECK(!done_, "[{}] recorded twice", name_);
  done_ = true;
  i64 bytes = 0;
  for (const Tensor& o : outputs_) bytes += o.local_bytes();
  if (context_.check_finite) check_finite();
  context_.account(name_, static_cast<i64>(flops_), bytes);
  if (Profile* p = context_.profile()) {
    p->add({.name = name_,
            .phase = context_.phase,
            .scope = context_.scope,
            .begin = begin_,
            .end = p->now(),
            .flops = static_cast<i64>(flops_),
            .bytes = bytes});
    p->memory(context_.arena().in_use());
  }
}

void OpCall::record(Tensors saved, VjpFn vjp) {
  account();
  if (!context_.recording) return;
  bool on_tape = false;
  for (const Tensor& t : given_) on_tape |= t.defined() && t.node();
  if (!on_tape) return;
  auto node = make_pooled<Node>();
  node->name = name_;
  node->sequence = context_.next_sequence();
  node->scope = context_.scope;
  node->random_scope = context_.random_scope;
  for (const Tensor& t : given_)
    node->inputs.push_back(t.defined() ? Edge{t.node(), t.node_output()} : Edge{});
  for (const Tensor& o : outputs_) node->outputs.push_back({o.shape(), o.layout(), o.dtype(), o.hidden()});
  for (Tensor& t : saved) {
    int own = -1;
    for (size_t o = 0; o < outputs_.size(); ++o)
      if (t.defined() && t.identity() == outputs_[o].identity()) own = static_cast<int>(o);
    if (own >= 0) t = t.detached();
    node->saved.push_back({std::move(t), own});
  }
  node->vjp = std::move(vjp);
  for (size_t o = 0; o < outputs_.size(); ++o) outputs_[o].set_node(node, static_cast<int>(o));
}

void OpCall::no_gradient() { account(); }

Tensor alias(const Tensor& x) {
  OpCall op("alias", {x}, Accepts::activations());
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.in(0)}, s.in(0).is_replicated()); });
  Tensor y = op.view_of(op.in(0), x.shape(), x.hidden());
  op.record({}, [](const Vjp& v) { return Tensors{v.g()}; });
  return y;
}

namespace {
std::atomic<i64> g_composed{0};
}
i64 composed_vjp_count() { return g_composed; }

Tensors composed_vjp(const Vjp& v, const Tensors& inputs, const std::function<Tensors(const Tensors&)>& f) {
  ++g_composed;
  Context& c = Context::current();
  const Restore<bool> composed(c.composed_only, true), recording(c.recording, true);
  // Each input gets an alias, which is a separate node (the same tensor may occur twice). The backward stops
  // at the aliases, so it returns this op's own vjp, with a graph that leads to the original inputs.
  Tensors cut = inputs;
  for (Tensor& t : cut)
    if (t.defined() && t.node()) t = alias(t);
  const Tensors outputs = f(cut);
  std::vector<Tensor> outs, gs, wanted;
  std::vector<int> index;
  for (size_t i = 0; i < outputs.size() && i < v.all().size(); ++i)
    if (v.g(i).defined()) {
      outs.push_back(outputs[i]);
      gs.push_back(v.g(i));
    }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (cut[i].defined() && cut[i].node() && v.needs(i)) {
      wanted.push_back(cut[i]);
      index.push_back(static_cast<int>(i));
    }
  const std::vector<Tensor> found =
      backward(outs, gs, wanted, {.create_graph = v.create_graph(), .stop_at_inputs = true});
  Tensors result(inputs.size());
  for (size_t k = 0; k < index.size(); ++k) result[index[k]] = found[k];
  return result;
}

}  // namespace redco
