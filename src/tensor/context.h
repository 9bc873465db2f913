// Context: the state of one rank: mesh and coordinates, groups, arena, ledger, switches of the tape,
// randomness. None of it is global to the process, because the thread backend runs many ranks in one process;
// each thread uses its own Context.
#pragma once

#include <bit>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"
#include "kernels/queue.h"
#include "shard/layout.h"
#include "tensor/arena.h"
#include "tensor/compute_dtype.h"
#include "tensor/ledger.h"

namespace redco {

class Tensor;
class GatherAhead;
class Profile;
class StrategyCache;

// Values that identify a random draw; see Context::key.
struct RandomState {
  u64 seed = 42;
  i64 step = 0;
  i64 row_offset = 0;  // index in the global batch of row 0 of the tensors' dim 0 (start of the micro-batch)
  std::vector<i64> rows = {};  // in predict(): the rows' numbers, Example::ordinal; otherwise they follow
                               // row_offset
};

// Sums over ranks that recompute() keeps: the first run records them, the repeated run takes them in
// order.
struct CollectiveLog {
  std::deque<Tensor> results;
  bool replay = false;
  // For a nested recompute(): where it takes its results from while the outer one is repeated.
  CollectiveLog* outer = nullptr;
  // A collective on `of`: if its result is already known, returns true and the result, without communication.
  bool take(const Tensor& of, Tensor* result);
  void keep(const Tensor& result);
};

// Tensors of the tape that the first run of recompute() reads.
struct Captures {
  std::vector<Tensor> tensors;
  bool partial = false;  // one of them was Partial and may be reduced in place before the second run
};

// The random keys that a differentiated computation has asked for.
struct KeyUses {
  std::set<u64> keys;
  std::string repeated;  // the first place that asked for a key again: "'resid' in 'transformer.h.0'"
};

// A text that is copied often: copies share it.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) : value_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT
  SharedText(const char* text) : SharedText(std::string(text)) {}                                 // NOLINT
  std::string_view text() const { return value_ ? std::string_view(*value_) : std::string_view(); }

 private:
  std::shared_ptr<const std::string> value_;
};

class Context {
 public:
  // A rank that runs. `world` has mesh.ranks() ranks; the groups of the axes are split from it. Collective.
  // queue: null: the CPU's.
  Context(const Mesh& mesh, std::unique_ptr<Group> world, std::shared_ptr<Queue> queue = nullptr);
  // A planned rank, without storage and communication.
  static std::unique_ptr<Context> meta(const Mesh& mesh, int rank);
  // The same rank within one mp group, with dp = 1. Both contexts can use tensors that are not split over dp.
  // Shares the arena and ledger of `parent`, which must outlive it.
  static std::unique_ptr<Context> mp_submesh(Context& parent);
  ~Context();

  const Mesh& mesh() const { return mesh_; }
  const Coord& coord() const { return coord_; }
  int rank() const { return rank_; }
  bool is_meta() const { return meta_; }
  // The ranks of an axis, and all ranks, for collectives on the host's memory: they wait for the queue first,
  // so that all ranks' collectives keep one order. Those on tensors: tensor/collectives.h.
  Group& group(Axis a) {
    queue_->wait();
    return *axis_[a.index()];
  }
  Group& world() {
    queue_->wait();
    return *world_;
  }
  // Time that this rank has spent in collectives: in starting them and in waiting. Waits for the queue.
  double seconds_waiting();
  Arena& arena() { return *arena_; }
  const std::shared_ptr<Arena>& shared_arena() { return arena_; }

  // --- Device ---
  Queue& queue() { return *queue_; }
  // Whether the device has a kernel.
  template <class... A>
  bool has(Kernel<A...> Kernels::*kernel) const {
    return (queue_->kernels().*kernel).run;
  }
  // Submits a kernel. Tensors are passed as views of their local blocks.
  template <class... A>
  void run(Kernel<A...> Kernels::*kernel, const std::type_identity_t<A>&... arguments) {
    queue_->run(queue_->kernels().*kernel, arguments...);
  }

