#include "launch/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "base/text_encoding.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr int kMostSlots = 1 << 16;
constexpr std::size_t kMostHosts = 1 << 16;
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
  const i64 n = digits(text);
  if (n < 1 || n > kMostSlots)
    throw UsageError("{}: '{}' is not a number of slots; expected 1 to {}", where, excerpt(text), kMostSlots);
  return static_cast<int>(n);
}

[[noreturn]] void bad_range(std::string_view text, const char* why, const std::string& where) {
  throw UsageError("{}: '{}' {}; expected a list like node[1-3,07]", where, excerpt(text), why);
}

// The values of one pair of brackets: "1-3,07" -> 1 2 3 07.
std::vector<std::string> bracket_values(std::string_view inner, std::string_view all,
                                        const std::string& where) {
  std::vector<std::string> values;
  for (std::size_t at = 0; at <= inner.size();) {
    const std::size_t end = std::min(inner.find(',', at), inner.size());
    const std::string_view part = inner.substr(at, end - at);
    at = end + 1;
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const i64 from = digits(first),
              to = dash == std::string_view::npos ? from : digits(part.substr(dash + 1));
    if (from < 0 || to < from) bad_range(all, "has a bad range in its brackets", where);
    if (to - from >= static_cast<i64>(kMostHosts)) bad_range(all, "names too many hosts", where);
    for (i64 i = from; i <= to; i++) values.push_back(fmt::format("{:0{}}", i, first.size()));
    if (values.size() > kMostHosts) bad_range(all, "names too many hosts", where);
  }
  return values;
}

std::vector<std::string> expand_brackets(const std::string_view text, const std::string& where) {
  std::vector<std::string> names{""};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    for (auto& n : names) n += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) bad_range(text, "has an open bracket", where);
    const auto values = bracket_values(rest.substr(1, close - 1), text, where);
    if (names.size() * values.size() > kMostHosts) bad_range(text, "names too many hosts", where);
    std::vector<std::string> longer;
    for (const auto& n : names)
      for (const auto& v : values) longer.push_back(n + v);
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return names;
}

// Calls f(part) for each part between commas that are outside of brackets.
template <class F>
void for_each_entry(std::string_view text, F f) {
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); i++) {
    if (i < text.size() && text[i] == '[') inside = true;
    if (i < text.size() && text[i] == ']') inside = false;
    if (i < text.size() && (text[i] != ',' || inside)) continue;
    f(text.substr(begin, i - begin));
    begin = i + 1;
  }
}

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

constexpr const char* kForm =
    "expected name or name:slots, like node1:8, and as needed user=, port=, identity= or address=";

// The hosts of the first word of an entry.
std::vector<Host> parse_names(std::string_view text, const std::string& where) {
  HostLogin login;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    login.user = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const std::size_t colon = text.find(':');
  const std::string_view inner = text.starts_with('[') ? text.substr(1, text.find(']') - 1) : text;
  if (in6_addr address; inet_pton(AF_INET6, std::string(inner).c_str(), &address) == 1)
    throw UsageError("{}: '{}' is an IPv6 address; give the host a name, like `node1 slots=8 address={}`",
                     where, excerpt(text), excerpt(inner));
  const int slots = colon == std::string_view::npos ? 1 : parse_slots(text.substr(colon + 1), where);
  std::vector<Host> hosts;
  for (std::string& name : expand_brackets(text.substr(0, colon), where)) {
    if (!is_name(name))
      throw UsageError("{}: '{}' is not a host name (letters, digits, '-', '.', '_'); {}", where,
                       excerpt(name), kForm);
    hosts.push_back({std::move(name), slots, login});
  }
  return hosts;
}

// The words of an entry after its first.
class EntryWords {
 public:
  EntryWords(std::vector<Host>& hosts, std::string name, bool counted, const std::string& where)
      : hosts_(hosts), name_(std::move(name)), where_(where), counted_(counted) {}

  void add(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    if (key == "slots") {
      if (counted_) throw UsageError("{}: the slots of {} are given twice", where_, name_);
      for (Host& h : hosts_) h.slots = parse_slots(value, where_);
      counted_ = true;
    } else if (key == "max_slots" || key == "max-slots") {
      most_ = parse_slots(value, where_);
    } else if (key == "port") {
      const i64 port = digits(value);
      if (port < 1 || port > 65535)
        throw UsageError("{}: '{}' is not a port; expected port=1 to port=65535", where_, excerpt(word));
      for (Host& h : hosts_) h.login.port = static_cast<int>(port);
    } else if (std::string HostLogin::*field = text_field(key)) {
      // ssh would take a text that begins with a dash for an option.
      if (value.empty() || value.front() == '-')
        throw UsageError("{}: '{}' has no usable value; expected {}=TEXT", where_, excerpt(word), key);
      if (!(hosts_[0].login.*field).empty())
        throw UsageError("{}: the {} of {} is given twice", where_, key, name_);
      if (key == "address" && hosts_.size() > 1)
        throw UsageError("{}: {} hosts cannot have one address; give each its own entry", where_,
                         hosts_.size());
      for (Host& h : hosts_) h.login.*field = value;
    } else {
      throw UsageError("{}: '{}' is unknown; {}", where_, excerpt(word), kForm);
    }
  }

  void end() const {
    if (most_ && most_ < hosts_[0].slots)
      throw UsageError("{}: {} has slots={}, but max_slots={}; raise max_slots", where_, name_,
                       hosts_[0].slots, most_);
  }

 private:
  static std::string HostLogin::*text_field(std::string_view key) {
    return key == "user"       ? &HostLogin::user
           : key == "identity" ? &HostLogin::identity
           : key == "address"  ? &HostLogin::address
                               : nullptr;
  }

