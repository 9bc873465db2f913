#include "launch/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "launch/capture.h"
#include "launch/join/server.h"
#include "launch/login.h"
#include "launch/resource_limits.h"
#include "launch/watch/wire.h"

namespace redco {

namespace {

constexpr int kNoFolder = 121, kNoProgram = 122;  // statuses of the command on the host
constexpr double kMostClock = 5;                  // s

// A word of a POSIX shell's command line.
std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string folder_of_mpirun(const LaunchRequest& r) {
  const std::size_t slash = r.mpirun.rfind('/');
  return slash == std::string::npos ? "" : r.mpirun.substr(0, slash + 1);
}

// The program in the folders of `path`; "" if there is none. A path is not searched.
std::string find_in_path(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : "";
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = join_path(folder, program); access(file.c_str(), X_OK) == 0) return file;
  return "";
}

// What the host runs. It finds Open MPI's daemon (of version 4 orted, of version 5 prted) in the PATH of a
// login, or in the folder of mpirun, as mpirun does.
std::string script_of(const LaunchRequest& r, const std::string& program,
                      const std::vector<std::string>& words) {
  const auto of = [&](const char* name) {
    const auto it = r.environment.find(name);
    return it == r.environment.end() ? std::string() : it->second;
  };
  std::string s =
      fmt::format("cd {} || exit {}; [ -x {} ] || exit {}; ", quoted(std::filesystem::current_path()),
                  kNoFolder, quoted(program), kNoProgram);
  const std::string folder = folder_of_mpirun(r);
  s += "REDCO_DAEMON=$(command -v orted || command -v prted";
  for (const char* daemon : {"orted", "prted"})
    if (!folder.empty()) s += " || command -v " + quoted(folder + daemon);
  s += "); export REDCO_DAEMON; ";
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"})
    if (!of(name).empty()) s += fmt::format("{0}={1}; export {0}; ", name, quoted(of(name)));
  // A stopped process cannot notice that its connection has ended, and sshd does not end it.
  s += "case $(cat /proc/$PPID/comm 2>/dev/null) in sshd*) "
       "(cd /; while sleep 2 && [ -d /proc/$$ ]; do [ -d /proc/$PPID ] || kill -KILL $$; done) "
       "</dev/null >/dev/null 2>&1 & esac; ";
  s += "exec " + quoted(program);
  for (const std::string& a : words) s += " " + quoted(a);
  return s;
}

bool is_here(const LaunchRequest& r, const std::string& host) {
  return host == "localhost" || same_host(host, r.here.name);
}

// A file in the workdir that other hosts must see.
class Nonce {
 public:
  explicit Nonce(const std::string& workdir) {
    if (workdir.empty()) return;
    made_ = !is_folder(workdir);
    workdir_ = std::filesystem::absolute(workdir).string();
    make_dirs(workdir_);
    value_ = random_key();
    path_ = join_path(workdir_, ".hosts-" + value_);
    write_file_durable(path_, value_);
  }
  ~Nonce() {
    if (path_.empty()) return;
    ::unlink(path_.c_str());
    if (made_) ::rmdir(workdir_.c_str());  // fails where something else was put there
  }
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;
  HostQuestions questions(const std::vector<std::string>& files) const { return {path_, value_, files}; }

 private:
  std::string workdir_, path_, value_;
  bool made_ = false;
};

void explain(const LaunchRequest& r, const Host& host, const std::string& program, const Answered& got,
             double limit, HostAnswer& a) {
  if (got.code == kNotJoined) {
    a.failure = {StartFailure::Kind::no_connection, a.host, "its process has not joined"};
    a.problem = fmt::format("host {}: its redco process has not joined, or has left. Start it again", a.host);
    return;
  }
  if (got.late) {
    a.failure = {StartFailure::Kind::no_connection, a.host, fmt::format("no answer within {:g} s", limit)};
  } else if (got.code == kNoFolder) {
    a.failure = {StartFailure::Kind::no_folder, a.host, std::filesystem::current_path().string()};
  } else if (got.code == kNoProgram || got.code == 127 || got.code == 126) {
    a.failure = {StartFailure::Kind::no_program, a.host, program};
  } else {
    a.failure = find_start_failure(got.err);
    a.failure.host = a.host;  // ssh's text may have an address or an alias
  }
  a.failure.target = ssh_target(host);
  if (a.failure.kind == StartFailure::Kind::unknown && !is_here(r, a.host)) {
    std::string text = got.err.substr(0, got.err.find('\n'));
    a.problem = fmt::format("host {}: `redco hosts --here` {}{}. Check `ssh {} {} env`", a.host, got.problem,
                            text.empty() ? "" : ": " + excerpt(text, 160), a.failure.target, program);
    return;
  }
  a.problem = start_failure_message(a.failure);
}

}  // namespace

