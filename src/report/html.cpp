#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace redco {

std::string escape(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
            if (c != '\r') out += kReplacement;
          } else {
            out += text[i];
          }
      }
      ++i;
      continue;
    }
    const std::size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    const std::string_view one = text.substr(i, n);
    if (one.size() == n && is_utf8(one)) {
      out += one;
      i += n;
    } else {
      out += kReplacement;
      ++i;
    }
  }
  return out;
}

std::string short_number(double v) {
  if (!std::isfinite(v)) return "?";
  const double a = std::fabs(v);
  if (a >= 1e4 && a < 1e15) {
    static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
    int unit = 0;
    double x = v;
    while (std::fabs(x) >= 1000 && unit < 4) {
      x /= 1000;
      ++unit;
    }
    return fmt::format("{:.4g}{}", x, kUnits[unit]);
  }
  return fmt::format("{:.4g}", v);
}

namespace {

constexpr double kWidth = 560, kHeight = 240, kLeft = 58, kRight = 12, kTop = 10, kBottom = 28;

// Round numbers over [low, high], about n of them.
std::vector<double> ticks(double low, double high, int n) {
  const double raw = (high - low) / n;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power;
  for (const double m : {1.0, 2.0, 5.0, 10.0}) {
    step = m * power;
    if (step >= raw) break;
  }
  std::vector<double> out;
  for (double t = std::ceil(low / step) * step; t <= high + step * 1e-9 && out.size() < 20; t += step)
    out.push_back(std::fabs(t) < step * 1e-9 ? 0 : t);
  return out;
}

struct Axis1 {
  double low, high, from, to;
  double at(double v) const { return from + (v - low) / (high - low) * (to - from); }
};

// Gives an empty range a width.
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

}  // namespace

std::string chart(const std::string& title, const std::vector<ChartLine>& lines) {
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;
  bool sampled = false;
  for (const ChartLine& l : lines) {
    for (const auto& b : l.series->buckets()) {
      x0 = std::min(x0, b.first);
      x1 = std::max(x1, b.last);
    }
    y0 = std::min(y0, l.series->least());
    y1 = std::max(y1, l.series->most());
    sampled = sampled || l.series->sampled();
  }
  widen(x0, x1, 0);
  const bool zero = y0 >= 0 && y0 < 0.3 * y1;  // near zero: show it
  const double least = y0;
  widen(y0, y1, 0.05);
  if (zero && least >= 0) y0 = 0;
  const Axis1 x{x0, x1, kLeft, kWidth - kRight}, y{y0, y1, kHeight - kBottom, kTop};

  std::string s = fmt::format("<figure class=\"chart\"><figcaption><b>{}</b>", escape(title));
  if (lines.size() > 1)
    for (std::size_t i = 0; i < lines.size(); ++i)
      s += fmt::format("<span class=\"key k{}\">{}</span>", i % 6, escape(lines[i].label));
  s += fmt::format(
      "</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over steps\" "
      "data-x0=\"{:.9g}\" data-x1=\"{:.9g}\" data-y0=\"{:.9g}\" data-y1=\"{:.9g}\">",
      kWidth, kHeight, escape(title), x0, x1, y0, y1);
  for (const double t : ticks(y0, y1, 5))
    s += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"y\" x=\"{}\" y=\"{:.1f}\">{}</text>",
        kLeft, kWidth - kRight, y.at(t), y.at(t), kLeft - 6, y.at(t) + 3.5, short_number(t));
  for (const double t : ticks(x0, x1, 6))
    s += fmt::format("<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}</text>", x.at(t), kHeight - 9,
                     short_number(t));
  std::string data;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& buckets = lines[i].series->buckets();
    if (lines[i].series->sampled()) {
      std::string up, down;
      for (const auto& b : buckets) {
        up += fmt::format("{}{:.1f},{:.1f}", up.empty() ? "M" : "L", x.at(b.step()), y.at(b.most));
        down.insert(0, fmt::format("L{:.1f},{:.1f}", x.at(b.step()), y.at(b.least)));
      }
      s += fmt::format("<path class=\"band k{}\" d=\"{}{}Z\"/>", i % 6, up, down);
    }
    std::string path, dots, points;
    for (const auto& b : buckets) {
      const double px = x.at(b.step()), py = y.at(b.mean());
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", px, py);
      if (buckets.size() <= 40)
        dots += fmt::format("<circle class=\"k{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\"/>", i % 6, px, py);
      points += fmt::format("{}[{:.9g},{:.6g}]", points.empty() ? "" : ",", b.step(), b.mean());
    }
    s += fmt::format("<path class=\"line k{}\" d=\"{}\"/>{}", i % 6, path, dots);
    data += fmt::format("{}[{}]", data.empty() ? "" : ",", points);
  }
  s += "<line class=\"cross\" y1=\"" + fmt::format("{}", kTop) + "\" y2=\"" +
       fmt::format("{}", kHeight - kBottom) + "\"/></svg><div class=\"tip\"></div>";
  // The data are numbers only, so they cannot end the script element.
  s += "<script type=\"application/json\">[" + data + "]</script>";
  if (sampled) s += "<p class=\"note\">mean of several steps; the band is their range</p>";
  return s + "</figure>\n";
}

}  // namespace redco
