// Pieces of HTML. All text that comes from a file goes through escape().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

// Text for an element or a quoted attribute. Markup is escaped; invalid UTF-8 and control characters become
// U+FFFD.
std::string escape(std::string_view text);
// A JSON text that is safe inside a script element.
std::string json_for_script(std::string text);

// "2026-11-22 11:30:00" in local time; "" for times outside 1970 to 5138.
std::string date_text(double seconds_since_1970);
// human_bytes() of a number from a file; "?" where it is no size.
std::string bytes_text(double n);

using Row = std::vector<std::string>;
// A table whose cells are escaped here. `kinds` has a letter for each column: n number, t text, c code. If
// all of `head` is empty, no head is shown.
std::string table(const Row& head, const std::vector<Row>& rows, const std::string& kinds);

// Whether a text is a PNG file as a data URI, and nothing else.
bool is_png_uri(std::string_view text);
// Images as data URIs, each with a caption, as a grid.
struct Picture {
  std::vector<std::string> uris;
  std::string caption;
};
std::string image_grid(const std::vector<Picture>& pictures);

// Several named values, each with a note below it ("step 40"; "": none), as a row of cards.
struct Card {
  std::string name, value, note;
};
std::string cards(const std::vector<Card>& all);

// A page with its sections and their navigation.
class HtmlPage {
 public:
  // An empty `inside` adds nothing. `inside` is markup.
  void section(const char* id, const std::string& name, const std::string& inside);
  // `badge`: markup behind the title; `lead`: markup above the sections. `now`: seconds since 1970, 0: no
  // date.
  std::string text(const std::string& title, const std::string& badge, const std::string& subtitle,
                   const std::string& lead, double now) const;

 private:
  std::string nav_, body_;
};

}  // namespace redco
