// `parallel.layout: auto`: the layout of a training, chosen once by the launcher.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"
#include "plan/layout_search.h"
#include "plan/scaling.h"

namespace redco {

struct LayoutChoice {
  JobConfig job;  // with the fastest layout; the origin of its values is "parallel.layout=auto"
  std::vector<TimedSetting> fitting;  // the fastest first
  std::string speeds;                 // where the machine's speeds come from
};

// Tries the settings that the job leaves open (search_layouts), on one machine also the measured numbers of
// ranks. UsageError: no train.global_batch_size, or the machine's speed is not known. Error (doesnt_fit):
// nothing fits; names the nearest setting.
LayoutChoice choose_layout(JobConfig job);
// The fastest settings, for people.
std::string to_text(const LayoutChoice& choice);
// The plan (to_json(PlanReport)) with the settings as its array "layouts".
std::string with_layouts(const std::string& plan, const LayoutChoice& choice);

// The predicted scaling on the job's plan.devices (`redco plan --scale`); its open settings are chosen in the
// same way. UsageError as choose_layout().
Scaling plan_scaling(const JobConfig& job);

// The job; if its layout is auto, with the chosen one, or if it `resumes`, with that of the checkpoint which
// the training resumes from. Logs it.
JobConfig with_layout(JobConfig job, bool resumes);

}  // namespace redco
