// A metric with the name of a built-in one.
#include "redco.h"

double zero(const std::vector<std::string>&, const std::vector<std::vector<std::string>>&) { return 0; }

REDCO_METRIC("rougeL", zero)
