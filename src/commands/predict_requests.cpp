#include "commands/predict_requests.h"

#include <fmt/ranges.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/log_once.h"
#include "base/ordered_work.h"
#include "base/temporaries.h"
#include "base/words.h"
#include "data/audio/decode_audio.h"
#include "data/builtin/builtin.h"
#include "data/images/image_folder.h"
#include "data/images/tar_members.h"
#include "data/index/data_folders.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/record_lines.h"
#include "pipeline/chat_records.h"
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

// The record that a line is, for readers of pipelines.
Record record_of(const Json& j, const std::string& where) { return Record(text_of(j), where); }

// What the model answers: a text or messages, and the members of the output line.
struct Prompt {
  Json value;  // a text, or a list of messages
  Json head;
};

// The value without the answer that a conversation of training data ends with.
Json without_answer(Json messages) {
  const auto is_answer = [](const Json& m) {
    return m.is_object() && (m.value("role", Json()) == "assistant" || m.value("role", Json()) == "model");
  };
  const std::size_t all = messages.size();
  while (!messages.empty() && is_answer(messages.back())) messages.erase(messages.size() - 1);
  if (messages.size() < all)
    log_once(LogLevel::info,
             "[predict] conversations that end with a message of the assistant are answered without it");
  return messages;
}

// The prompt of a line in the forms of the training data: data.fields names the keys. j: the line with the
// settings for chats.
Prompt find_prompt(const JobConfig& job, const PredictModel& m, const Json& line, const Json& j,
                   const std::string& where) {
  const ExampleFields& f = job.data.fields;
  std::string text_key, chat_key, key;
  const bool questions = job.pipeline == "grpo";  // as in its training data
  const Json* text = value_of(j, {f.prompt, f.text, "prompt", "text"}, text_key);
  if (!text && questions) text = value_of(j, {"question", "problem"}, text_key);
  const Json* chat = value_of(j, {f.messages, f.conversations, "messages", "conversations"}, chat_key);
  const bool pair = value_of(j, {f.chosen, "chosen"}, key) && value_of(j, {f.rejected, "rejected"}, key);
  const Json* completion = value_of(j, {f.completion, "completion"}, key);
  const Json* instruction = value_of(j, {f.instruction, "instruction"}, key);
  const auto both = [&](const std::string& a, const std::string& b) {
    throw ContentsError("{}: both \"{}\" and \"{}\"; which is the prompt? Keep one of them", where, a, b);
  };
  if (text && chat) {
    // As in training: a prompt without completion is no example, and pairs have their prompt in "prompt".
    if (pair)
      chat = nullptr;
    else if (!completion && text_key != f.text.value_or("text"))
      text = nullptr;
    else
      both(text_key, chat_key);
  }
  std::string other = text_key;
  if (text && f.prompt && text_key == *f.prompt && value_of(j, {f.text}, other)) both(text_key, other);
  if (text && instruction && text_key == f.text.value_or("text")) both(text_key, key);
  if (text && text->is_string()) {
    const auto in_chat = [&](const char* name) {
      return j.contains(name) && (j[name].is_array() || j[name].is_object());
    };
    if ((pair && in_chat("chosen")) || (completion && completion->is_array()))
      return {Json::array({{{"role", "user"}, {"content", *text}}}), {{text_key, *text}}};
    return {*text, {{"prompt", *text}}};
  }
  if (text && !text->is_array())
    throw ContentsError("{}: \"{}\" is of type {}; expected a text", where, text_key, text->type_name());
  if (text) return {without_answer(*text), {{text_key, line.at(text_key)}}};
  if (chat) {
    const bool turns = chat->is_array() && !chat->empty() && (*chat)[0].contains("from");
    return {without_answer(turns ? sharegpt_messages(j, *chat, chat_key) : *chat),
            {{chat_key, line.at(chat_key)}}};
  }
  if (pair) {
    const Json prompt = Json::parse(shared_prompt(record_of(j, where)));
    return {prompt, {{"prompt", prompt}}};
  }
  if (instruction) {
    const Json* input = value_of(j, {f.input, "input", "context"}, other);
    const AlpacaLine x{as_text(*instruction, key), input ? as_text(*input, other) : "", "",
                       alpaca_history(j)};
    Json head = {{key, *instruction}};
    if (input) head[other] = *input;
    if (m.chat_template) return {without_answer(alpaca_messages(j, x)), head};
    return {alpaca_prompt(j, x), head};
  }
  throw ContentsError("{}: no \"{}\", \"{}\" or \"{}\"; its keys are {} (data.fields renames them)", where,
                      f.prompt.value_or("prompt"), f.text.value_or("text"), f.messages.value_or("messages"),
                      quoted_keys(j));
}

