#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/html.h"

namespace redco {

namespace {

// SVG units. The style sheet enlarges the text on phones, where a unit is about 0.6 pixels.
constexpr double kWidth = 560, kHeight = 256, kLeft = 62, kRight = 14, kTop = 12, kBottom = 38;
constexpr std::size_t kMostDots = 60;  // points of a line that are drawn as dots
constexpr std::size_t kMostMarks = 100;

// k, M, G or T of a number from 10 000 on.
struct Unit {
  double scale = 1;
  const char* name = "";
};
Unit unit_of(double v) {
  static constexpr Unit kUnits[] = {{1, ""}, {1e3, " k"}, {1e6, " M"}, {1e9, " G"}, {1e12, " T"}};
  const double a = std::fabs(v);
  if (!(a >= 1e4 && a < 1e15)) return kUnits[0];
  std::size_t i = 0;
  while (i < 4 && a >= 1e3 * kUnits[i].scale) ++i;
  return kUnits[i];
}

struct Ticks {
  std::vector<double> at;
  double step = 1;
};
// Round numbers over [low, high], about n of them.
Ticks ticks(double low, double high, int n) {
  const double raw = (high - low) / n;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  Ticks out;
  for (const double m : {1.0, 2.0, 5.0, 10.0}) {
    out.step = m * power;
    if (out.step >= raw) break;
  }
  for (double t = std::ceil(low / out.step) * out.step; t <= high + out.step * 1e-9 && out.at.size() < 20;
       t += out.step)
    out.at.push_back(std::fabs(t) < out.step * 1e-9 ? 0 : t);
  return out;
}

// All ticks of an axis with as many decimals as their distance needs.
std::string tick_text(double v, const Ticks& all) {
  const double most = std::max(std::fabs(all.at.front()), std::fabs(all.at.back()));
  if (v == 0) return "0";
  Unit unit = unit_of(most);
  std::string name = unit.name;
  if (most < 0.01 || most >= 1e15) {  // "5e-4", "10e-4": "0.0005" is wider than the margin on phones
    const int exponent = static_cast<int>(std::floor(std::log10(all.step) + 1e-9));
    unit.scale = std::pow(10, exponent);
    name = fmt::format("e{}", exponent);
  }
  const int decimals = static_cast<int>(std::ceil(-std::log10(all.step / unit.scale) - 1e-9));
  return fmt::format("{:.{}f}{}", v / unit.scale, std::clamp(decimals, 0, 4), name);
}

struct Scale {
  double low, high, from, to;
  double at(double v) const { return from + (v - low) / (high - low) * (to - from); }
};

// Makes room around a range, also around one number.
void widen(double& low, double& high, double by) {
  if (!(high > low)) {
    const double d = std::max(std::fabs(low) * 0.05, 1e-12);
    low -= d;
    high += d;
  }
  const double d = (high - low) * by;
  low -= d;
  high += d;
}

std::string axes(const Scale& x, const Scale& y) {
  std::string s;
  const Ticks vertical = ticks(y.low, y.high, 5), horizontal = ticks(x.low, x.high, 5);
  for (const double t : vertical.at)
    s += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"y\" x=\"{}\" "
        "y=\"{:.1f}\">{}</text>",
        kLeft, kWidth - kRight, y.at(t), y.at(t), kLeft - 8, y.at(t) + 4, tick_text(t, vertical));
  for (const double t : horizontal.at) {
    const double at = x.at(t);
    s += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/><text class=\"{}\" "
        "x=\"{:.1f}\" y=\"{}\">{}</text>",
        at, at, kHeight - kBottom, kHeight - kBottom + 4, at > kWidth - kRight - 12 ? "y" : "x",
        at > kWidth - kRight - 12 ? kWidth - kRight + 4 : at, kHeight - 10, tick_text(t, horizontal));
  }
  return s + fmt::format("<text class=\"y\" x=\"{}\" y=\"{}\">step</text>", kLeft - 20, kHeight - 10);
}

