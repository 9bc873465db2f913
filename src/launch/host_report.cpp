#include "launch/host_report.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/timing.h"
#include "base/words.h"
#include "launch/resource_limits.h"
#include "launch/session_folder.h"

namespace redco {

namespace {

using ReportJson = nlohmann::json;
constexpr int kNonceTries = 30;  // a network file system may need a moment to show a new file to other hosts
constexpr const char* kDaemonVariable = "REDCO_DAEMON";

int bits_of(const void* mask, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(mask);
  int n = 0;
  for (std::size_t i = 0; i < bytes; ++i) n += __builtin_popcount(at[i]);
  return n;
}

// "" if the first byte can be read, or the folder can be listed.
std::string why_unreadable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    DIR* folder = opendir(path.c_str());
    if (!folder) return std::strerror(errno);
    closedir(folder);
    return "";
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::strerror(errno);
  char byte = 0;
  const ssize_t n = read(fd, &byte, 1);
  const std::string why = n < 0 ? std::strerror(errno) : "";
  close(fd);
  return why;
}

std::string why_not_shared(const HostQuestions& q) {
  for (int tries = 0; tries < kNonceTries; ++tries) {
    if (exists(q.nonce_file)) {
      const std::string found = read_file(q.nonce_file, 64);
      if (found == q.nonce) return "";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return "does not see a file that the starting host wrote there";
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

pid_t parent_of(pid_t pid) {
  const std::string stat = file_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t close = stat.rfind(')');
  if (close == std::string::npos || close + 4 > stat.size()) return 0;
  return static_cast<pid_t>(std::atoi(stat.c_str() + close + 4));
}

std::string asker_text(pid_t pid) { return fmt::format("{} {}", host_name(), pid); }

// Launchers of trainings on this host that are not ancestors of this process: "process 17 in /work".
std::vector<std::string> other_trainings() {
  std::set<pid_t> mine;
  for (pid_t p = getpid(); p > 1 && mine.insert(p).second;) p = parent_of(p);
  const char* const variable = std::getenv(kAskerVariable);
  const std::string asker = variable ? variable : "";
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 1 || mine.count(pid) || !file_text(entry.path() / "comm").starts_with("redco")) continue;
    const std::string line = file_text(entry.path() / "cmdline");
    const std::size_t zero = line.find('\0');
    if (zero == std::string::npos || line.compare(zero + 1, 6, std::string("train\0", 6)) != 0) continue;
    const bool rank = file_text(entry.path() / "environ").find("OMPI_COMM_WORLD_RANK=") != std::string::npos;
    if (rank || asker == asker_text(pid)) continue;
    std::error_code none;
    const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", none);
    out.push_back(fmt::format("process {}{}", pid, none ? "" : " in " + excerpt(folder.string(), 120)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string HostNetwork::network() const {
  std::array<unsigned char, 16> bytes{};
  const bool six = address.find(':') != std::string::npos;
  if (inet_pton(six ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) != 1) return "";
  for (int bit = prefix; bit < (six ? 128 : 32); ++bit)
    bytes[static_cast<std::size_t>(bit) / 8] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!inet_ntop(six ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size())) return "";
  return fmt::format("{}/{}", text.data(), prefix);
}

std::vector<HostNetwork> own_networks() {
  std::vector<HostNetwork> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || !i->ifa_netmask || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
      continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (i->ifa_addr->sa_family == AF_INET) {
      const auto& a = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
      const auto& m = reinterpret_cast<const sockaddr_in*>(i->ifa_netmask)->sin_addr;
      if (inet_ntop(AF_INET, &a, text.data(), text.size()))
        out.push_back({i->ifa_name, text.data(), bits_of(&m, sizeof m)});
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      const auto& a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      const auto& m = reinterpret_cast<const sockaddr_in6*>(i->ifa_netmask)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&a) && inet_ntop(AF_INET6, &a, text.data(), text.size()))
        out.push_back({i->ifa_name, text.data(), bits_of(&m, sizeof m)});
    }
  }
  freeifaddrs(list);
  return out;
}

std::string asker_of_this_process() { return asker_text(getpid()); }

std::vector<std::string> arguments_of(const HostQuestions& q) {
  std::vector<std::string> out = {"hosts", "--here"};
  if (!q.nonce_file.empty()) out.insert(out.end(), {"--nonce-file", q.nonce_file, "--nonce", q.nonce});
  for (const std::string& f : q.files) out.insert(out.end(), {"--readable", f});
  return out;
}

HostReport report_of_this_host(const HostQuestions& q) {
  remove_empty_session_folders();
  HostReport r;
  r.time = wall_seconds();
  r.facts = facts_of(this_machine());
  read_memory("", r.memory_total, r.memory_available);
  if (const char* daemon = std::getenv(kDaemonVariable)) r.daemon = daemon;
  rlimit files{};
  r.open_files = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY
                     ? static_cast<i64>(files.rlim_max)
                     : -1;
  for (const std::string& path : q.files)
    if (const std::string why = why_unreadable(path); !why.empty()) r.files[path] = why;
  if (!q.nonce_file.empty()) r.workdir = why_not_shared(q);
  r.networks = own_networks();
  r.others = other_trainings();
  return r;
}

std::string to_json(const HostReport& r) {
  nlohmann::ordered_json j{{"host", r.facts.name},
                           {"cores", r.facts.cores},
                           {"isa", r.facts.isa},
                           {"cpu", r.facts.cpu},
                           {"can_bind", r.facts.can_bind},
                           {"cma", r.facts.cma},
                           {"version", r.version},
                           {"program", r.program},
                           {"library", r.library},
                           {"mpi", r.mpi},
                           {"daemon", r.daemon},
                           {"memory_total", r.memory_total},
                           {"memory_available", r.memory_available},
                           {"time", r.time},
                           {"open_files", r.open_files},
                           {"workdir", r.workdir},
                           {"files", r.files},
                           {"networks", nlohmann::ordered_json::array()},
                           {"others", r.others}};
  for (const HostNetwork& n : r.networks)
    j["networks"].push_back({{"interface", n.interface}, {"address", n.address}, {"prefix", n.prefix}});
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HostReport parse_host_report(const std::string& text) {
  const auto wrong = [&] {
    return ContentsError("'{}' is no report of a host; install the same redco on all hosts",
                         excerpt(text, 200));
  };
  const ReportJson j = ReportJson::parse(text, nullptr, false);
  if (!j.is_object()) throw wrong();
  HostReport r;
  try {
    const i64 cores = j.at("cores").get<i64>();
    if (cores < 1 || cores > 1 << 16) throw wrong();
    r.facts = {j.at("host"), static_cast<int>(cores), j.at("isa"),
               j.at("cpu"),  j.at("can_bind"),        j.at("cma")};
    r.version = j.at("version");
    r.program = j.at("program");
    r.library = j.at("library");
    r.mpi = j.at("mpi");
    r.daemon = j.at("daemon");
    r.memory_total = j.at("memory_total");
    r.memory_available = j.at("memory_available");
    r.time = j.at("time");
    r.open_files = j.at("open_files");
    r.workdir = j.at("workdir");
    r.files = j.at("files").get<std::map<std::string, std::string>>();
    for (const ReportJson& n : j.at("networks")) {
      const i64 prefix = n.at("prefix").get<i64>();
      if (prefix < 0 || prefix > 128) throw wrong();
      r.networks.push_back({n.at("interface"), n.at("address"), static_cast<int>(prefix)});
    }
    r.others = j.at("others").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw wrong();
  }
  return r;
}

}  // namespace redco
