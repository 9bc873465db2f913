// Collectives of tensors in the queue: started, with work in between, and waited for.
#include "tensor/collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/background.h"
#include "kernels/threads.h"
#include "support/ranks.h"
#include "tensor/transfer.h"

namespace redco {
namespace {

using namespace redco::testing;  // NOLINT: ranks as threads

void fill_with(const Tensor& t, double value) { Context::current().run(&Kernels::fill, t, value); }
void fill_with_at(const Tensor& t, i64 i, double value) {
  Context::current().run(&Kernels::fill, t.view().flat(i, 1), value);
}

// What is submitted before the wait runs on other memory, and what comes after finds the sum.
void start_work_wait(Context& c) {
  const double mine = c.coord().mp() + 1;
  const Tensor x({1000}, DType::f32, {}), y({5000}, DType::f64, {}), other({300}, DType::f32, {}),
      copy({1000}, DType::f32, {});
  fill_with(x, mine);
  fill_with(y, mine * 10);
  Pending a = Collectives(Axis::mp).start_all_reduce(x.view());
  Pending b = Collectives(Axis::mp).start_all_reduce(y.view(), true);
  for (int i = 0; i < 100; ++i) fill_with(other, i);
  b.wait();
  c.run(&Kernels::affine, y, y, 2, 0);
  a.wait();
  EXPECT_FALSE(a);
  c.run(&Kernels::copy, x, copy);
  fill_with(x, 0);
  EXPECT_EQ(host_copy<float>(copy), std::vector<float>(1000, 6));
  EXPECT_EQ(host_copy<double>(y), std::vector<double>(5000, 60));
  EXPECT_EQ(host_copy<float>(other), std::vector<float>(300, 99));
}

TEST(Collectives, CanBeStartedAndWaitedFor) { on_mesh({1, 3}, start_work_wait); }

// The other ranks submit nothing before rank 0 has submitted the wait.
TEST(Collectives, ADelayedQueueDoesNotWait) {
  std::atomic<bool> submitted{false};
  run_threads(3, [&](Group& g) {
    kernels::set_threads(1);
    Context c({1, 3}, g.split(0), Queue::delayed(cpu_device(), 1, 0));
    Context::Use use(c);
    const Tensor x({10}, DType::f32, {});
    fill_with(x, 1);
    while (c.rank() > 0 && !submitted) std::this_thread::yield();
    Pending a = Collectives(Axis::mp).start_all_reduce(x.view());
    a.wait();
    submitted = true;
    if (c.rank() == 0) fill_with(x, 7);
    EXPECT_EQ(host_copy<float>(x), std::vector<float>(10, c.rank() == 0 ? 7 : 3));
    start_work_wait(c);
  });
}

// An all-reduce of two exchanges completes on rank 1 while kernels of rank 0 run: outside of the queue, so
// nothing but the pieces of the kernel polls. Without progress there, all of the kernels run in vain.
TEST(Collectives, CompleteWhileAKernelRuns) {
  for (const int threads : {1, 2}) {
    std::atomic<bool> complete{false};
    constexpr int kKernels = 2000;
    int in_vain = 0;
    run_threads(2, [&](Group& g) {
      kernels::set_threads(g.rank() == 0 ? threads : 1);
      Context c({1, 2}, g.split(0));
      Context::Use use(c);
      const Tensor x({300000}, DType::f32, {}), a({256, 256}, DType::f32, {}), y({256, 256}, DType::f32, {});
      fill_with(x, 1);
      fill_with(a, 1);
      Pending sum = Collectives(Axis::mp).start_all_reduce(x.view());
      if (c.rank() == 1) {
        sum.wait();
        complete = true;
        return;
      }
      EXPECT_NE(background::get().run, nullptr);
      for (; !complete && in_vain < kKernels; ++in_vain)
        cpu_device().kernels.matmul.run(a.view(), false, a.view(), false, y.view());
      sum.wait();
      EXPECT_EQ(background::get().run, nullptr);  // nothing is in flight
      EXPECT_EQ(host_copy<float>(x), std::vector<float>(300000, 2));
    });
    EXPECT_LT(in_vain, kKernels) << threads << " threads";
  }
}

// Parts of two tensors in one call; the same bits as one call each.
TEST(Collectives, ListsOfViewsAreOneCall) {
  on_mesh({1, 2}, [](Context& c) {
    const int me = c.coord().mp();
    const Tensor x({7}, DType::f32, {}), y({12}, DType::f32, {}), mine({me == 0 ? 9 : 10}, DType::f32, {});
    for (int i = 0; i < 7; ++i) fill_with_at(x, i, 100 * me + i);
    for (int i = 0; i < 12; ++i) fill_with_at(y, i, 1000 * me + i);
    const auto part = [](const Tensor& t, i64 first, i64 n) { return t.view().flat(first, n); };
    // Rank 0 sums x[0, 3) and y[0, 6), rank 1 the rest: 4 and 6.
    const std::vector<Views> blocks = {{part(x, 0, 3), part(y, 0, 6)}, {part(x, 3, 4), part(y, 6, 6)}};
    Pending p = Collectives(Axis::mp).start_reduce_scatter(
        blocks, {part(mine, 0, 2), part(mine, 2, me == 0 ? 7 : 8)});
    p.wait();
    std::vector<float> want;
    for (int i = me == 0 ? 0 : 3; i < (me == 0 ? 3 : 7); ++i) want.push_back(static_cast<float>(100 + 2 * i));
    for (int i = me == 0 ? 0 : 6; i < (me == 0 ? 6 : 12); ++i)
      want.push_back(static_cast<float>(1000 + 2 * i));
    EXPECT_EQ(host_copy<float>(mine), want);
    // And back: every rank gets all sums.
    Pending q = Collectives(Axis::mp).start_all_gather({part(mine, 0, me == 0 ? 9 : 10)}, blocks);
    q.wait();
    const std::vector<float> all_x = host_copy<float>(x), all_y = host_copy<float>(y);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(all_x[i], 100 + 2 * i);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(all_y[i], 1000 + 2 * i);
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::reduce_scatter).calls, 1);
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_gather).calls, 1);
  });
}

TEST(Collectives, SendAndReceive) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x({100}, DType::f32, {});
    fill_with(x, c.coord().mp() == 0 ? 3 : 0);
    Pending p = c.coord().mp() == 0 ? Collectives(Axis::mp).start_send(x.view(), 1)
                                    : Collectives(Axis::mp).start_receive(x.view(), 0);
    p.wait();
    EXPECT_EQ(host_copy<float>(x), std::vector<float>(100, 3));
  });
}

TEST(Collectives, APlannedRankCounts) {
  const auto c = Context::meta({1, 4}, 2);
  Context::Use use(*c);
  const Tensor x({100}, DType::f32, {});
  Pending p = Collectives(Axis::mp).start_all_reduce(x.view());
  p.wait();
  Pending q =
      Collectives(Axis::mp).start_all_gather({x.view()}, {{x.view()}, {x.view()}, {x.view()}, {x.view()}});
  q.wait();
  EXPECT_EQ(c->group(Axis::mp).counted(Collective::all_reduce).bytes, 400);
  EXPECT_EQ(c->group(Axis::mp).counted(Collective::all_gather).bytes, 1600);
}

}  // namespace
}  // namespace redco
