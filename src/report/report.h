// redco report: one HTML page about a training run, from the files in its workdir. The page needs no network
// and no other file.
#pragma once

#include <string>

namespace redco {

struct ReportRequest {
  std::string workdir;
  std::string running;  // the process that trains there now; "" if there is none
  double now = 0;       // seconds since 1970
};

// The page. UsageError: the folder does not exist or is not the workdir of a training run. The page lists
// missing and damaged files.
std::string make_report(const ReportRequest& request);

}  // namespace redco
