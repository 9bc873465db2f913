#include "launch/login.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace redco {

void use_logins(const std::vector<Host>& hosts, const std::string& program) {
  nlohmann::json logins = nlohmann::json::object();
  for (const Host& h : hosts)
    if (h.login.given())
      logins[h.name] = {{"user", h.login.user},
                        {"port", h.login.port},
                        {"identity", h.login.identity},
                        {"address", h.login.address}};
  if (logins.empty()) return;
  const std::string which = "host " + logins.begin().key() + " has user, port, identity or address";
  if (const char* agent = std::getenv("OMPI_MCA_plm_rsh_agent"); agent && !std::getenv(kLoginsVariable))
    throw UsageError(
        "[parallel] {}, which are for ssh, but OMPI_MCA_plm_rsh_agent={} starts programs on the hosts; remove one "
        "of them",
        which, agent);
  if (std::getenv("SLURM_JOB_ID"))
    throw UsageError(
        "[parallel] {}, but SLURM starts the processes on the hosts of its job, without ssh; remove them",
        which);
  setenv(kLoginsVariable, logins.dump().c_str(), 1);
  setenv("OMPI_MCA_plm_rsh_agent", (program + " login").c_str(), 1);
  // Daemons on other hosts would start further ones, without this host's keys.
  setenv("OMPI_MCA_plm_rsh_no_tree_spawn", "1", 1);
}

std::string ssh_target(const Host& h) {
  std::string text;
  if (h.login.port) text += fmt::format("-p {} ", h.login.port);
  if (!h.login.identity.empty()) text += "-i " + h.login.identity + " ";
  if (!h.login.address.empty()) text += "-o HostName=" + h.login.address + " ";
  return text + (h.login.user.empty() ? "" : h.login.user + "@") + h.name;
}

std::vector<std::string> ssh_words(const std::string& text, const std::vector<std::string>& words) {
  const nlohmann::json logins = nlohmann::json::parse(text, nullptr, false);
  if (!logins.is_object()) throw ContentsError("[hosts] {} is damaged", kLoginsVariable);
  std::vector<std::string> out{"ssh"};
  bool found = false;
  for (const std::string& word : words) {
    if (const auto it = logins.find(word); it != logins.end() && !found) {
      found = true;
      const nlohmann::json& login = *it;
      const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) out.insert(out.end(), {option, value});
      };
      try {
        add("-l", login.at("user").get<std::string>());
        if (const int port = login.at("port").get<int>()) add("-p", std::to_string(port));
        add("-i", login.at("identity").get<std::string>());
        if (const auto address = login.at("address").get<std::string>(); !address.empty())
          add("-o", "HostName=" + address);
      } catch (const nlohmann::json::exception&) {
        throw ContentsError("[hosts] {} is damaged", kLoginsVariable);
      }
    }
    out.push_back(word);
  }
  return out;
}

void run_login(const std::vector<std::string>& words) {
  const char* logins = std::getenv(kLoginsVariable);
  if (!logins)
    throw UsageError(
        "[hosts] redco starts `redco login` itself, for hosts with user, port, identity or address; {} is "
        "not set",
        kLoginsVariable);
  const std::vector<std::string> command = ssh_words(logins, words);
  std::vector<char*> argv;
  for (const std::string& w : command) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw UsageError("[hosts] ssh cannot be started: {}. Install it: apt-get install openssh-client",
                   std::strerror(errno));
}

}  // namespace redco
