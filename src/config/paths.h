// Expansion of paths: ~/x, $NAME, ${NAME}, and patterns such as *.txt in lists of files.
#pragma once

#include <string>
#include <vector>

namespace redco {

// Replaces a leading ~ or ~/ by the home folder ($HOME), and $NAME and ${NAME} by environment variables; $$
// is a dollar sign. UsageError, without a place, if a variable is not set, and for an open ${ and ~NAME.
std::string expand_path(const std::string& path);

// The same for a setting that takes several files: *, ? and [...] match files, unless a file has the pattern
// as its name. The result is sorted by bytes. UsageError if no file matches.
std::vector<std::string> expand_files(const std::string& path);

}  // namespace redco
