#include "job/predict_requests.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/gzip.h"
#include "base/words.h"

namespace redco {

using Json = nlohmann::ordered_json;

struct PredictRequests::State {
  std::unique_ptr<LineReader> lines;  // null: predict.prompt
};

PredictRequests::PredictRequests(const JobConfig& job, const PredictModel& m)
    : job_(job), m_(m), state_(std::make_unique<State>()) {
  if (job.predict.input) state_->lines = std::make_unique<LineReader>(*job.predict.input);
}
PredictRequests::~PredictRequests() = default;

namespace {

std::string head_of(const Json& id, const char* key, const Json& prompt) {
  return Json{{"id", id}, {key, prompt}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_line(const JobConfig& job, const PredictModel& m, const std::string& line, const std::string& where,
               PredictRequest& r) {
  const Json j = Json::parse(line, nullptr, false);
  if (!j.is_object()) throw ContentsError("{}: not a JSON object: {}", where, excerpt(line));
  const char* found = nullptr;
  for (const char* key : {"prompt", "text", "messages"})
    if (j.contains(key)) {
      if (found)
        throw ContentsError("{}: both \"{}\" and \"{}\"; which is the prompt? Keep one", where, found, key);
      found = key;
    }
  if (!found) throw ContentsError("{}: no \"prompt\", \"text\" or \"messages\"", where);
  const Json& value = j.at(found);
  const Json id = j.contains("id") ? j.at("id") : Json(r.ordinal);
  if (std::string_view(found) == "messages") {
    r.ids = message_ids(m, job.predict, parse_messages(value.dump(), where), where);
    r.head = head_of(id, "messages", value);
    return;
  }
  if (!value.is_string())
    throw ContentsError("{}: \"{}\" is no text but {}", where, found, value.type_name());
  r.prompt = value.get<std::string>();
  r.ids = prompt_ids(m, job.predict, r.prompt, where);
  r.head = head_of(id, "prompt", value);
}

}  // namespace

bool PredictRequests::next(PredictRequest& r) {
  r = {};
  if (!state_->lines) {
    const auto& prompts = job_.predict.prompt;
    if (ordinal_ == static_cast<i64>(prompts.size())) return false;
    r.ordinal = ordinal_++;
    r.prompt = prompts[r.ordinal];
    r.ids = prompt_ids(m_, job_.predict, r.prompt,
                       prompts.size() == 1 ? "predict.prompt" : fmt::format("predict.prompt[{}]", r.ordinal));
    r.head = head_of(r.ordinal, "prompt", r.prompt);
    return true;
  }
  std::string line;
  while (state_->lines->next(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    r = {};
    r.ordinal = ordinal_++;
    try {
      read_line(job_, m_, line, state_->lines->where(), r);
      return true;
    } catch (const ContentsError& e) {
      if (!job_.predict.skip_bad) throw;
      if (skipped_++ == 0) first_reason_ = e.what();
    }
  }
  return false;
}

}  // namespace redco
