// The conformance suite under mpirun: every rank runs all cases over MPI and then on threads, and compares
// the bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/call_log.h"
#include "support/comm_conformance.h"
#include "support/in_flight.h"

namespace redco {
namespace {

Group* world = nullptr;

using ::testing::ContainsRegex;

// "" if f throws nothing.
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BugError& e) {
    return e.what();
  }
  return "";
}

class MpiConformance : public ::testing::TestWithParam<int> {};

TEST(MpiConformance, SameBitsAsThreads) {
  for (const auto& c : conformance::cases(world->size())) {
    SCOPED_TRACE(c.name);
    const u64 mine = c.run(*world);
    u64 threads = 0;
    run_threads(world->size(), [&](Group& g) {
      const u64 h = c.run(g);
      if (g.rank() == world->rank()) threads = h;
    });
    EXPECT_EQ(mine, threads);
  }
}

TEST(MpiConformance, ManyCallsInFlightGiveTheSameBitsAsThreads) {
  for (const u64 seed : {11, 12, 13}) {
    SCOPED_TRACE(seed);
    const u64 mine = conformance::in_flight(*world, seed);
    u64 threads = 0;
    run_threads(world->size(), [&](Group& g) {
      const u64 h = conformance::in_flight(g, seed);
      if (g.rank() == world->rank()) threads = h;
    });
    EXPECT_EQ(mine, threads);
  }
}

TEST(MpiConformance, SecondWorldIsIndependent) {
  auto other = make_mpi_world();
  EXPECT_EQ(other->rank(), world->rank());
  EXPECT_EQ(other->agree(world->rank() + 1), 1);
}

TEST(MpiConformance, ThisLaunchIsRecognizedWithoutAMismatch) {
  EXPECT_TRUE(launched_under_mpi());
  EXPECT_EQ(mpi_mismatch(), "");
  EXPECT_NE(mpi_version().find("Open MPI"), std::string::npos);
}

TEST(MpiConformance, DifferentSizesAreABug) {
  auto g = world->split(0);
  std::vector<i64> send(static_cast<std::size_t>(g->size()), 0), recv = send;
  std::vector<float> out(4), in(4);
  // Rank 0 sends one element, but rank 1 expects two.
  if (g->rank() == 0) send[1] = 1;
  if (g->rank() == 1) recv[0] = 2;
  const auto exchange = [&] { g->all_to_all<float>(out.data(), send, in.data(), recv); };
  if (g->rank() == 1)
    EXPECT_THAT(message_of(exchange),
                ContainsRegex("all_to_all, and expects 8 bytes from rank 0 \\(.*\\), which is in "
                              "call 1, all_to_all, and sent 4 bytes"));
  else
    EXPECT_EQ(message_of(exchange), "");
}

// Each names the call of the other.
TEST(MpiConformance, DifferentCallsAreABug) {
  auto g = world->split(world->rank() / 2);
  if (g->size() < 2) return world->barrier();
  g->barrier();
  std::vector<float> data(1000, 1);
  const std::vector<i64> counts = {500, 500};
  const std::string message = message_of([&] {
    if (g->rank() == 0)
      g->all_reduce(data.data(), 1000);
    else
      g->all_gather(data.data(), data.data(), counts);
  });
  EXPECT_THAT(message, ContainsRegex("call 2 of its group, all_(reduce|gather), and expects"));
  EXPECT_THAT(message, ContainsRegex(g->rank() == 0 ? "in call 2, all_gather, and sent 2000 bytes"
                                                    : "in call 2, all_reduce, and sent 4000 bytes"));
  world->barrier();
}

// The second call of each differs; the first one is not affected.
TEST(MpiConformance, DifferentCallsInFlightAreABug) {
  auto g = world->split(world->rank() / 2);
  if (g->size() < 2) return world->barrier();
  std::vector<float> first(100000, 1), second(100000, 1);
  const std::vector<i64> counts = {50000, 50000};
  const std::string message = message_of([&] {
    Started a = g->start_all_reduce(first.data(), 100000);
    Started b = g->rank() == 0 ? g->start_all_reduce(second.data(), 100000)
                               : g->start_reduce_scatter(second.data(), second.data() + 50000, counts);
    a.wait();
    b.wait();
  });
  EXPECT_THAT(message, ContainsRegex("call 2 of its group, (all_reduce|reduce_scatter), and expects"));
  EXPECT_THAT(message,
              ContainsRegex(g->rank() == 0 ? "which is in call 2, reduce_scatter, and sent 200000 bytes"
                                           : "which is in call 2, all_reduce, and sent 200000 bytes"));
  EXPECT_EQ(first[99999], 2);
  // The group can't be used any more.
  EXPECT_EQ(message_of([&] { g->barrier(); }), message);
  world->barrier();
}

// The log of calls tells which are complete.
TEST(MpiConformance, TheLogKnowsTheCallsInFlight) {
  std::vector<float> x(10, 1);
  Started a = world->start_all_reduce(x.data(), 10);
  call_log::Call last = call_log::last().back();
  EXPECT_STREQ(last.what, "all_reduce");
  EXPECT_EQ(last.bytes, 40);
  EXPECT_EQ(last.ranks, world->size());
  a.wait();
  last = call_log::last().back();
  EXPECT_TRUE(last.ended);
}

}  // namespace
}  // namespace redco

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto world = redco::make_mpi_world();
  redco::world = world.get();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world->rank() != 0) {
    // Ranks other than 0 report only failures, on stderr.
    class Failures : public ::testing::EmptyTestEventListener {
      void OnTestPartResult(const ::testing::TestPartResult& r) override {
        if (r.failed())
          fmt::print(stderr, "rank {}: {}:{}: {}\n", redco::world->rank(),
                     r.file_name() ? r.file_name() : "?", r.line_number(), r.message());
      }
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures);
  }
  int failed = RUN_ALL_TESTS();
  world->all_reduce_max(&failed, 1);
  world.reset();
  redco::mpi_finalize();
  return failed;
}
