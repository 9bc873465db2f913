// watch: one page about a run, in the terminal, that refreshes itself.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/terminal.h"
#include "base/timing.h"
#include "commands.h"
#include "report/watch_page.h"
#include "workdir/workdir_lock.h"

namespace redco::cli {

namespace {

WatchPage page_of_terminal() {
  WatchPage p;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    p.columns = size.ws_col;
    p.rows = size.ws_row;
  }
  p.now = wall_seconds();
  return p;
}

int watch(const std::string& workdir, double seconds, bool once) {
  for (;;) {
    const RunData run = read_run(workdir);
    const RunState state = run_state(run.events, workdir_holder(workdir));
    const std::string page = watch_page(workdir, run, state, page_of_terminal());
    write_stdout(once ? page : "\x1b[H\x1b[2J" + page);
    if (once) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

}  // namespace

void add_watch(CLI::App& app, Invocation& run) {
  struct Options {
    std::string workdir;
    double seconds = 2;
    bool once = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "watch", "Show a running training in the terminal: step, loss, speed, hosts, log",
                  "  redco watch runs/first            refreshes until Ctrl-C\n"
                  "  redco watch runs/first --once     prints the page once\n");
  expand_paths(c->add_option("WORKDIR", o->workdir, "workdir of the training")->required());
  c->add_option("--seconds", o->seconds, "seconds between two pages")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  c->add_flag("--once", o->once, "print one page; the default if the output is no terminal, or TERM is dumb");
  c->callback([o, &run] {
    const char* term = std::getenv("TERM");
    const bool refreshes = isatty(STDOUT_FILENO) != 0 && (!term || std::string_view(term) != "dumb");
    run.exit_code = watch(o->workdir, o->seconds, o->once || !refreshes);
  });
}

}  // namespace redco::cli
