#include "job/shipped_jobs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

struct Entry {
  const char *name, *text;
};
const Entry kEntries[] = {
#include <job/shipped_jobs.inc>  // generated from configs/
};

constexpr std::string_view kSchemaMark = "# yaml-language-server:";

// The first sentence of the comment at the top.
std::string first_sentence(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.starts_with(kSchemaMark)) continue;
    if (!line.starts_with("# ")) break;
    out += (out.empty() ? "" : " ") + std::string(line.substr(2));
    if (const size_t stop = out.find(". "); stop != std::string::npos) return out.substr(0, stop + 1);
  }
  return out;
}

}  // namespace

const std::vector<ShippedJob>& shipped_jobs() {
  static const std::vector<ShippedJob> jobs = [] {
    std::vector<ShippedJob> out;
    for (const Entry& e : kEntries) out.push_back({e.name, first_sentence(e.text), e.text});
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
  }();
  return jobs;
}

const ShippedJob& shipped_job(const std::string& asked) {
  std::string name = asked;
  if (name.ends_with(".yaml")) name.resize(name.size() - 5);
  if (name.starts_with("configs/")) name.erase(0, 8);
  const ShippedJob* found = nullptr;
  std::vector<std::string> names, alike;
  for (const ShippedJob& j : shipped_jobs()) {
    const std::string last = j.name.substr(j.name.rfind('/') + 1);
    if (j.name == name) return j;
    if (last == name) alike.push_back((found = &j)->name);
    names.insert(names.end(), {j.name, last});
  }
  if (alike.size() == 1) return *found;
  if (!alike.empty())
    throw UsageError("several jobs are named {}; choose one of {}", name, fmt::join(alike, ", "));
  const std::string near = nearest(name, names);
  throw UsageError("there is no job named {}; {}", excerpt(asked),
                   near.empty() ? "`redco ls` lists them" : "did you mean " + near + "?");
}

std::string schema_line(const std::string& where) {
  return fmt::format("{} $schema={}\n", kSchemaMark, where);
}

std::string text_for_user(const ShippedJob& job, const std::string& schema) {
  std::string text = job.text;
  if (text.starts_with(kSchemaMark)) text.erase(0, text.find('\n') + 1);
  return schema.empty() ? text : schema_line(schema) + text;
}

}  // namespace redco
