// Records: the JSON objects of JSONL files, and the rows of TSV, CSV and parallel files, as examples, for the
// open() of a pipeline. Needs no JSON library.
//
//   std::shared_ptr<const Dataset> open(const DataRequest& request) override {
//     return read_jsonl(request, [&](const Record& r) {
//       Example e;
//       e.ids["input_ids"] = tokenizer->encode(r.text("question"));
//       return e;
//     });
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/pipeline.h"

namespace redco {

// One object. All errors are ContentsErrors that begin with where().
class Record {
 public:
  // ContentsError unless `json` is an object.
  Record(std::string_view json, std::string where);
  // only_texts: a row of a table, whose cells are texts; number() and integer() read them.
  static Record of_line(std::string_view json, std::string where, bool only_texts);
  Record(Record&&) noexcept;
  ~Record();

  const std::string& where() const { return where_; }  // "data.jsonl:12"
  [[noreturn]] void fail(const std::string& why) const;

  bool has(const std::string& key) const;  // and it is not null
  std::string text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& otherwise) const;  // if it is missing
  double number(const std::string& key) const;
  i64 integer(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;  // a list of texts
  std::vector<float> numbers(const std::string& key) const;      // a list of numbers
  std::vector<Record> records(const std::string& key) const;     // a list of objects
  std::string json(const std::string& key) const;                // any value, as JSON
  std::string json() const;                                      // the whole object
  // A copy that also has values under other names: each that it has under `first`, under `second`.
  Record renamed(const std::vector<std::pair<std::string, std::string>>& names) const;

 private:
  struct Object;
  explicit Record(std::unique_ptr<Object> object, std::string where);
  std::unique_ptr<Object> object_;
  std::string where_;
};

// The examples of the request's files: JSONL, plain or compressed, or builtin:NAME. `read` is called once per
// line; nullopt skips the line. The first rank reads the files and stores the examples in the cache folder,
// under a hash of the lines and of request.fingerprint; later runs find them there. All ranks open that file,
// and threads may read from it. An example's id is the "id" of its line, unless `read` sets one. UsageError:
// a file does not exist. ContentsError, with file and line: a line that is no object or that `read` refuses
// with a ContentsError (with request.skip_bad such lines are skipped and counted); no examples.
// Collective.
using ReadRecord = std::function<std::optional<Example>(const Record&)>;
std::shared_ptr<const Dataset> read_jsonl(const DataRequest& request, const ReadRecord& read);
// Also TSV, CSV and parallel files, by data.format or the files' names: see data/text/record_lines.h. A
// record's keys are the columns' names; those of parallel files are "source" and "target". settings:
// settings->data. UsageError: plain text. Collective.
std::shared_ptr<const Dataset> read_records(const DataRequest& request, const DataSettings& settings,
                                            const ReadRecord& read);

// Examples of any other source, in order; `next` returns nullopt at the end. The first rank takes them all
// and stores them in the cache folder. key: identifies them, so that a later run finds them there; "": they
// are taken again in each run. Collective.
std::shared_ptr<const Dataset> spool_examples(const DataRequest& request, const std::string& key,
                                              const std::function<std::optional<Example>()>& next);

// {"prediction": "..."}: a JSON object of texts, for predict() and output().
std::string json_object(const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace redco
