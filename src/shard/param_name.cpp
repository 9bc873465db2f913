#include "shard/param_name.h"

#include <algorithm>
#include <array>

namespace redco {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr std::array<std::string_view, 11> kWeightLeaves = {
    "weight", "weights", "kernel", "w", "scale", "gamma", "g", "gain", "embedding", "table", "W"};
constexpr std::array<std::string_view, 6> kBiasLeaves = {"bias", "b", "beta", "offset", "shift", "biases"};

template <class L>
bool contains(const L& list, std::string_view x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

}  // namespace

bool is_bias_leaf(std::string_view leaf) { return contains(kBiasLeaves, leaf); }

bool is_index(std::string_view c) { return !c.empty() && std::all_of(c.begin(), c.end(), is_digit); }

bool is_numbered(std::string_view c) { return !c.empty() && is_digit(c.back()); }

std::string ParamName::prefix(std::size_t n) const {
  std::string s;
  for (std::size_t i = 0; i < n && i < comps.size(); ++i) {
    if (i) s += '.';
    s += comps[i];
  }
  return s;
}

ParamName parse_param_name(std::string_view name) {
  ParamName p;
  p.full = name;
  const std::size_t open = name.rfind('[');
  if (open != std::string_view::npos && open > 0 && name.back() == ']') {
    p.part = name.substr(open + 1, name.size() - open - 2);
    name = name.substr(0, open);
  }
  p.base = name;
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t dot = std::min(name.find_first_of("./", from), name.size());
    p.comps.emplace_back(name.substr(from, dot - from));
    from = dot + 1;
  }
  std::string& last = p.comps.back();
  const bool leaf = contains(kWeightLeaves, last) || contains(kBiasLeaves, last);
  if (leaf && p.comps.size() > 1) {
    p.leaf = last;
    p.comps.pop_back();
  } else if (!leaf) {
    // The leaf is joined to the module by '_': `in_proj_weight`, `c_fc_bias`.
    for (const std::string_view end : {"_weight", "_bias", "_kernel", "_scale"}) {
      if (last.size() > end.size() && last.ends_with(end)) {
        p.leaf = end.substr(1);
        last.erase(last.size() - end.size());
        break;
      }
    }
  }
  p.module = p.prefix(p.comps.size());
  if (!p.part.empty()) p.module += "[" + p.part + "]";
  return p;
}

std::vector<std::string> words_of(std::string_view c) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < c.size(); ++i) {
    const char x = c[i];
    const char before = i ? c[i - 1] : '\0';
    const char after = i + 1 < c.size() ? c[i + 1] : '\0';
    if (!is_digit(x) && !is_upper(x) && !is_lower(x) && static_cast<unsigned char>(x) < 0x80) {
      flush();
      continue;
    }
    if (is_digit(x) != is_digit(before)) flush();
    // A word starts at B in both aB and ABc.
    if (is_upper(x) && (is_lower(before) || (is_upper(before) && is_lower(after)))) flush();
    word += to_lower(x);
  }
  flush();
  return words;
}

}  // namespace redco
