#include "launch/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "launch/signal_pipe.h"

namespace redco {

namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> p;
  for (const auto& s : strings) p.push_back(const_cast<char*>(s.c_str()));
  p.push_back(nullptr);
  return p;
}

}  // namespace

void Fd::reset() {
  if (fd >= 0) close(fd);
  fd = -1;
}

Pipe::Pipe() {
  int p[2];
  if (pipe2(p, O_CLOEXEC)) throw IoError("pipe: {}", std::strerror(errno));
  in.fd = p[0];
  out.fd = p[1];
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      poll(&p, 1, 1000);
      continue;
    }
    if (n <= 0) return;  // nobody reads any more
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_some(int fd, bool& ended) {
  std::array<char, 16384> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) return {buffer.data(), static_cast<std::size_t>(n)};
  ended = n == 0 || (errno != EINTR && errno != EAGAIN);
  return {};
}

pid_t start_process(const std::vector<std::string>& argv, const Environment& environment, int stdin_fd,
                    int stdout_fd, int stderr_fd) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(name + "=" + value);
  const auto args = pointers(argv), env = pointers(lines);
  Pipe failed;  // exec closes it; otherwise it holds errno
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) throw IoError("starting {}: fork: {}", argv[0], std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    for (int s : kLauncherSignals) signal(s, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int input = stdin_fd >= 0 ? stdin_fd : open("/dev/null", O_RDONLY);
    if (input >= 0) dup2(input, 0);
    if (stdout_fd >= 0) dup2(stdout_fd, 1);
    dup2(stderr_fd, 2);
    execvpe(args[0], args.data(), env.data());
    const int why = errno;
    if (write(failed.out.fd, &why, sizeof why) < 0) _exit(126);
    _exit(127);
  }
  failed.out.reset();
  int why = 0;
  ssize_t n;
  while ((n = read(failed.in.fd, &why, sizeof why)) < 0 && errno == EINTR) {
  }
  if (n == static_cast<ssize_t>(sizeof why)) {
    waitpid(pid, nullptr, 0);
    if (why == ENOENT)
      throw UsageError("{} is not in PATH; install the package that has it, or add its folder to PATH",
                       argv[0]);
    throw UsageError("{} cannot be started: {}", argv[0], std::strerror(why));
  }
  return pid;
}

void kill_marked(const std::string& key) {
  std::error_code gone;
  for (const auto& p : std::filesystem::directory_iterator("/proc", gone)) {
    const pid_t pid = std::atoi(p.path().filename().c_str());
    if (pid <= 1 || pid == getpid()) continue;
    std::ifstream in(p.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(in), {}};
    if (environment.find(key) != std::string::npos) kill(pid, SIGKILL);
  }
}

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw IoError("/proc/self/exe: {}", error.message());
  return path.string();
}

}  // namespace redco
