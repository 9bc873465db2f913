#include "launch/watch/judge.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace redco {

namespace {

using State = RankReport::State;
using Kind = Outcome::Kind;

Outcome about(Kind kind, std::span<const RankReport> ranks, const std::vector<int>& which, double seconds) {
  Outcome o;
  o.kind = kind;
  o.seconds = seconds;
  o.code = code_of(kind);
  for (const int r : which) {
    const RankReport& report = ranks[r];
    const bool waits = report.state == State::waiting;
    o.places.push_back(
        {r, report.host, report.phase, report.step, waits ? report.waits_for : "", report.waits});
    if (kind == Kind::silent || kind == Kind::absent)
      if (!report.host.empty() && std::find(o.hosts.begin(), o.hosts.end(), report.host) == o.hosts.end())
        o.hosts.push_back(report.host);
  }
  return o;
}

}  // namespace

std::optional<Outcome> judge(std::span<const RankReport> ranks, double timeout, double started) {
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
      return about(Kind::silent, ranks, lost, timeout);
    const double start = std::max(timeout, kStartSeconds);
    if (const auto absent =
            all([&](const RankReport& r) { return r.state == State::absent && started > start; });
        !absent.empty())
      return about(Kind::absent, ranks, absent, start);
    if (const auto stuck =
            all([&](const RankReport& r) { return r.state == State::working && r.still > timeout; });
        !stuck.empty())
      return about(Kind::stuck, ranks, stuck, timeout);
  }
  if (const auto gone =
          all([&](const RankReport& r) { return r.state == State::closed && r.heard > kGoneSeconds; });
      !gone.empty())
    return about(Kind::gone, ranks, gone, kGoneSeconds);
  if (timeout > 0) {
    const auto waiting = all([](const RankReport& r) { return r.state == State::waiting; });
    const auto others = all([&](const RankReport& r) {
      return r.state != State::ended && (r.state != State::waiting || r.still <= timeout);
    });
    if (!waiting.empty() && others.empty()) return about(Kind::deadlock, ranks, waiting, timeout);
  }
  return std::nullopt;
}

}  // namespace redco
