#include "train/buddy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/timing.h"
#include "base/words.h"
#include "ckpt/manifest.h"
#include "tensor/context.h"
#include "train/checkpoint_files.h"

namespace redco {

namespace {

constexpr i64 kBuddySlots = 2;
constexpr i64 kBuddyPage = 4096;
constexpr i64 kBuddyTextUnit = i64{64} << 10;  // the TrainState may grow a little without another block
constexpr std::array<char, 8> kBuddyMagic = {'r', 'e', 'd', 'c', 'o', 'b', 'd', '1'};

// The first page of a block.
struct BuddyHeader {
  std::array<char, 8> magic{};
  std::array<char, 32> run{};
  u64 part = 0;
  i64 start = 0, step = 0;
  i64 text = 0, tensors = 0;  // bytes; the tensors begin after the text, at a multiple of kBuddyTextUnit
  u64 contents = 0;           // hash of text and tensors
  u64 own = 0;                // hash of the fields before

  u64 hash() const { return hash64({reinterpret_cast<const char*>(this), offsetof(BuddyHeader, own)}); }
};
static_assert(sizeof(BuddyHeader) <= kBuddyPage);

i64 buddy_tensors_at(i64 text) { return kBuddyPage + ceil_div(text, kBuddyTextUnit) * kBuddyTextUnit; }

// The tensors of a rank's part, with names.
std::vector<std::pair<std::string, Tensor>> buddy_tensors(const CheckpointContents& what) {
  std::vector<std::pair<std::string, Tensor>> out;
  const auto add = [&](const std::string& prefix, const ParamTree& tree) {
    for (std::size_t i = 0; i < tree.size(); ++i)
      if (!tree.specs()[i].frozen) out.emplace_back(prefix + tree.specs()[i].name, tree.values()[i]);
  };
  add("", what.params);
  for (const Optimizer::State& s : what.optimizer) add(s.name + "/", s.tree);
  return out;
}

i64 buddy_bytes_at(const std::vector<std::pair<std::string, Tensor>>& tensors, const Mesh& mesh, int rank) {
  i64 bytes = 0;
  for (const auto& [name, t] : tensors)
    bytes += bytes_of(t.dtype(), numel(local_shape(t.shape(), t.layout(), mesh, coord_of(mesh, rank))));
  return bytes;
}

// The identity of each rank's part: which elements of which tensors.
std::vector<u64> buddy_parts(const CheckpointContents& what, const Mesh& mesh) {
  const auto tensors = buddy_tensors(what);
  std::vector<u64> out;
  for (int r = 0; r < mesh.ranks(); ++r) {
    const Coord at = coord_of(mesh, r);
    Hasher h;
    const auto add = [&](i64 n) { h.update(&n, sizeof n); };
    for (const auto& [name, t] : tensors) {
      add(static_cast<i64>(name.size()));
      h.update(name.data(), name.size());
      add(static_cast<i64>(t.dtype()));
      for (int d = 0; d < t.rank(); ++d) {
        const Range range = local_range(t.shape(), t.layout(), mesh, at, d);
        for (const i64 n : {t.shape()[d], range.begin, range.end}) add(n);
      }
    }
    out.push_back(h.digest64());
  }
  return out;
}

// A part that rank `at` keeps.
struct BuddyPlace {
  int owner = 0, at = 0;
};
// The same on all ranks. host_of: numbered in the order of their first ranks.
std::vector<BuddyPlace> buddy_places(const std::vector<u64>& parts, const std::vector<int>& host_of) {
  const int n = static_cast<int>(parts.size()), n_hosts = *std::ranges::max_element(host_of) + 1;
  std::vector<std::vector<int>> ranks_of(static_cast<std::size_t>(n_hosts));
  for (int r = 0; r < n; ++r) ranks_of[host_of[r]].push_back(r);
  std::vector<BuddyPlace> out;
  std::map<u64, std::vector<int>> keepers;  // the first ranks of the part on different hosts
  std::vector<u64> order;
  for (int r = 0; r < n; ++r) {
    std::vector<int>& has = keepers[parts[r]];
    if (has.empty()) order.push_back(parts[r]);
    if (has.size() < 2 && (has.empty() || host_of[has[0]] != host_of[r])) has.push_back(r);
  }
  for (const u64 part : order) {
    const std::vector<int>& has = keepers[part];
    for (const int r : has) out.push_back({r, r});
    if (has.size() > 1 || n_hosts == 1) continue;
    const int owner = has[0], host = host_of[owner];
    const auto& mine = ranks_of[host];
    const auto& next = ranks_of[(host + 1) % n_hosts];
    const auto place = static_cast<std::size_t>(std::ranges::find(mine, owner) - mine.begin());
    out.push_back({owner, next[place % next.size()]});
  }
  return out;
}

std::string buddy_name(i64 start, i64 slot, u64 part) {
  return fmt::format("start-{}-{}-{}", start, slot, hex64(part));
}

// The header of a block, if it is one and the sizes in it are those of the block.
std::optional<BuddyHeader> header_of(const std::byte* data, i64 bytes) {
  BuddyHeader h;
  if (bytes < kBuddyPage) return std::nullopt;
  std::memcpy(&h, data, sizeof h);
  if (h.magic != kBuddyMagic || h.own != h.hash() || h.text < 0 || h.tensors < 0) return std::nullopt;
  if (h.text > bytes || h.tensors > bytes || buddy_tensors_at(h.text) + h.tensors > bytes)
    return std::nullopt;
  return h;
}

u64 contents_hash(const BuddyHeader& h, const std::byte* data) {
  Hasher hash;
  hash.update(data + kBuddyPage, static_cast<std::size_t>(h.text));
  hash.update(data + buddy_tensors_at(h.text), static_cast<std::size_t>(h.tensors));
  return hash.digest64();
}

}  // namespace

i64 buddy_part_bytes(const CheckpointContents& what, const Mesh& mesh, int rank) {
  return buddy_bytes_at(buddy_tensors(what), mesh, rank);
}

i64 buddy_bytes(const CheckpointContents& what, const Mesh& mesh, int rank, const std::vector<int>& host_of) {
  const auto tensors = buddy_tensors(what);
  i64 bytes = 0;
  for (const BuddyPlace& p : buddy_places(buddy_parts(what, mesh), host_of))
    if (p.at == rank) bytes += buddy_tensors_at(1) + buddy_bytes_at(tensors, mesh, p.owner);
  return kBuddySlots * bytes;
}

// A block that a host has.
struct BuddyCopies::Listed {
  int host = 0;
  u64 part = 0;
  i64 start = 0, step = 0, bytes = 0;
  std::string run, name;
};

BuddyCopies::BuddyCopies(const std::string& job, const std::string& host, CheckpointContents what)
    : key_(kept_key(job, host)), what_(std::move(what)) {
  Context& c = Context::current();
  parts_ = buddy_parts(what_, c.mesh());
  for (const std::string& name : c.world().gather(host)) {
    auto it = std::ranges::find(hosts_, name);
    if (it == hosts_.end()) it = hosts_.insert(hosts_.end(), name);
    host_of_.push_back(static_cast<int>(it - hosts_.begin()));
  }
  for (const BuddyPlace& p : buddy_places(parts_, host_of_)) keeps_.push_back({p.owner, p.at});
}

int BuddyCopies::first_rank_of(int host) const {
  return static_cast<int>(std::ranges::find(host_of_, host) - host_of_.begin());
}
bool BuddyCopies::is_first_of_host() const {
  const int me = Context::current().world().rank();
  return first_rank_of(host_of_[me]) == me;
}

std::vector<BuddyCopies::Listed> BuddyCopies::list_all() {
  std::string mine;
  if (is_first_of_host())
    for (const std::string& name : kept_blocks(key_)) {
      const auto b = KeptBlock::open(key_, name);
      const auto h = b ? header_of(b->data(), b->bytes()) : std::nullopt;
      if (h)
        mine += fmt::format("{} {} {} {} {} {}\n", h->part, h->start, h->step, b->bytes(),
                            std::string(h->run.data(), h->run.size()), name);
    }
  const std::vector<std::string> texts = Context::current().world().gather(mine);
  std::vector<Listed> out;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    std::istringstream lines(texts[r]);
    for (Listed l; lines >> l.part >> l.start >> l.step >> l.bytes >> l.run >> l.name;) {
      l.host = host_of_[r];
      out.push_back(l);
    }
  }
  return out;
}

