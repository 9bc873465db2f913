// The revision and the libraries of this build. They change with every revision, so they have their own file.
#include "commands.h"
#include "redco_revision.h"

namespace redco::cli {

std::string build_revision() { return REDCO_REVISION; }
std::string build_libraries() { return REDCO_LIBRARIES; }

}  // namespace redco::cli
