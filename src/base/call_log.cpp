#include "base/call_log.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace redco::call_log {

namespace {

using Clock = std::chrono::steady_clock;

// Atomics, because the watchdog reads an entry while the main thread may write it.
struct Entry {
  std::atomic<const char*> what{""};
  std::atomic<i64> number{0}, ranks{0}, bytes{0};
  std::atomic<double> at{0};
  std::atomic<bool> ended{false};
};
std::array<Entry, kMost> g_entries;
std::atomic<u64> g_calls{0};
const Clock::time_point g_begin = Clock::now();

std::mutex g_mutex;
std::string g_path, g_rank;  // guarded by g_mutex

}  // namespace

u64 add(const char* what, i64 number, i64 ranks, i64 bytes) noexcept {
  const u64 n = g_calls.load(std::memory_order_relaxed);
  Entry& e = g_entries[n % kMost];
  e.what.store(what, std::memory_order_relaxed);
  e.number.store(number, std::memory_order_relaxed);
  e.ranks.store(ranks, std::memory_order_relaxed);
  e.bytes.store(bytes, std::memory_order_relaxed);
  e.at.store(std::chrono::duration<double>(Clock::now() - g_begin).count(), std::memory_order_relaxed);
  e.ended.store(false, std::memory_order_relaxed);
  g_calls.store(n + 1, std::memory_order_release);
  return n;
}

void end(u64 call) noexcept {
  if (g_calls.load(std::memory_order_relaxed) - call <= kMost)
    g_entries[call % kMost].ended.store(true, std::memory_order_relaxed);
}

std::vector<Call> last() {
  const u64 n = g_calls.load(std::memory_order_acquire);
  std::vector<Call> out;
  for (u64 i = n < kMost ? 0 : n - kMost; i < n; ++i) {
    const Entry& e = g_entries[i % kMost];
    out.push_back({e.what.load(std::memory_order_relaxed), e.number.load(std::memory_order_relaxed),
                   e.ranks.load(std::memory_order_relaxed), e.bytes.load(std::memory_order_relaxed),
                   e.at.load(std::memory_order_relaxed), e.ended.load(std::memory_order_relaxed)});
  }
  return out;
}

void save_to(const std::string& path, const std::string& rank) {
  const std::lock_guard lock(g_mutex);
  g_path = path;
  g_rank = rank;
}

void save() noexcept {
  try {
    const std::lock_guard lock(g_mutex);
    if (g_path.empty()) return;
    const double now = std::chrono::duration<double>(Clock::now() - g_begin).count();
    const std::vector<Call> calls = last();
    if (calls.empty()) return;
    std::string text =
        fmt::format("{}: its last {} calls that communicate, oldest first; the times are before its end\n",
                    g_rank, calls.size());
    for (const Call& c : calls)
      text += fmt::format("{:>12.3f} s  call {} of a group of {} ranks: {}, {} bytes{}\n", c.at - now,
                          c.number, c.ranks, c.what, c.bytes, c.ended ? "" : ", not complete");
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(g_path).parent_path(), ignored);
    std::ofstream(g_path, std::ios::binary | std::ios::trunc) << text;
  } catch (...) {  // NOLINT: the process ends anyway
  }
}

}  // namespace redco::call_log
