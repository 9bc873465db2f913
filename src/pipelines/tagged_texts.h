// Records of pipeline token_classification: words with tags, or a text with spans.
//
//   {"tokens": ["Anna", "lives", "in", "Rome"], "tags": ["B-PER", "O", "O", "B-LOC"]}
//   {"text": "Anna lives in Rome", "spans": [{"start": 0, "end": 4, "label": "PER"}, ...]}
//   {"prompt": "2 + 3 + 4?", "completions": ["2 + 3 is 5.", "It is 9."], "labels": [true, true]}
//
// Spans may be lists, [0, 4, "PER"]. The last form has the steps of an answer (TRL's stepwise supervision):
// the line break after each step has its label, as a tag. Tags may be numbers, indices of the classes. The
// words of a span get the tags B-LABEL, I-LABEL, ...; words that overlap a span belong to it.
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
  bool steps = false;                            // the prompt, and each step with a line break
  std::optional<std::vector<std::string>> tags;  // of the tagged words; nullopt: the record has none

  // The indices of the words that have a tag: all, or the line breaks after steps.
  std::vector<std::size_t> tagged() const;
};

// ContentsError with the record's place: neither tokens nor a text; other numbers of words and tags; a span
// outside of the text, or one that overlaps the span before.
TaggedText read_tagged_text(const Record& r, const ExampleFields& fields);

// The index of a tag: a name, or a number if the data have numbers. ContentsError lists the classes.
i64 tag_number(const ClassNames& classes, const std::string& tag);

// The tags of the files, O first, the others sorted; numbers by value.
std::vector<std::string> distinct_tags(const std::vector<std::string>& files, const DataSettings& settings);

}  // namespace redco
