#include "check/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "assembly/data_cache.h"
#include "assembly/job_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporaries.h"
#include "base/words.h"
#include "check/step.h"
#include "job/prepare_job.h"
#include "launch/capture.h"
#include "run/handed_job.h"
#include "run/run.h"

namespace redco {

namespace {

using Verdict = CheckedRun::Verdict;
constexpr i64 kMostRanks = 4096, kMostRows = 1 << 20;

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

int run_check(JobConfig job, const CheckOptions& o, const std::string& program) {
  if (is_rank_process())
    throw UsageError("redco check starts its ranks itself. Start it once, without mpirun and srun");
  const std::optional<std::string> workdir = job.workdir;
  if (!workdir) job.workdir = ".";  // nothing is written there
  prepare_job(job, JobUse::train, model_key_problems);
  job.workdir = workdir;
  const auto ranks = declared_ranks(job);
  const i64 rows = batch_sizes(job, ranks ? mesh_of(job, *ranks).dp() : 1).global;

  CheckReport report{.pipeline = job.pipeline, .bf16 = job.train.compute_dtype == ComputeDType::bf16};
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
    // The step does not repeat, so nothing can be compared.
    if (end.code == static_cast<int>(ExitCode::check_failed)) throw Error(ExitCode::check_failed, message);
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
    info("[check] {}: {}", title_of(run), name_of(run.verdict));
  }
  report.causes = likely_causes(report.runs, report.tolerance);
  if (!reference && !o.json)
    throw Error(static_cast<ExitCode>(report.exit_code()),
                fmt::format("[check] no combination ran\n{}", fmt::join(report.messages(), "\n")));
  std::fputs((o.json ? to_json(report) : to_text(report)).c_str(), stdout);
  std::fflush(stdout);
  return report.exit_code();
}

}  // namespace redco
