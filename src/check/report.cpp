#include "check/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
using Verdict = CheckedRun::Verdict;
constexpr std::size_t kMostDifferences = 8;  // of a run in the text

std::string line_of(const CheckDifference& d) {
  if (!std::isfinite(d.difference) && std::isnan(d.value) && std::isnan(d.expected)) return d.what;
  return fmt::format("{}: {:.9g} instead of {:.9g}, difference {:.2g}", d.what, d.value, d.expected,
                     d.difference);
}

const CheckedRun* reference_of(const std::vector<CheckedRun>& runs) {
  const auto at = std::ranges::find(runs, Verdict::reference, &CheckedRun::verdict);
  return at == runs.end() ? nullptr : &*at;
}

}  // namespace

std::string title_of(const CheckedRun& r) {
  return fmt::format("{} with {} of a replica in a micro-batch", r.combination.mesh(),
                     counted(r.combination.micro, "row"));
}

std::vector<std::string> CheckReport::messages() const {
  std::vector<std::string> out;
  std::set<std::string> said;
  for (const CheckedRun& run : runs) {
    if (run.message.empty() || !said.insert(run.message).second) continue;
    std::string titles;
    for (const CheckedRun& other : runs)
      if (other.message == run.message)
        titles += fmt::format("{}{} micro {}", titles.empty() ? "" : ", ", other.combination.mesh(),
                              other.combination.micro);
    out.push_back(fmt::format("{}: {}: {}", titles, name_of(run.verdict), run.message));
  }
  return out;
}

int CheckReport::exit_code() const {
  int failed = 0;
  bool bad = false, compared = false;
  for (const CheckedRun& r : runs) {
    if (r.verdict == Verdict::failed && failed == 0) failed = r.code;
    bad = bad || r.verdict == Verdict::failed || r.verdict == Verdict::differs;
    compared = compared || r.verdict == Verdict::reference;
  }
  if (compared) return static_cast<int>(bad ? ExitCode::check_failed : ExitCode::ok);
  return failed != 0 ? failed : static_cast<int>(ExitCode::usage);
}

std::string CheckReport::note() const {
  const auto run = std::ranges::find_if(runs, &CheckedRun::compared);
  const CheckedRun* const reference = reference_of(runs);
  if (!reference || run == runs.end() || run->zero.empty()) return "";
  if (reference->numbers.grad_norm == 0)
    return "all gradients are 0, so they prove nothing. An algorithm that learns from rewards needs a model that "
           "gets some";
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, run->zero.size()); ++i)
    names += (i == 0 ? "" : ", ") + run->zero[i];
  return fmt::format("the gradient of {} is 0 in this step, so comparing them proves nothing: {}{}",
                     counted(static_cast<i64>(run->zero.size()), "parameter"), names,
                     run->zero.size() > 3 ? ", ..." : "");
}

