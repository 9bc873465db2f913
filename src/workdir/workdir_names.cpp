#include "workdir/workdir_names.h"

#include <fmt/format.h>

#include "base/file.h"

namespace redco::workdir {

std::string profile_of_rank(int rank) { return join_path(kProfile, fmt::format("rank-{}.json", rank)); }
std::string calls_of_rank(int rank) { return join_path(kCalls, fmt::format("rank-{}.txt", rank)); }
std::string eval_output(const std::string& name) { return join_path(kEvalOutputs, name); }
std::string checkpoint(const std::string& name) { return join_path(kCheckpoints, name); }

const std::vector<Name>& names() {
  static const std::vector<Name> all = {
      {.name = kRecord, .of_run = true, .shows_a_run = true},
      {.name = kMetrics, .of_run = true, .shows_a_run = true},
      {.name = kHistory, .of_run = true, .shows_a_run = true},
      {.name = kConfig, .of_run = true, .shows_a_run = true},
      {.name = kLog, .of_run = true, .shows_a_run = true},
      {.name = kCheckpoints, .of_run = true, .shows_a_run = true},
      {.name = kPlan, .of_run = true, .shows_a_run = false},
      {.name = kEnvironment, .of_run = true, .shows_a_run = false},
      {.name = kBest, .of_run = true, .shows_a_run = false},
      {.name = kTensorboard, .of_run = true, .shows_a_run = false},
      {.name = kEvalOutputs, .of_run = true, .shows_a_run = false},
      {.name = kProfile, .of_run = true, .shows_a_run = false},
      {.name = kCalls, .of_run = true, .shows_a_run = false},
      {.name = kReport, .of_run = true, .shows_a_run = false},
      {.name = kCache, .of_run = false, .shows_a_run = false},
      {.name = kPrevious, .of_run = false, .shows_a_run = false},
      {.name = kLock, .of_run = false, .shows_a_run = false},
      {.name = kMoving, .of_run = false, .shows_a_run = false},
  };
  return all;
}

namespace {

std::vector<std::string> with(bool Name::*property) {
  std::vector<std::string> out;
  for (const Name& n : names())
    if (n.*property) out.emplace_back(n.name);
  return out;
}

}  // namespace

std::vector<std::string> names_of_run() { return with(&Name::of_run); }
std::vector<std::string> names_that_show_a_run() { return with(&Name::shows_a_run); }

}  // namespace redco::workdir
