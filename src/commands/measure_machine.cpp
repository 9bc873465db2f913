#include "commands/measure_machine.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/words.h"
#include "kernels/isa.h"
#include "kernels/threads.h"
#include "launch/topology.h"
#include "plan/measure.h"

namespace redco {

CoreLayout parse_layout(const std::string& text) {
  const std::size_t x = text.find('x');
  const auto number = [&](std::size_t begin, std::size_t end) {
    int n = 0;
    const auto r = std::from_chars(text.data() + begin, text.data() + end, n);
    return r.ec == std::errc() && r.ptr == text.data() + end && n >= 1 && n <= 4096 ? n : 0;
  };
  if (x != std::string::npos)
    if (const CoreLayout l{number(0, x), number(x + 1, text.size())}; l.ranks > 0 && l.threads > 0) return l;
  throw UsageError("[env] --layout '{}': expected RANKSxTHREADS of a host, e.g. 2x1", excerpt(text));
}

std::vector<CoreLayout> usual_layouts(int cores) {
  std::vector<CoreLayout> out = {{1, cores}};
  if (cores > 1) out.insert(out.end(), {{cores, 1}, {1, 1}});
  return out;
}

SpeedKey speed_key(const CoreLayout& layout) {
  return {.cpu = this_machine().cpu,
          .isa = kernels::name_of(kernels::isa()),
          .blas = kernels::blas_core(),
          .ranks = layout.ranks,
          .threads = layout.threads};
}

int measure_machine(const MeasureRequest& m, const std::vector<std::string>& program) {
  RunRequest request;
  request.program = program;
  request.job = [&] {
    JobConfig job;
    job.parallel.n_ranks = m.layout.ranks * std::max<i64>(1, static_cast<i64>(m.hosts.size()));
    job.parallel.threads_per_rank = m.layout.threads;
    for (const std::string& host : m.hosts)
      job.parallel.hosts.push_back(fmt::format("{}:{}", host, m.layout.ranks));
    job.fault.timeout = 0;  // no step ends meanwhile
    return job;
  };
  return run(std::move(request), [&](Run& run) {
    MeasureOptions o;
    if (m.quick) o = {.seconds_each = 0.0001, .batches = 1, .most_bytes = i64{16} << 20, .largest = 0.125};
    MachineSpeeds speeds = measure_speeds(run.context(), speed_key(m.layout), o);
    if (m.quick) speeds.origin += ", roughly";
    run.context().world().on_first([&] { store_speeds(speeds); });
    return 0;
  });
}

std::string speeds_text(const MachineSpeeds& s) {
  std::string t = fmt::format("{} x {}: ", counted(s.key.ranks, "rank"), counted(s.key.threads, "thread"));
  const auto at = [&](const char* kind, double unit) {
    const auto it = s.kernels.find(kind);
    if (it == s.kernels.end()) return std::string("?");
    std::vector<double> largest;
    for (const auto& axis : it->second.axes) largest.push_back(axis.back());
    return human_count(unit / it->second(largest));
  };
  t += fmt::format("{}FLOP/s in products of fp32, ", at("linear f32", 1));
  if (s.kernels.contains("linear bf16")) t += fmt::format("{}FLOP/s of bf16, ", at("linear bf16", 1));
  std::vector<double> one;
  if (const auto it = s.kernels.find("few_rows f32"); it != s.kernels.end()) {
    for (const auto& axis : it->second.axes) one.push_back(axis.back());
    one.front() = 1;
    t += fmt::format("{}B/s of weights read", human_count(1 / it->second(one)));
  }
  const auto sums = [&](const auto& tables, const char* what) {
    const std::array small = {8.0}, large = {1e9};
    if (const auto it = tables.find("all_reduce"); it != tables.end())
      t += fmt::format("; {} {:.1f} us, {}B/s", what, 8e6 * it->second(small),
                       human_count(1 / it->second(large)));
  };
  sums(s.collectives, "all-reduce");
  sums(s.network, "all-reduce between hosts");
  return t + " a rank";
}

}  // namespace redco
