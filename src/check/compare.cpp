#include "check/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "ckpt/safetensors.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
constexpr double kSmallest = 1e-2, kSmallestOfGroup = 0.1;  // scales, see compare()
constexpr double kWeightTolerance = 1e-9;
constexpr double kRounding = 16, kNear = 30;  // see compare() and likely_causes()

double relative(double value, double expected, double scale) {
  const double d = std::abs(value - expected);
  if (std::isnan(d)) return INFINITY;
  return d == 0 ? 0 : d / scale;
}

// The largest difference of two tensors, the elements there, and the largest element expected.
struct TensorDifference {
  double difference = 0, value = 0, expected = 0, largest = 0;
};
TensorDifference difference_of(const std::vector<float>& a, const std::vector<float>& b) {
  TensorDifference out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(d <= out.difference)) out = {d, a[i], b[i], out.largest};
    out.largest = std::max(out.largest, std::abs(static_cast<double>(b[i])));
  }
  return out;
}

double rounding_of(const std::map<std::string, double>& all, const std::string& name) {
  const auto at = all.find(name);
  return at == all.end() || !std::isfinite(at->second) ? 0 : at->second;
}

// The scale with which a difference of kRounding times `rounding` is at the tolerance.
double wider(double scale, double rounding, double tolerance) {
  return std::max(scale, kRounding * rounding / tolerance);
}

// Values of the same names; a name that only one run has is a difference.
void compare_values(const std::string& prefix, const std::map<std::string, double>& values,
                    const std::map<std::string, double>& expected,
                    const std::map<std::string, double>& rounding, double tolerance, double smallest,
                    std::vector<CheckDifference>& out) {
  std::map<std::string, double> all = values;
  all.insert(expected.begin(), expected.end());
  for (const auto& [name, ignored] : all) {
    const auto a = values.find(name), b = expected.find(name);
    const double mine = a == values.end() ? NAN : a->second, other = b == expected.end() ? NAN : b->second;
    const double scale = std::max(std::abs(other), smallest);
    const double d = relative(mine, other, wider(scale, rounding_of(rounding, name), tolerance));
    if (!(d <= tolerance)) out.push_back({prefix + name, mine, other, d});
  }
}

// Its numbers differ. Other examples alone change none, because all runs use the recorded ones.
bool differs(const CheckedRun& r) { return !r.differences.empty(); }

// What runs may differ by.
struct Feature {
  const char* name;
  std::function<i64(const CheckedRun&)> of;
  const char* cause;
};
const std::vector<Feature>& features() {
  static const std::vector<Feature> all = {
      {"the rows of a micro-batch", [](const CheckedRun& r) { return r.numbers.rows_of_micro_batch; },
       "a loss term is not a sum over rows (a mean, or a value of the whole batch), or a weight counts padding "
       "or batches instead of rows or tokens, or a random draw depends on the shape of the batch (give it "
       "batch_layout()), or the result depends on the length that the rows are padded to"},
      {"the rows of a replica in a micro-batch", [](const CheckedRun& r) { return r.combination.micro; },
       "collate() uses a row's place among the replica's rows, for example for random numbers in the order of "
       "the rows (key them by Example::ordinal or Context::key()), or loss() uses Batch::weights, which are those "
       "of one replica"},
      {"dp", [](const CheckedRun& r) { return r.combination.dp; },
       "collate() or loss() uses something of one replica: its rank, its number of rows, or random numbers "
       "with its own key (use Context::key())"},
      {"mp", [](const CheckedRun& r) { return r.combination.mp; },
       "loss() uses something of one model shard: a rank, a local size, or the local values of a sharded "
       "tensor"},
      {"the number of ranks", [](const CheckedRun& r) { return r.combination.dp * r.combination.mp; },
       "collate() or loss() uses the rank, or values that only one rank has"}};
  return all;
}

}  // namespace

std::string Combination::mesh() const { return fmt::format("{}x{}", dp, mp); }

CheckNumbers check_numbers(const std::string& json) {
  const Json j = Json::parse(json);
  CheckNumbers n;
  j.at("terms").get_to(n.terms);
  j.at("weights").get_to(n.weights);
  j.at("first_term").get_to(n.first_term);
  j.at("grad_norm").get_to(n.grad_norm);
  j.at("rows").get_to(n.rows);
  j.at("length").get_to(n.length);
  j.at("rows_of_micro_batch").get_to(n.rows_of_micro_batch);
  j.at("longest_sum").get_to(n.longest_sum);
  j.at("examples").get_to(n.examples);
  j.at("groups").get_to(n.groups);
  const Json& r = j.at("rounding");  // {} if it was not measured
  if (r.empty()) return n;
  r.at("terms").get_to(n.rounding.terms);
  r.at("gradients").get_to(n.rounding.gradients);
  r.at("grad_norm").get_to(n.rounding.grad_norm);
  return n;
}

const char* name_of(CheckedRun::Verdict v) {
  switch (v) {
    case CheckedRun::Verdict::reference:
      return "reference";
    case CheckedRun::Verdict::equal:
      return "equal";
    case CheckedRun::Verdict::differs:
      return "differs";
    case CheckedRun::Verdict::failed:
      return "failed";
    case CheckedRun::Verdict::impossible:
      return "not possible";
  }
  return "";
}

double check_tolerance(i64 longest_sum, bool bf16) {
  const double fp32 = 16 * std::sqrt(static_cast<double>(longest_sum)) * std::exp2(-24);
  return std::max(5e-5, fp32) + (bf16 ? 4 * std::exp2(-8) : 0);
}

