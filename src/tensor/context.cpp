#include "tensor/context.h"

#include "base/error.h"
#include "tensor/profile.h"
#include "tensor/tensor.h"

namespace redco {

namespace {
thread_local Context* g_current = nullptr;

// The finalizer of SplitMix64: every input bit affects the whole key.
u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
// FNV-1a.
u64 hash_text(std::string_view s) {
  u64 h = 0xcbf29ce484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ull;
  return h;
}
}  // namespace

Context::Context(const Mesh& mesh, std::unique_ptr<Group> world, std::shared_ptr<Queue> queue)
    : queue_(queue ? std::move(queue) : Queue::immediate(cpu_device())),
      mesh_(mesh),
      coord_(coord_of(mesh, world->rank())),
      rank_(world->rank()) {
  REDCO_CHECK(world->size() == mesh.ranks(), "{} ranks for a mesh of {}", world->size(), mesh.ranks());
  // Ranks that differ in their index on one axis only form a group.
  for (Axis a : mesh.axes()) owned_axis_[a.index()] = world->split(rank_ - coord_.at(a) * mesh.stride(a));
  owned_world_ = std::move(world);
  world_ = owned_world_.get();
  for (Axis a : mesh.axes()) axis_[a.index()] = owned_axis_[a.index()].get();
  arena_ = std::make_shared<Arena>(queue_);
}

std::unique_ptr<Context> Context::meta(const Mesh& mesh, int rank) {
  std::unique_ptr<Context> c(new Context(Queue::planned(cpu_device())));
  c->mesh_ = mesh;
  c->meta_ = true;
  c->rank_ = rank;
  c->coord_ = coord_of(mesh, rank);
  c->owned_world_ = make_meta_group(rank, mesh.ranks());
  c->world_ = c->owned_world_.get();
  for (Axis a : mesh.axes()) {
    c->owned_axis_[a.index()] = make_meta_group(c->coord_.at(a), mesh.size(a));
    c->axis_[a.index()] = c->owned_axis_[a.index()].get();
  }
  c->arena_ = std::make_shared<Arena>(c->queue_);
  c->keep_ledger();
  return c;
}

std::unique_ptr<Context> Context::mp_submesh(Context& parent) {
  std::unique_ptr<Context> c(new Context(parent.queue_));
  c->mesh_ = Mesh(1, parent.mesh_.mp());
  c->rank_ = parent.coord_.mp();
  c->coord_ = coord_of(c->mesh_, c->rank_);
  c->meta_ = parent.meta_;
  auto& alone = c->owned_axis_[Axis::dp.index()] = parent.meta_ ? make_meta_group(0, 1) : make_self_group();
  c->axis_[Axis::mp.index()] = c->world_ = &parent.group(Axis::mp);
  c->axis_[Axis::dp.index()] = alone.get();
  c->arena_ = parent.arena_;
  c->ledger_ = parent.ledger_;
  c->flops_ = parent.flops_;
  c->constants_ = parent.constants_;
  c->profile_ = parent.profile_;
  c->recording = parent.recording;
  c->compute_dtype = parent.compute_dtype;
  c->random = parent.random;
  return c;
}

Ledger& Context::keep_ledger() {
  ledger_ = std::make_shared<Ledger>();
  return *ledger_;
}

void Context::start_profile() {
  profile_ = std::make_shared<Profile>();
  const auto watch = [this](Group& group, const char* axis) {
    group.on_call([p = profile_, axis](Collective kind, i64 bytes, const CallTimes& t) {
      const bool known = has_current();
      ProfileEvent e{.kind = ProfileEvent::Kind::collective,
                     .name = name_of(kind),
                     .phase = known ? current().phase : "",
                     .scope = known ? current().scope : "",
                     .axis = axis,
                     .begin = p->at(t.wait_began),
                     .end = p->at(t.wait_ended),
                     .bytes = bytes};
      p->add(e);
      e.kind = ProfileEvent::Kind::transfer;
      e.begin = p->at(t.started);
      e.end = p->at(t.completed);
      p->add(e);
    });
  };
  queue_->watch([p = profile_](const char* kernel, Profile::Clock::time_point begin) {
    p->add({.kind = ProfileEvent::Kind::kernel, .name = kernel, .begin = p->at(begin), .end = p->now()});
  });
  watch(*world_, "all");
  for (Axis a : mesh_.axes()) watch(*axis_[a.index()], mesh_.name(a));
}

double Context::seconds_waiting() {
  double sum = world().seconds_waiting();
  for (Axis a : mesh_.axes()) sum += axis_[a.index()]->seconds_waiting();
  return sum;
}

std::shared_ptr<Profile> Context::end_profile() {
  queue_->wait();
  queue_->watch(nullptr);
  world_->on_call(nullptr);
  for (Axis a : mesh_.axes()) axis_[a.index()]->on_call(nullptr);
  return std::move(profile_);
}

Context::~Context() { queue_->settle(); }  // submitted collectives use the groups

u64 Context::key(std::string_view site) const {
  const u64 key = mix(mix(mix(random.seed) ^ static_cast<u64>(random.step)) ^
                      mix(hash_text(random_scope.text())) ^ (hash_text(site) * 0x9e3779b97f4a7c15ull));
  if (key_uses && (recording || captures) && !key_uses->keys.insert(key).second && key_uses->repeated.empty())
    key_uses->repeated = random_scope.text().empty() ? fmt::format("'{}'", site)
                                                     : fmt::format("'{}' in '{}'", site, random_scope.text());
  return key;
}

Context& Context::current() {
  REDCO_CHECK(g_current, "this thread has no current Context");
  return *g_current;
}
bool Context::has_current() { return g_current != nullptr; }

Context::Use::Use(Context& c) : before_(g_current) { g_current = &c; }
Context::Use::~Use() { g_current = before_; }

bool CollectiveLog::take(const Tensor& of, Tensor* result) {
  if (!replay) return outer && outer->take(of, result);
  REDCO_CHECK(
      !results.empty() && results.front().shape() == of.shape() && results.front().dtype() == of.dtype(),
      "a repeated computation runs other collectives than the first run: now on {}", describe(of));
  *result = std::move(results.front());
  results.pop_front();
  return true;
}

void CollectiveLog::keep(const Tensor& result) {
  if (!replay) results.push_back(result.detached());
}

}  // namespace redco
