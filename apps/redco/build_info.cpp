// What this program was built from and with; in a file of its own, as it changes with every revision.
#include "commands.h"
#include "redco_revision.h"

namespace redco::cli {

std::string build_revision() { return REDCO_REVISION; }
std::string build_libraries() { return REDCO_LIBRARIES; }

}  // namespace redco::cli
