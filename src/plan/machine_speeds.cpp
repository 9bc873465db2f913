#include "plan/machine_speeds.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json_fields.h"
#include "base/user_folders.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// Of the file; a measurement of another version is measured again.
constexpr i64 kFormat = 2;
constexpr i64 kMostBytes = i64{16} << 20;

Json tables_json(const std::map<std::string, SpeedTable>& tables) {
  Json j = Json::object();
  for (const auto& [kind, t] : tables) j[kind] = {{"axes", t.axes}, {"seconds_per_unit", t.values}};
  return j;
}

std::vector<double> numbers(const nlohmann::json& array, const std::string& where) {
  std::vector<double> out;
  if (!array.is_array()) throw ContentsError("{}: expected an array of numbers", where);
  for (const auto& x : array) {
    if (!x.is_number()) throw ContentsError("{}: expected an array of numbers", where);
    out.push_back(x.get<double>());
  }
  return out;
}

std::map<std::string, SpeedTable> tables_from(const nlohmann::json& j, const std::string& where) {
  std::map<std::string, SpeedTable> out;
  if (!j.is_object()) throw ContentsError("{}: expected an object", where);
  for (const auto& [kind, table] : j.items()) {
    JsonFields f(table, where + "." + kind);
    SpeedTable t;
    for (const auto& axis : f.array("axes")) t.axes.push_back(numbers(axis, f.at("axes")));
    t.values = numbers(f.array("seconds_per_unit"), f.at("seconds_per_unit"));
    f.finish();
    if (const std::string problem = t.problem(); !problem.empty())
      throw ContentsError("{}.{}: {}", where, kind, problem);
    out[kind] = std::move(t);
  }
  return out;
}

double number(JsonFields& f, const char* name) {
  const nlohmann::json& v = f.need(name);
  if (!v.is_number() || !std::isfinite(v.get<double>()) || v.get<double>() < 0)
    throw ContentsError("{}: expected a number from 0 on", f.at(name));
  return v.get<double>();
}

// Of a collective: a latency, and the time of a byte.
SpeedTable line(double latency_s, double s_per_byte) {
  SpeedTable t;
  t.axes.emplace_back();
  for (double bytes = 8; bytes <= 1e9; bytes *= 8) {
    t.axes[0].push_back(bytes);
    t.values.push_back(latency_s / bytes + s_per_byte);
  }
  return t;
}

MachineSpeeds speeds_from(const nlohmann::json& j, const std::string& where) {
  if (j.is_discarded()) throw ContentsError("{} is no JSON", where);
  JsonFields f(j, where);
  if (const i64 format = f.integer("format"); format != kFormat)
    throw ContentsError("{}: format {}, but this redco reads format {}", where, format, kFormat);
  MachineSpeeds s;
  s.key = {.cpu = f.text("cpu"), .isa = f.text("isa"), .blas = f.text("blas")};
  s.key.ranks = static_cast<int>(std::clamp<i64>(f.integer("ranks_per_host"), 1, 1 << 20));
  s.key.threads = static_cast<int>(std::clamp<i64>(f.integer("threads_per_rank"), 1, 1 << 20));
  s.origin = f.text("origin");
  s.op_s = number(f, "op_s");
  s.network_hosts = static_cast<int>(std::clamp<i64>(f.integer("network_hosts"), 0, 1 << 20));
  s.transfer_own = number(f, "transfer_own");
  s.kernels = tables_from(f.need("kernels"), f.at("kernels"));
  s.collectives = tables_from(f.need("collectives"), f.at("collectives"));
  s.network = tables_from(f.need("network"), f.at("network"));
  for (const auto* tables : {&s.collectives, &s.network})
    for (const auto& [kind, t] : *tables)
      if (t.axes.size() != 1)
        throw ContentsError("{}: {} has {} axes, expected 1", where, kind, t.axes.size());
  f.finish();
  return s;
}

}  // namespace

const SpeedTable* MachineSpeeds::kernel(const std::string& kind) const {
  for (std::string name = kind;;) {
    auto it = kernels.find(name);
    if (it == kernels.end()) {  // one that begins with these words
      it = kernels.lower_bound(name + " ");
      if (it != kernels.end() && !it->first.starts_with(name + " ")) it = kernels.end();
    }
    if (it != kernels.end()) return &it->second;
    const std::size_t space = name.rfind(' ');
    if (space == std::string::npos) return nullptr;
    name.resize(space);
  }
}

