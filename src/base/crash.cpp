#include "base/crash.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "base/error.h"
#include "base/signals.h"
#include "base/user_code.h"

namespace redco {

namespace {

constexpr std::array<int, 4> kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr unsigned kMostSeconds = 5;

// The program is lost already. If making the text crashes too, or waits for a lock, the default action
// follows.
extern "C" void redco_report_crash(int number) {
  std::signal(SIGALRM, SIG_DFL);
  alarm(kMostSeconds);
  std::string text = "redco crashed by " + signal_text(number);
  if (const UserCode code = running_user_code())
    text = (*code)(" by " + signal_text(number) +
                   ": it uses memory that it does not own, such as a null pointer, "
                   "or a Tensor that was kept from an earlier step");
  else
    text = "[bug] " + text + " (please report this)";
  text = "error: " + text + "\n";
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {  // nothing else can be done
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

void report_crashes() {
  static std::array<char, 1 << 16> stack;  // an overflow of the main thread's stack is reported too
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  sigaltstack(&other, nullptr);
  for (const int number : kSignals) {
    struct sigaction action {};
    action.sa_handler = redco_report_crash;
    action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace redco