std::vector<std::string> agent_words(const LaunchRequest& r) {
  const auto of = [&](const char* name) {
    const auto it = r.environment.find(name);
    return it == r.environment.end() ? std::string() : it->second;
  };
  std::string agents = of("OMPI_MCA_plm_rsh_agent");
  if (agents.empty()) agents = "ssh : rsh";
  std::istringstream alternatives(agents);
  for (std::string one; std::getline(alternatives, one, ':');) {
    std::istringstream in(one);
    std::vector<std::string> words;
    for (std::string w; in >> w;) words.push_back(w);
    if (words.empty()) continue;
    words[0] = find_in_path(words[0], of("PATH"));
    if (words[0].empty()) continue;
    std::istringstream arguments(ssh_arguments(r.environment));
    for (std::string w; arguments >> w;) words.push_back(w);
    return words;
  }
  return {};
}

std::vector<std::string> command_on_host(const LaunchRequest& r, const std::string& host,
                                         const std::string& program, const std::vector<std::string>& words) {
  // A process that joined without ssh kills the processes with this mark at its end; ours has its own end.
  const std::string script = "unset REDCO_JOINED; " + script_of(r, program, words);
  if (is_here(r, host)) return {"sh", "-c", script};
  std::vector<std::string> argv = agent_words(r);
  if (argv.empty()) return {};
  argv.insert(argv.end(), {host, "exec sh -c " + quoted(script)});
  return argv;
}

std::vector<HostAnswer> ask_hosts(const LaunchRequest& r, const PreflightNeeds& needs,
                                  const std::string& program, double limit) {
  const Nonce nonce(needs.workdir);
  std::vector<std::string> files = needs.files;
  files.insert(files.end(), needs.data.begin(), needs.data.end());
  const std::vector<std::string> questions = arguments_of(nonce.questions(files));
  std::vector<HostAnswer> out;
  std::vector<std::vector<std::string>> commands;
  for (const Host& h : needs.hosts) {
    HostAnswer a;
    a.host = h.name;
    std::vector<std::string> argv = command_on_host(r, h.name, program, questions);
    a.way = is_here(r, h.name)                     ? "here"
            : argv.empty()                         ? "no ssh"
            : r.environment.count(kLoginsVariable) ? "ssh"
                                                   : file_name(argv[0]);
    if (argv.empty()) argv = {"false"};
    commands.push_back(std::move(argv));
    out.push_back(std::move(a));
  }
  const std::vector<Answered> answers = run_all(commands, r.environment, limit);
  for (std::size_t i = 0; i < out.size(); ++i) {
    HostAnswer& a = out[i];
    const Answered& got = answers[i];
    a.seconds = got.seconds;
    if (a.way == "no ssh") {
      a.failure = {StartFailure::Kind::no_ssh, a.host, ""};
      a.problem = start_failure_message(a.failure);
      continue;
    }
    // The shell of the login may print lines too.
    std::istringstream lines(got.out);
    std::string report;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with('{')) report = line;
    if (got.problem.empty() && !report.empty()) {
      try {
        a.report = parse_host_report(report);
        // The host read its clock at some moment of the question; only a difference beyond that counts.
        const double before = a.report->time - got.began, after = a.report->time - (got.began + got.seconds);
        a.clock = before < 0 ? before : after > 0 ? after : 0;
      } catch (const ContentsError& e) {
        a.problem = fmt::format("host {}: {}", a.host, e.what());
      }
      continue;
    }
    explain(r, needs.hosts[i], program, got, limit, a);
  }
  return out;
}

