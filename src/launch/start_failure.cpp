#include "launch/start_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace redco {

namespace {

constexpr auto kNone = std::string_view::npos;

// The text between the first `begin` and the next character of `ends`; "" without `begin`. Spaces after
// `begin` are skipped.
std::string between(std::string_view text, std::string_view begin, std::string_view ends) {
  std::size_t at = text.find(begin);
  if (at == kNone) return {};
  at = std::min(text.find_first_not_of(' ', at + begin.size()), text.size());
  return std::string(text.substr(at, text.find_first_of(ends, at) - at));
}

// The line that has `part`.
std::string_view line_with(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  if (at == kNone) return {};
  const std::size_t before = text.rfind('\n', at), begin = before == kNone ? 0 : before + 1;
  return text.substr(begin, text.find_first_of("\r\n", at) - begin);  // ssh ends lines with \r\n
}

std::string_view line_that_begins(std::string_view text, std::string_view part) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    if (line.starts_with(part)) return line;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

// "user@node2: Permission denied (publickey)." -> node2
std::string host_that_denies(std::string_view line) {
  const std::size_t at = line.find('@');
  return at == kNone ? std::string() : between(line.substr(at), "@", ":");
}

std::string host_or(const std::string& host, const char* fallback) {
  return host.empty() ? fallback : "host " + host;
}

}  // namespace

bool is_start_failure_line(std::string_view line) {
  static constexpr std::array<std::string_view, 6> kBegins{"ssh: ",
                                                           "Connection timed out during banner exchange",
                                                           "kex_exchange_identification: ",
                                                           "Connection to ",
                                                           "Connection closed by ",
                                                           "Connection reset by "};
  static constexpr std::array<std::string_view, 10> kParts{
      "Permission denied (",     "Host key verification failed", " has changed and you have requested",
      " host key is known for ", "orted: command not found",     "orted: not found",
      "orted: No such file",     "prted: command not found",     "prted: not found",
      "prted: No such file"};
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view b) { return line.starts_with(b); }) ||
         std::any_of(kParts.begin(), kParts.end(), [&](std::string_view p) { return line.find(p) != kNone; });
}

StartFailure find_start_failure(std::string_view text) {
  using Kind = StartFailure::Kind;
  if (text.find("plm_rsh_agent") != kNone) return {Kind::no_ssh, "", ""};
  if (const std::string host = between(text, "Could not resolve hostname ", ":\n"); !host.empty())
    return {Kind::unknown_name, host, ""};
  if (const std::string host = between(text, "connect to host ", " \n"); !host.empty()) {
    const std::string_view line = line_with(text, "connect to host ");
    const std::size_t colon = line.rfind(": ");
    return {Kind::no_connection, host, colon == kNone ? "" : std::string(line.substr(colon + 2))};
  }
  if (const std::string host = between(text, "Connection to ", " \n");
      !host.empty() && text.find("timed out") != kNone)
    return {Kind::no_connection, host, "Connection timed out"};
  if (const std::string_view line = line_with(text, "Permission denied ("); !line.empty())
    return {Kind::denied, host_that_denies(line), ""};
  if (const std::string_view line = line_with(text, " has changed and you have requested"); !line.empty()) {
    const std::string known = between(line, "Host key for ", " ");
    // "[node2]:2222" with another port than 22.
    return {Kind::changed_key, known.starts_with('[') ? between(known, "[", "]") : known, known};
  }
  if (text.find("Host key verification failed") != kNone)
    return {Kind::unknown_key, between(text, "key is known for ", " \n"), ""};
  for (const std::string_view broken : {"Connection closed by ", "Connection reset by "})
    if (const std::string_view line = line_that_begins(text, broken); !line.empty())
      return {Kind::no_connection, between(line, broken, " "), "the connection broke"};
  if (text.find("Connection timed out during banner exchange") != kNone)
    return {Kind::no_connection, "", "Connection timed out"};
  for (const char* daemon : {"orted: ", "prted: "})
    if (text.find(daemon) != kNone) return {Kind::no_open_mpi, "", ""};
  if (const std::string program = between(text, "Executable: ", "\n"); !program.empty())
    return {Kind::no_program, between(text, "Node: ", "\n"), program};
  if (const std::string folder = between(text, "Working directory: ", "\n"); !folder.empty())
    return {Kind::no_folder, between(text, "Node: ", "\n"), folder};
  if (text.find("not enough slots available") != kNone) return {Kind::slots, "", ""};
  if (text.find("processes than cpus") != kNone) return {Kind::cores, "", ""};
  return {};
}

