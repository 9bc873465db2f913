// Tasks run in order on one thread; errors and results reach the caller.
#include "base/worker.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace redco {
namespace {

TEST(Worker, RunsTasksInOrderOnOneThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  {
    Worker worker;
    for (int i = 0; i < 100; ++i)
      worker.run([&, i] {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
  }  // waits
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  for (const auto& id : threads) EXPECT_EQ(id, threads[0]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(Worker, GivesResultsAndErrors) {
  Worker worker;
  auto fails = worker.run([]() -> int { throw std::runtime_error("no"); });
  auto text = worker.run([owned = std::make_unique<int>(7)] { return *owned; });
  EXPECT_THROW(fails.get(), std::runtime_error);
  EXPECT_EQ(text.get(), 7);
}

// What a task holds ends with the task, though the worker goes on.
TEST(Worker, KeepsNothing) {
  Worker worker;
  auto held = std::make_shared<int>(1);
  worker.run([held] {}).get();
  worker.run([] {}).get();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace redco