std::vector<std::string> networks_to_choose(const std::vector<HostAnswer>& answers) {
  std::map<std::string, std::set<std::string>> addresses;  // network -> addresses of its hosts
  std::set<std::string> all;
  std::size_t n = 0;
  for (const HostAnswer& a : answers) {
    if (!a.report) continue;
    ++n;
    for (const HostNetwork& net : a.report->networks)
      if (net.address.find(':') == std::string::npos) {
        addresses[net.network()].insert(net.address);
        all.insert(net.network());
      }
  }
  std::vector<std::string> common;
  // A network of which several hosts have the same address is one of each host alone (docker0, virbr0).
  for (const auto& [network, hosts] : addresses)
    if (hosts.size() == n) common.push_back(network);
  return n < 2 || common.size() == all.size() ? std::vector<std::string>{} : common;
}

namespace {

bool has_common_network(const std::vector<HostAnswer>& answers) {
  std::set<std::string> machines, networks;
  for (const HostAnswer& a : answers)
    if (a.report) {
      machines.insert(a.report->facts.name);
      for (const HostNetwork& net : a.report->networks) networks.insert(net.network());
    }
  if (machines.size() < 2) return true;
  return std::any_of(networks.begin(), networks.end(), [&](const std::string& network) {
    return std::all_of(answers.begin(), answers.end(), [&](const HostAnswer& a) {
      return !a.report || std::any_of(a.report->networks.begin(), a.report->networks.end(),
                                      [&](const HostNetwork& n) { return n.network() == network; });
    });
  });
}

// "0.2.0, program 1f3a5c7d, library 9e0b1f3a"
std::string build_of(const std::string& version, const std::string& program, const std::string& library) {
  return fmt::format("{}{}program {}, library {}", version, version.empty() ? "" : ", ", program.substr(0, 8),
                     library.substr(0, 8));
}

void compare(const PreflightNeeds& needs, const HostAnswer& a, int slots, bool first,
             std::vector<HostFinding>& out) {
  const HostReport& r = *a.report;
  const auto fails = [&](const std::string& text) { out.push_back({a.host, text, true}); };
  const auto notes = [&](const std::string& text) { out.push_back({a.host, text, false}); };
  if (r.program != needs.program || r.library != needs.library)
    fails(fmt::format("its redco is another build ({} there, {} here). Install the same redco on all hosts",
                      build_of(r.version, r.program, r.library),
                      build_of(needs.version, needs.program, needs.library)));
  if (!needs.mpi.empty() && r.mpi != needs.mpi)
    fails(fmt::format("{} there, {} here. Install the same Open MPI on all hosts", r.mpi, needs.mpi));
  if (a.way != "here" && r.daemon.empty())
    fails(
        "Open MPI's program orted (version 5: prted) is not there. Install it: apt-get install openmpi-bin");
  if (!r.workdir.empty())
    fails(fmt::format("{}: {}. Put workdir on a file system that all hosts share", needs.workdir, r.workdir));
  for (const auto& [path, why] : r.files) {
    const bool data = std::find(needs.data.begin(), needs.data.end(), path) != needs.data.end();
    const std::string text = fmt::format(
        "it cannot read {}: {}. Put the file on a file system that all hosts share, or copy it there", path,
        why);
    data && !first ? notes(text) : fails(text);
  }
  // A connection for each rank, and a pipe to each host for its keeper.
  const i64 open_files = needs.n_ranks + static_cast<i64>(needs.hosts.size()) + kOtherOpenFiles;
  if (r.open_files >= 0 && r.open_files < open_files)
    fails(fmt::format(
        "a process may open {} files (ulimit -Hn), and {} ranks on {} hosts need {}. Raise the limit, for "
        "example in /etc/security/limits.conf",
        r.open_files, needs.n_ranks, needs.hosts.size(), open_files));
  const i64 memory = needs.memory_per_rank * slots;
  if (memory > r.memory_available)
    fails(
        fmt::format("{} need {} by the plan, and {} are available. Give the host fewer slots, or use more "
                    "model shards",
                    counted(slots, "rank"), human_bytes(static_cast<u64>(memory)),
                    human_bytes(static_cast<u64>(r.memory_available))));
  if (const int threads = slots * std::max(1, needs.threads_per_rank); threads > r.facts.cores)
    notes(fmt::format("{} with {} each share {}. Lower its slots or parallel.threads_per_rank",
                      counted(slots, "rank"), counted(std::max(1, needs.threads_per_rank), "thread"),
                      counted(r.facts.cores, "core")));
  if (std::fabs(a.clock) > kMostClock)
    notes(fmt::format(
        "its clock is {:.0f} s {} this host's. Times in its messages differ; set the clock (chrony)",
        std::fabs(a.clock), a.clock > 0 ? "ahead of" : "behind"));
  for (const std::string& other : r.others)
    notes(fmt::format("another redco trains there ({}). Both share its cores and memory", other));
}

}  // namespace