void compare(CheckedRun& run, const CheckNumbers& reference, double tolerance, const std::string& gradients,
             const std::string& expected) {
  const CheckNumbers& n = run.numbers;
  std::vector<CheckDifference>& out = run.differences;
  compare_values("weight of ", n.weights, reference.weights, {}, kWeightTolerance, 1e-300, out);
  compare_values("", n.terms, reference.terms, reference.rounding.terms, tolerance, kSmallest, out);
  const double norm_scale = wider(reference.grad_norm, reference.rounding.grad_norm, tolerance);
  if (const double d = relative(n.grad_norm, reference.grad_norm, norm_scale); !(d <= tolerance))
    out.push_back({"gradient norm", n.grad_norm, reference.grad_norm, d});

  const auto mine = ckpt::SafetensorsFile::open(gradients), other = ckpt::SafetensorsFile::open(expected);
  std::map<std::string, TensorDifference> found;
  std::map<std::string, double> largest;  // of each group
  const auto group_of = [&](const std::string& name) {
    const auto at = reference.groups.find(name);
    return at == reference.groups.end() ? std::string() : at->second;
  };
  std::vector<CheckDifference> over;
  for (const ckpt::TensorEntry& e : other.entries()) {
    const ckpt::TensorEntry* const at = mine.find(e.name);
    if (!at) {
      over.push_back({e.name + " (no gradient)", NAN, NAN, INFINITY});
      continue;
    }
    const TensorDifference& d = found[e.name] = difference_of(mine.read<float>(*at), other.read<float>(e));
    double& most = largest[group_of(e.name)];
    most = std::max(most, d.largest);
    if (d.largest == 0) run.zero.push_back(e.name);
  }
  for (const ckpt::TensorEntry& e : mine.entries())
    if (!other.find(e.name)) over.push_back({e.name + " (no gradient in the reference)", 0, NAN, INFINITY});
  for (const auto& [name, d] : found) {
    const double scale = wider(std::max(d.largest, kSmallestOfGroup * largest[group_of(name)]),
                               rounding_of(reference.rounding.gradients, name), tolerance);
    const CheckDifference line{name, d.value, d.expected, relative(d.value, d.expected, scale)};
    if (run.largest.what.empty() || line.difference > run.largest.difference) run.largest = line;
    if (!(line.difference <= tolerance)) over.push_back(line);
  }
  std::ranges::stable_sort(over, [](const auto& a, const auto& b) { return a.difference > b.difference; });
  out.insert(out.end(), over.begin(), over.end());
  run.verdict = out.empty() && n.examples.empty() ? CheckedRun::Verdict::equal : CheckedRun::Verdict::differs;
}

std::vector<std::string> likely_causes(const std::vector<CheckedRun>& runs, double tolerance) {
  std::vector<std::string> out;
  const CheckedRun* reference = nullptr;
  std::vector<const CheckedRun*> compared;
  bool bad = false;
  for (const CheckedRun& r : runs) {
    if (r.verdict == CheckedRun::Verdict::reference) reference = &r;
    if (r.compared()) compared.push_back(&r);
    bad = bad || r.verdict == CheckedRun::Verdict::differs;
  }
  if (!reference || !bad) return out;

  for (const CheckedRun& r : runs)
    if (r.compared() && !r.numbers.examples.empty()) {
      out.push_back(fmt::format(
          "the examples depend on the mesh ({}). source() and open() must give the same examples on every "
          "rank and mesh; examples that depend on the parameters belong into state()",
          r.numbers.examples));
      break;
    }
  for (const CheckedRun* r : compared) {
    const auto weight = std::ranges::find_if(
        r->differences, [](const CheckDifference& d) { return d.what.starts_with("weight of "); });
    if (weight == r->differences.end()) continue;
    out.push_back(fmt::format(
        "the {} that collate() gives adds up to {:g} instead of {:g} over replicas and micro-batches. It must "
        "count what this replica's rows (shape.mine) contribute to the sum",
        weight->what, weight->value, weight->expected));
    break;
  }

  if (std::ranges::none_of(compared, [](const CheckedRun* r) { return differs(*r); })) return out;
  double largest = 0;
  for (const CheckedRun* r : compared)
    for (const CheckDifference& d : r->differences) largest = std::max(largest, d.difference);
  if (out.empty() && largest <= kNear * tolerance)
    out.push_back(fmt::format(
        "the largest difference, {:.1g}, is near the tolerance: it may be rounding at a kink (relu, max, a "
        "comparison of nearly equal values). Then other values of train.seed have other differences or none. If "
        "all seeds have it:",
        largest));
  // The features whose difference from the reference coincides with a difference of the results.
  std::vector<const Feature*> fitting;
  for (const Feature& f : features())
    if (std::ranges::all_of(
            compared, [&](const CheckedRun* r) { return differs(*r) == (f.of(*r) != f.of(*reference)); }))
      fitting.push_back(&f);
  // The number of ranks explains nothing that dp or mp alone explains.
  if (fitting.size() > 1) std::erase(fitting, &features().back());
  if (fitting.size() == 1) {
    out.push_back(fmt::format("the results depend on {} alone: {}", fitting[0]->name, fitting[0]->cause));
  } else if (fitting.size() > 1) {
    std::vector<std::string> names;
    for (const Feature* f : fitting) names.emplace_back(f->name);
    out.push_back(fmt::format("the results depend on {}; more values of --meshes and --micro can tell which",
                              fmt::join(names, " or ")));
    for (const Feature* f : fitting) out.push_back(fmt::format("if it is {}: {}", f->name, f->cause));
  } else {
    out.push_back(
        "neither the rows of a micro-batch nor dp nor mp explains alone which combinations differ: there are "
        "several mistakes, or random numbers without a key (Context::key())");
  }
  return out;
}

}  // namespace redco
