// CostModel: the predicted time of a submitted kernel call or collective on a machine whose speeds are known.
//
// A kernel's time is its work (plan/call_work.h) times the measured seconds per unit of work, interpolated at
// its sizes. Each operand counts with the bytes that it has, at the speed for its own reuse distance: memory
// that was touched a moment ago comes from a cache. A collective is a latency and bytes: inside a host as
// measured, between hosts over the network link, which the groups of a host share.
#pragma once

#include "comm/group.h"
#include "kernels/reuse.h"
#include "plan/call_work.h"
#include "plan/devices.h"
#include "plan/machine_speeds.h"

namespace redco {

// How the ranks of a group lie on hosts.
struct GroupShape {
  int ranks = 1, hosts = 1;
  int per_host = 1;  // ranks of the group on the fullest host
  int sharing = 1;   // groups like this one that send through the link of a host at the same time
};
GroupShape shape_of(const Machines& machines, const Mesh& mesh, Axis axis, int rank);
GroupShape shape_of_all(const Machines& machines, const Mesh& mesh);

class CostModel {
 public:
  explicit CostModel(MachineSpeeds speeds) : speeds_(std::move(speeds)) {}
  const MachineSpeeds& speeds() const { return speeds_; }

  // Seconds of a call; `memory` knows what was touched before, and learns what the call touches.
  double kernel(const CallWork& work, kernels::ReuseDistance& memory) const;
  // The same with one reuse distance for all operands.
  double kernel(const CallWork& work, double distance) const;
  // Seconds that a rank computes, and those of messages between hosts, while which it may compute something
  // else.
  struct Transfer {
    double busy = 0, network = 0;
  };
  Transfer collective(Collective kind, i64 bytes, const GroupShape& group) const;
  double op() const { return speeds_.op_s; }

 private:
  MachineSpeeds speeds_;
};

}  // namespace redco
