// Why ranks could not be started, from the text of ssh and mpirun, which have no other interface.
#pragma once

#include <string>
#include <string_view>

namespace redco {

struct StartFailure {
  enum class Kind : std::uint8_t {
    unknown,        // text that redco does not know
    no_ssh,         // this host has no ssh
    unknown_name,   // the host's name has no address
    no_connection,  // ssh cannot connect
    denied,         // ssh asks for a password
    unknown_key,    // ssh does not know the host's key
    changed_key,    // ssh knows another key of the host; `what`: its name in known_hosts, or ""
    no_answer,      // ssh reaches the host, but a command there does not end within `what`
    no_open_mpi,    // the host has no orted
    no_program,     // the host cannot run `what`
    no_folder,      // the host has no folder `what`
    slots,          // more ranks than slots
    cores,          // ranks x threads do not fit the host's cores
  } kind = Kind::unknown;
  std::string host;      // "": unknown
  std::string what;      // no_program, no_folder: its path; no_connection: the system's reason, or ""
  std::string target{};  // what ssh takes for the host: "-p 2222 ann@node1"; "": the host
};

// Whether a line is ssh's or a remote shell's report of a failed start: "ssh: connect to host ...", "...
// orted: command not found".
bool is_start_failure_line(std::string_view line);

// `text`: what ssh and mpirun wrote to stderr.
StartFailure find_start_failure(std::string_view text);

// Host, reason and remedy on one line; for Kind::unknown a check that works for every host.
std::string start_failure_message(const StartFailure& failure);

// Whether the host may answer later: its network or the host itself is down. Every other reason needs a
// person.
bool may_answer_later(const StartFailure& failure);

}  // namespace redco