void read_prompt(const JobConfig& job, const PredictModel& m, const Json& line, const Json& j,
                 const std::string& where, PredictRequest& r, Json& head) {
  try {
    const Prompt prompt = find_prompt(job, m, line, j, where);
    head.update(prompt.head);
    if (prompt.value.is_string()) {
      r.prompt = prompt.value.get<std::string>();
      r.example.text = r.prompt;
      r.example.ids["prompt"] = prompt_ids(m, job.predict, r.prompt, where);
      return;
    }
    r.example.ids["prompt"] =
        message_ids(m, job.predict, parse_messages(prompt.value.dump(), where), where, chat_variables(j));
  } catch (const ContentsError& error) {
    const std::string what = error.what();
    throw ContentsError("{}", what.starts_with(where) ? what : fmt::format("{}: {}", where, what));
  }
}

// The settings of the job for chats: predict.system, predict.tools, predict.chat_template_kwargs.
struct ChatSettings {
  explicit ChatSettings(const PredictSettings& p) : system(p.system) {
    const ChatVariables v = chat_variables_of(p);
    if (!v.tools.empty()) tools = Json::parse(v.tools);
    if (!v.more.empty()) more = Json::parse(v.more);
  }
  std::optional<std::string> system;
  Json tools, more;  // null: none

  bool any() const { return system || !tools.is_null() || !more.is_null(); }
  // The line with the settings that it does not replace by its own.
  Json apply(const ExampleFields& f, Json line, const std::string& where) const {
    std::string key;
    const Json* found =
        value_of(line, {f.messages, f.conversations, f.prompt, "messages", "conversations", "prompt"}, key);
    if (!found || !found->is_array())
      throw UsageError(
          "{}: {} has no effect on a line without messages. Remove the setting, or give the line \"messages\"",
          where,
          system            ? "predict.system"
          : tools.is_null() ? "predict.chat_template_kwargs"
                            : "predict.tools");
    Json& turns = line[key];
    const bool share_gpt = !turns.empty() && turns[0].is_object() && turns[0].contains("from");
    const auto is_system = [&](const Json& turn) {
      return turn.is_object() && turn.value(share_gpt ? "from" : "role", Json()) == "system";
    };
    if (system && !turns.empty() && !is_system(turns[0])) {
      if (!share_gpt)
        turns.insert(turns.begin(), Json({{"role", "system"}, {"content", *system}}));
      else if (!line.contains("system") && !line.contains("system_prompt"))
        line["system"] = *system;
    }
    const auto absent = [&](const char* name) { return !line.contains(name) || line[name].is_null(); };
    if (!tools.is_null() && absent("tools")) line["tools"] = tools;
    if (more.is_null()) return line;
    if (absent("chat_template_kwargs")) line["chat_template_kwargs"] = Json::object();
    if (Json& own = line["chat_template_kwargs"]; own.is_object())
      for (const auto& [name, value] : more.items())
        if (!own.contains(name)) own[name] = value;
    return line;
  }
};

// The names of images and recordings are relative to the folder of their file, as in training data, or else
// to the current folder.
void place_file(Json& j, const std::string& key, const std::string& folder) {
  const auto it = j.find(key);
  if (it == j.end() || !it->is_string()) return;
  const std::string name = *it;
  if (auto place = TarPlace::of(name)) {
    place->archive = join_path(folder, place->archive);
    *it = place->text();
  } else if (!name.starts_with('/') && !name.starts_with("data:") && name.size() <= 4096 &&
             exists(join_path(folder, name))) {
    *it = join_path(folder, name);
  }
}

// Members of the answers of built-in pipelines. A line that has one, such as the expected "entities", keeps
// it as "given_entities" in the output.
bool is_answer_name(const std::string& name) {
  for (const char* known :
       {"prediction", "entities", "scores", "ranking", "score", "start", "end", "no_answer_score", "label_id",
        "probabilities", "embedding", "image_embedding", "text_embedding"})
    if (name == known) return true;
  return false;
}

