// The style sheet and the script that each page contains. The script shows the values under the pointer.
#pragma once

namespace redco {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace redco
