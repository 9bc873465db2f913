#include "data/labelled/table_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/log_once.h"
#include "base/words.h"

namespace redco {

std::string TableReader::where() const { return fmt::format("{}:{}", path_, line_); }

// Bounds the memory: a line of only separators would cost many times its size.
void TableReader::check_count(const std::vector<std::string>& cells) const {
  if (cells.size() == kMaxColumns)
    throw ContentsError("{}: a row of more than {} cells", where(), kMaxColumns);
}

bool TableReader::next_line() {
  do {
    if (!lines_.next(text_)) return false;
    if (lines_.line_number() == 1 && text_.find('\0') != std::string::npos)
      throw ContentsError("{}: the first line has a zero byte, expected text. Save the table as UTF-8",
                          lines_.where());
  } while (text_.empty());
  line_ = lines_.line_number();
  return true;
}

bool TableReader::next(std::vector<std::string>& cells) {
  cells.clear();
  if (!next_line()) return false;
  if (kind_ == Kind::csv) {
    if (separator_ == 0) choose_separator();
    cut_csv(cells);
    return true;
  }
  for (std::size_t begin = 0;;) {
    const std::size_t tab = text_.find('\t', begin);
    check_count(cells);
    cells.push_back(text_.substr(begin, tab == std::string::npos ? tab : tab - begin));
    if (tab == std::string::npos) return true;
    begin = tab + 1;
  }
}

void TableReader::choose_separator() {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool quoted = false;
  for (const char c : text_) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  separator_ = commas > 0 || semicolons + tabs == 0 ? ',' : semicolons > tabs ? ';' : '\t';
  if (separator_ != ',')
    log_once(LogLevel::info, fmt::format("[data] {}: {} between the cells, since the first line has no comma",
                                         path_, separator_ == ';' ? "semicolons" : "tabs"));
}

void TableReader::cut_csv(std::vector<std::string>& cells) {
  std::size_t at = 0;
  for (;;) {
    check_count(cells);
    std::string& cell = cells.emplace_back();
    if (at < text_.size() && text_[at] == '"') {
      ++at;
      for (;;) {
        const std::size_t quote = text_.find('"', at);
        cell.append(text_, at, quote == std::string::npos ? quote : quote - at);
        if (quote == std::string::npos) {
          // The cell continues in the next line.
          if (cell.size() > LineReader::kMaxLine)
            throw ContentsError("{}: a cell has more than {} bytes. Check for a missing quote", where(),
                                LineReader::kMaxLine);
          cell += '\n';
          if (!lines_.next(text_))
            throw ContentsError("{}: the file ends inside a quoted cell of the row that begins here",
                                where());
          at = 0;
        } else if (quote + 1 < text_.size() && text_[quote + 1] == '"') {
          cell += '"';
          at = quote + 2;
        } else {
          at = quote + 1;
          break;
        }
      }
      if (at < text_.size() && text_[at] != separator_)
        throw ContentsError("{}: {} after the closing quote of cell {}. Double a quote inside a cell",
                            where(), excerpt(text_.substr(at)), cells.size());
    } else {
      const std::size_t end = std::min(text_.find(separator_, at), text_.size());
      cell = text_.substr(at, end - at);
      at = end;
    }
    if (at >= text_.size()) return;
    ++at;  // the separator; another cell follows, maybe an empty one
  }
}

std::optional<double> number_of_cell(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '+')) cell.remove_prefix(1);
  while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
  double x = 0;
  const auto r = std::from_chars(cell.data(), cell.data() + cell.size(), x);
  if (cell.empty() || r.ec != std::errc() || r.ptr != cell.data() + cell.size()) return std::nullopt;
  return x;
}

bool is_column_number(std::string_view name) {
  return !name.empty() && name.size() < 7 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::size_t find_column(const std::string& name, const std::vector<std::string>* header,
                        const std::string& key, const std::string& where) {
  if (!header) {
    const i64 number = is_column_number(name) ? std::stoll(name) : 0;
    if (number < 1)
      throw UsageError("[data] {}={}: {} has no header, expected a column number from 1", key, excerpt(name),
                       where);
    return static_cast<std::size_t>(number - 1);
  }
  std::size_t found = header->size();
  for (std::size_t i = 0; i < header->size(); ++i) {
    if ((*header)[i] != name) continue;
    if (found < header->size())
      throw UsageError("[data] {}={}: {} has two columns of this name", key, excerpt(name), where);
    found = i;
  }
  if (found < header->size()) return found;
  std::vector<std::string> some(
      header->begin(),
      header->begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(8, header->size())));
  throw UsageError(
      "[data] {}={}: {} has no such column; its columns are {}. Without a header, set data.header=false and "
      "use column numbers from 1",
      key, excerpt(name), where, excerpt(fmt::format("{}", fmt::join(some, ", "))));
}

}  // namespace redco
