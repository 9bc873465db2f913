#include "pipelines/record_keys.h"

#include <fmt/format.h>

#include "base/words.h"

namespace redco {

std::string key_of(const Record& r, const std::optional<std::string>& named,
                   std::initializer_list<const char*> known) {
  if (named) return r.has(*named) ? *named : "";
  for (const char* key : known)
    if (r.has(key)) return key;
  return "";
}

std::optional<RankedPassages> ranked_passages(const Record& r) {
  if (!r.has("passages") || !r.json("passages").starts_with('{')) return std::nullopt;
  const Record passages(r.json("passages"), r.where() + ": \"passages\"");
  if (!passages.has("passage_text") || !passages.has("is_selected")) return std::nullopt;
  RankedPassages out{passages.texts("passage_text"), passages.numbers("is_selected")};
  if (out.texts.empty() || out.texts.size() != out.selected.size())
    passages.fail(fmt::format("{}, but {}", counted(out.texts.size(), "text"),
                              counted(out.selected.size(), "number") + " in is_selected"));
  return out;
}

}  // namespace redco
