// Shared objects whose code a user trusts, by their hashes: a checkpoint may name one of them. The file
// `trusted` in the user's config folder has a line for each: SHA-256 and path.
#pragma once

#include <string>

namespace redco {

// Where the hashes are; "" for a user without a home folder.
std::string trusted_file();
// Whether the user has trusted a file with the bytes of `path`. UsageError, IoError: it cannot be read.
bool is_trusted(const std::string& path);
// Trusts the file's present bytes. Returns their SHA-256. UsageError: no such file, or no home folder.
std::string trust(const std::string& path);

}  // namespace redco
