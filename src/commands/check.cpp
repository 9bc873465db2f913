#include "commands/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "assembly/job_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporaries.h"
#include "base/words.h"
#include "commands/check_step.h"
#include "commands/data_cache.h"
#include "launch/capture.h"
#include "run/handed_job.h"
#include "run/run.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
using Verdict = CheckedRun::Verdict;
constexpr i64 kMostRanks = 4096, kMostRows = 1 << 20;
constexpr std::size_t kMostDifferences = 8;  // of a run in the text

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == at) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// A number from 1 to `most`; 0 for other text.
i64 number_of(const std::string& text, i64 most) {
  const bool digits = !text.empty() && text.size() < 9 &&
                      std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const i64 n = digits ? std::stoll(text) : 0;
  return n <= most ? n : 0;
}

// The job of one combination on this machine.
JobConfig job_of(const JobConfig& job, const Combination& c, i64 rows, const std::string& cache) {
  JobConfig out = job;
  out.workdir.reset();
  out.data.cache = cache;
  out.parallel.hosts.clear();
  out.parallel.hostfile.reset();
  out.parallel.n_ranks = c.dp * c.mp;
  out.parallel.n_model_shards = c.mp;
  out.train.global_batch_size = rows;
  out.train.per_device_batch_size = c.micro;
  for (const char* key : {"parallel.n_ranks", "parallel.n_model_shards"})
    out.origins.set(key, "--meshes", true);
  out.origins.set("train.per_device_batch_size", "--micro", true);
  return out;
}

// The error in what a run wrote to stderr. Its warnings are added to `warnings`.
std::string error_of(const std::string& said, int code, std::set<std::string>& warnings) {
  constexpr std::string_view kError = "error: ", kWarning = "warning: ";
  std::string message, rest;
  bool in_error = false;
  for (const std::string& line : split(said, '\n')) {
    if (line.starts_with(kWarning)) {
      warnings.insert(line.substr(kWarning.size()));
      continue;
    }
    if (line.empty()) continue;
    const bool begins = line.starts_with(kError) && !in_error;
    in_error = in_error || begins;
    std::string& to = in_error ? message : rest;
    to += (to.empty() ? "" : "\n") + (begins ? line.substr(kError.size()) : line);
  }
  if (!message.empty()) return message;
  return rest.empty() ? fmt::format("the run ended with exit code {} and without a message", code) : rest;
}

std::string title(const CheckedRun& r) {
  return fmt::format("{} with {} of a replica in a micro-batch", r.combination.mesh(),
                     counted(r.combination.micro, "row"));
}

std::string line_of(const CheckDifference& d) {
  if (!std::isfinite(d.difference) && std::isnan(d.value) && std::isnan(d.expected)) return d.what;
  return fmt::format("{}: {:.9g} instead of {:.9g}, difference {:.2g}", d.what, d.value, d.expected,
                     d.difference);
}

const CheckedRun* reference_of(const std::vector<CheckedRun>& runs) {
  const auto at = std::ranges::find(runs, Verdict::reference, &CheckedRun::verdict);
  return at == runs.end() ? nullptr : &*at;
}

// "2x1 micro 1, 2x1 micro 4: failed: MESSAGE" for each message of the runs that failed or are impossible.
std::vector<std::string> messages_of(const std::vector<CheckedRun>& runs) {
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

// The term with the name "loss", else the first.
std::string shown_term(const CheckNumbers& n) {
  return n.terms.count("loss") || n.terms.empty() ? "loss" : n.terms.begin()->first;
}

}  // namespace

std::vector<Combination> combinations(const CheckOptions& o, i64 rows) {
  std::vector<i64> sizes;
  if (o.micro)
    for (const std::string& word : split(*o.micro, ',')) {
      sizes.push_back(number_of(word, kMostRows));
      if (sizes.back() == 0)
        throw UsageError("--micro {}: '{}' is not a number of rows; expected e.g. 1,4", excerpt(*o.micro),
                         excerpt(word));
    }
  std::vector<Combination> meshes, out;  // micro 0: every size
  i64 least = rows;                      // rows of a replica
  for (const std::string& word : split(o.meshes, ',')) {
    const auto parts = split(word, ':');
    const auto axes = split(parts[0], 'x');
    Combination c{.micro = 0};
    if (axes.size() == 2) {
      c.dp = number_of(axes[0], kMostRanks);
      c.mp = number_of(axes[1], kMostRanks);
    }
    if (parts.size() == 2) c.micro = number_of(parts[1], kMostRows);
    if (axes.size() != 2 || parts.size() > 2 || c.dp == 0 || c.mp == 0 || (parts.size() == 2 && c.micro == 0))
      throw UsageError(
          "--meshes {}: '{}' is not a mesh; expected DPxMP, e.g. 1x1,2x1,1x2, or DPxMP:ROWS for a mesh with its "
          "own micro-batch size",
          excerpt(o.meshes), excerpt(word));
    meshes.push_back(c);
    least = std::min(least, rows / c.dp);
  }
  if (!o.micro) {
    sizes = {1};
    if (const i64 most = std::min<i64>(4, least); most > 1) sizes.push_back(most);
  }
  for (const Combination& mesh : meshes)
    for (const i64 size : mesh.micro > 0 ? std::vector<i64>{mesh.micro} : sizes) {
      Combination c = mesh;
      c.micro = size;
      if (std::ranges::find(out, c) != out.end())
        throw UsageError("--meshes {}: {} with {} is given twice; remove one", excerpt(o.meshes), c.mesh(),
                         counted(c.micro, "row"));
      out.push_back(c);
    }
  return out;
}

