// Groups without communication (comm/group.h): of one rank, and of a planned rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/comm_conformance.h"

namespace redco {
namespace {

TEST(SelfGroup, IsTheIdentityAndCountsNothing) {
  auto g = make_self_group();
  EXPECT_EQ(g->rank(), 0);
  EXPECT_EQ(g->size(), 1);
  for (const auto& c : conformance::cases(1)) {
    SCOPED_TRACE(c.name);
    c.run(*g);
  }
  g->reset_counts();
  float x = 2;
  g->all_reduce(&x, 1);
  g->barrier();
  EXPECT_EQ(g->agree(4), 4);
  EXPECT_EQ(x, 2);
  for (int c = 0; c < 6; c++) EXPECT_EQ(g->counted(static_cast<Collective>(c)).calls, 0);
}

TEST(SelfGroup, OnFirstThrowsTheExceptionItself) {
  auto g = make_self_group();
  EXPECT_THROW(g->on_first([] { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(MetaGroup, CountsWithoutTouchingMemory) {
  auto g = make_meta_group(1, 4);
  EXPECT_TRUE(g->is_meta());
  EXPECT_EQ(g->rank(), 1);
  const std::vector<i64> counts{3, 2, 2, 2};
  g->all_reduce<float>(nullptr, 100);
  g->all_reduce_max<double>(nullptr, 1);
  g->all_gather<float>(nullptr, nullptr, counts);
  g->reduce_scatter<double>(nullptr, nullptr, counts);
  g->all_to_all<i32>(nullptr, counts, nullptr, counts);
  g->broadcast_bytes(nullptr, 64);
  g->barrier();
  EXPECT_EQ(g->counted(Collective::all_reduce).calls, 2);
  EXPECT_EQ(g->counted(Collective::all_reduce).bytes, 408);
  EXPECT_EQ(g->counted(Collective::all_gather).bytes, 36);
  EXPECT_EQ(g->counted(Collective::reduce_scatter).bytes, 72);
  EXPECT_EQ(g->counted(Collective::all_to_all).bytes, 36);
  EXPECT_EQ(g->counted(Collective::broadcast).bytes, 64);
  EXPECT_EQ(g->counted(Collective::barrier).calls, 1);
  EXPECT_EQ(g->agree(9), 9);
  EXPECT_EQ(g->agree(std::string("mine")), "mine");
  bool ran = false;
  g->on_first([&] { ran = true; });
  EXPECT_FALSE(ran);
  g->together([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(MetaGroup, CountsLikeARealGroup) {
  const auto act = [](Group& g) {
    std::vector<float> x(9);
    std::vector<i64> counts(static_cast<std::size_t>(g.size()), 1);
    g.all_reduce(x.data(), 9);
    g.all_reduce(x.data(), 0);
    g.all_gather(x.data() + g.rank(), x.data(), counts);
    g.on_first([] {});
    g.together([] {});
    g.agree(std::string("four"));
    g.agree(1);
    g.barrier();
  };
  auto meta = make_meta_group(0, 3);
  act(*meta);
  run_threads(3, [&](Group& g) {
    act(g);
    for (int c = 0; c < 6; c++) {
      EXPECT_EQ(g.counted(static_cast<Collective>(c)).calls, meta->counted(static_cast<Collective>(c)).calls)
          << c;
      EXPECT_EQ(g.counted(static_cast<Collective>(c)).bytes, meta->counted(static_cast<Collective>(c)).bytes)
          << c;
    }
  });
}

TEST(MetaGroup, SplitsByKnownColors) {
  auto g = make_meta_group(5, 6);
  auto row = g->split_by([](int r) { return r / 2; });
  EXPECT_EQ(row->rank(), 1);
  EXPECT_EQ(row->size(), 2);
  EXPECT_TRUE(row->is_meta());
  EXPECT_THROW(g->split(0), BugError);
  EXPECT_THROW(make_meta_group(2, 2), BugError);
}

// A shell in a step of one task (`srun --pty bash`) has PMIX_RANK, but it is not an MPI rank.
TEST(LaunchedUnderMpi, AStepOfOneTaskIsNotARank) {
  ASSERT_FALSE(launched_under_mpi());
  setenv("PMIX_RANK", "0", 1);
  EXPECT_TRUE(launched_under_mpi());
  setenv("SLURM_STEP_ID", "0", 1);
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  EXPECT_TRUE(launched_under_mpi());
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_FALSE(launched_under_mpi());
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);  // set by mpirun in that step
  EXPECT_TRUE(launched_under_mpi());
  for (const char* name : {"PMIX_RANK", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"})
    unsetenv(name);
}

}  // namespace
}  // namespace redco
