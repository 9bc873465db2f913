// A rank of a planned group. The public functions count and return before any call of the backend.
#include "base/error.h"
#include "comm/group.h"

namespace redco {

namespace {

class MetaGroup final : public Group {
 public:
  MetaGroup(int rank, int size) : Group(rank, size, true) {}

  std::unique_ptr<Group> split(int) override {
    REDCO_CHECK(false, "a meta group does not know the other ranks' colors; use split_by");
    return nullptr;
  }
  std::unique_ptr<Group> split_by(const std::function<int(int rank)>& color_of) override {
    const int mine = color_of(rank());
    int new_rank = 0, new_size = 0;
    for (int r = 0; r < size(); r++) {
      if (color_of(r) != mine) continue;
      if (r < rank()) new_rank++;
      new_size++;
    }
    return make_meta_group(new_rank, new_size);
  }

 private:
  void do_all_to_all(Collective, std::span<const Send>, std::span<const Recv>) override {}
  void do_broadcast(void*, i64, int) override {}
  void do_barrier() override {}
};

}  // namespace

std::unique_ptr<Group> make_meta_group(int rank, int size) {
  REDCO_CHECK(size >= 1 && rank >= 0 && rank < size, "rank {} of {} planned ranks", rank, size);
  return std::make_unique<MetaGroup>(rank, size);
}

}  // namespace redco
