// The conformance suite under mpirun: every rank runs all cases over MPI and then on threads, and compares
// the bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <map>
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

// Which ranks share a host changes no bits.
TEST(MpiConformance, SameBitsOnAnyPlacement) {
  const auto run = [](Group& g) { return conformance::run_all(g) ^ conformance::in_flight(g, 14); };
  const u64 want = run(*world);
  for (const std::vector<int>& hosts : conformance::placements(world->size())) {
    SCOPED_TRACE(conformance::name_of(hosts));
    auto placed = make_mpi_world([&](int r) { return hosts[r]; });
    EXPECT_EQ(run(*placed), want);
  }
}

// Several pieces, of different numbers of elements on different placements.
TEST(MpiConformance, LargeSumsOnAnyPlacement) {
  const i64 n = 2000003;
  std::vector<i64> counts(static_cast<std::size_t>(world->size()), n / world->size());
  for (const std::vector<int>& hosts : conformance::placements(world->size())) {
    SCOPED_TRACE(conformance::name_of(hosts));
    auto placed = make_mpi_world([&](int r) { return hosts[r]; });
    conformance::all_reduce<float>(*placed, n);
    conformance::reduce_scatter<float>(*placed, counts, true);
    conformance::all_gather<float>(*placed, counts, false);
    conformance::broadcast(*placed, n, world->size() - 1);
  }
}

TEST(MpiConformance, OneMessageForEachPairOfHosts) {
  const int p = world->size();
  for (const int n_hosts : {1, 2, p}) {
    SCOPED_TRACE(n_hosts);
    auto placed = make_mpi_world([&](int r) { return r / (p / n_hosts); });
    conformance::expect_one_message_for_each_pair_of_hosts(*placed, n_hosts);
  }
}

// A rank whose limit of file sizes leaves no room for a segment: all ranks of its host use messages.
TEST(MpiConformance, RanksThatCannotShareMemoryUseMessages) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  if (world->rank() == world->size() - 1) setrlimit(RLIMIT_FSIZE, &low);
  ::testing::internal::CaptureStderr();
  auto other = make_mpi_world();
  const std::string log = ::testing::internal::GetCapturedStderr();
  setrlimit(RLIMIT_FSIZE, &before);
  if (world->rank() == 0)
    EXPECT_THAT(log, ContainsRegex(fmt::format(
                         "the ranks on the host of rank 0 exchange messages through MPI, not through shared "
                         "memory: rank {}: the limit of file sizes is 1048576 bytes",
                         world->size() - 1)));
  else
    EXPECT_EQ(log, "");
  EXPECT_EQ(conformance::all_reduce<float>(*other, 100003), conformance::all_reduce<float>(*world, 100003));
}

// No privilege to look into another process: rank 0 lets nobody open its memory.
TEST(MpiConformance, AClosedProcUsesMessages) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct all[2], fewer[2];
  ASSERT_EQ(syscall(SYS_capget, &header, all), 0);
  std::copy(all, all + 2, fewer);
  for (auto& c : fewer) c.effective = 0;
  syscall(SYS_capset, &header, fewer);
  prctl(PR_SET_DUMPABLE, world->rank() != 0);
  ::testing::internal::CaptureStderr();
  auto other = make_mpi_world();
  const std::string log = ::testing::internal::GetCapturedStderr();
  prctl(PR_SET_DUMPABLE, 1);
  syscall(SYS_capset, &header, all);
  if (world->rank() == 0)
    EXPECT_THAT(log, ContainsRegex(
                         "through MPI, not through shared memory: rank [0-9]+: /proc/.*: Permission denied"));
  EXPECT_EQ(conformance::all_reduce<float>(*other, 100003), conformance::all_reduce<float>(*world, 100003));
}

// Messages that nobody receives yet fill the pool; others still pass them.
TEST(MpiConformance, WaitingMessagesBlockNoOthers) {
  const int p = world->size(), next = (world->rank() + 1) % p, before = (world->rank() + p - 1) % p;
  std::vector<std::vector<float>> out, in;
  std::vector<Started> calls;
  for (int i = 0; i < 24; ++i) {
    const i64 n = i % 3 ? 400000 : i % 2 ? 900 : 1200000;
    out.push_back(conformance::values<float>(world->rank() + 100 * i, n));
    in.emplace_back(out.back().size());
  }
  for (const auto& x : out) calls.push_back(world->start_send(x.data(), std::ssize(x) * 4, next));
  for (const i64 n : {10, 20000, 700000}) conformance::all_reduce<float>(*world, n);
  for (auto& x : in) calls.push_back(world->start_receive(x.data(), std::ssize(x) * 4, before));
  for (auto& c : calls) c.wait();
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(in[i], conformance::values<float>(before + 100 * i, std::ssize(in[i]))) << i;
}

// More short messages than a ring has room for.
TEST(MpiConformance, ManyShortMessagesKeepTheirOrder) {
  const int p = world->size(), next = (world->rank() + 1) % p, before = (world->rank() + p - 1) % p;
  std::vector<std::vector<i32>> out, in;
  std::vector<Started> calls;
  for (int i = 0; i < 3000; ++i) {
    out.emplace_back(1 + i % 700, i);
    in.emplace_back(out.back().size(), -1);
  }
  for (const auto& x : out) calls.push_back(world->start_send(x.data(), std::ssize(x) * 4, next));
  for (auto& x : in) calls.push_back(world->start_receive(x.data(), std::ssize(x) * 4, before));
  for (auto& c : calls) c.wait();
  EXPECT_EQ(in, out);
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

// Ranks of different hosts: every rank is in a call with one that is in another.
TEST(MpiConformance, DifferentCallsOnHostsAreABug) {
  if (world->size() % 4 != 0) return;
  auto placed = make_mpi_world([](int r) { return r / 2 % 2; });
  auto g = placed->split(placed->rank() / 4);
  std::vector<float> data(100000, 1);
  const std::vector<i64> counts(4, 25000);
  g->all_reduce(data.data(), 100000);
  const std::string message = message_of([&] {
    if (g->rank() < 2)
      g->all_reduce(data.data(), 100000);
    else
      g->all_gather(data.data() + 25000 * g->rank(), data.data(), counts);
  });
  EXPECT_THAT(message,
              ContainsRegex(g->rank() < 2 ? "call 2 of its group, all_reduce, and expects [0-9]+ bytes "
                                            "from rank [0-9] .*, which is in call 2, all_gather"
                                          : "call 2 of its group, all_gather, and expects [0-9]+ bytes "
                                            "from rank [0-9] .*, which is in call 2, all_reduce"));
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
