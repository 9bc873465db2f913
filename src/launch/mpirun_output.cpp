#include "launch/mpirun_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "launch/start_failure.h"

namespace redco {

namespace {

// Open MPI's show_help frames have 74 dashes.
constexpr std::size_t kDashes = 74;
constexpr std::size_t kMostFrame = 8192;
constexpr std::size_t kMostOwnText = 64 << 10;

bool is_dashes(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line.size() == kDashes && line.find_first_not_of('-') == std::string_view::npos;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

int number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? -1 : std::atoi(std::string(text.substr(at + key.size(), 12)).c_str());
}

std::string word_after(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  at += key.size();
  return std::string(text.substr(at, text.find_first_of(" \n\r,", at) - at));
}

// Remarks outside of frames without information about the job.
bool is_noise(std::string_view line) {
  return contains(line, "more process has sent help message") ||
         contains(line, "more processes have sent help message") ||
         contains(line, "Set MCA parameter \"orte_base_help_aggregate\"") ||
         contains(line, "plm:rsh: Warning: setpgid(") || contains(line, "mpirun: Forwarding signal") ||
         contains(line, "mpirun: killing job") || contains(line, "mpirun: abort is already in progress") ||
         contains(line, "/orte/util/show_help.c at line") || contains(line, "FORCE-TERMINATE AT") ||
         contains(line, "ORTE_ERROR_LOG:") ||
         // Between ranks of one host it has no effect; between hosts a frame about MPI_Init follows.
         contains(line, "Unable to find reachable pairing between local and remote interfaces") ||
         contains(line, "Read -1, expected") ||  // a rank copies from the memory of a dead rank
         contains(line, "total processes failed to start") || contains(line, "total processes killed") ||
         line.starts_with("[hwloc/");  // orted on a host whose /sys it cannot read
}

// On one line: where mpirun breaks its lines depends on its version.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Open MPI begins its own lines with "[host:pid] ", and version 5 also with "[host][[job],rank][file:line:".
bool is_open_mpi_line(std::string_view line) {
  if (!line.empty() && line[0] == '[' && contains(line.substr(0, line.find(' ')), "][[")) return true;
  const std::size_t close = line.find("] "), colon = line.find(':');
  if (line.empty() || line[0] != '[' || close == std::string_view::npos || colon >= close) return false;
  const std::string_view pid = line.substr(colon + 1, close - colon - 1);
  return colon > 1 && !pid.empty() && pid.find_first_not_of("0123456789") == std::string_view::npos;
}

// The first sentence, on one line.
std::string first_sentence(std::string_view text) {
  constexpr std::size_t kMost = 160;
  std::string out;
  for (const char c : text) {
    const bool space = c == '\n' || c == ' ' || c == '\r';
    if (space && !out.empty() && (out.back() == '.' || out.back() == ':')) break;
    if (!space && (c != '*' || !out.empty())) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
    if (out.size() >= kMost) break;
  }
  out.resize(out.find_last_not_of(" :*") + 1);  // 0 if there is nothing else
  return out;
}

}  // namespace

void MpirunOutput::keep(Failure f) {
  using Kind = Failure::Kind;
  // Version 5 reports the ranks that it kills after a rank's abort like others.
  const bool consequence = f.kind == Kind::signal && aborted_;
  if (!failure_ || (failure_->kind == Kind::exit_code && f.kind != Kind::exit_code && !consequence))
    failure_ = std::move(f);
}

void MpirunOutput::keep_own(std::string_view text) {
  own_text_ += text.substr(0, kMostOwnText - std::min(kMostOwnText, own_text_.size()));
}

std::string MpirunOutput::point_to(std::string_view text) {
  if (std::exchange(has_unknown_, true)) return {};
  return fmt::format("redco: Open MPI reports: {}{}\n", first_sentence(text),
                     file_.empty() ? "" : fmt::format(" (its whole text: {})", file_));
}

// A frame is complete; returns what is printed in its place.
std::string MpirunOutput::end_of_frame() {
  using Kind = Failure::Kind;
  keep_own(frame_);
  const std::string text = on_one_line(std::move(frame_));
  frame_.clear();
  inside_ = false;
  if (contains(text, "Primary job  terminated normally, but")) return {};
  if (contains(text, "peer process has unexpectedly disconnected")) return {};  // a consequence of a failure
  if (contains(text, "MPI_ABORT was invoked on rank")) {
    // "with errorcode 5."; in version 5 "Errorcode: 5".
    const int code = std::max(number_after(text, "errorcode "), number_after(text, "Errorcode: "));
    keep({Kind::exit_code, number_after(text, "on rank "), code, {}});
    // Ranks that notice a killed rank abort with rank_failed.
    aborted_ = aborted_ || code != static_cast<int>(ExitCode::rank_failed);
    return {};
  }
  if (contains(text, "processes exited with non-zero status")) {
    // "Process name: [[8762,1],1]": job and rank; in version 5 "[prterun-host-8762@1,1]".
    const std::string_view name =
        std::string_view(text).substr(std::min(text.find("Process name:"), text.size()));
    const int rank = number_after(name, contains(name, "],") ? "]," : ",");
    keep({Kind::exit_code, rank, number_after(text, "Exit code:"), {}});
    return {};
  }
  if (contains(text, "noticed that process rank") && contains(text, "exited on signal")) {
    keep({Kind::signal, number_after(text, "process rank "), number_after(text, "exited on signal "),
          word_after(text, "on node ")});
    return {};
  }
  if (contains(text, "has exited due to process rank")) {
    keep({Kind::exit_code, number_after(text, "process rank "), -1, word_after(text, "on node ")});
    return {};
  }
  if (contains(text, "lost communication with a remote daemon")) {
    const std::size_t remote = text.find("Remote daemon");
    keep({Kind::lost_host, -1, 0,
          remote == std::string::npos ? "" : word_after(std::string_view(text).substr(remote), "on node ")});
    return {};
  }
  if (contains(text, "unable to reliably start one or more daemons") || contains(text, "plm_rsh_agent") ||
      contains(text, "not enough slots available") || contains(text, "Executable: ") ||
      contains(text, "unable to launch the specified application") || contains(text, "processes than cpus")) {
    keep({Kind::no_start, -1, 0, {}});
    return {};
  }
  return point_to(text);
}

// The line in line_ is complete, with its line break.
void MpirunOutput::line(std::string& out) {
  const std::string whole = std::move(line_);
  line_.clear();
  const bool began = partial_;
  partial_ = false;
  if (!began && is_dashes(whole)) {
    if (inside_)
      out += end_of_frame();
    else
      inside_ = true;
  } else if (inside_) {
    frame_ += whole;
    if (frame_.size() > kMostFrame)
      out += flush();  // mpirun has no frame of this size: a rank wrote the dashes
  } else if (began) {
    out += whole;
  } else if (is_noise(whole)) {
    keep_own(whole);
  } else if (is_open_mpi_line(whole)) {
    keep_own(whole);
    out += point_to(std::string_view(whole).substr(whole.find("] ") + 2));
  } else if (is_start_failure_line(whole)) {
    keep_own(whole);
    out += whole;
  } else {
    out += whole;
  }
}

std::string MpirunOutput::feed(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    if (c == '\0') continue;  // version 5 ends frames with it
    line_ += c;
    if (c == '\n') line(out);
  }
  // An unfinished line of a rank (a progress bar) passes immediately, unless it may become dashes or Open
  // MPI's own line.
  const bool maybe_own = line_.find_first_not_of('-') == std::string::npos || line_[0] == '[' ||
                         line_.rfind("mpirun", 0) == 0 || (line_[0] >= '0' && line_[0] <= '9');
  if (!inside_ && !line_.empty() && (partial_ || !maybe_own || line_.size() > 1024)) {
    out += line_;
    line_.clear();
    partial_ = true;
  }
  return out;
}

std::string MpirunOutput::flush() {
  std::string out;
  if (inside_) out = fmt::format("{:->{}}\n{}", "", kDashes, frame_);
  frame_.clear();
  inside_ = false;
  partial_ = partial_ || !line_.empty();
  out += line_;
  line_.clear();
  return out;
}

}  // namespace redco
