// redco report: one HTML page about a training, from what lies in its workdir. The page needs nothing but
// itself: no network, no other file.
#pragma once

#include <string>

namespace redco {

struct ReportRequest {
  std::string workdir;
  std::string running;  // who trains there now, "" where nobody does
  double now = 0;       // seconds since 1970
};

// The page. UsageError: no such folder, or no training's; pieces that are missing or damaged are said on the
// page.
std::string make_report(const ReportRequest& request);

}  // namespace redco
