#include "tensor/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tensor/context.h"

namespace redco {

std::vector<i64> Profile::self_times() const {
  std::vector<std::size_t> order(events_.size()), open;
  std::iota(order.begin(), order.end(), std::size_t{0});
  // An event that contains others begins before them, or ends after them.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ProfileEvent &x = events_[a], &y = events_[b];
    return std::tuple(x.begin, -x.end, x.kind) < std::tuple(y.begin, -y.end, y.kind);
  });
  std::vector<i64> out(events_.size());
  for (std::size_t i : order) {
    const ProfileEvent& e = events_[i];
    out[i] = e.end - e.begin;
    if (e.kind == ProfileEvent::Kind::kernel || e.kind == ProfileEvent::Kind::transfer) continue;
    while (!open.empty() && events_[open.back()].end <= e.begin) open.pop_back();
    if (!open.empty()) out[open.back()] -= e.end - e.begin;
    open.push_back(i);
  }
  return out;
}

i64 Profile::memory_peak() const {
  i64 most = 0;
  for (const Sample& s : memory_) most = std::max(most, s.bytes);
  return most;
}

std::string Profile::chrome_trace(int rank) const {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"displayTimeUnit":"ms","traceEvents":[)");
  fmt::format_to(to, R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"rank {0}"}}}})", rank);
  // Phases, ops, waits for collectives, and kernels have a line each, in this order. Transfers overlap, so
  // the viewer finds lines for them.
  constexpr const char* kLines[] = {"phases", "ops", "collectives", "kernels"};
  for (int line = 0; line < 4; ++line)
    fmt::format_to(to,
                   ",\n"
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                   rank, line, kLines[line]);
  i64 id = 0;
  for (const ProfileEvent& e : events_) {
    if (e.kind == ProfileEvent::Kind::transfer) {
      const std::string name = fmt::format("{} {}", e.name, e.axis);
      ++id;
      for (const bool begin : {true, false})
        fmt::format_to(to,
                       ",\n"
                       R"({{"ph":"{}","cat":"transfer","id":{},"pid":{},"tid":0,"name":"{}","ts":{:.3f},)"
                       R"("args":{{"bytes":{}}}}})",
                       begin ? 'b' : 'e', id, rank, name, static_cast<double>(begin ? e.begin : e.end) / 1e3,
                       e.bytes);
      continue;
    }
    fmt::format_to(to,
                   ",\n"
                   R"({{"ph":"X","pid":{},"tid":{},"name":"{}","ts":{:.3f},"dur":{:.3f},"args":{{)",
                   rank, static_cast<int>(e.kind), e.name, static_cast<double>(e.begin) / 1e3,
                   static_cast<double>(e.end - e.begin) / 1e3);
    if (e.kind == ProfileEvent::Kind::op)
      fmt::format_to(to, R"("phase":"{}","scope":"{}","flops":{},"bytes":{})", e.phase, e.scope, e.flops,
                     e.bytes);
    if (e.kind == ProfileEvent::Kind::collective)
      fmt::format_to(to, R"("phase":"{}","scope":"{}","axis":"{}","bytes":{})", e.phase, e.scope, e.axis,
                     e.bytes);
    fmt::format_to(to, "}}}}");
  }
  for (const Sample& s : memory_)
    fmt::format_to(to,
                   ",\n"
                   R"({{"ph":"C","pid":{},"name":"tensors","ts":{:.3f},"args":{{"MB":{:.3f}}}}})",
                   rank, static_cast<double>(s.at) / 1e3, static_cast<double>(s.bytes) / 1e6);
  fmt::format_to(to, "\n]}}\n");
  return fmt::to_string(out);
}

ProfilePhase::ProfilePhase(const char* name) : name_(name) {
  if (const Profile* p = Context::current().profile()) begin_ = p->now();
}
ProfilePhase::~ProfilePhase() {
  Profile* const p = Context::current().profile();
  if (p && begin_ > 0)
    p->add({.kind = ProfileEvent::Kind::phase, .name = name_, .begin = begin_, .end = p->now()});
}

}  // namespace redco
