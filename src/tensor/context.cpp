#include "tensor/context.h"

#include "base/error.h"
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

Context::Context(const Mesh& mesh, std::unique_ptr<Group> world) : mesh_(mesh) {
  REDCO_CHECK(world->size() == mesh.ranks(), "{} ranks for a mesh of {} x {}", world->size(), mesh.dp,
              mesh.mp);
  coord_ = coord_of(mesh, world->rank());
  owned_axis_[0] = world->split(coord_.dp);  // mp: same dp index
  owned_axis_[1] = world->split(coord_.mp);
  owned_world_ = std::move(world);
  world_ = owned_world_.get();
  for (int a = 0; a < 2; ++a) axis_[a] = owned_axis_[a].get();
  arena_ = std::make_shared<Arena>(true);
  ledger_ = std::make_shared<Ledger>();
}

std::unique_ptr<Context> Context::meta(const Mesh& mesh, int rank) {
  std::unique_ptr<Context> c(new Context());
  c->mesh_ = mesh;
  c->meta_ = true;
  c->coord_ = coord_of(mesh, rank);
  c->owned_world_ = make_meta_group(rank, mesh.ranks());
  c->owned_axis_[0] = make_meta_group(c->coord_.mp, mesh.mp);
  c->owned_axis_[1] = make_meta_group(c->coord_.dp, mesh.dp);
  c->world_ = c->owned_world_.get();
  for (int a = 0; a < 2; ++a) c->axis_[a] = c->owned_axis_[a].get();
  c->arena_ = std::make_shared<Arena>(false);
  c->ledger_ = std::make_shared<Ledger>();
  return c;
}

std::unique_ptr<Context> Context::mp_submesh(Context& parent) {
  std::unique_ptr<Context> c(new Context());
  c->mesh_ = {1, parent.mesh_.mp};
  c->coord_ = {0, parent.coord_.mp};
  c->meta_ = parent.meta_;
  c->owned_axis_[1] = parent.meta_ ? make_meta_group(0, 1) : make_self_group();
  c->axis_ = {parent.axis_[0], c->owned_axis_[1].get()};
  c->world_ = parent.axis_[0];
  c->arena_ = parent.arena_;
  c->ledger_ = parent.ledger_;
  c->recording = parent.recording;
  c->compute_dtype = parent.compute_dtype;
  c->random = parent.random;
  return c;
}

Context::~Context() = default;

u64 Context::key(std::string_view site) const {
  return mix(mix(mix(random.seed) ^ static_cast<u64>(random.step)) ^ mix(hash_text(random_scope)) ^
             (hash_text(site) * 0x9e3779b97f4a7c15ull));
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

Scope::Scope(const char* name) : before_(Context::current().scope()) { Context::current().set_scope(name); }
Scope::~Scope() { Context::current().set_scope(std::move(before_)); }

}  // namespace redco
