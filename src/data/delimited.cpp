#include "data/delimited.h"

#include "base/error.h"
#include "base/words.h"

namespace redco {

std::string DelimitedReader::where() const {
  const std::string at = lines_.where();
  return at.substr(0, at.rfind(':') + 1) + std::to_string(row_);
}

bool DelimitedReader::next(std::vector<std::string>& fields) {
  fields.clear();
  std::string line;
  do {
    if (!lines_.next(line)) return false;
    if (lines_.line_number() == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  } while (line.empty());
  row_ = lines_.line_number();
  if (quotes_ && line.find('"') != std::string::npos) {
    split_quoted(line, fields);
    return true;
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = line.find(delimiter_, begin)) != std::string::npos; begin = end + 1)
    fields.push_back(line.substr(begin, end - begin));
  fields.push_back(line.substr(begin));
  return true;
}

void DelimitedReader::split_quoted(std::string& line, std::vector<std::string>& fields) {
  std::size_t at = 0, total = line.size();
  for (;;) {
    std::string& field = fields.emplace_back();
    if (at < line.size() && line[at] == '"') {
      ++at;
      for (;;) {
        const auto quote = line.find('"', at);
        if (quote == std::string::npos) {  // the field goes on in the next line
          field.append(line, at);
          field += '\n';
          if (!lines_.next(line))
            throw ContentsError("the quote that begins column {} is never closed", fields.size());
          total += line.size() + 1;
          if (total > LineReader::kMaxLine)
            throw ContentsError("a row of more than {} MiB: is the quote of column {} closed?",
                                LineReader::kMaxLine >> 20, fields.size());
          at = 0;
          continue;
        }
        field.append(line, at, quote - at);
        at = quote + 1;
        if (at == line.size() || line[at] != '"') break;
        field += '"';
        ++at;
      }
      if (at < line.size() && line[at] != delimiter_)
        throw ContentsError("column {}: '{}' follows its closing quote; a quote inside a field is doubled",
                            fields.size(), excerpt(line.substr(at), 20));
    } else {
      const auto end = std::min(line.find(delimiter_, at), line.size());
      field = line.substr(at, end - at);
      if (field.find('"') != std::string::npos)
        throw ContentsError(
            "column {}: a quote inside of '{}'; such a field stands in quotes, and the quote is doubled",
            fields.size(), excerpt(field, 20));
      at = end;
    }
    if (at == line.size()) return;
    ++at;  // the delimiter
  }
}

}  // namespace redco