  // --- Accounts ---
  // The ledger of ops and collectives; null (the default of a rank that runs): none is kept. A planned rank
  // has one.
  Ledger* ledger() { return ledger_.get(); }
  Ledger& keep_ledger();  // from now on, empty
  // Accounts for an op: its FLOPs on this rank and the bytes that it writes.
  void account(const char* op, i64 flops, i64 bytes) {
    *flops_ += flops;
    if (ledger_) ledger_->op(op, where(), flops, bytes);
  }
  // Accounts for a collective on the ranks of an axis, or of all axes.
  void account(Collective kind, Axis axis, i64 bytes) {
    if (ledger_) ledger_->collective(kind, mesh_.name(axis), where(), bytes);
  }
  void account_all(Collective kind, i64 bytes) {
    if (ledger_) ledger_->collective(kind, "all", where(), bytes);
  }
  i64 flops() const { return *flops_; }  // of all ops so far

  // --- Agreement ---
  // Ops call it with their constants. All ranks of a replica must use the same ones in the same order:
  // training and evaluation compare constants(), a hash of those since begin_constants().
  void constant(double value) {
    *constants_ = (*constants_ ^ std::bit_cast<u64>(value)) * 0x9E3779B97F4A7C15u;
    *constants_ ^= *constants_ >> 29;
  }
  void begin_constants() { *constants_ = 0; }
  u64 constants() const { return *constants_; }

  // --- Tape ---
  bool recording = true;  // record ops whose inputs are on the tape
  u64 next_sequence() { return sequence_++; }
  u64 next_pass() { return ++pass_; }  // a number for each backward pass
  CollectiveLog* collective_log = nullptr;
  GatherAhead* gather_ahead = nullptr;  // of a step with sharded parameters (ops/gather_ahead.h)
  // In the first run of recompute(): ops add the tensors of the tape that they use.
  Captures* captures = nullptr;

  // --- Computation ---
  ComputeDType compute_dtype = ComputeDType::fp32;
  // Check the results of each op, and end with the first one that is not finite although its inputs are
  // (train.debug). Each op waits for its kernel.
  bool check_finite = false;
  // Never use a fused op whose gradient is fused too: for gradients of gradients, and for tests.
  bool composed_only = false;
  // The strategies that ops have chosen (ops/dispatch.cpp).
  std::shared_ptr<StrategyCache> strategies;

  // --- Profile ---
  Profile* profile() { return profile_.get(); }  // null: none is kept
  void start_profile();
  std::shared_ptr<Profile> end_profile();

  // --- Names ---
  // Phase and scope for the ledger: literals, or texts that outlive the tape.
  const char* phase = "forward";
  const char* scope = "";
  std::string where() const {
    return *scope ? std::string(phase) + "/" + scope : phase;
  }  // forward/attention

  // --- Randomness ---
  RandomState random;
  SharedText random_scope;  // the scope in the model: "transformer.h.3.attn", with "#k" for repeated use
  // key = hash(seed, step, scope, site); the counter is the element's coordinates. There is no generator
  // state.
  u64 key(std::string_view site) const;
  KeyUses* key_uses = nullptr;  // if set, key() notes the uses that belong to the tape

  static Context& current();
  static bool has_current();

  // Makes a context the current one of the thread within a C++ scope.
  class Use {
   public:
    explicit Use(Context& c);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Context* before_;
  };

 private:
  explicit Context(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
  std::shared_ptr<Queue> queue_;
  friend class Collectives;
  Mesh mesh_;
  Coord coord_;
  int rank_ = 0;
  bool meta_ = false;
  std::unique_ptr<Group> owned_world_;
  std::array<std::unique_ptr<Group>, kMaxAxes> owned_axis_;
  Group* world_ = nullptr;
  std::array<Group*, kMaxAxes> axis_{};
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<Profile> profile_;
  std::shared_ptr<i64> flops_ = std::make_shared<i64>(0);
  std::shared_ptr<u64> constants_ = std::make_shared<u64>(0);
  u64 sequence_ = 0, pass_ = 0;
};

// Sets a variable within a C++ scope.
template <class T>
class Restore {
 public:
  Restore(T& place, T value) : place_(place), before_(std::move(place)) { place_ = std::move(value); }
  ~Restore() { place_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& place_;
  T before_;
};

// Disables recording within a C++ scope.
class NoGrad : public Restore<bool> {
 public:
  NoGrad() : Restore(Context::current().recording, false) {}
};

// Names the part of the model for the ledger ("attention") within a C++ scope.
class Scope : public Restore<const char*> {
 public:
  explicit Scope(const char* name) : Restore(Context::current().scope, name) {}
};

}  // namespace redco
