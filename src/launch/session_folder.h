#pragma once

#include <string>

namespace redco {

inline constexpr const char* kSessionVariable = "PRTE_MCA_prte_tmpdir_base";

// The folder of one start in which Open MPI 5 keeps its sessions, on each host. Open MPI names a session
// after the host and the process id, and fails if a killed one left that name: a new container or a booted
// host gives the same process ids again.
class SessionFolder {
 public:
  // Chooses a name; mpirun and its daemons create the folder. `elsewhere`: other hosts run ranks too.
  explicit SessionFolder(bool elsewhere);
  ~SessionFolder();  // removes the folder of this host. REQUIRES: mpirun has ended.
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Daemons remove their session, but not the folder around it. Removes those of this host that are empty and
// older than a minute.
void remove_empty_session_folders(const std::string& temp = "/tmp");

}  // namespace redco
