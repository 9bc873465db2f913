#include "base/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/patient_writer.h"

namespace redco {

namespace {

std::mutex g_mutex;
std::string g_status;  // text of the transient line

constexpr std::string_view kClearLine = "\r\x1b[K";

bool has_color(int fd) {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && !(no && *no) && term && std::string_view(term) != "dumb";
}

// Never destroyed, because destructors of other globals may write messages.
PatientWriter& error_stream() {
  static auto& stream = *new PatientWriter(STDERR_FILENO);
  return stream;
}

}  // namespace

void write_stderr(std::string_view text) { error_stream().write(text); }
bool stderr_is_lost() { return error_stream().lost(); }

namespace {

[[noreturn]] void fail_stdout() {
  if (errno == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw IoError("writing standard output: {}", std::strerror(errno));
}

}  // namespace

void write_stdout(std::string_view text) {
  // Open MPI 5 passes whole lines on. The beginning of a line of stdout gets to stderr if the rank writes
  // there before the line's end.
  static const bool by_lines = std::getenv("PRTE_LAUNCHED") != nullptr;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_stdout();
  if (!by_lines || text.ends_with('\n')) flush_stdout();
}

void flush_stdout() {
  if (std::fflush(stdout) != 0) fail_stdout();
}

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);  // gets the lowest free number, fd
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

bool stderr_has_color() { return has_color(STDERR_FILENO); }
bool stdout_has_color() { return has_color(STDOUT_FILENO); }

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void set_status_line(std::string_view text) {
  if (!stderr_is_terminal()) return;
  const std::lock_guard lock(g_mutex);
  if (g_status.empty() && text.empty()) return;
  g_status = text;
  write_stderr(std::string(kClearLine) + g_status);
}

void print_message(std::string_view text) {
  const std::lock_guard lock(g_mutex);
  std::string out;
  if (!g_status.empty()) out += kClearLine;
  out += text;
  out += '\n';
  out += g_status;
  write_stderr(out);
}

}  // namespace redco
