#include "pipeline/record_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "pipeline/pipeline.h"

namespace redco {

namespace {

constexpr IndexFormat kRecordFormat = {{'r', 'e', 'd', 'c', 'o', 'R', 'E', 'C'}, 4, "file of examples"};

}  // namespace

// --- Reading ---

RecordFile::RecordFile(const std::string& path, std::vector<std::string> files)
    : file_(IndexFile::open(path, kRecordFormat, facts_)),
      files_(std::move(files)),
      table_(file_.file(), facts_.n_examples, facts_.directory) {}

Example RecordFile::get(i64 i) const {
  const RecordPlace p = table_.at(static_cast<u64>(i));
  Example e = examples_from_json(file_.bytes(p.offset, p.bytes, fmt::format("example {}", i))).at(0);
  e.ordinal = i;
  return e;
}

std::string RecordFile::describe() const {
  const std::string bad = file_.describe_bad(files_);
  const std::string longest =
      facts_.longest > 0 ? fmt::format(" of at most {}", counted(facts_.longest, "token")) : "";
  return fmt::format("{}{}{}{}", counted(size(), "example"), longest, bad.empty() ? "" : "\n", bad);
}

// --- Writing ---

RecordWriter::RecordWriter(const std::string& path)
    : index_(path, kRecordFormat, sizeof(RecordFacts)), places_(index_.file()) {}

void RecordWriter::add(Example e) {
  RecordPlace p;
  p.length = longest_ids(e);
  std::string text;
  try {
    text = examples_to_json({std::move(e)});
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: example {} of the data, counted from 0", error.what(), places_.size()));
  }
  p.offset = index_.file().append(text);
  p.bytes = text.size();
  hasher_.update(text.data(), text.size());
  facts_.n_tokens += p.length;
  facts_.longest = std::max(facts_.longest, p.length);
  places_.add(p);
}

void RecordWriter::finish(const std::string& source, const std::vector<std::string>& files) {
  if (places_.size() == 0)
    throw ContentsError("[data] {} has no examples{}", source, index_.describe_bad(files));
  facts_.n_examples = places_.size();
  facts_.directory = places_.finish();
  index_.finish(hasher_.digest128(), facts_);
}

}  // namespace redco
