#include "commands/predict_requests.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/jsonl.h"

namespace redco {

using Json = nlohmann::ordered_json;

struct PredictRequests::State {
  std::unique_ptr<JsonLines> lines;  // null for predict.prompt
};

PredictRequests::PredictRequests(const JobConfig& job, const PredictModel& m)
    : job_(job), m_(m), state_(std::make_unique<State>()) {
  if (job.predict.input) state_->lines = std::make_unique<JsonLines>(*job.predict.input);
}
PredictRequests::~PredictRequests() = default;

namespace {

std::string text_of(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Reads a prompt, or an object that the pipeline reads; the answer repeats all members of such an object.
void read_line(const JobConfig& job, const PredictModel& m, const Json& j, const std::string& where,
               PredictRequest& r) {
  Example& e = r.example;
  const i64 ordinal = e.ordinal;
  const Json id = j.contains("id") ? j.at("id") : Json(ordinal);
  Json head = {{"id", id}};
  if (auto asked = in_pipeline("request()", [&] { return m.pipeline->request(text_of(j), where); })) {
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

bool PredictRequests::next(PredictRequest& r) {
  r = {};
  if (!state_->lines) {
    const auto& prompts = job_.predict.prompt;
    if (ordinal_ == static_cast<i64>(prompts.size())) return false;
    r.example.ordinal = ordinal_++;
    read_line(job_, m_, {{"prompt", prompts[r.example.ordinal]}},
              prompts.size() == 1 ? "predict.prompt" : fmt::format("predict.prompt[{}]", r.example.ordinal),
              r);
    return true;
  }
  std::string line;
  while (state_->lines->next(line)) {
    r = {};
    r.example.ordinal = ordinal_++;
    try {
      const std::string where = state_->lines->where();
      read_line(job_, m_, parse_json_line(line, where), where, r);
      return true;
    } catch (const ContentsError& e) {
      if (!job_.predict.skip_bad) throw;
      if (skipped_++ == 0) first_reason_ = e.what();
    }
  }
  return false;
}

PredictScan scan_requests(const JobConfig& job, const PredictModel& m) {
  PredictRequests all(job, m);
  PredictRequest r;
  PredictScan scan;
  while (all.next(r)) {
    ++scan.n;
    for (const auto& [name, ids] : r.example.ids)
      scan.longest = std::max(scan.longest, static_cast<i64>(ids.size()));
  }
  scan.skipped = all.skipped();
  scan.first_reason = all.first_reason();
  if (scan.n == 0)
    throw ContentsError("[predict] {} holds no prompt", job.predict.input.value_or("predict.prompt"));
  return scan;
}

}  // namespace redco
