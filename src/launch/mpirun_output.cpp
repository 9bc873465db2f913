#include "launch/mpirun_output.h"

#include <fmt/format.h>

#include <cstdlib>

namespace redco {

namespace {

// Open MPI's show_help frames have 74 dashes.
constexpr std::size_t kDashes = 74;
constexpr std::size_t kMostBanner = 8192;

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

// mpirun's remarks outside of frames, which say nothing about the job.
bool is_noise(std::string_view line) {
  return contains(line, "more process has sent help message") ||
         contains(line, "more processes have sent help message") ||
         contains(line, "Set MCA parameter \"orte_base_help_aggregate\"") ||
         contains(line, "plm:rsh: Warning: setpgid(") || contains(line, "mpirun: Forwarding signal") ||
         contains(line, "mpirun: killing job") || contains(line, "mpirun: abort is already in progress") ||
         contains(line, "/orte/util/show_help.c at line") ||
         contains(line, "Read -1, expected") ||  // a rank copies from the memory of one that is gone
         contains(line, "total processes failed to start") || contains(line, "total processes killed");
}

}  // namespace

void MpirunOutput::keep(Failure f) {
  if (!failure_ || (failure_->kind == Failure::Kind::exit_code && f.kind != Failure::Kind::exit_code))
    failure_ = std::move(f);
}

// What is printed in place of a whole banner.
std::string MpirunOutput::end_of_banner() {
  using Kind = Failure::Kind;
  const std::string text = std::move(banner_);
  banner_.clear();
  inside_ = false;
  if (contains(text, "Primary job  terminated normally, but")) return {};
  if (contains(text, "peer process has unexpectedly disconnected")) return {};  // what follows a failure
  if (contains(text, "MPI_ABORT was invoked on rank")) {
    keep({Kind::exit_code, number_after(text, "on rank "), number_after(text, "errorcode "), {}, {}});
    return {};
  }
  if (contains(text, "processes exited with non-zero status")) {
    // "Process name: [[8762,1],1]": job and rank
    const std::size_t comma = text.find("],", text.find("Process name:"));
    const int rank =
        comma == std::string::npos ? -1 : number_after(std::string_view(text).substr(comma), "],");
    keep({Kind::exit_code, rank, number_after(text, "Exit code:"), {}, {}});
    return {};
  }
  if (contains(text, "noticed that process rank") && contains(text, "exited on signal")) {
    const std::size_t open = text.rfind('('), close = text.rfind(')');
    std::string name =
        open != std::string::npos && close > open ? text.substr(open + 1, close - open - 1) : "";
    keep({Kind::signal, number_after(text, "process rank "), number_after(text, "exited on signal "),
          word_after(text, "on node "), std::move(name)});
    return {};
  }
  if (contains(text, "has exited due to process rank")) {
    keep({Kind::exit_code, number_after(text, "process rank "), -1, word_after(text, "on\nnode "), {}});
    return {};
  }
  if (contains(text, "lost communication with a remote daemon")) {
    const std::size_t remote = text.find("Remote daemon");
    keep({Kind::lost_host,
          -1,
          0,
          remote == std::string::npos ? "" : word_after(std::string_view(text).substr(remote), "on node "),
          {}});
    return {};
  }
  if (contains(text, "unable to reliably start one or more daemons")) {
    keep({Kind::no_start, -1, 0, {}, {}});
    return {};
  }
  if (contains(text, "not enough slots available") ||
      contains(text, "unable to launch the specified application") ||
      contains(text, "more\nprocesses than cpus"))
    keep({Kind::no_start, -1, 0, {}, {}});
  return fmt::format("{:->{}}\n{}{:->{}}\n", "", kDashes, text, "", kDashes);
}

// A whole line (with its end) has come.
void MpirunOutput::line(std::string& out) {
  const std::string whole = std::move(line_);
  line_.clear();
  const bool began = partial_;
  partial_ = false;
  if (!began && is_dashes(whole)) {
    if (inside_)
      out += end_of_banner();
    else
      inside_ = true;
  } else if (inside_) {
    banner_ += whole;
    if (banner_.size() > kMostBanner) out += flush();  // no banner of mpirun's is so long
  } else if (began || !is_noise(whole)) {
    out += whole;
  }
}

std::string MpirunOutput::feed(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    line_ += c;
    if (c == '\n') line(out);
  }
  // Half a line of a rank (a progress bar) passes at once, unless it may become dashes or a remark of
  // mpirun's.
  const bool maybe_ours = line_.find_first_not_of('-') == std::string::npos || line_[0] == '[' ||
                          line_.rfind("mpirun", 0) == 0 || (line_[0] >= '0' && line_[0] <= '9');
  if (!inside_ && !line_.empty() && (partial_ || !maybe_ours || line_.size() > 1024)) {
    out += line_;
    line_.clear();
    partial_ = true;
  }
  return out;
}

std::string MpirunOutput::flush() {
  std::string out;
  if (inside_) out = fmt::format("{:->{}}\n{}", "", kDashes, banner_);
  banner_.clear();
  inside_ = false;
  partial_ = partial_ || !line_.empty();
  out += line_;
  line_.clear();
  return out;
}

std::string MpirunOutput::message() const {
  using Kind = Failure::Kind;
  if (!failure_) return {};
  const Failure& f = *failure_;
  switch (f.kind) {
    case Kind::exit_code:
      return {};
    case Kind::signal:
      return fmt::format(
          "rank {} on {} was killed by signal {}{}; all ranks have ended{}", f.rank,
          f.host.empty() ? "?" : f.host, f.number, f.name.empty() ? "" : " (" + f.name + ")",
          f.number == 9 ? " (if nobody killed it, the machine was out of memory: see `dmesg`)" : "");
    case Kind::lost_host:
      return fmt::format("the connection to host {} was lost; all ranks have ended",
                         f.host.empty() ? "?" : f.host);
    case Kind::no_start:
      return "a host could not be reached, or its connection broke: no ranks run; `ssh HOST redco env` must "
             "work for each "
             "host without a password, with redco and Open MPI in the same place";
  }
  return {};
}

}  // namespace redco
