#include "pipeline/abi.h"

namespace redco {

std::string library_abi() { return REDCO_ABI; }

}  // namespace redco
