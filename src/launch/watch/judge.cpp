#include "launch/watch/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace redco {

namespace {

using State = RankReport::State;
constexpr std::size_t kMostNamed = 8;

std::string place(std::span<const RankReport> ranks, int rank) {
  const std::string& host = ranks[rank].host;
  return fmt::format("rank {}{}", rank, host.empty() ? "" : " on " + host);
}

std::string doing(const RankReport& r) {
  return fmt::format("phase: {}{}", r.phase, r.step >= 0 ? fmt::format(", step {}", r.step) : "");
}

// "rank 1 on a (phase: load), rank 2 on b (phase: train, step 7)"
std::string list(std::span<const RankReport> ranks, const std::vector<int>& which,
                 const std::function<std::string(const RankReport&)>& detail) {
  std::string text;
  for (std::size_t i = 0; i < std::min(which.size(), kMostNamed); ++i) {
    const std::string more = detail(ranks[which[i]]);
    text +=
        fmt::format("{}{}{}", i ? ", " : "", place(ranks, which[i]), more.empty() ? "" : " (" + more + ")");
  }
  if (which.size() > kMostNamed) text += fmt::format(" and {} more ranks", which.size() - kMostNamed);
  return text;
}

}  // namespace

std::optional<std::string> judge(std::span<const RankReport> ranks, double timeout, double started) {
  const auto all = [&](const std::function<bool(const RankReport&)>& is) {
    std::vector<int> which;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (is(ranks[r])) which.push_back(static_cast<int>(r));
    return which;
  };
  const auto reports = [](const RankReport& r) {
    return r.state == State::working || r.state == State::waiting || r.state == State::idle;
  };
  if (timeout > 0) {
    if (const auto lost = all([&](const RankReport& r) { return reports(r) && r.heard > timeout; });
        !lost.empty())
      return fmt::format(
          "[fault] no message for {:g} s from {}: the process is stopped, or its host or network is down; "
          "all ranks end. The job resumes from its last checkpoint; fault.timeout sets the limit",
          timeout, list(ranks, lost, doing));
    const double start = std::max(timeout, kStartSeconds);
    if (const auto absent =
            all([&](const RankReport& r) { return r.state == State::absent && started > start; });
        !absent.empty())
      return fmt::format(
          "[fault] no report within {:g} s after the start from {}: the process was not started, is stopped, "
          "or cannot connect to the launcher; all ranks end. Check the host and its firewall, or raise "
          "fault.timeout",
          start, list(ranks, absent, [](const RankReport&) { return std::string(); }));
    if (const auto stuck =
            all([&](const RankReport& r) { return r.state == State::working && r.still > timeout; });
        !stuck.empty())
      return fmt::format(
          "[fault] no progress for {:g} s on {}: the process hangs, or waits for a disk or a network; all "
          "ranks end. The job resumes from its last checkpoint; raise fault.timeout if this work needs more "
          "time",
          timeout, list(ranks, stuck, doing));
  }
  if (const auto gone =
          all([&](const RankReport& r) { return r.state == State::closed && r.heard > kGoneSeconds; });
      !gone.empty())
    return fmt::format("[fault] the process of {} is gone; all ranks end", list(ranks, gone, doing));
  if (timeout > 0) {
    const auto waiting = all([](const RankReport& r) { return r.state == State::waiting; });
    const auto others = all([&](const RankReport& r) {
      return r.state != State::ended && (r.state != State::waiting || r.still <= timeout);
    });
    if (!waiting.empty() && others.empty())
      return fmt::format(
          "[fault] all ranks have waited for each other for {:g} s: {}; all ranks end. Either the ranks run "
          "different programs, or the network between their hosts is broken",
          timeout, list(ranks, waiting, [](const RankReport& r) {
            return fmt::format("in {}, its wait number {}, {}", r.waits_for, r.waits, doing(r));
          }));
  }
  return std::nullopt;
}

}  // namespace redco
