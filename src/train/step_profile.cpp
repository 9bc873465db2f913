#include "train/step_profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/tolerate.h"
#include "base/words.h"
#include "tensor/context.h"
#include "tensor/profile.h"
#include "workdir/workdir_names.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kNanosecond = 1e-9;

// What one rank tells about its steps: the lists of summary.json, each entry with its times.
Json of_rank(const Profile& p, i64 duration) {
  struct Sum {
    i64 calls = 0, ns = 0, flops = 0, bytes = 0, transfer = 0;
  };
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // name, axis, phase, scope
  std::map<std::string, i64> phases;
  std::map<Key, Sum> ops, collectives, kernels;
  const std::vector<i64> self = p.self_times();
  i64 rest = duration;
  for (std::size_t i = 0; i < self.size(); ++i) {
    const ProfileEvent& e = p.events()[i];
    if (e.kind == ProfileEvent::Kind::phase) {
      phases[e.name] += e.end - e.begin;
      rest -= e.end - e.begin;
      continue;
    }
    if (e.kind == ProfileEvent::Kind::transfer) {
      collectives[{e.name, e.axis, e.phase, ""}].transfer += e.end - e.begin;
      continue;
    }
    Sum& s = e.kind == ProfileEvent::Kind::op       ? ops[{e.name, "", e.phase, e.scope}]
             : e.kind == ProfileEvent::Kind::kernel ? kernels[{e.name, "", "", ""}]
                                                    : collectives[{e.name, e.axis, e.phase, ""}];
    ++s.calls;
    s.ns += self[i];
    s.flops += e.flops;
    s.bytes += e.bytes;
  }
  phases["other"] += std::max<i64>(0, rest);
  Json j = {{"ns", duration}, {"memory_peak", p.memory_peak()}};
  for (const auto& [name, ns] : phases) j["phases"].push_back({{"name", name}, {"ns", ns}});
  j["ops"] = j["collectives"] = j["kernels"] = Json::array();
  for (const auto& [key, s] : kernels)
    j["kernels"].push_back({{"name", std::get<0>(key)}, {"calls", s.calls}, {"ns", s.ns}});
  for (const auto& [key, s] : ops) {
    const auto& [name, axis, phase, scope] = key;
    j["ops"].push_back({{"name", name},
                        {"phase", phase},
                        {"scope", scope},
                        {"calls", s.calls},
                        {"ns", s.ns},
                        {"flops", s.flops}});
  }
  for (const auto& [key, s] : collectives) {
    const auto& [name, axis, phase, scope] = key;
    j["collectives"].push_back({{"name", name},
                                {"axis", axis},
                                {"phase", phase},
                                {"calls", s.calls},
                                {"bytes", s.bytes},
                                {"transfer_ns", s.transfer},
                                {"ns", s.ns}});
  }
  return j;
}

// One list over all ranks, longest first. The other values of an entry are those of the first rank that has
// it.
Json merged(const std::vector<Json>& ranks, const char* list, bool longest) {
  struct Entry {
    Json values;
    double sum = 0, most = 0, transfer = 0;
  };
  std::map<std::string, Entry> entries;
  for (const Json& r : ranks)
    for (const Json& of : r.at(list)) {
      std::string key;
      for (const char* name : {"name", "axis", "phase", "scope"}) key += of.value(name, "") + "\n";
      Entry& e = entries[key];
      if (e.values.is_null()) e.values = of;
      const double seconds = of.at("ns").get<double>() * kNanosecond;
      e.sum += seconds;
      e.most = std::max(e.most, seconds);
      e.transfer += of.value("transfer_ns", 0.0) * kNanosecond;
    }
  std::vector<Entry> sorted;
  for (auto& [key, e] : entries) sorted.push_back(std::move(e));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry& a, const Entry& b) { return a.sum > b.sum; });
  Json out = Json::array();
  for (Entry& e : sorted) {
    e.values.erase("ns");
    e.values["seconds"] = e.sum / static_cast<double>(ranks.size());
    if (longest) e.values["longest"] = e.most;
    if (e.values.erase("transfer_ns") > 0)
      e.values["transfer"] = e.transfer / static_cast<double>(ranks.size());
    out.push_back(std::move(e.values));
  }
  return out;
}

Json summary(const std::vector<Json>& ranks, i64 first, i64 n) {
  double seconds = 0;
  i64 peak = 0;
  for (const Json& r : ranks) {
    seconds += r.at("ns").get<double>() * kNanosecond / static_cast<double>(ranks.size());
    peak = std::max(peak, r.at("memory_peak").get<i64>());
  }
  return {{"first_step", first},
          {"n_steps", n},
          {"n_ranks", ranks.size()},
          {"seconds", seconds},
          {"phases", merged(ranks, "phases", true)},
          {"ops", merged(ranks, "ops", false)},
          {"kernels", merged(ranks, "kernels", false)},
          {"collectives", merged(ranks, "collectives", true)},
          {"memory_peak", peak}};
}

}  // namespace

StepProfile::StepProfile(const ProfileSettings& settings, const std::string& workdir, i64 done, i64 total)
    : settings_(settings), workdir_(workdir) {
  if (!settings.start || Context::current().rank() != 0 || done >= total) return;
  if (*settings.start > total)
    warn("[train] train.profile.start={} is after the last step {}: no profile is made", *settings.start,
         total);
  if (*settings.start <= done)
    warn("[train] train.profile.start={} is before the next step {}: no profile is made", *settings.start,
         done + 1);
}

void StepProfile::begin(i64 step) {
  if (settings_.start != step) return;
  Context::current().start_profile();
  on_ = true;
}

void StepProfile::end(i64 step, bool last) {
  if (on_ && (last || step == *settings_.start + settings_.steps - 1)) write(step);
}

void StepProfile::write(i64 step) {
  on_ = false;
  Context& c = Context::current();
  const auto profile = c.end_profile();
  const i64 duration = profile->now(), first = *settings_.start, n = step - first + 1;
  const std::string folder = join_path(workdir_, workdir::kProfile);
  const std::vector<std::string> texts = c.world().gather(of_rank(*profile, duration).dump());
  tolerate("[train] the profile was not saved", [&] {
    make_dirs(folder);
    write_file_durable(join_path(workdir_, workdir::profile_of_rank(c.rank())),
                       profile->chrome_trace(c.rank()));
  });
  if (c.rank() != 0) return;
  std::vector<Json> ranks;
  for (const std::string& t : texts) ranks.push_back(Json::parse(t));
  const Json all = summary(ranks, first, n);
  tolerate("[train] the profile was not saved",
           [&] { write_file_durable(join_path(workdir_, workdir::kProfileSummary), all.dump(1) + "\n"); });
  std::vector<std::string> shares;
  for (const Json& p : all["phases"])
    shares.push_back(fmt::format("{} {:.0f} %", p["name"].get<std::string>(),
                                 100 * p["seconds"].get<double>() / all["seconds"].get<double>()));
  info("[train] profile of {}, {} each: {}; traces in {}",
       n == 1 ? fmt::format("step {}", first) : fmt::format("steps {} to {}", first, step),
       human_duration(all["seconds"].get<double>() / static_cast<double>(n)), fmt::join(shares, ", "),
       folder);
}

}  // namespace redco
