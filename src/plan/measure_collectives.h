// Times of collectives of a group, and where the ranks are.
#pragma once

#include <map>
#include <string>

#include "comm/group.h"
#include "plan/probes.h"
#include "plan/speed_table.h"

namespace redco {

// Where this rank is among the hosts of a group. Ranks of one host have the same name.
struct RankPlace {
  int hosts = 1;
  int host = 0, place = 0;  // of this rank: its host, and its number on it
  int least_ranks = 1;      // the smallest number of ranks on a host
};
RankPlace place_of_rank(Group& world);

// Seconds per byte of each collective, by the name of its kind. Ends early for a group whose transfers take
// long: those of more bytes take longer in proportion.
std::map<std::string, SpeedTable> measure_collectives(Group& group, Probes& p);

// The first messages of a connection are slow: TCP widens its windows step by step.
void warm_up(Group& across);

}  // namespace redco