std::string start_failure_message(const StartFailure& f) {
  using Kind = StartFailure::Kind;
  const std::string name = f.host.empty() ? "HOST" : f.host;
  const std::string target = f.target.empty() ? name : f.target;
  switch (f.kind) {
    case Kind::no_ssh:
      return "this host has no ssh, which mpirun needs to start ranks. Install it: apt-get install "
             "openssh-client";
    case Kind::unknown_name:
      return fmt::format(
          "host {0}: ssh does not know this name. Correct it where it is given (parallel.hosts, the hostfile or the "
          "batch system), or add it to DNS or /etc/hosts; then check `ssh {1} true`",
          name, target);
    case Kind::no_connection:
      return fmt::format(
          "host {}: ssh cannot connect{}. Check that the host is up and runs sshd: `ssh {} true`", name,
          f.what.empty() ? "" : ": " + f.what, target);
    case Kind::denied:
      return fmt::format(
          "{}: ssh asks for a password, which a launch cannot answer. Run `ssh-copy-id {}`, then check `ssh "
          "{} true`",
          host_or(f.host, "a host"), target, target);
    case Kind::unknown_key:
      return fmt::format("{}: ssh does not know its key. Run `ssh {} true` once and accept the key",
                         host_or(f.host, "a host"), target);
    case Kind::changed_key:
      return fmt::format(
          "{}: its key is not the one that ssh knows. Either the host was installed again, or another machine has "
          "its name or address. If it is the right one, run `ssh-keygen -R '{}'`, then `ssh {} true` once",
          host_or(f.host, "a host"), f.what.empty() ? name : f.what, target);
    case Kind::no_answer:
      return fmt::format(
          "host {}: ssh connects, but no answer within {}. A file system there may hang, or the host may be "
          "overloaded: check `ssh {} ls` of the working folder, workdir and the model",
          f.host, f.what, target);
    case Kind::no_open_mpi:
      return fmt::format(
          "{} lacks Open MPI (its program orted; version 5: prted). Install it there: apt-get install "
          "openmpi-bin; then check `ssh {} mpirun --version`",
          host_or(f.host, "a host"), target);
    case Kind::no_program:
      return fmt::format(
          "host {0} cannot run {1}. Install redco there at the same path; then check `ssh {2} {1} env`",
          f.host, f.what, target);
    case Kind::no_folder:
      return fmt::format(
          "host {} has no folder {}. Start redco in a folder that all hosts share, or create the folder "
          "there",
          f.host, f.what);
    case Kind::slots:
      return "the job has more ranks than mpirun counts slots. Give the hosts more slots (name:slots in "
             "parallel.hosts), or lower parallel.n_ranks";
    case Kind::cores:
      return "a host has fewer cores than ranks x threads, so mpirun cannot pin the ranks. Lower "
             "parallel.threads_per_rank or the host's slots";
    case Kind::unknown:
      break;
  }
  return "a host cannot be reached, or its connection broke, so no ranks run. Check for each host that `ssh "
         "HOST redco env` works without a password, with redco and Open MPI at the same paths";
}

bool may_answer_later(const StartFailure& f) {
  using Kind = StartFailure::Kind;
  return f.kind == Kind::unknown || f.kind == Kind::no_connection || f.kind == Kind::no_answer;
}

}  // namespace redco
