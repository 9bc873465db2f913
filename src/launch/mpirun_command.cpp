#include "launch/mpirun_command.h"

#include <fmt/format.h>

namespace redco {

namespace {
constexpr std::size_t kMostListed = 64;  // hosts in an argument
}

std::string Mpirun::hostfile_text() const {
  std::string text;
  if (options.hosts.size() > kMostListed)
    for (const Host& h : options.hosts) text += fmt::format("{} slots={}\n", h.name, h.slots);
  return text;
}

std::vector<std::string> Mpirun::argv(const std::string& hostfile) const {
  std::vector<std::string> argv{path, "--stdin", options.input ? "0" : "none"};
  const auto add = [&](std::initializer_list<std::string> words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  if (options.pinned_cores)
    add({"--map-by", fmt::format("slot:PE={}", *options.pinned_cores), "--bind-to", "core"});
  else
    add({"--map-by", "slot", "--bind-to", "none"});
  if (options.oversubscribe) add({"--oversubscribe"});
  for (const auto& [name, value] : options.mca) add({"--mca", name, value});
  std::string list;
  for (const Host& h : options.hosts)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", h.name, h.slots);
  add({"-n", fmt::format("{}", options.n_ranks)});
  add({hostfile.empty() ? "--host" : "--hostfile", hostfile.empty() ? list : hostfile});
  for (const auto& [name, value] : environment) add({"-x", name + "=" + value});
  for (const std::string& name : passed)
    if (!environment.count(name)) add({"-x", name});
  argv.insert(argv.end(), program.begin(), program.end());
  return argv;
}

}  // namespace redco
