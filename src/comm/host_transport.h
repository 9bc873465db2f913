// HostTransport: messages to ranks of this host go through shared memory (comm/host_link.h), those to other
// hosts through another transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/host_link.h"

namespace redco {

// world_ranks[r] and names[r] are those of rank r of the group, names for messages. `others` connects the
// same ranks. `group` is the number of the group, which no other group of the world has.
std::unique_ptr<Transport> make_host_transport(std::shared_ptr<HostLink> link, int rank,
                                               std::vector<int> world_ranks, std::vector<std::string> names,
                                               std::unique_ptr<Transport> others, u64 group);

// The error of a rank that waits for one message of a piece and finds another one of the same piece.
[[noreturn]] void throw_different_calls(const Label& mine, i64 expected, const std::string& other,
                                        Collective theirs, i64 their_call, i64 bytes);

}  // namespace redco
