#include "launch/batch_hosts.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr i64 kMostBytes = i64{16} << 20;

std::string variable(const Environment& e, const char* name) {
  const auto it = e.find(name);
  return it == e.end() ? "" : it->second;
}

void add_slots(std::vector<Host>& hosts, const std::string& name, i64 slots) {
  const auto it = std::find_if(hosts.begin(), hosts.end(), [&](const Host& h) { return h.name == name; });
  if (it == hosts.end())
    hosts.push_back({name, static_cast<int>(slots)});
  else
    it->slots += static_cast<int>(slots);
}

// Checks names and slots as those of a job.
BatchHosts checked(const std::vector<Host>& hosts, const std::string& source) {
  HostList list;
  for (const Host& h : hosts) list.add(text_of(h), source);
  return {list.hosts(), source};
}

// A file with the name of a host for each slot.
BatchHosts hosts_of_file(const std::string& path, const std::string& source) {
  if (!exists(path))
    throw UsageError(
        "{0}={1}: this file does not exist. Start redco on the first host of the job; if the job has ended, run "
        "`unset {0}` to use this machine",
        source, path);
  std::vector<Host> hosts;
  std::istringstream in(read_file(path, kMostBytes));
  for (std::string name; in >> name;) add_slots(hosts, name, 1);
  if (hosts.empty()) throw UsageError("{}={} names no host; expected one a line", source, path);
  return checked(hosts, source);
}

}  // namespace

BatchHosts batch_hosts(const Environment& e) {
  std::vector<Host> hosts;
  if (const std::string path = variable(e, "PBS_NODEFILE"); !path.empty())
    return hosts_of_file(path, "PBS_NODEFILE");
  if (const std::string list = variable(e, "LSB_MCPU_HOSTS"); !list.empty()) {
    std::istringstream in(list);
    std::string name;
    for (i64 slots = 0; in >> name;) {
      if (!(in >> slots) || slots < 1 || slots > 1 << 16)
        throw UsageError("LSB_MCPU_HOSTS='{}' is no list of hosts; expected 'node1 4 node2 4'",
                         excerpt(list));
      add_slots(hosts, name, slots);
    }
    return checked(hosts, "LSB_MCPU_HOSTS");
  }
  if (const std::string path = variable(e, "LSB_DJOB_HOSTFILE"); !path.empty())
    return hosts_of_file(path, "LSB_DJOB_HOSTFILE");
  return {};
}

BatchHosts allocated_hosts(const Environment& e) {
  const auto slurm = detect_slurm(e);
  if (!slurm) return batch_hosts(e);
  return slurm->is_shell() ? BatchHosts() : BatchHosts{slurm->nodes, "SLURM"};
}

}  // namespace redco
