#include "base/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/file.h"

namespace redco {

namespace {

// The specification ignores relative paths.
std::string redco_in(const char* variable, const char* otherwise) {
  const char* const base = std::getenv(variable);
  if (base && *base == '/') return join_path(base, "redco");
  const std::string home = home_folder();
  return home.empty() ? "" : join_path(join_path(home, otherwise), "redco");
}

}  // namespace

std::string home_folder() {
  if (const char* home = std::getenv("HOME"); home && *home) return home;
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  const bool known = ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found;
  return known && found->pw_dir ? found->pw_dir : "";
}

std::string user_cache_folder() { return redco_in("XDG_CACHE_HOME", ".cache"); }
std::string user_config_folder() { return redco_in("XDG_CONFIG_HOME", ".config"); }

}  // namespace redco