std::vector<HostFinding> findings(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers) {
  std::vector<HostFinding> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const HostAnswer& a = answers[i];
    if (a.report)
      compare(needs, a, i < needs.hosts.size() ? needs.hosts[i].slots : 1, i == 0, out);
    else
      out.push_back({a.host, a.problem, true});
  }
  if (!has_common_network(answers))
    out.push_back(
        {"", "the hosts have no network in common, so the messages of the ranks need a router", false});
  return out;
}

namespace {

std::string line_of(const HostFinding& f) {
  const bool names = f.host.empty() || f.text.starts_with("host " + f.host);
  return fmt::format("{}: {}{}", f.fails ? "error" : "note", names ? "" : "host " + f.host + ": ", f.text);
}

// Columns of equal width.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> addresses_of(const HostReport& r) {
  std::vector<std::string> out;
  for (const HostNetwork& n : r.networks)
    if (n.address.find(':') == std::string::npos) out.push_back(n.interface + " " + n.address);
  return out;
}

}  // namespace

std::string preflight_text(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers) {
  std::vector<std::vector<std::string>> rows = {
      {"host", "ranks", "reached by", "seconds", "redco", "cores", "memory", "clock", "workdir", "networks"}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const HostAnswer& a = answers[i];
    std::vector<std::string> row = {a.host,
                                    fmt::format("{}", i < needs.hosts.size() ? needs.hosts[i].slots : 1),
                                    a.way, fmt::format("{:.1f}", a.seconds)};
    if (a.report) {
      const HostReport& r = *a.report;
      const bool same = r.program == needs.program && r.library == needs.library;
      row.insert(row.end(),
                 {same ? r.version : "other build", fmt::format("{}", r.facts.cores),
                  human_bytes(static_cast<u64>(r.memory_available)), fmt::format("{:+.0f} s", a.clock),
                  needs.workdir.empty() ? "-"
                  : r.workdir.empty()   ? "shared"
                                        : "not shared",
                  fmt::format("{}", fmt::join(addresses_of(r), ", "))});
    } else {
      row.emplace_back("no answer");
      row.resize(rows[0].size(), "-");
    }
    rows.push_back(std::move(row));
  }
  std::string text = table(rows);
  for (const HostFinding& f : findings(needs, answers)) text += line_of(f) + "\n";
  return text;
}

std::string preflight_json(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers) {
  nlohmann::ordered_json j{{"hosts", nlohmann::ordered_json::array()},
                           {"findings", nlohmann::ordered_json::array()},
                           {"networks", networks_to_choose(answers)}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const HostAnswer& a = answers[i];
    nlohmann::ordered_json h{
        {"host", a.host},     {"ranks", i < needs.hosts.size() ? needs.hosts[i].slots : 1},
        {"way", a.way},       {"seconds", a.seconds},
        {"clock_s", a.clock}, {"answered", a.report.has_value()}};
    if (a.report)
      h["report"] = nlohmann::ordered_json::parse(to_json(*a.report));
    else
      h["problem"] = a.problem;
    j["hosts"].push_back(h);
  }
  bool ok = true;
  for (const HostFinding& f : findings(needs, answers)) {
    j["findings"].push_back({{"host", f.host}, {"fails", f.fails}, {"text", f.text}});
    ok = ok && !f.fails;
  }
  j["ok"] = ok;
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace redco