// The band, the line and its dots.
std::string drawn(const ChartLine& l, const Scale& x, const Scale& y) {
  const auto& buckets = l.series->buckets();
  const std::string classes = chart_class(l.color);
  std::string s;
  if (l.series->sampled()) {
    std::string up, down;
    for (const auto& b : buckets) {
      up += fmt::format("{}{:.1f},{:.1f}", up.empty() ? "M" : "L", x.at(b.step()), y.at(b.most));
      down.insert(0, fmt::format("L{:.1f},{:.1f}", x.at(b.step()), y.at(b.least)));
    }
    s += fmt::format("<path class=\"band {}\" d=\"{}{}Z\"/>", classes, up, down);
  }
  std::string path, dots;
  for (const auto& b : buckets) {
    const double px = x.at(b.step()), py = y.at(b.mean());
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", px, py);
    if (l.points ? buckets.size() <= kMostDots : buckets.size() == 1)
      dots += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\"/>", classes, px, py);
  }
  return s + fmt::format("<path class=\"line {}\" d=\"{}\"/>{}", classes, path, dots);
}

}  // namespace

std::string chart_class(std::size_t color) {
  return fmt::format("k{} d{}", color % kChartColors, color / kChartColors % kChartDashes);
}

bool is_chart(const std::vector<ChartLine>& lines) {
  if (lines.empty()) return false;
  double low = lines[0].series->first_step(), high = low;
  for (const ChartLine& l : lines) {
    low = std::min(low, l.series->first_step());
    high = std::max(high, l.series->last_step());
  }
  return high > low;
}

std::string chart(const ChartText& text, const std::vector<ChartLine>& lines) {
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;
  bool sampled = false;
  for (const ChartLine& l : lines) {
    x0 = std::min(x0, l.series->first_step());
    x1 = std::max(x1, l.series->last_step());
    y0 = std::min(y0, l.series->least().value);
    y1 = std::max(y1, l.series->most().value);
    sampled = sampled || l.series->sampled();
  }
  const bool near_zero = y0 >= 0 && y0 < 0.3 * y1;
  widen(y0, y1, 0.05);
  if (near_zero) y0 = 0;
  const Scale x{x0, x1, kLeft, kWidth - kRight}, y{y0, y1, kHeight - kBottom, kTop};

  std::string marks;
  std::size_t n_marks = 0;
  for (const double step : text.resumes)
    if (step > x0 && step < x1 && n_marks++ < kMostMarks)
      marks += fmt::format(
          "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"><title>resumed from step "
          "{3:.0f}</title></line>",
          x.at(step), kTop, kHeight - kBottom, step);

  std::string s = fmt::format("<figure class=\"chart\"><figcaption><b>{}</b>", escape(text.title));
  if (text.legend && lines.size() > 1)
    for (const ChartLine& l : lines)
      s += fmt::format("<span class=\"key {}{}\">{}</span>", chart_class(l.color), l.points ? " dots" : "",
                       escape(l.label));
  if (!marks.empty()) s += "<span class=\"key resumed\">resumed</span>";
  s += fmt::format(
      "</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over steps\" data-left=\"{}\" "
      "data-right=\"{}\" data-width=\"{}\" data-x0=\"{:.9g}\" data-x1=\"{:.9g}\">",
      kWidth, kHeight, escape(text.title), kLeft, kWidth - kRight, kWidth, x0, x1);
  s += axes(x, y) + marks;
  nlohmann::json names = nlohmann::json::array();
  std::string data;
  for (const ChartLine& l : lines) {
    s += drawn(l, x, y);
    std::string points;
    for (const auto& b : l.series->buckets())
      points += fmt::format("{}[{:.9g},{:.6g}]", points.empty() ? "" : ",", b.step(), b.mean());
    data += fmt::format("{}[{}]", data.empty() ? "" : ",", points);
    names.push_back(l.label);
  }
  s += fmt::format(
      "<line class=\"cross\" y1=\"{}\" y2=\"{}\"/></svg><div class=\"tip\"></div><script "
      "type=\"application/json\">{{\"names\":{},\"lines\":[{}]}}</script>",
      kTop, kHeight - kBottom,
      json_for_script(names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)), data);
  if (sampled) s += "<p class=\"note\">mean of several steps; the band is their range</p>";
  return s + "</figure>\n";
}

}  // namespace redco
