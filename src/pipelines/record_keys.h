// The keys of records that pipelines know by several names.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/records.h"

namespace redco {

// The key of a record for a field: the one that data.fields names, else the first known one that it has; "":
// none.
std::string key_of(const Record& r, const std::optional<std::string>& named,
                   std::initializer_list<const char*> known);

// MS MARCO's form of a query's documents: "passages": {"passage_text": ["...", ...], "is_selected": [0, 1,
// ...]}. nullopt: the record has another form. ContentsError: other numbers of texts and labels.
struct RankedPassages {
  std::vector<std::string> texts;
  std::vector<float> selected;  // 0 or 1
};
std::optional<RankedPassages> ranked_passages(const Record& r);

}  // namespace redco
