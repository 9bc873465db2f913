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

bool RunIdentity::holds(const std::string& run, i64 step) const {
  return run == id || std::any_of(lineage.begin(), lineage.end(),
                                  [&](const Ancestor& a) { return a.run == run && step <= a.step; });
}

RunIdentity RunIdentity::child(i64 step) const {
  RunIdentity run{new_run_id(), lineage};
  run.lineage.push_back({id, step});
  return run;
}

std::string new_run_id() {
  std::random_device random;
  const auto word = [&] { return (static_cast<u64>(random()) << 32) | random(); };
  return Hash128{word(), word()}.hex();
}

nlohmann::json to_json(const RunIdentity& run) {
  nlohmann::json lineage = nlohmann::json::array();
  for (const RunIdentity::Ancestor& a : run.lineage) lineage.push_back({{"run", a.run}, {"step", a.step}});
  return {{"id", run.id}, {"lineage", lineage}};
}

RunIdentity parse_run_identity(const nlohmann::json& j, const std::string& where) {
  if (!j.is_object()) throw ContentsError("{} is {}, expected an object", where, j.type_name());
  RunIdentity run{id_of(j, "id", where), {}};
  const auto lineage = j.find("lineage");
  if (lineage == j.end() || !lineage->is_array() || lineage->size() > kLongestLineage)
    throw ContentsError("{}: lineage: expected a list of runs", where);
  for (const auto& a : *lineage) {
    const auto step = a.is_object() ? a.find("step") : a.end();
    if (!a.is_object() || step == a.end() || !step->is_number_integer() || step->get<i64>() < 0)
      throw ContentsError("{}: an entry of lineage is {}, expected a run and a step", where, shown(a.dump()));
    run.lineage.push_back({id_of(a, "run", where + ": lineage"), step->get<i64>()});
  }
  return run;
}

}  // namespace redco::ckpt
