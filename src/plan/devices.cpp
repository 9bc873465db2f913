#include "plan/devices.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/words.h"
#include "comm/hosts.h"

namespace redco {

i64 Machines::ranks() const { return std::accumulate(slots.begin(), slots.end(), i64{0}); }

int Machines::host_of(i64 rank) const {
  int host = 0;
  for (const int s : slots) {
    if (rank < s) return host;
    rank -= s;
    ++host;
  }
  // If there are more ranks than slots, the last host takes the rest (this machine, oversubscribed).
  return std::max(0, static_cast<int>(slots.size()) - 1);
}

int Machines::most_ranks_per_host(i64 n) const {
  i64 most = 0, left = n;
  for (size_t h = 0; h < slots.size(); ++h) {
    const i64 here = h + 1 == slots.size() ? left : std::min<i64>(left, slots[h]);
    most = std::max(most, here);
    left -= here;
  }
  return static_cast<int>(std::max<i64>(1, most));
}

Machines::Share Machines::tightest(i64 n) const {
  if (own_memory) return {1, memory, ""};
  if (memories.empty()) return {most_ranks_per_host(n), memory, ""};
  std::vector<i64> ranks(slots.size());
  for (i64 r = 0; r < n; ++r) ++ranks[host_of(r)];
  Share least;
  for (size_t h = 0; h < slots.size(); ++h) {
    const Share s{ranks[h], memories[h], names[h]};
    if (s.ranks > 0 && (least.host.empty() || s.of_rank() < least.of_rank())) least = s;
  }
  return least;
}

namespace {

std::string trimmed(const std::string& s) {
  const size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

}  // namespace

Machines parse_devices(const std::string& text) {
  auto wrong = [&](const std::string& why) -> UsageError {
    return UsageError("[plan] plan.devices='{}': {}; expected HOSTS x DEVICES x MEMORY, e.g. 2 x 4 x 32GiB",
                      excerpt(text), why);
  };
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == 'x' || c == 'X') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  // "4 hosts x 64 GiB": a device with all the memory of each host.
  const auto drop_word = [](std::string& part, const char* word) {
    part = trimmed(part);
    for (const std::string& w : {std::string(word) + "s", std::string(word)})
      if (part.size() > w.size() && part.ends_with(w)) {
        part = trimmed(part.substr(0, part.size() - w.size()));
        return true;
      }
    return false;
  };
  const bool of_hosts = drop_word(parts[0], "host");
  if (parts.size() == 2 && of_hosts) parts.insert(parts.begin() + 1, "1");
  if (parts.size() != 3) throw wrong(fmt::format("{} parts", parts.size()));
  drop_word(parts[1], "device");
  auto count = [&](const std::string& part, const char* what) {
    const std::string s = trimmed(part);
    i64 n = 0;
    const auto r = std::from_chars(s.data(), s.data() + s.size(), n);
    if (r.ec != std::errc() || r.ptr != s.data() + s.size() || n < 1 || n > 65536)
      throw wrong(fmt::format("'{}' is not a number of {} from 1 to 65536", excerpt(s), what));
    return static_cast<int>(n);
  };
  const int hosts = count(parts[0], "hosts"), devices = count(parts[1], "devices");
  if (i64{hosts} * devices > (1 << 20)) throw wrong("more than 1048576 devices");
  const std::string memory = trimmed(parts[2]);
  i64 bytes = 0;
  try {
    bytes = static_cast<i64>(parse_bytes(memory));
  } catch (const UsageError& e) {
    throw wrong(e.what());
  }
  if (bytes < (1 << 20)) throw wrong(fmt::format("{} of memory", human_bytes(static_cast<u64>(bytes))));
  Machines m;
  m.slots.assign(hosts, devices);
  m.memory = bytes;
  m.own_memory = true;
  m.text = fmt::format("{} x {} x {}", counted(hosts, "host"), counted(devices, "device"), memory);
  return m;
}

namespace {

// host_of[i]: of the group's rank i, 0 to n_hosts - 1.
Crossing crossing_of_group(const std::vector<int>& host_of, int n_hosts) {
  const auto n = static_cast<double>(host_of.size());
  std::vector<double> ranks(n_hosts);
  for (const int h : host_of) ++ranks[h];
  const auto subtrees = subtrees_of_hosts(host_of, n_hosts);
  double terms = 0;
  for (const auto& of_host : subtrees) terms += static_cast<double>(of_host.size());
  Crossing c{.crosses = n_hosts > 1};
  for (int h = 0; h < n_hosts; ++h) {
    c.exchange += ranks[h] * (n - ranks[h]) / n;  // a rank sends 1/n of its buffer to each other rank
    // Of each slice, 1/n of the data, the other hosts send the terms that they have added, and get the
    // result.
    c.reduce_scatter += ranks[h] * (terms - static_cast<double>(subtrees[h].size())) / n;
    c.all_gather += ranks[h] * (n_hosts - 1) / n;
  }
  return c;
}

}  // namespace

Crossing crossing(const Machines& m, const Mesh& mesh, Axis axis) {
  Crossing c;
  const int n = mesh.size(axis);
  if (n == 1) return c;
  std::vector<int> host(mesh.ranks());
  {
    int at = 0;
    for (size_t h = 0; h < m.slots.size(); ++h)
      for (int s = 0; s < m.slots[h] && at < mesh.ranks(); ++s) host[at++] = static_cast<int>(h);
    for (; at < mesh.ranks(); ++at) host[at] = m.host_of(at);
  }
  const int groups = mesh.ranks() / n;
  std::vector<int> pattern;
  Crossing of_one;
  for (int g = 0; g < groups; ++g) {
    // The ranks of a group differ in their index on this axis only.
    const int stride = mesh.stride(axis), first = g / stride * stride * n + g % stride;
    auto rank = [&](int i) { return first + i * stride; };
    // The group's own numbers of its hosts, by which groups of one pattern are counted once.
    std::vector<int> number(m.slots.size() + 1, -1), of_group(n);
    int n_hosts = 0;
    for (int i = 0; i < n; ++i) {
      int& of_host = number[host[rank(i)]];
      if (of_host < 0) of_host = n_hosts++;
      of_group[i] = of_host;
    }
    if (n_hosts == 1) continue;
    c.crosses = true;
    if (of_group != pattern) {
      pattern = of_group;
      of_one = crossing_of_group(of_group, n_hosts);
    }
    c.exchange += of_one.exchange;
    c.all_gather += of_one.all_gather;
    c.reduce_scatter += of_one.reduce_scatter;
  }
  c.all_reduce = c.reduce_scatter + c.all_gather;
  return c;
}

}  // namespace redco