std::string impossible(const Combination& c, i64 rows) {
  if (c.dp > rows)
    return fmt::format(
        "the step has {}, so some of the {} replicas would get none. Raise train.global_batch_size",
        counted(rows, "row"), c.dp);
  if (const i64 share = ceil_div(rows, c.dp); c.micro > share)
    return fmt::format("a replica has at most {} of the step's {}, and a micro-batch of {} is larger",
                       counted(share, "row"), rows, c.micro);
  return "";
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
  const std::string term = reference ? shown_term(reference->numbers) : "loss";
  if (reference) {
    const CheckNumbers& n = reference->numbers;
    s += fmt::format("one step of pipeline {}: {}{}, {}\n", r.pipeline, counted(n.rows, "row"),
                     n.length > 0 ? fmt::format(" of at most {}", counted(n.length, "token")) : "",
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
    s += fmt::format("\n{}:\n", title(run));
    if (!run.numbers.examples.empty()) s += "  source(): " + run.numbers.examples + "\n";
    for (std::size_t i = 0; i < std::min(kMostDifferences, run.differences.size()); ++i)
      s += "  " + line_of(run.differences[i]) + "\n";
    if (run.differences.size() > kMostDifferences)
      s += fmt::format("  and {} more (--json lists all)\n", run.differences.size() - kMostDifferences);
  }
  for (const std::string& line : messages_of(r.runs)) s += "\n" + line + "\n";
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

int run_check(JobConfig job, const CheckOptions& o, const std::string& program) {
  if (is_rank_process())
    throw UsageError("redco check starts its ranks itself. Start it once, without mpirun and srun");
  expand_data_folders(job, JobUse::train);
  JobConfig trained = job;
  if (!trained.workdir) trained.workdir = ".";  // nothing is written there
  check_job(trained, JobUse::train, model_key_problems);
  check_files(trained, JobUse::train, model_key_problems);
  const auto ranks = declared_ranks(job);
  const i64 rows = batch_sizes(job, ranks ? replicas(job, *ranks) : 1).global;

  CheckReport report{.pipeline = job.pipeline, .bf16 = job.train.compute_dtype == "bf16"};
  for (const Combination& c : combinations(o, rows)) report.runs.push_back({.combination = c});
  const TemporaryFolder folder;
  const DataCache cache(job);
  std::set<std::string> warnings;
  const auto gradients = [](const std::string& own) {
    return join_path(own, std::string(kCheckGradients) + ".safetensors");
  };
  std::string expected;  // the reference's folder
  const CheckedRun* reference = nullptr;
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    CheckedRun& run = report.runs[i];
    run.message = impossible(run.combination, rows);
    if (!run.message.empty()) {
      run.verdict = Verdict::impossible;
      continue;
    }
    Environment environment = current_environment();
    environment[kJobVariable] = text_to_hand(ResolvedJob(job_of(job, run.combination, rows, cache.path())));
    environment["REDCO_LOG"] = "warn";
    const std::string own = join_path(folder.path(), fmt::format("{}", i));
    const Finished end = run_to_end({program, kCheckCommand, folder.path(), own}, environment);
    const std::size_t known = warnings.size();
    const std::string message = error_of(end.err, end.code, warnings);
    if (warnings.size() > known && !reference)
      for (const std::string& w : warnings) warn("{}", w);
    const bool of_job =
        end.code == static_cast<int>(ExitCode::usage) || end.code == static_cast<int>(ExitCode::contents);
    if (of_job && i == 0 && run.combination.dp * run.combination.mp == 1)
      throw Error(static_cast<ExitCode>(end.code), message);
    if (end.code != 0) {
      run.verdict = Verdict::failed;
      run.code = end.code;
      run.message = message;
    } else {
      run.numbers = check_numbers(read_file(join_path(own, kCheckResult), i64{1} << 30));
      if (reference) {
        compare(run, reference->numbers, report.tolerance, gradients(own), gradients(expected));
        std::filesystem::remove_all(own);
      } else {
        run.verdict = Verdict::reference;
        reference = &run;
        expected = own;
        report.tolerance = check_tolerance(run.numbers.longest_sum, report.bf16);
      }
    }
    info("[check] {}: {}", title(run), name_of(run.verdict));
  }
  report.causes = likely_causes(report.runs);
  if (!reference && !o.json)
    throw Error(static_cast<ExitCode>(report.exit_code()),
                fmt::format("[check] no combination ran\n{}", fmt::join(messages_of(report.runs), "\n")));
  std::fputs((o.json ? to_json(report) : to_text(report)).c_str(), stdout);
  std::fflush(stdout);
  return report.exit_code();
}

}  // namespace redco
