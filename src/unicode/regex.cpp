#include "unicode/regex.h"

#include <oniguruma.h>

#include <mutex>

#include "base/error.h"
#include "unicode/regex_classes.h"

namespace redco {
namespace {

constexpr std::size_t kMaxPattern = 16 * 1024;
constexpr unsigned kMaxNesting = 256;
// A legitimate \p{L}+ backtracks once per character of a long word. So the limits are far above the size of
// any text block that redco searches in one call (a few MiB), yet they stop nested quantifiers within about a
// second.
constexpr unsigned long kRetries = 50'000'000;
constexpr unsigned kStackEntries = 8'000'000;

std::string error_text(int code, OnigErrorInfo* info) {
  OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int n =
      info != nullptr ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
  return {reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(n > 0 ? n : 0)};
}

const OnigUChar* bytes(const char* p) { return reinterpret_cast<const OnigUChar*>(p); }

struct RegionGuard {
  OnigRegion* region = onig_region_new();
  ~RegionGuard() { onig_region_free(region, 1); }
};

struct ParamGuard {
  OnigMatchParam* param = onig_new_match_param();
  ~ParamGuard() { onig_free_match_param(param); }
};

}  // namespace

void initialize_oniguruma() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    const int r = onig_initialize(encodings, 1);
    REDCO_CHECK(r == ONIG_NORMAL, "onig_initialize: {}", error_text(r, nullptr));
    onig_set_parse_depth_limit(kMaxNesting);
    define_newer_properties();
  });
}

struct Regex::Impl {
  OnigRegex regex = nullptr;
  ~Impl() {
    if (regex != nullptr) onig_free(regex);
  }
};

Regex::Regex(std::string pattern, std::string where)
    : pattern_(std::move(pattern)), where_(std::move(where)), impl_(std::make_unique<Impl>()) {
  initialize_oniguruma();
  if (pattern_.size() > kMaxPattern)
    throw ContentsError("{}: the regular expression has {} bytes, but at most {} are supported", where_,
                        pattern_.size(), kMaxPattern);
  OnigErrorInfo info;
  const std::string newer = with_newer_characters(pattern_);
  const int r = onig_new(&impl_->regex, bytes(newer.data()), bytes(newer.data() + newer.size()),
                         ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (r != ONIG_NORMAL)
    throw ContentsError("{}: '{}' is not a valid regular expression: {}", where_, pattern_.substr(0, 200),
                        error_text(r, &info));
}

Regex::~Regex() = default;

std::vector<std::pair<std::size_t, std::size_t>> Regex::find_all(std::string_view text) const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  RegionGuard region;
  ParamGuard param;
  onig_initialize_match_param(param.param);
  onig_set_retry_limit_in_match_of_match_param(param.param, kRetries);
  onig_set_retry_limit_in_search_of_match_param(param.param, kRetries);
  onig_set_match_stack_limit_size_of_match_param(param.param, kStackEntries);
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::size_t from = 0;
  std::optional<std::size_t> last_end;
  while (from <= text.size()) {
    onig_region_clear(region.region);
    const int r = onig_search_with_param(impl_->regex, bytes(begin), bytes(end), bytes(begin + from),
                                         bytes(end), region.region, ONIG_OPTION_NONE, param.param);
    if (r == ONIG_MISMATCH) break;
    if (r < 0)
      throw ContentsError(
          "{}: the search for the regular expression '{}' in a text of {} bytes was stopped: {}", where_,
          pattern_.substr(0, 200), text.size(), error_text(r, nullptr));
    const auto s = static_cast<std::size_t>(region.region->beg[0]);
    const auto e = static_cast<std::size_t>(region.region->end[0]);
    if (s == e && last_end == e) {  // an empty match directly after a match: skip one character
      ++from;
      while (from < text.size() && (static_cast<unsigned char>(begin[from]) & 0xC0) == 0x80) ++from;
      continue;
    }
    found.emplace_back(s, e);
    from = e;
    last_end = e;
  }
  return found;
}

std::string escape_regex(std::string_view literal) {
  std::string out;
  for (char c : literal) {
    if (std::string_view("\\.+*?()|[]{}^$#&-~/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace redco
