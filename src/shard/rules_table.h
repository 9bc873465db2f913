// The rows of the plan's table of sharding rules. Used by shard/rules.cpp only; the public part is in
// shard/rules.h.
#pragma once

#include <vector>

#include "shard/param_name.h"
#include "shard/roles.h"
#include "shard/rules.h"

namespace redco {

// Groups the parameters by rule and spec into rows and sets each rule's pattern.
std::vector<RuleRow> make_rules_table(const std::vector<ParamInfo>& params,
                                      const std::vector<ParamName>& names, const std::vector<RoleInfo>& roles,
                                      std::vector<ShardingRule>& rules);

}  // namespace redco
