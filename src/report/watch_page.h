// `redco watch`: one page of text about a run, made from its workdir's files only.
#pragma once

#include <string>

#include "report/run_data.h"
#include "report/run_state.h"

namespace redco {

struct WatchPage {
  int columns = 80, rows = 24;  // of the terminal
  double now = 0;               // seconds since 1970
};
// Lines of at most `columns` characters, at most `rows` of them; ends with a line break. In UTF-8; text of
// the run's files is printable.
std::string watch_page(const std::string& workdir, const RunData& run, const RunState& state,
                       const WatchPage& page);

// A chart of a series with `rows` lines of `columns` characters, the newest point at the right.
std::vector<std::string> text_chart(const Series& series, int columns, int rows);

}  // namespace redco
