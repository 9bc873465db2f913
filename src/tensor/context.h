// Context: one rank's state. Mesh and coordinates, its groups, arena, ledger, tape switches, randomness.
// Nothing of it is a process global: the thread backend runs many ranks in one process, each with the Context
// that its thread uses.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "shard/layout.h"
#include "tensor/arena.h"
#include "tensor/ledger.h"

namespace redco {

class Tensor;

// Numbers that name a random draw; see Context::key.
struct RandomState {
  u64 seed = 42;
  i64 step = 0;
  i64 row_offset = 0;  // ordinal in the global batch of row 0 of the tensors' dim 0 (the micro-batch's start)
};

// Collective results that recompute() keeps: recorded by the first run, taken in order by the repeated one.
struct CollectiveLog {
  std::deque<Tensor> results;
  bool replay = false;
  CollectiveLog* outer =
      nullptr;  // a recompute() inside one that is being repeated takes its results from there
  // A collective on `of`: true and its result where that is known already (in place of talking).
  bool take(const Tensor& of, Tensor* result);
  void keep(const Tensor& result);
};

// What recompute()'s first run reads of the tape.
struct Captures {
  std::vector<Tensor> tensors;
  bool partial = false;  // one was Partial: it may be reduced, in place, before the second run sees it
};

enum class ComputeDType : std::uint8_t { fp32, bf16 };

class Context {
 public:
  // A running rank. `world` has mesh.ranks() ranks; the axis groups are split from it. Collective.
  Context(const Mesh& mesh, std::unique_ptr<Group> world);
  // A planned rank: no storage, no talking.
  static std::unique_ptr<Context> meta(const Mesh& mesh, int rank);
  // The same rank inside one mp group: dp has size one. Tensors that are not split over dp can be used in
  // both. Shares the arena and ledger of `parent`, which must outlive it.
  static std::unique_ptr<Context> mp_submesh(Context& parent);
  ~Context();

  const Mesh& mesh() const { return mesh_; }
  const Coord& coord() const { return coord_; }
  int rank() const { return coord_.dp * mesh_.mp + coord_.mp; }
  bool is_meta() const { return meta_; }
  Group& group(Axis a) { return *axis_[static_cast<int>(a)]; }
  Group& world() { return *world_; }
  Arena& arena() { return *arena_; }
  std::shared_ptr<Arena> shared_arena() { return arena_; }
  Ledger& ledger() { return *ledger_; }

  // --- the tape -------------------------------------------------------------------------------------------
  bool recording = true;  // ops whose inputs are on the tape are put on it
  u64 next_sequence() { return sequence_++; }
  CollectiveLog* collective_log = nullptr;
  // recompute()'s first run: ops note the tensors of the tape that they use.
  Captures* captures = nullptr;

  // --- computing ------------------------------------------------------------------------------------------
  ComputeDType compute_dtype = ComputeDType::fp32;
  bool composed_only = false;  // tests: never take a fused op

  // --- names ----------------------------------------------------------------------------------------------
  // "forward/attention": phase and scope, for the ledger.
  std::string where() const { return scope_.empty() ? phase_ : phase_ + "/" + scope_; }
  const std::string& phase() const { return phase_; }
  const std::string& scope() const { return scope_; }
  void set_phase(std::string p) { phase_ = std::move(p); }
  void set_scope(std::string s) { scope_ = std::move(s); }

  // --- randomness -----------------------------------------------------------------------------------------
  RandomState random;
  std::string random_scope;  // parameter-scope name: "transformer.h.3.attn", with "#k" for repeated use
  // key = hash(seed, step, scope, site); the counter is the element's coordinates. No generator state.
  u64 key(std::string_view site) const;

  static Context& current();
  static bool has_current();

  // Makes a context the thread's current one for a C++ scope.
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
  Context() = default;
  Mesh mesh_;
  Coord coord_;
  bool meta_ = false;
  std::unique_ptr<Group> owned_world_;
  std::array<std::unique_ptr<Group>, 2> owned_axis_;
  Group* world_ = nullptr;
  std::array<Group*, 2> axis_{};
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<Ledger> ledger_;
  u64 sequence_ = 0;
  std::string phase_ = "forward", scope_;
};

// Sets a member for a C++ scope.
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

// Nothing is recorded inside.
class NoGrad : public Restore<bool> {
 public:
  NoGrad() : Restore(Context::current().recording, false) {}
};

// Names the part of the model for the ledger ("attention").
class Scope {
 public:
  explicit Scope(const char* name);
  ~Scope();

 private:
  std::string before_;
};

}  // namespace redco
