#include "workdir/run_identity.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/hash.h"
#include "base/strict_json.h"

namespace redco::ckpt {

namespace {

constexpr std::size_t kLongestLineage = 10'000;

std::string id_of(const nlohmann::json& j, const char* key, const std::string& where) {
  const auto it = j.find(key);
  if (it == j.end() || !it->is_string()) throw ContentsError("{}: {}: expected a string", where, key);
  const std::string id = it->get<std::string>();
  if (!id.empty() && (id.size() != 32 || id.find_first_not_of("0123456789abcdef") != id.npos))
    throw ContentsError("{}: {} is {}, expected 32 hexadecimal digits", where, key, shown(id));
  return id;
}

}  // namespace

bool RunIdentity::holds(const RunIdentity& maker, i64 step) const {
  if (maker.id == id)
    return std::none_of(starts.begin(), starts.end(), [&](const Start& later) {
      return maker.start > 0 && later.number > maker.start && step > later.step;
    });
  return std::any_of(lineage.begin(), lineage.end(),
                     [&](const Ancestor& a) { return a.run == maker.id && step <= a.step; });
}

RunIdentity RunIdentity::child(i64 step) const {
  RunIdentity run{new_run_id(), lineage, 0, {}};
  run.lineage.push_back({id, step});
  return run;
}

void RunIdentity::begin_start(i64 step) {
  std::erase_if(starts, [&](const Start& s) { return s.step >= step; });
  starts.push_back({++start, step});
}

std::string new_run_id() {
  std::random_device random;
  const auto word = [&] { return (static_cast<u64>(random()) << 32) | random(); };
  return Hash128{word(), word()}.hex();
}

nlohmann::json to_json(const RunIdentity& run) {
  nlohmann::json lineage = nlohmann::json::array();
  for (const RunIdentity::Ancestor& a : run.lineage) lineage.push_back({{"run", a.run}, {"step", a.step}});
  nlohmann::json j = {{"id", run.id}, {"lineage", lineage}};
  if (run.start > 0) j["start"] = run.start;
  for (const RunIdentity::Start& s : run.starts)
    j["starts"].push_back({{"start", s.number}, {"step", s.step}});
  return j;
}

namespace {

i64 count_of(const nlohmann::json& j, const char* key, const std::string& where) {
  const auto it = j.is_object() ? j.find(key) : j.end();
  if (!j.is_object() || it == j.end() || !it->is_number_integer() || it->get<i64>() < 0)
    throw ContentsError("{}: expected a number from 0 as {}, found {}", where, key, shown(j.dump()));
  return it->get<i64>();
}

}  // namespace

RunIdentity parse_run_identity(const nlohmann::json& j, const std::string& where) {
  if (!j.is_object()) throw ContentsError("{} is {}, expected an object", where, j.type_name());
  RunIdentity run{id_of(j, "id", where), {}, 0, {}};
  const auto lineage = j.find("lineage");
  if (lineage == j.end() || !lineage->is_array() || lineage->size() > kLongestLineage)
    throw ContentsError("{}: lineage: expected a list of runs", where);
  for (const auto& a : *lineage) {
    const auto step = a.is_object() ? a.find("step") : a.end();
    if (!a.is_object() || step == a.end() || !step->is_number_integer() || step->get<i64>() < 0)
      throw ContentsError("{}: an entry of lineage is {}, expected a run and a step", where, shown(a.dump()));
    run.lineage.push_back({id_of(a, "run", where + ": lineage"), step->get<i64>()});
  }
  if (j.contains("start")) run.start = count_of(j, "start", where);
  if (const auto starts = j.find("starts"); starts != j.end()) {
    if (!starts->is_array() || starts->size() > kLongestLineage)
      throw ContentsError("{}: starts: expected a list", where);
    for (const auto& s : *starts)
      run.starts.push_back(
          {count_of(s, "start", where + ": starts"), count_of(s, "step", where + ": starts")});
  }
  return run;
}

}  // namespace redco::ckpt
