#include "launch/host_networks.h"

#include <algorithm>
#include <map>
#include <set>

namespace redco {

namespace {

struct Addresses {
  std::set<std::string> different;
  std::size_t machines = 0;  // that have an address there
};

struct Networks {
  std::map<std::string, Addresses> by_name;
  std::size_t machines = 0;
  bool is_common(const std::string& network) const {
    const auto it = by_name.find(network);
    return it != by_name.end() && it->second.different.size() == machines;
  }
};

bool is_ipv4(const std::string& network) { return network.find(':') == std::string::npos; }

Networks networks_of(const std::vector<HostAnswer>& answers) {
  Networks out;
  std::multimap<std::string, const HostReport*> seen;
  for (const HostAnswer& a : answers) {
    if (!a.report) continue;
    const auto [begin, end] = seen.equal_range(a.report->facts.name);
    if (std::any_of(begin, end, [&](const auto& s) { return same_machine(*s.second, *a.report); })) continue;
    seen.emplace(a.report->facts.name, &*a.report);
    ++out.machines;
    std::set<std::string> counted;
    for (const HostNetwork& net : a.report->networks) {
      Addresses& known = out.by_name[net.network()];
      known.different.insert(net.address);
      known.machines += counted.insert(net.network()).second ? 1 : 0;
    }
  }
  return out;
}

}  // namespace

bool same_machine(const HostReport& a, const HostReport& b) {
  const auto sorted = [](const HostReport& r) {
    std::set<std::string> out;
    for (const HostNetwork& n : r.networks) out.insert(n.address);
    return out;
  };
  return a.facts.name == b.facts.name && sorted(a) == sorted(b);
}

bool has_common_network(const std::vector<HostAnswer>& answers) {
  const Networks all = networks_of(answers);
  return all.machines < 2 || std::any_of(all.by_name.begin(), all.by_name.end(),
                                         [&](const auto& n) { return all.is_common(n.first); });
}

std::vector<std::string> networks_to_choose(const std::vector<HostAnswer>& answers) {
  const Networks all = networks_of(answers);
  std::vector<std::string> common;
  std::size_t n = 0;
  for (const auto& [network, addresses] : all.by_name) {
    if (!is_ipv4(network)) continue;
    ++n;
    if (all.is_common(network)) common.push_back(network);
  }
  return all.machines < 2 || common.size() == n ? std::vector<std::string>{} : common;
}

bool is_in(const std::vector<HostNetwork>& addresses, const std::vector<std::string>& networks) {
  return std::any_of(addresses.begin(), addresses.end(), [&](const HostNetwork& a) {
    return std::find(networks.begin(), networks.end(), a.network()) != networks.end();
  });
}

std::vector<std::string> networks_to_leave_out(const std::vector<HostAnswer>& answers) {
  const Networks all = networks_of(answers);
  std::vector<std::string> out;
  for (const auto& [network, addresses] : all.by_name) {
    if (!is_ipv4(network)) continue;
    if (all.is_common(network)) return {};
    if (addresses.different.size() < addresses.machines) out.push_back(network);
  }
  return all.machines < 2 ? std::vector<std::string>{} : out;
}

}  // namespace redco
