#include "data/text/record_filter.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/words.h"
#include "data/labelled/table_reader.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostComparisons = 256;

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

// Splits an expression into words, quoted texts and operators.
class WhereReader {
 public:
  explicit WhereReader(const std::string& text) : text_(text) {}

  bool at_end() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ == text_.size();
  }
  std::string column() {
    if (at_end()) fail("ends where a column is expected");
    if (text_[at_] == '`') return quoted();
    const std::string word = bare();
    if (word.empty()) fail("a column is expected");
    return word;
  }
  std::string op() {
    if (!at_end())
      for (const char* known : {"==", "!=", "<=", ">=", "<", ">"})
        if (text_.compare(at_, std::string_view(known).size(), known) == 0) {
          at_ += std::string_view(known).size();
          return known;
        }
    fail("one of == != < <= > >= is expected");
  }
  decltype(RecordFilter::Comparison::literal) literal() {
    if (at_end()) fail("ends where a value is expected");
    if (text_[at_] == '"' || text_[at_] == '\'') return quoted();
    const std::size_t begin = at_;
    if (text_[at_] == '+') ++at_;
    const std::string word = bare();
    if (word == "true" || word == "True") return true;
    if (word == "false" || word == "False") return false;
    if (word == "null" || word == "None" || word == "~") return nullptr;
    double x = 0;
    const auto r = std::from_chars(word.data(), word.data() + word.size(), x);
    if (!word.empty() && r.ec == std::errc() && r.ptr == word.data() + word.size()) return x;
    at_ = begin;
    fail("a text in quotes, a number, true, false or null is expected");
  }
  // "and" or "or".
  std::string joint() {
    const std::string word = bare();
    if (word != "and" && word != "or") fail("`and` or `or` is expected");
    return word;
  }
  [[noreturn]] void fail(const char* why) const {
    throw UsageError(
        "[data] data.where: {}, at '{}'. Expected comparisons such as: lang == \"de\" and score >= 0.5", why,
        excerpt(std::string_view(text_).substr(std::min(at_, text_.size()))));
  }

 private:
  std::string bare() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_byte(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    if (at_ == text_.size()) fail("a quote is not closed");
    ++at_;
    return out;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

std::optional<double> number_of(const Json& v) {
  if (v.is_number()) return v.get<double>();
  return v.is_string() ? number_of_cell(v.get_ref<const std::string&>()) : std::nullopt;
}

template <class T>
bool compared(const T& a, const std::string& op, const T& b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return op == ">" ? a > b : a >= b;
}

bool holds(const RecordFilter::Comparison& c, const Json& record) {
  const Json* v = value_at(record, c.column);
  if (std::holds_alternative<std::nullptr_t>(c.literal)) return (v == nullptr) == (c.op == "==");
  if (!v) return c.op == "!=";
  const auto other = [&](const char* expected) {
    return ContentsError("data.where compares \"{}\" with {}, but it is {}", excerpt(c.column), expected,
                         v->is_string() ? "the text '" + excerpt(v->get_ref<const std::string&>()) + "'"
                                        : std::string(v->type_name()));
  };
  if (const bool* truth = std::get_if<bool>(&c.literal)) {
    if (v->is_boolean()) return compared(v->get<bool>(), c.op, *truth);
    if (!v->is_string()) throw other("true or false");
    const auto& text = v->get_ref<const std::string&>();
    const bool yes = text == "true" || text == "True" || text == "TRUE" || text == "1";
    const bool no = text == "false" || text == "False" || text == "FALSE" || text == "0";
    if (!yes && !no) throw other("true or false");
    return compared(yes, c.op, *truth);
  }
  if (const double* number = std::get_if<double>(&c.literal)) {
    if (const std::optional<double> x = number_of(*v)) return compared(*x, c.op, *number);
    const bool empty = v->is_string() && v->get_ref<const std::string&>().empty();  // an empty cell
    if (!empty) throw other("a number");
    return c.op == "!=";
  }
  if (!v->is_string()) throw other("a text");
  return compared(v->get_ref<const std::string&>(), c.op, std::get<std::string>(c.literal));
}

}  // namespace

const Json* value_at(const Json& j, std::string_view path) {
  if (j.is_object()) {
    if (const auto it = j.find(path); it != j.end()) return it->is_null() ? nullptr : &*it;
    for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1))
      if (const auto it = j.find(path.substr(0, dot)); it != j.end())
        return value_at(*it, path.substr(dot + 1));
    return nullptr;
  }
  if (!j.is_array()) return nullptr;
  const std::string_view first = path.substr(0, path.find('.'));
  std::size_t k = 0;
  const auto r = std::from_chars(first.data(), first.data() + first.size(), k);
  if (first.empty() || r.ec != std::errc() || r.ptr != first.data() + first.size() || k >= j.size())
    return nullptr;
  if (first.size() == path.size()) return j[k].is_null() ? nullptr : &j[k];
  return value_at(j[k], path.substr(first.size() + 1));
}

RecordFilter::RecordFilter(const std::string& expression) {
  WhereReader in(expression);
  any_of_.emplace_back();
  for (std::size_t n = 1;; ++n) {
    Comparison c;
    c.column = in.column();
    c.op = in.op();
    c.literal = in.literal();
    const bool ordered =
        std::holds_alternative<double>(c.literal) || std::holds_alternative<std::string>(c.literal);
    if (!ordered && c.op != "==" && c.op != "!=")
      in.fail("null, true and false are compared by == and != only");
    any_of_.back().push_back(std::move(c));
    if (in.at_end()) return;
    if (n == kMostComparisons) in.fail("has more than 256 comparisons");
    if (in.joint() == "or") any_of_.emplace_back();
  }
}

bool RecordFilter::matches(const Json& record) const {
  return std::any_of(any_of_.begin(), any_of_.end(), [&](const std::vector<Comparison>& all) {
    return std::all_of(all.begin(), all.end(), [&](const Comparison& c) { return holds(c, record); });
  });
}

std::vector<std::string> RecordFilter::columns() const {
  std::vector<std::string> out;
  for (const auto& all : any_of_)
    for (const Comparison& c : all)
      if (std::find(out.begin(), out.end(), c.column) == out.end()) out.push_back(c.column);
  return out;
}

}  // namespace redco
