#include "report/profile_data.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"

namespace redco {

namespace {

constexpr i64 kMostSummary = i64{16} << 20;  // bytes
constexpr double kMostAmount = 1e30;

// Seconds, bytes, FLOPs or calls.
double amount(JsonFields& fields, const char* name) {
  const nlohmann::json& v = fields.need(name);
  const double x = v.is_number() ? v.get<double>() : -1;
  if (!(x >= 0 && x <= kMostAmount))
    throw ContentsError("{}: expected a number from 0 to {:g}", fields.at(name), kMostAmount);
  return x;
}

i64 whole(JsonFields& fields, const char* name, i64 least) {
  constexpr i64 kMost = i64{1} << 53;
  const i64 x = fields.integer(name);
  if (x < least || x > kMost)
    throw ContentsError("{}: found {}, expected an integer from {} to {}", fields.at(name), x, least, kMost);
  return x;
}

// The objects of a list, sorted by their seconds.
template <class Item>
std::vector<Item> timed_list(JsonFields& all, const char* name,
                             const std::function<Item(JsonFields&)>& read_one) {
  std::vector<Item> out;
  for (const nlohmann::json& j : all.array(name)) {
    JsonFields fields(j, fmt::format("{}[{}]", all.at(name), out.size()));
    out.push_back(read_one(fields));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Item& a, const Item& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace

ProfileData read_profile_data(const std::string& path) {
  const auto j = nlohmann::json::parse(read_file(path, kMostSummary), nullptr, false);
  if (!j.is_object()) throw ContentsError("{}: expected a JSON object", path);
  JsonFields all(j, path + ": profile");
  ProfileData out;
  out.first_step = whole(all, "first_step", 0);
  out.n_steps = whole(all, "n_steps", 1);
  out.n_ranks = whole(all, "n_ranks", 1);
  out.seconds = amount(all, "seconds");
  out.phases = timed_list<ProfileData::Phase>(all, "phases", [](JsonFields& f) {
    return ProfileData::Phase{f.text("name"), amount(f, "seconds"), amount(f, "longest")};
  });
  out.ops = timed_list<ProfileData::Op>(all, "ops", [](JsonFields& f) {
    return ProfileData::Op{f.text("name"),     f.text("phase"),      f.text("scope"),
                           amount(f, "calls"), amount(f, "seconds"), amount(f, "flops")};
  });
  out.kernels = timed_list<ProfileData::Kernel>(all, "kernels", [](JsonFields& f) {
    return ProfileData::Kernel{f.text("name"), amount(f, "calls"), amount(f, "seconds")};
  });
  out.collectives = timed_list<ProfileData::Collective>(all, "collectives", [](JsonFields& f) {
    ProfileData::Collective c{f.text("name"),      f.text("axis"),     f.text("phase"),
                              amount(f, "calls"),  amount(f, "bytes"), amount(f, "seconds"),
                              amount(f, "longest")};
    c.transfer = f.find("transfer") ? amount(f, "transfer") : c.seconds;  // older files lack it
    return c;
  });
  out.memory_peak = amount(all, "memory_peak");
  return out;
}

}  // namespace redco
