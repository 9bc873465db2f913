// A process of a job that is started without ssh, other than process 0: it joins the first host and runs the
// commands that mpirun needs there.
#pragma once

#include <string>

#include "launch/join/starter.h"

namespace redco {

// Joins, and joins again after a lost connection; returns the job's exit code. A signal to this process makes
// the job save and end; a second one ends the commands of this host immediately, with code 8.
// Error(rank_failed) if process 0 does not answer for `seconds`; UsageError: process 0 refuses it.
int run_member(const JoinPlace& place, const std::string& key, double seconds);

}  // namespace redco