std::optional<TrainState> BuddyCopies::find(const ckpt::RunIdentity& run, i64 newer_than) {
  Group& world = Context::current().world();
  const std::vector<Listed> all = list_all();
  std::string chosen;  // "START STEP" of the generations that may count, the newest first
  world.on_first([&] {
    std::set<std::pair<i64, i64>, std::greater<>> generations;  // step, start
    for (const Listed& l : all)
      if (l.step > newer_than && run.holds({.id = l.run, .start = l.start}, l.step))
        generations.emplace(l.step, l.start);
    for (const auto& [step, start] : generations) {
      std::set<u64> there;
      for (const Listed& l : all)
        if (l.step == step && l.start == start && l.run == run.id) there.insert(l.part);
      const std::set<u64> needed(parts_.begin(), parts_.end());
      if (std::ranges::includes(there, needed)) {
        chosen += fmt::format("{} {}\n", start, step);
      } else {
        info(
            "[fault] the buddy checkpoint of step {} does not have all parts for dp {} x mp {} on these hosts",
            step, Context::current().mesh().dp(), Context::current().mesh().mp());
      }
    }
  });
  std::istringstream generations(world.agree(chosen));
  for (i64 start, step; generations >> start >> step;) {
    const auto text = take(start, step, all);
    if (!text) continue;
    restored_start_ = start;
    restored_step_ = step;
    return parse_state(*text, fmt::format("buddy checkpoint of step {}", step));
  }
  return std::nullopt;
}

