// Which networks of the hosts the ranks may use for their messages. Pure.
#pragma once

#include <string>
#include <vector>

#include "launch/preflight.h"

namespace redco {

// Whether two reports are of one machine, which the job names twice: the same name and addresses.
bool same_machine(const HostReport& a, const HostReport& b);

// Whether all machines have different addresses in one network; also with fewer than two machines.
bool has_common_network(const std::vector<HostAnswer>& answers);

// The IPv4 networks in which all machines have different addresses, as "10.77.0.0/24"; empty if there is
// none, or if each host has only such networks, so that nothing must be chosen.
std::vector<std::string> networks_to_choose(const std::vector<HostAnswer>& answers);

// Whether one of the addresses is in one of the networks.
bool is_in(const std::vector<HostNetwork>& addresses, const std::vector<std::string>& networks);

// Without a common network: the IPv4 networks in which machines have the same address, so that it leads each
// of them to itself (docker0, virbr0).
std::vector<std::string> networks_to_leave_out(const std::vector<HostAnswer>& answers);

}  // namespace redco
