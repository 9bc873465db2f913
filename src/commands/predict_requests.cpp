#include "commands/predict_requests.h"

#include <fmt/ranges.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/ordered_work.h"
#include "base/temporaries.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "data/images/image_folder.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/record_lines.h"
#include "train/prefetch.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

std::string text_of(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

using Key = std::optional<std::string>;

// The value of the first of these keys that the object has; null values count as absent.
const Json* value_of(const Json& j, std::initializer_list<Key> keys, std::string& found) {
  for (const Key& key : keys) {
    const auto it = key ? j.find(*key) : j.end();
    if (it == j.end() || it->is_null()) continue;
    found = *key;
    return &*it;
  }
  return nullptr;
}

std::string quoted_keys(const Json& j) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : j.items())
    if (keys.size() < 8) keys.push_back(key);
  return keys.empty() ? "none" : excerpt(fmt::format("{}", fmt::join(keys, ", ")));
}

// The prompt of a line in the forms of the training data: data.fields names the keys.
void read_prompt(const JobConfig& job, const PredictModel& m, const Json& j, const std::string& where,
                 PredictRequest& r, Json& head) {
  const ExampleFields& f = job.data.fields;
  std::string text_key, chat_key;
  const Json* text = value_of(j, {f.prompt, f.text, "prompt", "text"}, text_key);
  const Json* chat = value_of(j, {f.messages, f.conversations, "messages", "conversations"}, chat_key);
  if (text && chat)
    throw ContentsError("{}: both \"{}\" and \"{}\"; which is the prompt? Keep one of them", where, text_key,
                        chat_key);
  std::string other = text_key;
  if (text && f.prompt && text_key == *f.prompt && value_of(j, {f.text}, other))
    throw ContentsError("{}: both \"{}\" and \"{}\"; which is the prompt? Keep one of them", where, text_key,
                        other);
  if (!text && !chat)
    throw ContentsError("{}: no \"{}\", \"{}\" or \"{}\"; its keys are {} (data.fields renames them)", where,
                        f.prompt.value_or("prompt"), f.text.value_or("text"), f.messages.value_or("messages"),
                        quoted_keys(j));
  Example& e = r.example;
  if (text && text->is_array()) std::swap(text, chat), std::swap(text_key, chat_key);
  if (chat) {
    try {
      const bool turns = chat->is_array() && !chat->empty() && (*chat)[0].contains("from");
      const Json messages = turns ? sharegpt_messages(j, *chat, chat_key) : *chat;
      const ChatVariables variables = chat_variables(j);
      e.ids["prompt"] = message_ids(m, job.predict, parse_messages(messages.dump(), where), where, variables);
    } catch (const ContentsError& error) {
      const std::string what = error.what();
      throw ContentsError("{}", what.starts_with(where) ? what : fmt::format("{}: {}", where, what));
    }
    head[chat_key] = *chat;
    return;
  }
  if (!text->is_string())
    throw ContentsError("{}: \"{}\" is of type {}; expected a text", where, text_key, text->type_name());
  e.text = r.prompt = text->get<std::string>();
  e.ids["prompt"] = prompt_ids(m, job.predict, r.prompt, where);
  head["prompt"] = *text;
}

// Reads a prompt, or an object that the pipeline reads; the answer repeats all members of such an object.
void read_line(const JobConfig& job, const PredictModel& m, const Json& j, const std::string& where,
               PredictRequest& r) {
  Example& e = r.example;
  const i64 ordinal = e.ordinal;
  std::string id_key;
  const Json* own_id = value_of(j, {job.data.fields.id, "id"}, id_key);
  const Json id = own_id ? *own_id : Json(ordinal);
  Json head = {{"id", id}};
  if (auto asked =
          in_pipeline(*m.pipeline, "request()", [&] { return m.pipeline->request(text_of(j), where); })) {
    e = std::move(*asked);
    head.update(j);
  } else {
    if (j.contains(job.data.fields.image) && is_folder(job.predict.input.value_or("")))
      throw UsageError(
          "[predict] predict.input={} ({}) is a folder of images, and pipeline {} reads no images. Give a file of "
          "JSON lines",
          *job.predict.input, job.origins.where("predict.input"), job.pipeline);
    read_prompt(job, m, j, where, r, head);
  }
  e.ordinal = ordinal;
  e.id = text_of(id);
  r.head = text_of(head);
}

}  // namespace

struct PredictRequests::State {
  // A prompt of the job, or an unread line of predict.input.
  struct Line {
    Json prompt;
    std::string text, where;
    std::string problem;  // why the line can't be read; "": it can
    i64 ordinal = 0;
  };
  struct Outcome {
    PredictRequest request;
    std::optional<std::string> bad;  // the reason why the line is skipped
  };

