#include "unicode/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "unicode/hf_chars.h"

namespace redco {
namespace {

constexpr utf8proc_uint16_t kNone = UINT16_MAX;

bool composed(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }

int options_of(NormalForm form) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  return UTF8PROC_STABLE | (composed(form) ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
         (compatible ? UTF8PROC_COMPAT : 0);
}

// `text` with long runs of combining marks sorted by combining class. utf8proc's own sort takes n^2 steps.
std::string with_long_runs_sorted(std::string_view text) {
  constexpr std::size_t kLong = 64;
  using Mark = std::pair<int, std::string_view>;
  std::string out;
  std::vector<Mark> run;
  auto finish = [&] {
    if (run.size() > kLong)
      std::stable_sort(run.begin(), run.end(),
                       [](const Mark& a, const Mark& b) { return a.first < b.first; });
    for (const Mark& m : run) out += m.second;
    run.clear();
  };
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const char* start = p;
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(p));
    const int order = utf8proc_get_property(c)->combining_class;
    if (order == 0) finish();
    run.emplace_back(order, std::string_view(start, static_cast<std::size_t>(p - start)));
    if (order == 0) finish();
  }
  finish();
  return out;
}

void append_mapped(std::string_view text, int options, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()), &result,
                              static_cast<utf8proc_option_t>(options));
  std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(result, std::free);
  if (n < 0) throw ContentsError("[tokenizer] Unicode normalization: {}", utf8proc_errmsg(n));
  out.append(reinterpret_cast<const char*>(result), static_cast<std::size_t>(n));
}

// True for characters of a later version of Unicode than that of Hugging Face's tables. In these tables they
// neither decompose nor combine.
bool is_unknown(char32_t c) {
  if (hf_classes()[c] & kHfNormalizing) return false;
  const auto* p = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  return p->combining_class != 0 || p->decomp_seqindex != kNone;
}

// Decomposes composites that Hugging Face's tables don't have.
std::string without_unknown_composites(std::string text) {
  std::string out;
  const char* done = text.data();
  const char* end = done + text.size();
  for (const char* p = done; p < end;) {
    const char* start = p;
    if (static_cast<unsigned char>(*p) < 0xF0) {  // all composites below U+10000 are in the tables
      next_code_point(p);
      continue;
    }
    if (!is_unknown(next_code_point(p))) continue;
    out.append(done, start);
    append_mapped({start, static_cast<std::size_t>(p - start)}, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, out);
    done = p;
  }
  if (done == text.data()) return text;
  return out.append(done, end);
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  std::string out;
  const int options = options_of(form);
  const char* done = text.data();
  const char* end = done + text.size();
  auto flush = [&](const char* to) {
    if (done == to) return;
    std::string_view part(done, static_cast<std::size_t>(to - done));
    std::string sorted;
    if (part.size() > 128) part = sorted = with_long_runs_sorted(part);
    if (!composed(form)) {
      append_mapped(part, options, out);
      return;
    }
    std::string mapped;
    append_mapped(part, options, mapped);
    out += without_unknown_composites(std::move(mapped));
  };
  for (const char* p = done; p < end;) {
    const char* start = p;
    if (static_cast<unsigned char>(*p) < 0xCC) {  // below U+0300
      next_code_point(p);
      continue;
    }
    if (!is_unknown(next_code_point(p))) continue;
    flush(start);
    out.append(start, p);
    done = p;
  }
  flush(end);
  return out;
}

bool surely_in_form(std::string_view text, NormalForm form) {
  const char* p = text.data();
  const char* end = p + text.size();
  const auto* classes = hf_classes();
  while (p < end) {
    if (static_cast<unsigned char>(*p) < 0x80) {
      ++p;
      continue;
    }
    const char32_t c = next_code_point(p);
    if (form == NormalForm::nfc && c < 0x300) continue;
    // // Some characters without a combining class compose with the character before them: characters that
    // extend its
    // cluster, and vowels and finals of Hangul.
    if (c >= 0x1100 && c < 0x1200) return false;
    if (composed(form) && c >= 0xAC00 && c < 0xD7A4) continue;
    if (classes[c] & (kHfNormalizing | kHfExtends)) return false;
  }
  return true;
}

}  // namespace redco
