#include "optim/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace redco {

namespace {

// `part` of the piece is over. Written so that a rate of 0 at either end is exact.
double rate_of(const SchedulePiece& p, double part) {
  switch (p.shape) {
    case SchedulePiece::Shape::constant:
      return p.from;
    case SchedulePiece::Shape::exponential:
      return p.from * std::pow(p.to / p.from, part);
    case SchedulePiece::Shape::cosine:
      part = 0.5 * (1 - std::cos(M_PI * part));
      break;
    case SchedulePiece::Shape::linear:
      break;
  }
  return p.to > p.from ? p.from + (p.to - p.from) * part : p.to + (p.from - p.to) * (1 - part);
}

}  // namespace

i64 Schedule::end_of(std::size_t i) const {
  i64 end = 0;
  for (std::size_t k = 0; k <= i; ++k) {
    const SchedulePiece& p = pieces[k];
    i64 mine = total_steps;
    if (p.until_step) mine = *p.until_step;
    if (p.until_share) mine = static_cast<i64>(std::ceil(*p.until_share * static_cast<double>(total_steps)));
    end = std::max(end, mine);
  }
  return end;
}

double Schedule::at(i64 step) const {
  i64 begin = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const i64 end = end_of(i);
    if (step < end)
      return rate_of(pieces[i], static_cast<double>(step - begin) / static_cast<double>(end - begin));
    begin = end;
  }
  return pieces.empty() ? 0 : pieces.back().to;
}

i64 Schedule::warmup_steps() const {
  return !pieces.empty() && pieces[0].to > pieces[0].from ? end_of(0) : 0;
}

double Schedule::peak() const {
  double most = 0;
  for (const SchedulePiece& p : pieces) most = std::max({most, p.from, p.to});
  return most;
}

std::string Schedule::words() const {
  constexpr const char* kShapes[] = {"constant", "linear", "cosine", "exponential"};
  std::vector<std::string> out;
  double before = -1;
  for (const SchedulePiece& p : pieces) {
    const bool constant = p.shape == SchedulePiece::Shape::constant;
    std::string text;
    if (p.from != before || constant) text = fmt::format("{:g} ", p.from);
    if (!constant) text += fmt::format("to {:g} ", p.to);
    text += p.until_step    ? fmt::format("until step {}", *p.until_step)
            : p.until_share ? fmt::format("until {:g} % of the steps", 100 * *p.until_share)
                            : "until the end";
    if (!constant) text += fmt::format(" ({})", kShapes[static_cast<int>(p.shape)]);
    out.push_back(text);
    before = p.to;
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace redco