  State(const JobConfig& job, const PredictModel& m)
      : job(job),
        m(m),
        work(
            in_pipeline(*m.pipeline, "concurrent_requests()",
                        [&] { return m.pipeline->concurrent_requests(); })
                ? n_readers(Reading::costly, job.data.n_workers)
                : 0,
            [this](Line line, int) { return read(line); }, [this](Outcome o) { add(std::move(o)); }) {
    if (!job.predict.input) return;
    std::string path = *job.predict.input;
    if (is_builtin(path)) path = data_files({path}, true, builtin.emplace().path()).front();
    if (!is_folder(path)) {
      lines = std::make_unique<RecordLines>(RecordLines::of_prompts(path, job.data));
      return;
    }
    if (job.data.images)
      throw UsageError(
          "[predict] predict.input={} ({}) is a folder of images, but data.images={} ({}) names the folder of all "
          "images. Remove data.images, e.g. data.images=~",
          path, job.origins.where("predict.input"), *job.data.images, job.origins.where("data.images"));
    images.emplace(ImageFolder::open(path, true));
  }

  std::optional<Line> next_line() {
    Line line;
    if (lines) {
      if (!lines->next(line.text)) return std::nullopt;
      line.where = lines->where();
      line.problem = lines->problem();
    } else if (images) {
      if (n_lines == static_cast<i64>(images->files().size())) return std::nullopt;
      line.where = images->where(n_lines);
      line.prompt = {{job.data.fields.image, line.where}};
    } else {
      const auto& prompts = job.predict.prompt;
      if (n_lines == static_cast<i64>(prompts.size())) return std::nullopt;
      line.prompt = {{"prompt", prompts[static_cast<std::size_t>(n_lines)]}};
      line.where = prompts.size() == 1 ? "predict.prompt" : fmt::format("predict.prompt[{}]", n_lines);
    }
    line.ordinal = n_lines++;
    return line;
  }
  // On any thread.
  Outcome read(const Line& line) const {
    PredictRequest r;
    r.example.ordinal = line.ordinal;
    try {
      if (!line.problem.empty()) throw ContentsError("{}: {}", line.where, line.problem);
      read_line(job, m, lines ? parse_json_line(line.text, line.where) : line.prompt, line.where, r);
    } catch (const ContentsError& e) {
      if ((!lines && !images) || !job.predict.skip_bad) throw;
      return {.request = {}, .bad = e.what()};
    }
    return {.request = std::move(r), .bad = std::nullopt};
  }
  void add(Outcome o) {
    if (!o.bad)
      ready.push_back(std::move(o.request));
    else if (skipped++ == 0)
      first_reason = *o.bad;
  }

  const JobConfig& job;
  const PredictModel& m;
  std::optional<TemporaryFolder> builtin;  // holds the lines of a built-in input
  std::unique_ptr<RecordLines> lines;      // null for a folder of images and for predict.prompt
  std::optional<ImageFolder> images;
  i64 n_lines = 0, skipped = 0;
  std::string first_reason;
  std::deque<PredictRequest> ready;
  bool ended = false;
  OrderedWork<Line, Outcome> work;  // destroyed first: its threads use the other members
};

PredictRequests::PredictRequests(const JobConfig& job, const PredictModel& m)
    : state_(std::make_unique<State>(job, m)) {}
PredictRequests::~PredictRequests() = default;

bool PredictRequests::next(PredictRequest& r) {
  State& s = *state_;
  while (s.ready.empty() && !s.ended) {
    std::optional<State::Line> line;
    try {
      line = s.next_line();
    } catch (...) {
      s.work.finish();  // throws the error of an earlier line, if there is one
      throw;
    }
    if (line) {
      s.work.add(std::move(*line));
    } else {
      s.work.finish();
      s.ended = true;
    }
  }
  if (s.ready.empty()) return false;
  r = std::move(s.ready.front());
  s.ready.pop_front();
  return true;
}

i64 PredictRequests::skipped() const { return state_->skipped; }
const std::string& PredictRequests::first_reason() const { return state_->first_reason; }

PredictScan scan_requests(const JobConfig& job, const PredictModel& m) {
  PredictRequests all(job, m);
  PredictRequest r;
  PredictScan scan;
  while (all.next(r)) {
    ++scan.n;
    scan.longest = std::max(scan.longest, longest_ids(r.example));
  }
  scan.skipped = all.skipped();
  scan.first_reason = all.first_reason();
  if (scan.n == 0)
    throw ContentsError("[predict] {} holds no prompt", job.predict.input.value_or("predict.prompt"));
  return scan;
}

}  // namespace redco
