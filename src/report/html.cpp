#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/utf8.h"
#include "base/words.h"
#include "report/page.h"

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

std::string json_for_script(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6)
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string date_text(double t) {
  const std::time_t seconds = static_cast<std::time_t>(t);
  std::tm tm{};
  char text[40] = "";
  if (t > 0 && t < 1e11 && ::localtime_r(&seconds, &tm))
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
  return text;
}

std::string bytes_text(double n) { return n >= 0 && n < 1e18 ? human_bytes(static_cast<u64>(n)) : "?"; }

std::string table(const Row& head, const std::vector<Row>& rows, const std::string& kinds) {
  constexpr std::size_t kWide = 24;  // characters from which on a column gets room
  const auto kind = [&](std::size_t i) { return i < kinds.size() ? kinds[i] : 't'; };
  std::vector<bool> wide(head.size(), false);
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size() && i < wide.size(); ++i)
      wide[i] = wide[i] || row[i].size() > kWide;
  std::string s = "<div class=\"scroll\"><table>\n";
  if (std::any_of(head.begin(), head.end(), [](const std::string& h) { return !h.empty(); })) {
    s += "<tr>";
    for (std::size_t i = 0; i < head.size(); ++i)
      s += (kind(i) == 'n' ? "<th class=\"n\">" : "<th>") + escape(head[i]) + "</th>";
    s += "</tr>\n";
  }
  for (const Row& row : rows) {
    s += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = escape(row[i]);
      s += kind(i) == 'c'               ? "<td><code>" + cell + "</code></td>"
           : kind(i) == 'n'             ? "<td class=\"n\">" + cell + "</td>"
           : i < wide.size() && wide[i] ? "<td class=\"t\">" + cell + "</td>"
                                        : "<td>" + cell + "</td>";
    }
    s += "</tr>\n";
  }
  return s + "</table></div>\n";
}

bool is_png_uri(std::string_view text) {
  constexpr std::string_view kStart = "data:image/png;base64,";
  return text.starts_with(kStart) &&
         std::all_of(text.begin() + kStart.size(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/' || c == '='; });
}

std::string image_grid(const std::vector<Picture>& pictures) {
  std::string s;
  for (const Picture& one : pictures) {
    s += "<figure>";
    for (const std::string& uri : one.uris)
      s += is_png_uri(uri) ? "<img src=\"" + uri + "\" alt=\"" + escape(one.caption) + "\"/>" : "";
    s += "<figcaption>" + escape(one.caption) + "</figcaption></figure>\n";
  }
  return s.empty() ? "" : "<div class=\"pictures\">\n" + s + "</div>\n";
}

std::string cards(const std::vector<Card>& all) {
  std::string s;
  for (const Card& c : all)
    s += "<div class=\"card\"><span>" + escape(c.name) + "</span><b>" + escape(c.value) + "</b>" +
         (c.note.empty() ? "" : "<small>" + escape(c.note) + "</small>") + "</div>\n";
  return s.empty() ? "" : "<div class=\"cards\">" + s + "</div>\n";
}

void HtmlPage::section(const char* id, const std::string& name, const std::string& inside) {
  if (inside.empty()) return;
  nav_ += fmt::format("<a href=\"#{}\">{}</a>", id, escape(name));
  body_ += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, escape(name), inside);
}

std::string HtmlPage::text(const std::string& title, const std::string& badge, const std::string& subtitle,
                           const std::string& lead, double now) const {
  const std::string name = escape(title);
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         // The page loads nothing, even if markup of a file were not escaped.
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<title>" +
         name + " - redco report</title>\n<style>" + kReportStyle + "</style></head>\n<body><header><h1>" +
         name + badge + "</h1>\n<p class=\"sub\">" + escape(subtitle) + "</p>\n<nav>" + nav_ +
         "</nav></header>\n<main>\n" + lead + body_ + "</main>\n<footer>Made by <code>redco report</code>" +
         (now > 0 ? " on " + escape(date_text(now)) : "") + ".</footer>\n<script>" + kReportScript +
         "</script></body></html>\n";
}

}  // namespace redco