// Gets this rank's part into found_ or received_. Returns the TrainState; nullopt on all ranks: a checksum
// differs on one.
std::optional<std::string> BuddyCopies::take(i64 start, i64 step, const std::vector<Listed>& all) {
  Group& world = Context::current().world();
  const int me = world.rank();
  found_.reset();
  received_ = ckpt::Pages(0);
  std::map<std::string, KeptBlock> sent;
  // In the order of the ranks, so that no two wait for each other.
  for (int r = 0; r < world.size(); ++r) {
    const Listed* from = nullptr;
    for (const Listed& l : all)
      if (l.part == parts_[r] && l.start == start && l.step == step && (!from || l.host == host_of_[r]))
        from = &l;
    REDCO_CHECK(from, "a complete generation lacks the part of rank {}", r);
    const int sender = first_rank_of(from->host);
    if (from->host == host_of_[r]) {
      if (me == r) found_ = KeptBlock::open(key_, from->name);
      continue;
    }
    if (me == sender) {
      auto b = KeptBlock::open(key_, from->name);
      if (!b || b->bytes() != from->bytes) throw BugError("a kept block has gone: " + from->name);
      world.send(b->data(), from->bytes, r);
    } else if (me == r) {
      received_ = ckpt::Pages(from->bytes);
      world.receive(received_.data(), from->bytes, sender);
    }
  }
  const std::byte* const data = found_ ? found_->data() : received_.data();
  const i64 bytes = found_ ? found_->bytes() : received_.bytes();
  const auto h = header_of(data, bytes);
  const bool good = h && h->part == parts_[me] && h->start == start && h->step == step &&
                    h->tensors == buddy_part_bytes(what_, Context::current().mesh(), me) &&
                    contents_hash(*h, data) == h->contents;
  if (world.any(!good)) {
    world.on_first(
        [&] { warn("[fault] the buddy checkpoint of step {} is not whole; it does not count", step); });
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(data) + kBuddyPage, static_cast<std::size_t>(h->text));
}

void BuddyCopies::load() {
  const std::byte* const data = found_ ? found_->data() : received_.data();
  const auto h = header_of(data, found_ ? found_->bytes() : received_.bytes());
  REDCO_CHECK(h, "load() without a found generation");
  const std::byte* from = data + buddy_tensors_at(h->text);
  for (const auto& [name, t] : buddy_tensors(what_)) {
    Context::current().queue().write(from, t.view().data, t.local_bytes());
    from += t.local_bytes();
  }
  found_.reset();
  received_ = ckpt::Pages(0);
}

// Removes the blocks of former starts, except those of the generation that this start began with.
void BuddyCopies::remove_old() const {
  if (!is_first_of_host()) return;
  for (const std::string& name : kept_blocks(key_)) {
    if (name.starts_with(fmt::format("start-{}-", start_))) continue;
    const auto b = KeptBlock::open(key_, name);
    const auto h = b ? header_of(b->data(), b->bytes()) : std::nullopt;
    if (!h || h->start != restored_start_ || h->step != restored_step_) remove_kept_block(key_, name);
  }
}

