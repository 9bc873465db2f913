#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

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

}  // namespace

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
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
