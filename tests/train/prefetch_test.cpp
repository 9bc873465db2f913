// Reading ahead: the same examples and errors for any number of threads.
#include "train/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "kernels/threads.h"
#include "support/error_text.h"

namespace redco {
namespace {

// Numbers as examples; counts the reads.
class CountedReads : public Dataset {
 public:
  explicit CountedReads(Reading reading) : reading_(reading) {}
  i64 size() const override { return 100; }
  i64 length(i64 i) const override { return i % 7 + 1; }
  Example get(i64 i) const override {
    if (i == 66 || i == 67) throw ContentsError("example {} is damaged", i);
    elsewhere += std::this_thread::get_id() != home_;
    ++reads;
    return {.ordinal = i, .ids = {{"x", {static_cast<i32>(i)}}}};
  }
  std::string fingerprint() const override { return ""; }
  Reading reading() const override { return reading_; }
  mutable std::atomic<int> reads = 0, elsewhere = 0;

 private:
  Reading reading_;
  std::thread::id home_ = std::this_thread::get_id();
};

// Examples that are ready only when `n` threads read at the same time.
class Together : public CountedReads {
 public:
  explicit Together(int n) : CountedReads(Reading::threads), n_(n) {}
  Example get(i64 i) const override {
    std::unique_lock lock(mutex_);
    ++inside_;
    most = std::max(most, inside_);
    arrived_.notify_all();
    arrived_.wait_for(lock, std::chrono::seconds(20), [&] { return most >= n_; });
    --inside_;
    return {.ordinal = i};
  }
  mutable int most = 0;

 private:
  int n_;
  mutable int inside_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
};

StepRequest request(i64 step) { return {{{step, step + 1, step + 2}, {1, 3}}, {{step + 3}, {0, 0}}}; }

TEST(Prefetcher, ReadsTheNextStepDuringTheCurrentOne) {
  struct Case {
    Reading reading;
    std::optional<i64> n_workers;
    bool ahead;
  };
  for (const auto& [reading, n_workers, ahead] :
       {Case{Reading::threads, {}, true}, Case{Reading::threads, 3, true}, Case{Reading::costly, 2, true},
        Case{Reading::costly, 0, false}, Case{Reading::rank_only, 2, false}}) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(reading) << " " << n_workers.value_or(-1));
    const auto data = std::make_shared<CountedReads>(reading);
    {
      Prefetcher p(n_workers);
      for (i64 step = 0; step < 60; step += 4) {
        const auto got = p.take(data, request(step), step + 4 < 60 ? request(step + 4) : StepRequest{});
        ASSERT_EQ(got.size(), 2u);
        EXPECT_EQ(got[0].shape.rows, 3);
        EXPECT_EQ(got[0].shape.length,
                  std::max({data->length(step), data->length(step + 1), data->length(step + 2)}));
        ASSERT_EQ(got[0].mine.size(), 2u);
        EXPECT_EQ(got[0].mine[0].ordinal, step + 1);
        EXPECT_EQ(got[0].mine[1].ordinal, step + 2);
        EXPECT_TRUE(got[1].mine.empty());
      }
      EXPECT_EQ(p.taken_ahead(), ahead ? 14 : 0);
    }
    EXPECT_EQ(data->reads, 30);  // each once
    // One reader reads the first step, which nobody announced, on the caller's thread.
    EXPECT_EQ(data->elsewhere, !ahead ? 0 : n_workers ? 30 : 28);
    // A step other than the announced one is read on demand.
    Prefetcher p(n_workers);
    p.take(data, request(0), request(4));
    EXPECT_EQ(p.take(data, request(20), {})[0].mine[0].ordinal, 21);
    // take() of that step throws the reader's first exception, not an earlier call.
    EXPECT_EQ(p.take(data, request(0), request(65)).size(), 2u);
    EXPECT_EQ(error_text<ContentsError>([&] { p.take(data, request(65), {}); }), "example 66 is damaged");
    EXPECT_EQ(p.take(data, request(0), request(65)).size(), 2u);  // never taken, so not thrown
  }
}

TEST(Prefetcher, ExamplesAreInOrderForAnyNumberOfThreads) {
  const CountedReads data(Reading::costly);
  StepRequest step;
  for (i64 m = 0; m < 6; ++m) {
    MicroBatchRequest& r = step.emplace_back();
    for (i64 k = 0; k < m; ++k) r.numbers.push_back((13 * m + 7 * k) % 60);
    r.mine = {m / 3, m};
  }
  for (const int threads : {0, 1, 2, 7, 50}) {
    const auto got = read_examples(data, step, threads);
    ASSERT_EQ(got.size(), step.size());
    for (std::size_t m = 0; m < step.size(); ++m) {
      ASSERT_EQ(static_cast<i64>(got[m].mine.size()), step[m].mine.size());
      for (std::size_t k = 0; k < got[m].mine.size(); ++k)
        EXPECT_EQ(got[m].mine[k].ordinal, step[m].numbers[static_cast<std::size_t>(step[m].mine.begin) + k]);
    }
  }
  EXPECT_TRUE(read_examples(data, {{{1, 2}, {1, 1}}}, 3)[0].mine.empty());  // no row of this replica
}

TEST(Prefetcher, AsManyThreadsReadAsTheJobSays) {
  const auto data = std::make_shared<Together>(3);
  StepRequest step = {{{}, {0, 24}}};
  for (i64 i = 0; i < 24; ++i) step[0].numbers.push_back(i);
  Prefetcher p(3);
  p.take(data, step, {});
  EXPECT_EQ(data->most, 3);
}

TEST(Prefetcher, ImagesHaveSeveralReadersByDefault) {
  const int threads = kernels::threads();
  for (const int of_rank : {1, 3, 8}) {
    kernels::set_threads(of_rank);
    EXPECT_EQ(n_readers(Reading::costly, {}), std::min(of_rank, 4));
    EXPECT_EQ(n_readers(Reading::threads, {}), 1);
    EXPECT_EQ(n_readers(Reading::rank_only, {}), 0);
    EXPECT_EQ(n_readers(Reading::costly, 7), 7);
    EXPECT_EQ(n_readers(Reading::rank_only, 7), 0);
  }
  kernels::set_threads(threads);
}

}  // namespace
}  // namespace redco