  std::vector<Host>& hosts_;
  const std::string name_;
  const std::string& where_;
  bool counted_;
  int most_ = 0;
};

// "slots = 8" as Open MPI also takes it -> "slots=8".
std::string without_blanks_at_equals(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\t';
    const std::size_t next = text.find_first_not_of(" \t", i);
    if (blank && ((!out.empty() && out.back() == '=') || (next < text.size() && text[next] == '='))) continue;
    out += text[i];
  }
  return out;
}

std::vector<Host> parse_entry(std::string_view given, const std::string& where) {
  const std::string text = without_blanks_at_equals(given);
  const auto words = words_of(text);
  const std::string_view first = words.empty() ? std::string_view(text) : words[0];
  std::vector<Host> hosts = parse_names(first, where);
  const std::string_view name = first.substr(0, first.find(':'));
  if (hosts[0].login.user.empty() ? name.find('@') != std::string_view::npos : hosts[0].login.user[0] == '-')
    throw UsageError("{}: '{}' names no user; expected user@name", where, excerpt(first));
  EntryWords rest(hosts, std::string(name.substr(name.find('@') + 1)),
                  first.find(':') != std::string_view::npos, where);
  for (std::size_t i = 1; i < words.size(); i++) rest.add(words[i]);
  rest.end();
  return hosts;
}

// "10.0.0.7": a part of it is not a name.
bool is_address(std::string_view name) {
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

i64 digits(std::string_view s) {
  i64 n = -1;
  if (s.empty() || s.size() > 9 || s.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  std::from_chars(s.data(), s.data() + s.size(), n);
  return n;
}

std::string brief_name(std::string_view name) {
  std::string out(is_address(name) ? name : name.substr(0, name.find('.')));
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool same_host(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); };
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), lower)) return true;
  const bool one_is_brief =
      (a.find('.') == std::string_view::npos) != (b.find('.') == std::string_view::npos);
  return one_is_brief && brief_name(a) == brief_name(b);
}

std::string text_of(const Host& h) {
  std::string text = fmt::format("{}:{}", h.name, h.slots);
  if (!h.login.user.empty()) text += " user=" + h.login.user;
  if (h.login.port) text += fmt::format(" port={}", h.login.port);
  if (!h.login.identity.empty()) text += " identity=" + h.login.identity;
  if (!h.login.address.empty()) text += " address=" + h.login.address;
  return text;
}

void HostList::add(std::vector<Host> hosts, const std::string& where) {
  for (Host& host : hosts) {
    std::vector<Seen>& alike = seen_[brief_name(host.name)];
    for (const Seen& first : alike)
      if (same_host(first.name, host.name))
        throw UsageError("{}: host {} is named twice (first: {}{}); name it once, with all its slots", where,
                         host.name, first.name == host.name ? "" : first.name + " in ", first.where);
    alike.push_back({host.name, where});
    slots_ += host.slots;
    if (slots_ > kMostRanks) throw UsageError("{}: the hosts have more than {} slots", where, kMostRanks);
    hosts_.push_back(std::move(host));
  }
}

void HostList::add(std::string_view entry, const std::string& where) {
  add(parse_entry(entry, where), where);
}

std::vector<Host> parse_list(std::string_view text, const std::string& where) {
  HostList list;
  for_each_entry(text, [&](std::string_view entry) { list.add(entry, where); });
  return list.hosts();
}

std::vector<Host> parse_hosts(const std::vector<std::string>& entries) {
  HostList list;
  for (std::size_t i = 0; i < entries.size(); i++) list.add(entries[i], fmt::format("parallel.hosts[{}]", i));
  return list.hosts();
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file) {
  HostList list;
  int number = 0;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    number++;
    const std::string where = fmt::format("{}:{}", file, number);
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    list.add(line, where);
  }
  if (list.hosts().empty())
    throw UsageError("{}: the hostfile names no host; expected one a line, like `node1 slots=8`", file);
  return list.hosts();
}

std::vector<Host> read_hostfile(const std::string& path) {
  return parse_hostfile(read_file(path, kMostHostfileBytes), path);
}

std::vector<Host> hosts_of_job(const std::vector<std::string>& hosts,
                               const std::optional<std::string>& hostfile) {
  if (!hosts.empty() && hostfile)
    throw UsageError("[parallel] hosts and hostfile are both set; keep one of them");
  return hostfile ? read_hostfile(*hostfile) : parse_hosts(hosts);
}

i64 total_slots(const std::vector<Host>& hosts) {
  i64 n = 0;
  for (const Host& h : hosts) n += h.slots;
  return n;
}

std::vector<int> ranks_on(const std::vector<Host>& hosts, i64 n_ranks, const SlotsNames& names) {
  REDCO_CHECK(n_ranks >= 0, "{} ranks", n_ranks);
  std::vector<int> ranks;
  i64 left = n_ranks;
  for (const Host& h : hosts) {
    ranks.push_back(static_cast<int>(std::min<i64>(left, h.slots)));
    left -= ranks.back();
  }
  const i64 slots = total_slots(hosts), n = static_cast<i64>(hosts.size());
  if (left > 0)
    throw UsageError("[parallel] n_ranks={}, but {} {}; {}, or use at most {}", n_ranks,
                     names.owner.empty()
                         ? fmt::format("the {} {}", counted(n, "host"), n == 1 ? "has" : "have")
                         : names.owner + " has",
                     counted(slots, names.slot), names.remedy, counted(slots, "rank"));
  return ranks;
}

}  // namespace redco