std::string to_text(const CheckReport& r) {
  std::string s;
  const CheckedRun* const reference = reference_of(r.runs);
  const std::string term = reference ? reference->numbers.first_term : "loss";
  if (reference) {
    const CheckNumbers& n = reference->numbers;
    s += fmt::format("one step of pipeline {}: {}{}, {}\n", r.pipeline, counted(n.rows, "row"),
                     n.length > 1 ? fmt::format(" of at most {}", counted(n.length, "token")) : "",
                     r.bf16 ? "bf16" : "fp32");
    s += fmt::format("tolerance {:.2g} of a value, for sums in another order\n\n", r.tolerance);
  }
  s += fmt::format("{:<6} {:>5} {:>5}  {:>14} {:>14}  {:<12}  {}\n", "mesh", "micro", "rows", term,
                   "gradient norm", "verdict", "largest difference of a gradient");
  for (const CheckedRun& run : r.runs) {
    const CheckNumbers& n = run.numbers;
    const bool ran = run.compared() || run.verdict == Verdict::reference;
    const auto value = n.terms.find(term);
    s += fmt::format(
        "{:<6} {:>5} {:>5}  {:>14} {:>14}  {:<12}  {}\n", run.combination.mesh(), run.combination.micro,
        ran ? fmt::format("{}", n.rows_of_micro_batch) : "-",
        ran && value != n.terms.end() ? fmt::format("{:.8g}", value->second) : "-",
        ran ? fmt::format("{:.8g}", n.grad_norm) : "-", name_of(run.verdict),
        run.compared() ? fmt::format("{:.2g}  {}", run.largest.difference, run.largest.what) : "");
    while (s.size() > 1 && s[s.size() - 2] == ' ') s.erase(s.size() - 2, 1);
  }
  s += "mesh: replicas x model shards; micro: rows of a replica in a micro-batch; rows: of all replicas\n";
  for (const CheckedRun& run : r.runs) {
    if (run.verdict != Verdict::differs) continue;
    s += fmt::format("\n{}:\n", title_of(run));
    if (!run.numbers.examples.empty()) s += "  source(): " + run.numbers.examples + "\n";
    for (std::size_t i = 0; i < std::min(kMostDifferences, run.differences.size()); ++i)
      s += "  " + line_of(run.differences[i]) + "\n";
    if (run.differences.size() > kMostDifferences)
      s += fmt::format("  and {} more (--json lists all)\n", run.differences.size() - kMostDifferences);
  }
  for (const std::string& line : r.messages()) s += "\n" + line + "\n";
  if (!r.causes.empty()) s += "\n";
  for (const std::string& cause : r.causes) s += "likely cause: " + cause + "\n";
  if (const std::string note = r.note(); !note.empty()) s += "\nnote: " + note + "\n";
  i64 equal = 0, others = 0, left = 0;
  for (const CheckedRun& run : r.runs) {
    equal += run.verdict == Verdict::equal;
    others += run.verdict != Verdict::reference && run.verdict != Verdict::impossible;
    left += run.verdict == Verdict::impossible;
  }
  s += fmt::format("\n{}: {} of {} equal the reference{}\n", r.exit_code() == 0 ? "passed" : "FAILED", equal,
                   counted(others, "combination"), left > 0 ? fmt::format(", {} not possible", left) : "");
  return s;
}

std::string to_json(const CheckReport& r) {
  // JSON has no infinity: null.
  const auto number = [](double v) { return std::isfinite(v) ? Json(v) : Json(); };
  const auto difference = [&](const CheckDifference& d) {
    return Json{{"what", d.what},
                {"value", number(d.value)},
                {"expected", number(d.expected)},
                {"difference", number(d.difference)}};
  };
  Json j = {
      {"passed", r.exit_code() == 0}, {"pipeline", r.pipeline}, {"bf16", r.bf16},  {"tolerance", r.tolerance},
      {"runs", Json::array()},        {"causes", r.causes},     {"note", r.note()}};
  for (const CheckedRun& run : r.runs) {
    const CheckNumbers& n = run.numbers;
    const bool ran = run.compared() || run.verdict == Verdict::reference;
    Json one = {{"mesh", run.combination.mesh()},
                {"dp", run.combination.dp},
                {"mp", run.combination.mp},
                {"micro", run.combination.micro},
                {"verdict", name_of(run.verdict)}};
    if (ran) {
      one["rows"] = n.rows;
      one["rows_of_micro_batch"] = n.rows_of_micro_batch;
      one["terms"] = n.terms;
      one["weights"] = n.weights;
      one["grad_norm"] = n.grad_norm;
    }
    if (run.compared()) {
      one["largest"] = difference(run.largest);
      one["differences"] = Json::array();
      for (const CheckDifference& d : run.differences) one["differences"].push_back(difference(d));
      if (!n.examples.empty()) one["examples"] = n.examples;
    }
    if (!run.message.empty()) one["message"] = run.message;
    if (run.verdict == Verdict::failed) one["exit_code"] = run.code;
    j["runs"].push_back(std::move(one));
  }
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redco
