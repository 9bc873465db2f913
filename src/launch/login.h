// Hosts with options of ssh (HostLogin). mpirun knows one command line for all hosts, so it
// starts `redco login`, which adds the options of the host and becomes ssh.
#pragma once

#include <string>
#include <vector>

#include "launch/host.h"

namespace redco {

inline constexpr const char* kLoginsVariable = "REDCO_LOGINS";

// Sets the variables of this process by which mpirun starts `program login` instead of ssh. Does nothing if
// no host has a login. UsageError: the user has set another agent (OMPI_MCA_plm_rsh_agent), or the processes
// are started by SLURM.
void use_logins(const std::vector<Host>& hosts, const std::string& program);

// What a person gives ssh to reach the host: "-p 2222 ann@node1".
std::string ssh_target(const Host& host);

// The command line of ssh for the words that mpirun gives an agent: options, the host, a command. `logins`:
// the value of the variable. Throws ContentsError if it is damaged.
std::vector<std::string> ssh_words(const std::string& logins, const std::vector<std::string>& words);

// Replaces this process by ssh. Returns only with an exception.
[[noreturn]] void run_login(const std::vector<std::string>& words);

}  // namespace redco
