// What a host tells about itself before ranks start there: `redco hosts --here`, run on each host of a job,
// prints it as one line of JSON. launch/preflight.h asks all hosts and judges their reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/choose_launcher.h"

namespace redco {

// An address of an interface that is up, without loopback and link-local ones.
struct HostNetwork {
  std::string interface, address;
  int prefix = 0;  // bits of the network
  // "10.77.0.0/24"
  std::string network() const;
  bool operator==(const HostNetwork&) const = default;
};
std::vector<HostNetwork> own_networks();

struct HostReport {
  HostFacts facts;
  std::string version;           // "0.2.0"
  std::string program, library;  // build ids
  std::string mpi;               // "Open MPI v4.1.4"
  std::string daemon;            // path of orted or prted as a login finds it, or ""
  i64 memory_total = 0, memory_available = 0;
  double time = 0;                           // seconds since 1970
  i64 open_files = 0;                        // hard limit of descriptors; -1: none
  std::string workdir;                       // "" the file of the asking host is there; else what is wrong
  std::map<std::string, std::string> files;  // path -> why it cannot be read; readable ones are left out
  std::vector<HostNetwork> networks;
  std::vector<std::string> others;  // other trainings there: "process 17 in /data/runs"
};

// What to look for on the host.
struct HostQuestions {
  std::string nonce_file, nonce;   // a file that the asking host wrote, and its contents; "": none
  std::vector<std::string> files;  // paths that must be readable
};
// The arguments of `redco hosts --here` for them, and back.
std::vector<std::string> arguments_of(const HostQuestions& q);

// The variable by which the asking process tells a host who it is: "HOST PID". Its own training is not
// another one.
inline constexpr const char* kAskerVariable = "REDCO_ASKER";
std::string asker_of_this_process();

// Of this process. The caller fills version, build ids and mpi, which launch does not see.
HostReport report_of_this_host(const HostQuestions& questions);

std::string to_json(const HostReport& report);  // on one line, without a line break
// ContentsError: the text is not such an object.
HostReport parse_host_report(const std::string& text);

}  // namespace redco
