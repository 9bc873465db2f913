// Child processes: pipes that close themselves, start, end by environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "launch/slurm.h"

namespace redco {

// A file descriptor that closes itself.
struct Fd {
  int fd = -1;
  Fd() = default;
  explicit Fd(int f) : fd(f) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void reset();
};

struct Pipe {
  Fd in, out;  // read end, write end
  Pipe();      // IoError
};

// Writes all of `text`, waiting where the descriptor is full. Gives up silently when nobody reads any more.
void write_all(int fd, std::string_view text);
// Reads the bytes that are there now, at most 16 KiB; `ended` becomes true at the end of the stream or on an
// error.
std::string read_some(int fd, bool& ended);

// Starts argv (argv[0] is looked up in PATH) with this environment in its own process group. stdin_fd
// -1: empty input; stdout_fd -1: this process's. The child gets SIGTERM if this process dies. UsageError if
// argv[0] cannot be started.
pid_t start_process(const std::vector<std::string>& argv, const Environment& environment, int stdin_fd,
                    int stdout_fd, int stderr_fd);

// Sends SIGKILL to each process of this user on this host that was started with `key` in its environment:
// mpirun, ssh, orted and ranks, also stopped ones.
void kill_marked(const std::string& key);

// The file of the running program, for starting it again.
std::string program_path();

}  // namespace redco
