#include "plan/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/words.h"

namespace redco {

namespace {

std::string size_text(i64 bytes) {
  return bytes < 0 ? "-" + human_bytes(static_cast<u64>(-bytes)) : human_bytes(static_cast<u64>(bytes));
}

std::string setting_text(const PlanSetting& s) {
  std::string t = fmt::format("dp {} x mp {}, micro-batch {} per replica, recompute {}", s.mesh.dp(),
                              s.mesh.mp(), s.per_device, s.recompute ? "block" : "none");
  if (s.sharding != StateSharding::none) t += fmt::format(", {}", name_of(s.sharding));
  return t;
}

std::string candidate_text(const PlanCandidate& c) {
  return fmt::format("{}: {} of {} per rank", setting_text(c.setting), size_text(c.memory.total()),
                     size_text(c.limit));
}

nlohmann::ordered_json setting_json(const PlanSetting& s) {
  return {{"dp", s.mesh.dp()},
          {"mp", s.mesh.mp()},
          {"global_batch_size", s.global_batch},
          {"per_device_batch_size", s.per_device},
          {"recompute", s.recompute ? "block" : "none"},
          {"sharded_state", name_of(s.sharding)}};
}

nlohmann::ordered_json memory_json(const RankMemory& m) {
  return {{"parameters", m.parameters},
          {"gradients", m.gradients},
          {"optimizer", m.optimizer},
          {"activations", m.activations},
          {"rollouts", m.rollouts},
          {"buffers", m.buffers},
          {"checkpoint", m.checkpoint},
          {"buddy", m.buddy},
          {"base", m.base},
          {"total", m.total()}};
}

nlohmann::ordered_json candidate_json(const std::optional<PlanCandidate>& c) {
  if (!c) return nullptr;
  auto j = setting_json(c->setting);
  j["total"] = c->memory.total();
  j["limit"] = c->limit;
  j["fits"] = c->fits();
  j["crossing_bytes"] = c->crossing_bytes;
  return j;
}

// The parts of a predicted time, with their names.
std::vector<std::pair<const char*, double>> parts_of(const PredictedTime& t) {
  return {{"products", t.products},
          {"attention", t.attention},
          {"optimizer", t.optimizer},
          {"elementwise", t.elementwise},
          {"ops", t.ops},
          {"collectives", t.collectives}};
}

std::string time_text(const PlanReport& r) {
  if (!r.time) return r.speeds.empty() ? "" : fmt::format("time of a step: unknown. {}\n", r.speeds);
  std::string t = fmt::format("\npredicted time of a step: {}, {} {}/s ({})\n", human_duration(r.time->total),
                              human_count(r.tokens_per_s()), r.length > 1 ? "tokens" : "rows", r.speeds);
  for (const auto& [name, seconds] : parts_of(*r.time))
    if (seconds > 0)
      t += fmt::format("  {:<21}{:>10}  {}\n", name, human_duration(seconds),
                       human_percent(seconds / r.time->total));
  if (r.time->overlapped > 0)
    t += fmt::format("  behind computation: {} of transfers between hosts\n",
                     human_duration(r.time->overlapped));
  return t;
}

nlohmann::ordered_json time_json(const PlanReport& r) {
  if (!r.time) return nullptr;
  nlohmann::ordered_json j = {
      {"step_s", r.time->total}, {"tokens_per_s", r.tokens_per_s()}, {"speeds", r.speeds}};
  for (const auto& [name, seconds] : parts_of(*r.time)) j[std::string(name) + "_s"] = seconds;
  j["overlapped_s"] = r.time->overlapped;
  j["calls"] = nlohmann::ordered_json::array();
  for (const CallTime& c : r.time->calls)
    j["calls"].push_back({{"kind", c.kind}, {"count", c.count}, {"seconds", c.seconds}});
  return j;
}

}  // namespace

std::string to_text(const PlanReport& r) {
  const PlanSetting& s = r.setting;
  std::string t =
      fmt::format("{}: {} parameters{}{}\n", r.title, human_count(static_cast<double>(r.n_parameters)),
                  r.n_trained < r.n_parameters
                      ? fmt::format(" ({} trained)", human_count(static_cast<double>(r.n_trained)))
                      : "",
                  r.length > 1 ? fmt::format(", {} tokens per row", r.length) : "");
  t += fmt::format("mesh: {} = dp {} x mp {}, on {}\n", counted(s.mesh.ranks(), "rank"), s.mesh.dp(),
                   s.mesh.mp(), r.machines);
  t += fmt::format("step: {}, {} per replica and micro-batch ({}), {}, recompute {}{}\n",
                   counted(s.global_batch, "row"), s.per_device, r.why_batch,
                   counted(r.accumulation, "micro-batch"), s.recompute ? "block" : "none",
                   s.sharding == StateSharding::none ? "" : fmt::format(", {}", name_of(s.sharding)));
  if (!r.learning_rate.empty()) t += fmt::format("learning rate: {}\n", r.learning_rate);
  t += "\n" + format_rules_table(r.sharding.rows);
  const RankMemory& m = r.memory;
  t += "\nmemory of the fullest rank\n";
  struct Part {
    const char* name;
    i64 bytes;
    bool optional = false;  // not shown if it is 0
  };
  const Part parts[] = {{"parameters", m.parameters},
                        {"gradients", m.gradients},
                        {"optimizer", m.optimizer},
                        {"activations", m.activations},
                        {.name = "generated answers", .bytes = m.rollouts, .optional = true},
                        {"buffers", m.buffers},
                        {.name = "checkpoint", .bytes = m.checkpoint, .optional = true},
                        {.name = "buddy checkpoints", .bytes = m.buddy, .optional = true},
                        {"base", m.base}};
  for (const Part& p : parts)
    if (p.bytes > 0 || !p.optional) t += fmt::format("  {:<21}{:>10}\n", p.name, size_text(p.bytes));
  t += fmt::format("  {:<21}{:>10}\n", "total, fullest rank", size_text(m.total()));
  if (r.smallest_total != m.total())
    t += fmt::format("  {:<21}{:>10}\n", "total, emptiest rank", size_text(r.smallest_total));
  t +=
      fmt::format("  {} {} that a rank may use", r.fits ? "fits" : "DOES NOT FIT", size_text(r.memory_limit));
  if (r.shared_memory && r.ranks_per_host > 1)
    t += fmt::format(" ({} ranks on the fullest host)", r.ranks_per_host);
  t += "\n";
  if (r.smallest_n_model_shards) {
    t += fmt::format("  smallest n_model_shards that fits: {}\n", *r.smallest_n_model_shards);
  } else {
    t += "  no n_model_shards fits on these machines\n";
  }
  if (!r.fits) {
    const char* device = r.shared_memory ? "host" : "device";
    t += r.devices_needed
             ? fmt::format(
                   "  {2} like {3} would hold the job: parallel.n_model_shards={0}, one rank per {1}\n",
                   *r.devices_needed, device, counted(*r.devices_needed, device),
                   *r.devices_needed == 1 ? "this" : "these")
             : fmt::format("  not even {} {}s like these would hold the job\n", kMostDevices, device);
  }
  if (r.next) t += fmt::format("  the next larger setting does not fit: {}\n", candidate_text(*r.next));
  if (r.with_sequence_parallel)
    t += fmt::format("  parallel.sequence_parallel: true would need {} of {} per rank{}\n",
                     size_text(r.with_sequence_parallel->memory.total()),
                     size_text(r.with_sequence_parallel->limit),
                     r.fits || !r.with_sequence_parallel->fits() ? "" : ", which fits");
  if (r.alternative)
    t += fmt::format("  inside the hosts, with sharded state: {}\n", candidate_text(*r.alternative));

  t += "\ncollectives of a step, per rank\n";
  if (r.collectives.empty()) t += "  none\n";
  for (const PlanCollective& c : r.collectives)
    t += fmt::format("  {:<15}{:<4}{:>8} x {:>10} = {:>10}  {}\n", c.kind, c.axis, c.count,
                     size_text(c.count > 0 ? c.bytes / c.count : 0), size_text(c.bytes), c.where);
  t += fmt::format("\nFLOPs of a step: {} in total, {} of the busiest rank\n", human_count(r.flops),
                   human_count(r.flops_of_rank));
  t += time_text(r);
  for (const std::string& n : r.notes) t += "note: " + n + "\n";
  for (const std::string& w : r.warnings) t += "warning: " + w + "\n";
  return t;
}

std::string to_json(const PlanReport& r) {
  using Json = nlohmann::ordered_json;
  Json j;
  j["model"] = r.title;
  j["n_parameters"] = r.n_parameters;
  j["n_trained"] = r.n_trained;
  j["machines"] = r.machines;
  j["mesh"] = {{"dp", r.setting.mesh.dp()}, {"mp", r.setting.mesh.mp()}};
  j["rules"] = Json::array();
  for (const RuleRow& row : r.sharding.rows) {
    Json spec = Json::array();
    for (const auto& e : row.spec) spec.push_back(e ? Json(*e) : Json(nullptr));
    j["rules"].push_back(
        {{"pattern", row.pattern}, {"spec", spec}, {"rule", row.rule}, {"tensors", row.tensors}});
  }
  j["per_rank"] = memory_json(r.memory);
  j["smallest_total"] = r.smallest_total;
  j["memory_limit"] = r.memory_limit;
  j["ranks_per_host"] = r.ranks_per_host;
  j["fits"] = r.fits;
  j["smallest_n_model_shards"] = r.smallest_n_model_shards ? Json(*r.smallest_n_model_shards) : Json(nullptr);
  j["devices_needed"] = r.devices_needed ? Json(*r.devices_needed) : Json(nullptr);
  j["why_batch"] = r.why_batch;
  j["learning_rate"] = r.learning_rate;
  j["collectives"] = Json::array();
  for (const PlanCollective& c : r.collectives)
    j["collectives"].push_back(
        {{"kind", c.kind}, {"axis", c.axis}, {"count", c.count}, {"bytes", c.bytes}, {"where", c.where}});
  j["flops"] = r.flops;
  j["flops_of_rank"] = r.flops_of_rank;
  j["time"] = time_json(r);
  j["length"] = r.length;
  j["accumulation"] = r.accumulation;
  j["setting"] = setting_json(r.setting);
  j["crossing_bytes"] = r.crossing_bytes;
  j["next_that_does_not_fit"] = candidate_json(r.next);
  j["with_sequence_parallel"] = candidate_json(r.with_sequence_parallel);
  j["with_sharded_state"] = candidate_json(r.alternative);
  j["warnings"] = r.warnings;
  j["notes"] = r.notes;
  return j.dump(2) + "\n";
}

}  // namespace redco
