#include "launch/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporaries.h"
#include "base/words.h"
#include "launch/capture.h"
#include "launch/host_networks.h"
#include "launch/join/server.h"
#include "launch/login.h"
#include "launch/resource_limits.h"
#include "launch/watch/wire.h"

namespace redco {

namespace {

constexpr int kNoFolder = 121, kNoProgram = 122;  // statuses of the command on the host
constexpr double kMostClock = 5;                  // s
// The first line of the command on a host. What a login prints before, also without a line break, is not
// ours.
constexpr const char* kLoginWorks = "redco: the login works";

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
      fmt::format("echo; echo '{}'; cd {} || exit {}; [ -x {} ] || exit {}; ", kLoginWorks,
                  quoted(std::filesystem::current_path()), kNoFolder, quoted(program), kNoProgram);
  s += fmt::format("{0}={1}; export {0}; ", kAskerVariable, quoted(asker_of_this_process()));
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
    const std::filesystem::path folder = std::filesystem::absolute(workdir);
    std::error_code error;
    for (auto p = folder; p.has_relative_path() && !std::filesystem::exists(p, error); p = p.parent_path())
      made_.push_back(p);
    make_dirs(folder);
    value_ = random_key();
    path_ = join_path(folder, ".hosts-" + value_);
    add_temporary(path_);
    write_file_durable(path_, value_);
  }
  ~Nonce() {
    if (path_.empty()) return;
    ::unlink(path_.c_str());
    forget_temporary(path_);
    // Fails where something else was put there.
    for (const std::string& folder : made_) ::rmdir(folder.c_str());
  }
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;
  HostQuestions questions(const std::vector<std::string>& files) const { return {path_, value_, files}; }

 private:
  std::string path_, value_;
  std::vector<std::string> made_;  // the deepest first
};

// The last line that is not empty, without blanks at its end: before it are banners and warnings.
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) last = line;
  }
  return excerpt(last, 160);
}

// Sets the failure and the problem of a host without a report.
void explain(const Host& host, const std::string& program, const Answered& got, double limit, HostAnswer& a) {
  using Kind = StartFailure::Kind;
  if (got.code == kNotJoined) {
    a.failure = {Kind::no_connection, a.host, "its process has not joined"};
    a.problem = fmt::format("host {}: its redco process has not joined, or has left. Start it again", a.host);
    return;
  }
  const bool works = got.out.find(kLoginWorks) != std::string::npos;
  const std::string text = last_line(got.err);
  if (got.late && works) {
    a.failure = {Kind::no_answer, a.host, fmt::format("{:g} s", limit)};
  } else if (got.late) {
    a.failure = {Kind::no_connection, a.host, fmt::format("no answer within {:g} s", limit)};
  } else if (works && got.code == kNoFolder) {
    a.failure = {Kind::no_folder, a.host, std::filesystem::current_path().string()};
  } else if (works && (got.code == kNoProgram || got.code == 127 || got.code == 126)) {
    a.failure = {Kind::no_program, a.host, program};
  } else {
    a.failure = find_start_failure(got.err);
    // Status 255 is ssh's own.
    if (a.failure.kind == Kind::unknown && !works && got.code == 255 && a.way == "ssh")
      a.failure = {Kind::no_connection, a.host, text};
    a.failure.host = a.host;  // ssh's text may have an address or an alias
  }
  a.failure.target = ssh_target(host);
  if (a.failure.kind != Kind::unknown) {
    a.problem = start_failure_message(a.failure);
    return;
  }
  const std::string how =
      (got.problem.empty() ? "ended without a report" : got.problem) + (text.empty() ? "" : ": " + text);
  const std::string check = a.way == "ssh" ? fmt::format("`ssh {} {} env`", a.failure.target, program)
                                           : fmt::format("`{} env` there", program);
  if (works)
    a.problem = fmt::format("host {}: `redco hosts --here` {}. Check {}", a.host, how, check);
  else
    a.problem = fmt::format(
        "host {}: the login {} before redco ran. A start file of its shell (~/.bashrc) may end or replace the "
        "command, or write too much; check {}",
        a.host, how, check);
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
    explain(needs.hosts[i], program, got, limit, a);
  }
  return out;
}

namespace {

// "0.2.0, program 1f3a5c7d, library 9e0b1f3a"
std::string build_of(const std::string& version, const std::string& program, const std::string& library) {
  return fmt::format("{}{}program {}, library {}", version, version.empty() ? "" : ", ", program.substr(0, 8),
                     library.substr(0, 8));
}

std::string cannot_read(const std::string& what) {
  return fmt::format(
      "it cannot read {}. Put the files on a file system that all hosts share, or copy them there", what);
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
  std::string unreadable;
  std::size_t n_unreadable = 0;
  for (const auto& [path, why] : r.files) {
    const std::string text = fmt::format("{}: {}", path, why);
    const bool data = std::find(needs.data.begin(), needs.data.end(), path) != needs.data.end();
    if (data)
      first ? fails(cannot_read(text)) : notes(cannot_read(text));
    else if (++n_unreadable == 1)
      unreadable = text;
  }
  if (n_unreadable > 1) unreadable += fmt::format(", and {}", counted(n_unreadable - 1, "more file"));
  if (n_unreadable > 0) fails(cannot_read(unreadable));
  // A connection for each rank, and a pipe to each host for its keeper.
  const i64 open_files = needs.n_ranks + static_cast<i64>(needs.hosts.size()) + kOtherOpenFiles;
  if (r.open_files >= 0 && r.open_files < open_files)
    fails(fmt::format(
        "a process may open {} files (ulimit -Hn), and {} ranks on {} hosts need {}. Raise the limit, for "
        "example in /etc/security/limits.conf",
        r.open_files, needs.n_ranks, needs.hosts.size(), open_files));
  const i64 memory = needs.memory_per_rank * slots;
  if (memory > r.memory_available)
    fails(fmt::format(
        "{} {} {} by the plan, and {} are available. Give the host fewer slots, or use more "
        "model shards",
        counted(slots, "rank"), slots == 1 ? "needs" : "need", human_bytes(static_cast<u64>(memory)),
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
  std::map<std::string, const HostAnswer*> names;  // the first host of each name
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const HostAnswer& a = answers[i];
    if (!a.report) {
      out.push_back({a.host, a.problem, true});
      continue;
    }
    compare(needs, a, i < needs.hosts.size() ? needs.hosts[i].slots : 1, i == 0, out);
    const auto [first, is_new] = names.emplace(a.report->facts.name, &a);
    if (is_new) continue;
    if (same_machine(*first->second->report, *a.report))
      out.push_back({a.host,
                     fmt::format("it is the same machine as host {}. Name it once, with all its slots",
                                 first->second->host),
                     false});
    else
      out.push_back(
          {a.host,
           fmt::format("it calls itself {}, as host {} does, so their memory counts as that of one host. "
                       "Give each host its own name: hostnamectl set-hostname NAME",
                       a.report->facts.name, first->second->host),
           false});
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
