// What every report has: how it looks, and the script that shows the values under the pointer.
#pragma once

namespace redco {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace redco