MachineSpeeds speeds_of(const StatedSpeeds& s) {
  MachineSpeeds m;
  m.origin = "stated";
  const auto flat = [](std::size_t axes, double seconds) {
    return SpeedTable{std::vector<std::vector<double>>(axes, {1.0}), {seconds}};
  };
  const double f32 = 1 / s.flops_per_s, bf16 = s.bf16_flops_per_s > 0 ? 1 / s.bf16_flops_per_s : f32;
  for (const char* kernel : {"linear", "linear_input_gradient", "linear_weight_gradients"}) {
    m.kernels[kernel] = flat(4, f32);
    m.kernels[std::string(kernel) + " bf16"] = flat(4, bf16);
  }
  for (const char* kernel : {"attention", "attention_backward"}) {
    m.kernels[kernel] = flat(3, f32);
    m.kernels[std::string(kernel) + " bf16"] = flat(3, bf16);
  }
  for (const char* kernel : {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"})
    m.kernels[kernel] = flat(1, f32);
  m.kernels["few_rows"] = flat(3, 1 / s.memory_bytes_per_s);
  m.kernels["attention_decode"] = m.kernels[kAnyKernel] = flat(2, 1 / s.memory_bytes_per_s);
  // Of two ranks; the cost model scales them to other numbers.
  m.key.ranks = 2;
  const SpeedTable t = line(s.host_latency_s, 1 / s.host_bytes_per_s);
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter"}) m.collectives[kind] = t;
  state_network(m, s.network_latency_s, s.network_bytes_per_s);
  return m;
}

// Of two hosts: each sends half of the data, once, or in an all-reduce twice.
void state_network(MachineSpeeds& m, double latency_s, double bytes_per_s) {
  m.network_hosts = 2;
  m.transfer_own = 0;
  m.network["all_reduce"] = line(2 * latency_s, 1 / bytes_per_s);
  for (const char* kind : {"all_gather", "reduce_scatter"})
    m.network[kind] = line(latency_s, 0.5 / bytes_per_s);
}

std::string speeds_folder() {
  const std::string cache = user_cache_folder();
  return join_path(cache.empty() ? "/tmp/.cache/redco" : cache, "machines");
}

std::string speeds_path(const SpeedKey& k) {
  std::string name;
  for (const char c : k.cpu) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (word) name += c;
    if (!word && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min<std::size_t>(name.size(), 48));
  const u64 hash = hash64(k.cpu + "\n" + k.isa + "\n" + k.blas);
  return join_path(speeds_folder(),
                   fmt::format("{}-{:08x}-{}x{}.json", name, static_cast<u32>(hash), k.ranks, k.threads));
}

std::string to_json(const MachineSpeeds& s) {
  const Json j = {{"format", kFormat},
                  {"cpu", s.key.cpu},
                  {"isa", s.key.isa},
                  {"blas", s.key.blas},
                  {"ranks_per_host", s.key.ranks},
                  {"threads_per_rank", s.key.threads},
                  {"origin", s.origin},
                  {"op_s", s.op_s},
                  {"network_hosts", s.network_hosts},
                  {"transfer_own", s.transfer_own},
                  {"kernels", tables_json(s.kernels)},
                  {"collectives", tables_json(s.collectives)},
                  {"network", tables_json(s.network)}};
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

MachineSpeeds speeds_from_json(const std::string& text, const std::string& where) {
  try {
    return speeds_from(nlohmann::json::parse(text, nullptr, false), where);
  } catch (const ContentsError& e) {
    throw ContentsError("{}; run `redco env --measure` again", e.what());
  }
}

std::string store_speeds(const MachineSpeeds& s) {
  make_dirs(speeds_folder());
  const std::string path = speeds_path(s.key);
  write_file_durable(path, to_json(s));
  return path;
}

std::optional<MachineSpeeds> load_speeds(const SpeedKey& key) {
  const std::string path = speeds_path(key);
  if (!exists(path)) return std::nullopt;
  MachineSpeeds s = speeds_from_json(read_file(path, kMostBytes), path);
  if (!(s.key == key))
    throw ContentsError("{}: measured on {} ({}, {}), expected {} ({}, {}); run `redco env --measure` again",
                        path, s.key.cpu, s.key.isa, s.key.blas, key.cpu, key.isa, key.blas);
  return s;
}

}  // namespace redco
