// MachineSpeeds: how fast a machine runs redco's kernels and collectives: measured by `redco env --measure`
// (plan/measure.h), kept in a file, or stated.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "plan/speed_table.h"

namespace redco {

// What a measurement holds for: the processor, the kernels that it selects, and how its cores are used.
struct SpeedKey {
  std::string cpu, isa, blas;  // Machine::cpu, the instruction set in use, kernels::blas_core()
  int ranks = 1, threads = 1;  // ranks of a host that compute at the same time, and the threads of each
  bool operator==(const SpeedKey&) const = default;
};

// The kind whose speed counts for kernels without one.
inline constexpr const char* kAnyKernel = "any";

struct MachineSpeeds {
  SpeedKey key;
  std::string origin;  // "measured 2026-11-25 10:30 UTC", "stated": for people
  // Kernels: seconds per unit of CallWork. The axes are the sizes of CallWork::at, and at last the reuse
  // distance in bytes. Collectives by name: seconds per byte, by bytes: between all `ranks` ranks of a host,
  // and between one rank on each of network_hosts hosts (none: not known).
  std::map<std::string, SpeedTable> kernels, collectives, network;
  int network_hosts = 0;
  // What a transfer between hosts costs a rank that computes meanwhile, as a share of the transfer's time:
  // its core copies the messages and adds.
  double transfer_own = 0;
  double op_s = 0;  // host time of an op: checks, strategy, memory, tape

  // The table for a kind, or for the nearest one: words are dropped from its end until one begins with the
  // rest. Null: there is none.
  const SpeedTable* kernel(const std::string& kind) const;
};

// A machine of which only these figures are known. FLOP/s of products in fp32 and bf16, bytes/s of memory, of
// the links between ranks of a host, and between hosts; latencies in s. All are those of one rank.
struct StatedSpeeds {
  double flops_per_s = 0, bf16_flops_per_s = 0, memory_bytes_per_s = 0;
  double host_latency_s = 5e-6, host_bytes_per_s = 5e9;
  double network_latency_s = 2e-5, network_bytes_per_s = 1.25e9;
};
MachineSpeeds speeds_of(const StatedSpeeds& stated);
// Sets the speeds of the network to stated ones.
void state_network(MachineSpeeds& speeds, double latency_s, double bytes_per_s);

// --- Files ---
// The folder of this user's measurements: $XDG_CACHE_HOME/redco/machines, or ~/.cache/redco/machines.
std::string speeds_folder();
std::string speeds_path(const SpeedKey& key);
std::string to_json(const MachineSpeeds& speeds);
// ContentsError: the text is no measurement, or one of another format.
MachineSpeeds speeds_from_json(const std::string& text, const std::string& where);
// Replaces the stored measurement with this key. Returns the path.
std::string store_speeds(const MachineSpeeds& speeds);
// The stored measurement with this key; nullopt if there is none. ContentsError as above, also if the file
// holds another key.
std::optional<MachineSpeeds> load_speeds(const SpeedKey& key);

}  // namespace redco
