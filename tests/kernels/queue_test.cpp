#include "kernels/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "kernels/cpu/views.h"

namespace redco {
namespace {

// What a DevicePtr points to is out of reach of all code but kernels.
template <class P>
concept Readable = requires(P p) {
  *p;
}
|| requires(P p) { p[0]; }
|| std::is_convertible_v<P, const void*> || std::is_constructible_v<const void*, P> ||
    std::is_constructible_v<P, void*>;
static_assert(Readable<int*> && !Readable<DevicePtr>);

// Floats of the test's own memory, seen as a device's.
class Memory {
 public:
  explicit Memory(std::vector<float> values) : values_(std::move(values)) {}
  View view() {
    View v;
    v.data = kernels::Native::pointer(values_.data());
    v.present = true;
    v.shape = {static_cast<i64>(values_.size())};
    return v;
  }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
};

using kernels::Binary;

TEST(Queue, TheCpusRunsImmediately) {
  const auto q = Queue::immediate(cpu_device());
  Memory x({1, 2}), y({10, 20});
  q->run(q->kernels().axpy, 2, x.view(), y.view());
  EXPECT_EQ(y.values(), (std::vector<float>{12, 24}));
  EXPECT_EQ(q->submitted(), 1);
}

TEST(Queue, APlannedOneRunsNothing) {
  const auto q = Queue::planned(cpu_device());
  Memory x({1, 2}), y({10, 20});
  q->run(q->kernels().axpy, 2, x.view(), y.view());
  float read = 7;
  q->read(y.view().data, &read, sizeof read);
  EXPECT_EQ(y.values(), (std::vector<float>{10, 20}));
  EXPECT_EQ(read, 7);
  EXPECT_EQ(q->submitted(), 1);
  EXPECT_FALSE(q->runs());
}

TEST(Queue, ADelayedOneRunsLateAndInOrder) {
  const auto q = Queue::delayed(cpu_device(), 1, 8);
  Memory x({1}), y({0});
  for (int i = 0; i < 5; ++i) {
    q->run(q->kernels().affine, x.view(), x.view(), 2, 0);  // x = 2, 4, 8, ...
    q->run(q->kernels().binary, Binary::sub, x.view(), y.view(), y.view());
  }
  float read = 0;
  q->read(y.view().data, &read, sizeof read);  // waits: 32 - (16 - (8 - (4 - 2)))
  EXPECT_EQ(read, 22);
  // Up to eight calls stay in the queue until somebody waits.
  std::atomic<int> done = 0;
  for (int i = 0; i < 8; ++i) q->communicate([&](void*) { ++done; }, x.view().data);
  EXPECT_EQ(done, 0);
  q->wait();
  EXPECT_EQ(done, 8);
}

TEST(Queue, ADelayedOneKeepsItsOwnCopiesOfArguments) {
  const auto q = Queue::delayed(cpu_device(), 1);
  Memory x({1, 2, 3});
  {
    View part = x.view().narrowed(0, 1, 1);
    double value = 9;
    q->run(q->kernels().fill, part, value);
    value = -1;
    part.shape = {3};
  }
  q->wait();
  EXPECT_EQ(x.values(), (std::vector<float>{1, 9, 3}));
  Memory y({1, 2}), z({3});
  {
    Views from = {y.view(), z.view()}, to = {x.view().narrowed(0, 0, 2), x.view().narrowed(0, 2, 1)};
    q->run(q->kernels().average, 1, from, to);
    from.clear();
    to[0].shape = {0};
  }
  q->wait();
  EXPECT_EQ(x.values(), (std::vector<float>{1, 2, 3}));
}

TEST(Queue, ListsOfAnotherTypeAreRejected) {
  const auto q = Queue::immediate(cpu_device());
  Memory x({1}), y({2});
  View other = x.view();
  other.dtype = DType::i32;
  EXPECT_THROW(q->run(q->kernels().average, 1, {x.view(), other}, {y.view(), y.view()}), BugError);
}

TEST(Queue, AnErrorOfACallIsThrownByTheWait) {
  const auto q = Queue::delayed(cpu_device(), 1);
  Memory x({1});
  q->communicate([](void*) { throw Error(ExitCode::rank_failed, "rank 1 is gone"); }, x.view().data);
  q->run(q->kernels().fill, x.view(), 5);
  try {
    q->wait();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "rank 1 is gone");
  }
  EXPECT_EQ(x.values()[0], 1);  // calls after the failed one don't run
  q->run(q->kernels().fill, x.view(), 6);
  q->wait();
  EXPECT_EQ(x.values()[0], 6);
}

TEST(Queue, UnusedMemoryIsOverwritten) {
  Memory x({1, 2});
  Queue::immediate(cpu_device())->poison(x.view().data, 8);
  EXPECT_EQ(x.values(), (std::vector<float>{1, 2}));
  const auto q = Queue::delayed(cpu_device(), 1);
  q->poison(x.view().data, 8);
  q->wait();
  EXPECT_TRUE(std::isnan(x.values()[0]) && std::isnan(x.values()[1]));
}

TEST(Queue, AMissingKernelIsNamed) {
  Device device = cpu_device();
  device.name = "device x";
  device.kernels.conv2d.run = nullptr;
  const auto q = Queue::immediate(device);
  try {
    q->run(device.kernels.conv2d, {}, {}, {}, {}, {}, {});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("device x has no kernel 'conv2d'"), std::string::npos);
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

TEST(Queue, WatchTellsTheKernelsThatRan) {
  const auto q = Queue::immediate(cpu_device());
  std::vector<std::string> names;
  q->watch([&](const char* name, Queue::Clock::time_point) { names.emplace_back(name); });
  Memory x({1});
  q->run(q->kernels().fill, x.view(), 5);
  q->run(q->kernels().unary, kernels::Unary::square, x.view(), x.view());
  q->watch(nullptr);
  q->run(q->kernels().fill, x.view(), 5);
  EXPECT_EQ(names, (std::vector<std::string>{"fill", "unary"}));
}

TEST(View, NarrowedAndFlatAndReshaped) {
  Memory x({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const View v = x.view().reshaped({2, 3, 2});
  const View part = v.narrowed(1, 1, 2);
  EXPECT_EQ(part.shape, (Shape{2, 2, 2}));
  EXPECT_EQ(part.strides, (Strides{6, 2, 1}));
  EXPECT_EQ(part.data, v.data.plus(2 * 4));
  EXPECT_EQ(part.narrowed(2, 1, 1).data, v.data.plus(3 * 4));
  EXPECT_EQ(v.flat(4, 3).data, v.data.plus(16));
  EXPECT_EQ(v.flat(4, 3).shape, Shape{3});
  EXPECT_EQ(v.leading(), 6);
  EXPECT_EQ(v.leading(2), 2);
  EXPECT_FALSE(DevicePtr().plus(8));
}

}  // namespace
}  // namespace redco
