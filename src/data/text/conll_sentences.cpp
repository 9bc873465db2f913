#include "data/text/conll_sentences.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

std::vector<std::string> columns_of(const std::string& line, bool tabs) {
  const char* between = tabs ? "\t" : " ";
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(between, at), line.size());
    if (tabs || end > at) out.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string ConllSentences::where() const {
  const std::string last = lines_.where();  // file:line
  return fmt::format("{}:{}", last.substr(0, last.rfind(':')), first_line_);
}

bool ConllSentences::next(std::string& json) {
  problem_.clear();
  std::vector<std::vector<std::string>> columns;
  std::size_t words = 0;
  for (std::string line; lines_.next(line);) {
    if (line.find_first_not_of(" \t") == std::string::npos || line.starts_with("-DOCSTART-")) {
      if (words == 0) continue;
      break;
    }
    const bool comment = words == 0 && line.starts_with("# ");
    if (width_ == 0 && comment) continue;
    if (width_ == 0) tabs_ = line.find('\t') != std::string::npos;
    std::vector<std::string> cells = columns_of(line, tabs_);
    if (comment && cells.size() != width_) continue;
    if (width_ == 0) width_ = cells.size();
    if (words == 0) {
      first_line_ = lines_.line_number();
      columns.resize(width_);
    }
    if (++words > kMaxWords)
      throw ContentsError("{}: a sentence of more than {} words. Expected a blank line after each sentence",
                          where(), kMaxWords);
    if (cells.size() != width_ && problem_.empty())
      problem_ = fmt::format("line {}, {}, has {}, but the first word of the file has {}",
                             lines_.line_number(), excerpt(line), counted(cells.size(), "column"), width_);
    for (std::size_t k = 0; problem_.empty() && k < width_; ++k) columns[k].push_back(std::move(cells[k]));
  }
  if (words == 0) return false;
  nlohmann::ordered_json sentence = nlohmann::ordered_json::object();
  sentence["tokens"] = columns.front();
  if (width_ > 1) sentence["tags"] = columns.back();
  for (std::size_t k = 0; k < width_; ++k) sentence[std::to_string(k + 1)] = std::move(columns[k]);
  json = sentence.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return true;
}

}  // namespace redco
