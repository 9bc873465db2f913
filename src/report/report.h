// redco report: one HTML page about a training, or about several. A page is one file that loads nothing.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct ReportRequest {
  std::string workdir;
  std::string running;  // who trains there now; "": nobody
  double now = 0;       // seconds since 1970
};
// The page about one run. It names the files that are damaged. UsageError: no such folder, or not a workdir.
std::string make_report(const ReportRequest& request);

// The page that compares runs: settings that differ, best metrics, curves over each other. Folders that are
// not workdirs are left out and added to `skipped`. UsageError: no folder is a workdir.
std::string make_comparison(const std::vector<ReportRequest>& requests, std::vector<std::string>& skipped);

}  // namespace redco