KeptBlock& BuddyCopies::block(i64 slot, const Keeps& k) {
  const std::string name = buddy_name(start_, slot, parts_[k.owner]);
  const i64 bytes = buddy_tensors_at(1) + buddy_part_bytes(what_, Context::current().mesh(), k.owner);
  const auto it = blocks_.find(name);
  return it != blocks_.end() ? it->second
                             : blocks_.emplace(name, KeptBlock::make(key_, name, bytes)).first->second;
}

bool BuddyCopies::open(const ckpt::RunIdentity& run, double keeper_seconds) {
  Group& world = Context::current().world();
  run_ = world.agree(run.id);
  start_ = world.agree(run.start);
  const double began = seconds();
  while (is_first_of_host() && !is_kept(key_) && seconds() - began < keeper_seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::vector<std::string> kept = world.gather(is_first_of_host() && !is_kept(key_) ? "no" : "");
  for (std::size_t r = 0; r < kept.size(); ++r) {
    if (kept[r].empty()) continue;
    world.on_first([&] {
      warn("[fault] host {}: no process keeps its memory, so this start makes no buddy checkpoints",
           hosts_[host_of_[r]]);
    });
    return false;
  }
  remove_old();
  world.barrier();
  // The second slot gets the room of the generation that this start began with, after the first save.
  const i64 slots = restored_start_ > 0 ? 1 : kBuddySlots;
  world.together([&] {
    for (i64 slot = 0; slot < slots; ++slot)
      for (const Keeps& k : keeps_)
        if (k.at == world.rank()) block(slot, k);
  });
  return true;
}

void BuddyCopies::save(const TrainState& state) {
  Group& world = Context::current().world();
  const int me = world.rank();
  finish();
  if (generation_ == 1 && restored_start_ > 0) {  // the first generation of this start is complete
    world.barrier();
    restored_start_ = 0;
    remove_old();
    world.barrier();
  }
  const std::string text = world.agree(to_json(state));
  const i64 slot = generation_++ % kBuddySlots, begin = buddy_tensors_at(static_cast<i64>(text.size()));
  const auto bytes_of_block = [&](int owner) {
    return begin + buddy_part_bytes(what_, Context::current().mesh(), owner);
  };
  world.together([&] {
    for (const Keeps& k : keeps_) {
      if (k.at != me) continue;
      if (KeptBlock& b = block(slot, k); b.bytes() < bytes_of_block(k.owner))
        b = KeptBlock::make(key_, buddy_name(start_, slot, parts_[k.owner]), bytes_of_block(k.owner));
      std::memset(block(slot, k).data(), 0, sizeof(BuddyHeader));  // does not count until it is whole
    }
  });
  for (const Keeps& k : keeps_) {
    if (k.owner != me || k.at != me) continue;
    std::byte* const data = block(slot, k).data();
    BuddyHeader h{.magic = kBuddyMagic,
                  .part = parts_[me],
                  .start = start_,
                  .step = state.step,
                  .text = static_cast<i64>(text.size())};
    run_.copy(h.run.data(), h.run.size());
    std::memcpy(data + kBuddyPage, text.data(), text.size());
    std::byte* to = data + begin;
    for (const auto& [name, t] : buddy_tensors(what_)) {
      Context::current().queue().read(t.view().data, to, t.local_bytes());
      to += t.local_bytes();
    }
    h.tensors = to - (data + begin);
    h.contents = contents_hash(h, data);
    h.own = h.hash();
    std::memcpy(data, &h, sizeof h);
  }
  for (const Keeps& k : keeps_) {
    if (k.owner == k.at) continue;
    const i64 bytes = bytes_of_block(k.owner);
    if (me == k.owner) on_their_way_.push_back(world.start_send(block(slot, {me, me}).data(), bytes, k.at));
    if (me == k.at) on_their_way_.push_back(world.start_receive(block(slot, k).data(), bytes, k.owner));
  }
}

void BuddyCopies::finish() {
  for (Started& s : on_their_way_) s.wait();
  on_their_way_.clear();
}

}  // namespace redco
