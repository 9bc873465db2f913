// The daemon that mpirun starts on each host: orted of Open MPI 4, prted of version 5.
#pragma once

namespace redco::watchdog {

// If the daemon of this host started this process: SIGTERM, and SIGKILL if it exists `patience` seconds
// later. For a host that has lost the network: the daemon's message about the end of a rank is never
// acknowledged, TCP repeats it for 15 minutes (tcp_retries2), and keepalive (oob_tcp_keepalive_time) doesn't
// count meanwhile.
void end_daemon(double patience);

}  // namespace redco::watchdog
