// Records of pipeline token_classification: words with tags, or a text with spans.
//
//   {"tokens": ["Anna", "lives", "in", "Rome"], "tags": ["B-PER", "O", "O", "B-LOC"]}
//   {"text": "Anna lives in Rome", "spans": [{"start": 0, "end": 4, "label": "PER"}, ...]}
//
// Tags may be numbers, indices of the classes. The words of a span get the tags B-LABEL, I-LABEL, ...; words
// that overlap a span belong to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/labelled/labelled_rows.h"
#include "pipeline/records.h"
#include "pipelines/words.h"

namespace redco {

struct TaggedText {
  std::string text;  // "" if the words are given
  std::vector<Word> words;
  std::optional<std::vector<std::string>> tags;  // of the words; nullopt: the record has none
};

// ContentsError with the record's place: neither tokens nor a text; other numbers of words and tags; a span
// outside of the text, or one that overlaps the span before.
TaggedText read_tagged_text(const Record& r, const ExampleFields& fields);

// The index of a tag: a name, or a number if the data have numbers. ContentsError lists the classes.
i64 tag_number(const ClassNames& classes, const std::string& tag);

// The tags of the files, O first, the others sorted; numbers by value.
std::vector<std::string> distinct_tags(const std::vector<std::string>& files, const DataSettings& settings);

}  // namespace redco