// Reads a prompt, or an object that the pipeline reads; the answer repeats all members of such an object.
void read_line(const JobConfig& job, const PredictModel& m, const ChatSettings& chat, const Json& line,
               const std::string& where, const std::string& folder, PredictRequest& r) {
  Json j = chat.any() ? chat.apply(job.data.fields, line, where) : line;
  if (!folder.empty() && !job.data.images) place_file(j, job.data.fields.image, folder);
  if (!folder.empty() && !job.data.audio) place_file(j, job.data.fields.audio, folder);
  Example& e = r.example;
  const i64 ordinal = e.ordinal;
  std::string id_key;
  const Json* own_id = value_of(j, {job.data.fields.id, "id"}, id_key);
  const Json id = own_id ? *own_id : Json(ordinal);
  Json head = {{"id", id}};
  if (auto asked =
          in_pipeline(*m.pipeline, "request()", [&] { return m.pipeline->request(text_of(j), where); })) {
    e = std::move(*asked);
    for (const auto& [name, value] : line.items())
      head[m.pipeline->origin.empty() && is_answer_name(name) ? "given_" + name : name] = value;
  } else {
    if (j.contains(job.data.fields.image) && is_folder(job.predict.input.value_or("")))
      throw UsageError(
          "[predict] predict.input={} ({}) is a folder of images, and pipeline {} reads no images. Give a file of "
          "JSON lines",
          *job.predict.input, job.origins.where("predict.input"), job.pipeline);
    read_prompt(job, m, line, j, where, r, head);
  }
  e.ordinal = ordinal;
  e.id = text_of(id);
  r.head = text_of(head);
}

// The data files of a folder, as for data.eval; {}: it is one of images.
std::vector<std::string> prompt_files_of(const std::string& folder) {
  const FolderFiles found = files_of_folder(folder, std::nullopt, true);
  if (found.files.empty() || (!found.image.empty() && !std::ranges::all_of(found.files, is_image_table)))
    return {};
  if (!found.other.empty())
    throw UsageError("[predict] predict.input={}: files of several formats, such as {} and {}. Name one file",
                     folder, file_name(found.files[0]), file_name(found.other));
  info("[predict] predict.input: {} in the folder {}: {}",
       counted(found.files.size(), found.format + " file"), excerpt(folder, 200),
       excerpt(file_name(found.files[0])));
  return found.files;
}

// UsageError for an image or a recording in place of a file with prompts.
void require_prompts(const JobConfig& job, const std::string& path) {
  const bool image = is_image_name(path);
  if (!image && !is_audio_name(path)) return;
  throw UsageError(
      "[predict] predict.input={} ({}) is {}; expected a file of prompts. Name it in a line {{\"{}\": \"{}\"}} of a "
      "file with the ending .jsonl",
      excerpt(path), job.origins.where("predict.input"), image ? "an image" : "a recording",
      image ? job.data.fields.image : job.data.fields.audio, excerpt(file_name(path)));
}

}  // namespace

struct PredictRequests::State {
  // A prompt of the job, or an unread line of predict.input.
  struct Line {
    Json prompt;
    std::string text, where;
    std::string problem;  // why the line can't be read; "": it can
    std::string folder;   // of the file
    i64 ordinal = 0;
  };
  struct Outcome {
    PredictRequest request;
    std::optional<std::string> bad;  // the reason why the line is skipped
  };

  State(const JobConfig& job, const PredictModel& m)
      : job(job),
        m(m),
        chat(job.predict),
        work(
            in_pipeline(*m.pipeline, "concurrent_requests()",
                        [&] { return m.pipeline->concurrent_requests(); })
                ? n_readers(Reading::costly, job.data.n_workers)
                : 0,
            [this](Line line, int) { return read(line); }, [this](Outcome o) { add(std::move(o)); }) {
    if (!job.predict.input) return;
    std::string path = *job.predict.input;
    if (is_builtin(path)) path = data_files({path}, true, builtin.emplace().path()).front();
    if (!is_folder(path)) require_prompts(job, path);
    files = is_folder(path) ? prompt_files_of(path) : std::vector{path};
    if (!files.empty()) {
      lines = std::make_unique<RecordLines>(RecordLines::of_prompts(files, job.data));
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
      line.folder = parent_path(files[lines->file()]);
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
      read_line(job, m, chat, lines ? parse_json_line(line.text, line.where) : line.prompt, line.where,
                line.folder, r);
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
  const ChatSettings chat;
  std::vector<std::string> files;          // of the lines
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
    throw ContentsError("[predict] {} holds no prompt: it is empty, or has only the header of a table",
                        job.predict.input.value_or("predict.prompt"));
  return scan;
}

}  // namespace redco
