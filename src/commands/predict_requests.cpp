#include "commands/predict_requests.h"

#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/ordered_work.h"
#include "base/temporaries.h"
#include "data/builtin/builtin.h"
#include "data/images/image_folder.h"
#include "train/prefetch.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

std::string text_of(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Reads a prompt, or an object that the pipeline reads; the answer repeats all members of such an object.
void read_line(const JobConfig& job, const PredictModel& m, const Json& j, const std::string& where,
               PredictRequest& r) {
  Example& e = r.example;
  const i64 ordinal = e.ordinal;
  const Json id = j.contains("id") ? j.at("id") : Json(ordinal);
  Json head = {{"id", id}};
  if (auto asked =
          in_pipeline(*m.pipeline, "request()", [&] { return m.pipeline->request(text_of(j), where); })) {
    e = std::move(*asked);
    head.update(j);
  } else {
    const char* found = nullptr;
    for (const char* key : {"prompt", "text", "messages"})
      if (j.contains(key)) {
        if (found)
          throw ContentsError("{}: both \"{}\" and \"{}\"; which is the prompt? Keep one of them", where,
                              found, key);
        found = key;
      }
    if (!found && j.contains(job.data.fields.image) && is_folder(job.predict.input.value_or("")))
      throw UsageError(
          "[predict] predict.input={} ({}) is a folder of images, and pipeline {} reads no images. Give a file of "
          "JSON lines",
          *job.predict.input, job.origins.where("predict.input"), job.pipeline);
    if (!found) throw ContentsError("{}: no \"prompt\", \"text\" or \"messages\"", where);
    const Json& value = j.at(found);
    if (std::string_view(found) == "messages") {
      e.ids["prompt"] = message_ids(m, job.predict, parse_messages(value.dump(), where), where);
      head["messages"] = value;
    } else {
      if (!value.is_string())
        throw ContentsError("{}: \"{}\" is of type {}; expected a text", where, found, value.type_name());
      e.text = r.prompt = value.get<std::string>();
      e.ids["prompt"] = prompt_ids(m, job.predict, r.prompt, where);
      head["prompt"] = value;
    }
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
      lines = std::make_unique<JsonLines>(path);
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
  std::unique_ptr<JsonLines> lines;        // null for a folder of images and for predict.prompt
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
