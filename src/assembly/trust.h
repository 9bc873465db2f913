// Files whose code a user trusts: a checkpoint may name one of them as its pipeline or plugin. The file
// `trusted` in the user's config folder has a line for each: "SHA-256  path", and for a file that was trusted
// by a training "SHA-256 job=SHA-256  path", with the hash of the job in its checkpoints.
//
// A checkpoint may come from anybody. So it can neither choose another file with the same bytes (a script
// imports what is in its folder), nor, for a training, other settings.
#pragma once

#include <string>

namespace redco {

// Where the hashes are; "" for a user without a home folder.
std::string trusted_file();
// Whether the user has trusted the file at `path` with its present bytes: for all jobs, or by a training with
// this job (the text of training/job.yaml). UsageError, IoError: it cannot be read.
bool is_trusted(const std::string& path, const std::string& job);
// Trusts the file's present bytes at this path. Returns their SHA-256. UsageError: no such file, or no home
// folder.
std::string trust(const std::string& path);
// The same for checkpoints with this job: the user has named the file in it, and trains. Without a home
// folder, or if it is read-only, nothing is trusted.
void trust_for_job(const std::string& path, const std::string& job);

}  // namespace redco
