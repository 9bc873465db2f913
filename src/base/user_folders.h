// The folders of this user, as the XDG Base Directory Specification has them.
#pragma once

#include <string>

namespace redco {

// $HOME; without it the home folder in the user database, or "" if there is none.
std::string home_folder();
// $XDG_CACHE_HOME/redco, or ~/.cache/redco; "" without a home folder.
std::string user_cache_folder();
// $XDG_CONFIG_HOME/redco, or ~/.config/redco; "" without a home folder.
std::string user_config_folder();

}  // namespace redco
