#include "launch/host.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr int kMostSlots = 1 << 16;
constexpr i64 kMostRanks = 1 << 20;
constexpr i64 kMostHostfileBytes = i64{16} << 20;

bool is_name(std::string_view s) {
  if (s.empty() || s.size() > 253 || s.front() == '-') return false;
  return std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_';
  });
}

int parse_slots(std::string_view text, const std::string& where) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > kMostSlots)
    throw UsageError("{}: '{}' is no number of slots; expected 1 to {}", where, excerpt(text), kMostSlots);
  return n;
}

void check_name(std::string_view name, const std::string& where) {
  if (!is_name(name))
    throw UsageError(
        "{}: '{}' is no host name; expected name or name:slots, as node1:8 (letters, digits, '-', '.', '_')",
        where, excerpt(name));
}

// Keeps the list free of repeated hosts and absurd totals.
class Adder {
 public:
  void add(Host host, const std::string& where) {
    if (!seen_.emplace(host.name, where).second)
      throw UsageError("{}: host {} is named twice (before: {}); name it once, with all its slots", where,
                       host.name, seen_[host.name]);
    slots_ += host.slots;
    if (slots_ > kMostRanks) throw UsageError("{}: more than {} slots in all", where, kMostRanks);
    hosts_.push_back(std::move(host));
  }
  std::vector<Host> take() { return std::move(hosts_); }

 private:
  std::map<std::string, std::string> seen_;
  std::vector<Host> hosts_;
  i64 slots_ = 0;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

}  // namespace

Host parse_host(std::string_view text, const std::string& where) {
  const std::size_t colon = text.find(':');
  Host host{std::string(text.substr(0, colon)), 1};
  check_name(host.name, where);
  if (colon != std::string_view::npos) host.slots = parse_slots(text.substr(colon + 1), where);
  return host;
}

std::vector<Host> parse_hosts(const std::vector<std::string>& texts) {
  Adder adder;
  for (std::size_t i = 0; i < texts.size(); i++) {
    const std::string where = fmt::format("[parallel] hosts[{}]", i);
    adder.add(parse_host(texts[i], where), where);
  }
  return adder.take();
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file) {
  Adder adder;
  int number = 0, hosts = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    number++;
    const std::string where = fmt::format("[parallel] hostfile {}:{}", file, number);
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    Host host = parse_host(words[0], where);
    bool counted = words[0].find(':') != std::string_view::npos;
    int most = 0;
    for (std::size_t i = 1; i < words.size(); i++) {
      const std::size_t equals = words[i].find('=');
      const std::string_view key = words[i].substr(0, equals);
      const std::string_view value = equals == std::string_view::npos ? "" : words[i].substr(equals + 1);
      if (key == "slots") {
        if (counted) throw UsageError("{}: the slots of {} are given twice", where, host.name);
        host.slots = parse_slots(value, where);
        counted = true;
      } else if (key == "max_slots" || key == "max-slots") {
        most = parse_slots(value, where);
      } else {
        throw UsageError("{}: '{}' is not known here; expected `name`, `name:slots` or `name slots=N`", where,
                         excerpt(words[i]));
      }
    }
    if (most && most < host.slots)
      throw UsageError("{}: {} has slots={} above its max_slots={}", where, host.name, host.slots, most);
    adder.add(std::move(host), where);
    hosts++;
  }
  if (hosts == 0)
    throw UsageError("[parallel] hostfile {}: no host in it; expected one a line, as `node1 slots=8`", file);
  return adder.take();
}

std::vector<Host> read_hostfile(const std::string& path) {
  return parse_hostfile(read_file(path, kMostHostfileBytes), path);
}

i64 total_slots(const std::vector<Host>& hosts) {
  i64 n = 0;
  for (const Host& h : hosts) n += h.slots;
  return n;
}

std::vector<int> ranks_on(const std::vector<Host>& hosts, i64 n_ranks) {
  REDCO_CHECK(n_ranks >= 0, "{} ranks", n_ranks);
  std::vector<int> ranks;
  i64 left = n_ranks;
  for (const Host& h : hosts) {
    ranks.push_back(static_cast<int>(std::min<i64>(left, h.slots)));
    left -= ranks.back();
  }
  if (left > 0)
    throw UsageError(
        "[parallel] n_ranks={} but the {} host{} {} slots in all; give the hosts more slots (name:slots) or "
        "use at most {} ranks",
        n_ranks, hosts.size(), hosts.size() == 1 ? " has" : "s have", total_slots(hosts), total_slots(hosts));
  return ranks;
}

int host_of_rank(const std::vector<Host>& hosts, i64 rank) {
  i64 at = 0;
  for (std::size_t h = 0; h < hosts.size(); h++) {
    at += hosts[h].slots;
    if (rank < at) return static_cast<int>(h);
  }
  REDCO_CHECK(false, "rank {} of {} slots", rank, at);
  return -1;
}

}  // namespace redco
