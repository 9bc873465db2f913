// train.profile: what each rank does during some steps of a training.
//
//   workdir/profile/rank-N.json    Chrome trace of rank N (tensor/profile.h)
//   workdir/profile/summary.json   times over all ranks: phases of a step, ops, collectives; for `redco
//   report`
#pragma once

#include <string>

#include "train/train_settings.h"

namespace redco {

class StepProfile {
 public:
  // `done`: steps that the run has made before it goes on; `total`: its last step. Warns on the first rank if
  // the steps to profile are not among the others.
  StepProfile(const ProfileSettings& settings, const std::string& workdir, i64 done, i64 total);

  // Before and after step number `step` (from 1). `last`: the run ends after it. end() is collective in the
  // last profiled step: it writes the files and logs a line. A file that can't be written is a warning.
  void begin(i64 step);
  void end(i64 step, bool last);

 private:
  void write(i64 step);
  ProfileSettings settings_;
  std::string workdir_;
  bool on_ = false;
};

}  // namespace redco
