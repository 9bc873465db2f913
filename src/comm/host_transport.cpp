#include "comm/host_transport.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

namespace {

bool is_one_way(const Label& l) { return l.call == 0; }
bool same_call(const Label& a, const Label& b) {
  return a.what == b.what && a.call == b.call && a.sizes == b.sizes;
}

// Numbers of groups: every member computes the same one without a message.
u64 number_of_split(u64 group, u64 split, i32 color) {
  u64 h = group;
  for (const u64 x : {split, static_cast<u64>(color)}) {
    h = (h + x + 1) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    h ^= h >> 32;
  }
  return h;
}

class HostTransport final : public Transport {
 public:
  HostTransport(std::shared_ptr<HostLink> link, int rank, std::vector<int> world_ranks,
                std::vector<std::string> names, std::unique_ptr<Transport> others, u64 group)
      : link_(std::move(link)),
        rank_(rank),
        world_ranks_(std::move(world_ranks)),
        names_(std::move(names)),
        others_(std::move(others)),
        group_(group),
        box_(link_->open(group)) {
    for (const int r : world_ranks_) places_.push_back(link_->rank_of(r));
  }
  ~HostTransport() override { link_->close(box_); }
  HostTransport(const HostTransport&) = delete;

  // Empty messages are not sent.
  void post(Exchange& x) override {
    x.left = 0;
    for (Message& m : x.receives)
      if (m.bytes > 0 && is_here(m)) link_->receive(box_, x, m, places_[m.peer]);
    post_to_others(x);
    link_->begin_exchange();
    for (const Message& m : x.sends)
      if (m.bytes > 0 && is_here(m)) link_->send(box_, x, m, places_[m.peer]);
  }

  bool progress() override {
    link_->progress();
    if (n_outside_ > 0 && others_->progress())
      for (auto& o : outside_)
        if (o->of && o->part.left == 0) {
          end(*o);
          box_.news = true;
        }
    return std::exchange(box_.news, false);
  }

  void done(Exchange& x) override { link_->done(box_, x); }
  void pause(Waiter& waiter, Collective what) override { others_->pause(waiter, what); }

  // A rank whose data is missing has sent something else for the same piece. Of another step of the same call
  // it may have.
  void look() override {
    for (const auto& e : box_.expected) {
      for (const auto& l : box_.letters) {
        const Label& theirs = l.record.label;
        if (l.from == e.from && theirs.piece == e.label.piece && is_one_way(theirs) == is_one_way(e.label) &&
            (theirs.step == e.label.step || !same_call(theirs, e.label)))
          throw_different_calls(e.label, e.message->bytes, names_[e.message->peer], theirs.what, theirs.call,
                                l.record.bytes);
      }
    }
    others_->look();
  }

  void withdraw(Exchange& x) noexcept override {
    link_->withdraw(box_, x);
    for (auto& o : outside_) {
      if (o->of != &x) continue;
      others_->withdraw(o->part);
      o->of = nullptr;
      --n_outside_;
    }
  }

  std::unique_ptr<Transport> split(std::span<const i32> colors) override {
    std::vector<int> world_ranks;
    std::vector<std::string> names;
    int rank = 0;
    for (int r = 0; r < std::ssize(colors); ++r) {
      if (colors[r] != colors[rank_]) continue;
      if (r == rank_) rank = static_cast<int>(names.size());
      world_ranks.push_back(world_ranks_[r]);
      names.push_back(names_[r]);
    }
    const u64 group = number_of_split(group_, splits_++, colors[rank_]);
    return std::make_unique<HostTransport>(link_, rank, std::move(world_ranks), std::move(names),
                                           others_->split(colors), group);
  }

  bool is_process() const override { return others_->is_process(); }

 private:
  // The messages of an exchange to and from other hosts.
  struct Outside {
    Exchange* of = nullptr;  // null: free
    Exchange part;
  };

  bool is_here(const Message& m) const { return places_[m.peer] >= 0; }

  void post_to_others(Exchange& x) {
    const auto outside = [&](const Message& m) { return m.bytes > 0 && !is_here(m); };
    if (std::none_of(x.sends.begin(), x.sends.end(), outside) &&
        std::none_of(x.receives.begin(), x.receives.end(), outside))
      return;
    const auto idle = std::find_if(outside_.begin(), outside_.end(), [](const auto& o) { return !o->of; });
    Outside& o = idle != outside_.end() ? **idle : *outside_.emplace_back(std::make_unique<Outside>());
    o.part.label = x.label;
    o.part.parts = x.parts;
    o.part.sends.clear();
    o.part.receives.clear();
    std::copy_if(x.sends.begin(), x.sends.end(), std::back_inserter(o.part.sends), outside);
    std::copy_if(x.receives.begin(), x.receives.end(), std::back_inserter(o.part.receives), outside);
    o.of = &x;
    ++x.left;
    ++n_outside_;
    others_->post(o.part);
    if (o.part.left == 0) end(o);
  }

  void end(Outside& o) {
    --o.of->left;
    o.of = nullptr;
    --n_outside_;
  }

  std::shared_ptr<HostLink> link_;
  const int rank_;
  std::vector<int> world_ranks_;
  std::vector<std::string> names_;
  std::unique_ptr<Transport> others_;
  const u64 group_;
  HostLink::Inbox& box_;
  std::vector<int> places_;  // of each rank among those of this host; -1: elsewhere
  std::vector<std::unique_ptr<Outside>> outside_;
  int n_outside_ = 0;  // in use
  u64 splits_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_host_transport(std::shared_ptr<HostLink> link, int rank,
                                               std::vector<int> world_ranks, std::vector<std::string> names,
                                               std::unique_ptr<Transport> others, u64 group) {
  return std::make_unique<HostTransport>(std::move(link), rank, std::move(world_ranks), std::move(names),
                                         std::move(others), group);
}

void throw_different_calls(const Label& mine, i64 expected, const std::string& other, Collective theirs,
                           i64 their_call, i64 bytes) {
  throw BugError(fmt::format(
      "this rank is in call {} of its group, {}, and expects {} bytes from {}, which is in call {}, {}, and sent "
      "{} bytes; the ranks do not run the same program",
      mine.call, name_of(mine.what), expected, other, their_call, name_of(theirs), bytes));
}

}  // namespace redco
