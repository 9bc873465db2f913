// The parts of every report: the style sheet, and the script that shows values under the pointer.
#pragma once

namespace redco {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace redco
