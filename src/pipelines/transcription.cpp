// Speech to text: what recordings say.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/text/example_json.h"
#include "ops/create.h"
#include "pipelines/pipelines.h"
#include "pipelines/recordings.h"
#include "pipelines/speech_windows.h"
#include "pipelines/target_text.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

using SpeechJson = nlohmann::ordered_json;

std::string dumped(const SpeechJson& j) {
  return j.dump(-1, ' ', false, SpeechJson::error_handler_t::replace);
}

class Transcription : public TargetTextPipeline {
 public:
  // Examples of pipeline/caption_dataset.h. features [B, bands, frames]; the decoder's input, positions and
  // labels [B, T].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["features"] = value_rows(mine, s, "features", input_shape());
    collate_targets(mine, s, b);
    return b;
  }

  // values["features"] of one window, or with ids["n_samples"] of a recording of any length -> {"prediction":
  // text, "ids": [...], "finish_reason", "language", "segments"}: see predict_text(). finish_reason is that
  // of the last window.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    check_generation();
    std::vector<Work> works;
    for (const Example& e : examples) {
      Work w;
      w.example = &e;
      w.features = e.values.at("features");
      w.frames = std::ssize(w.features) / model->audio_shape().bands;
      w.content = w.frames;
      if (e.ids.count("n_samples") > 0)
        w.content = ceil_div(i64{e.ids.at("n_samples").at(0)}, recordings()->spectrum().hop());
      works.push_back(std::move(w));
    }
    const TranscriptionSettings& s = settings->transcription;
    for (Work& w : works)
      if (!tokens().languages().empty()) w.language = language_of_example(*w.example, s.language);
    while (true) {
      std::vector<Work*> open;
      std::vector<Example> windows;
      for (Work& w : works)
        if (!w.done) {
          open.push_back(&w);
          windows.push_back(window_of(w));
        }
      if (open.empty()) break;
      read_windows(params, open, std::move(windows), ctx);
    }
    std::vector<std::string> out;
    for (const Work& w : works) out.push_back(answer_of(w));
    return out;
  }

  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::speech_to_text)
      throw UsageError(
          "[pipeline] pipeline: transcription needs a speech-to-text model (whisper), but {} is a {} model",
          model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& r) override {
    return make_caption_dataset(
        {r.files, r.evaluation, settings->data.skip_bad, r.cache, model->vocab_size()},
        [&]() -> CaptionReader {
          return {lines(pair_format(settings->data, r.files)), recordings()};
        });
  }

  // {"audio" (renamed by data.fields) or "prompt": the recording's path}
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    Example e;
    try {
      const SpeechJson line = parse_example_line(json);
      const auto given = [&](const std::string& key) { return line.contains(key) && line[key].is_string(); };
      const std::string& key = settings->data.fields.audio;
      if (!given(key) && !given("prompt")) throw ContentsError("no \"{}\" (data.fields renames it)", key);
      const auto name = line[given(key) ? key : "prompt"].get<std::string>();
      i64 n = 0;
      e.values["features"] = recordings()->whole(name, ".", &n);
      e.ids["n_samples"] = {static_cast<i32>(n)};
      if (const std::string own = language_of(line); !own.empty() && !tokens().languages().empty())
        e.ids["language"] = {*record_language(tokens(), settings->transcription.language.value_or(""), own)};
      SpeechJson said = {{"audio", name}};
      if (const std::string& text = settings->data.fields.text.value_or(""); given(text))
        said["caption"] = line[text];
      e.text = dumped(said);
    } catch (const ContentsError& error) {
      throw ContentsError("{}: {}", where, error.what());
    }
    return e;
  }
  bool concurrent_requests() const override { return true; }

  std::string output(const Example& example, const std::string& prediction) const override {
    return named_output(example, prediction, "audio");
  }

  std::map<std::string, std::string> model_files() const override {
    const std::string name = "preprocessor_config.json", &folder = settings->weights_folder;
    if (!folder.empty() && exists(join_path(folder, name))) return {};
    return {{name, recordings()->spectrum().to_json()}};
  }

 protected:
  EncoderInputs encoder_inputs(const Batch& batch) const override {
    EncoderInputs in;
    in.features = batch["features"];
    return in;
  }
  const MetricFamilies& metric_families() const override { return speech_metrics(); }

 private:
  // An example on its way through its windows.
  struct Work {
    const Example* example = nullptr;
    std::span<const float> features;  // [bands, frames]
    i64 frames = 0, content = 0;      // with and without silence at the end
    i64 at = 0;                       // the window's first frame
    std::optional<i32> language;
    std::string text;
    std::vector<i32> ids;
    std::vector<SpeechJson> segments;
    SpeechJson finish;
    bool done = false;
  };

  Shape input_shape() const { return {model->audio_shape().bands, model->audio_shape().frames}; }

  const SpeechTokens& tokens() const {
    params();
    std::call_once(tokens_made_, [&] {
      const std::string file = join_path(settings->weights_folder, "generation_config.json");
      const bool given = !settings->weights_folder.empty() && exists(file);
      tokens_ = std::make_unique<SpeechTokens>(*tokenizer, given ? read_file(file, 1 << 24) : "",
                                               model->vocab_size());
    });
    return *tokens_;
  }
  std::shared_ptr<const Recordings> recordings() const {
    params();
    std::call_once(recordings_made_, [&] {
      const auto& [bands, frames] = model->audio_shape();
      recordings_ = std::make_shared<const Recordings>(settings->data.audio,
                                                       LogMel(settings->weights_folder, bands, frames),
                                                       settings->transcription.cut_long);
    });
    return recordings_;
  }

  CaptionLines lines(const std::string& format) const {
    const DataSettings& data = settings->data;
    PairSettings s =
        PairSettings::of(data, data.max_length.value_or(model->max_length()), model->length_limit());
    s.format = format;
    s.fields.source = data.fields.audio;
    s.fields.target = data.fields.text.value_or("text");
    if (!tokens().any()) return {*tokenizer, std::move(s)};
    const TranscriptionSettings& t = settings->transcription;
    const SpeechTokens* const words = &tokens();
    const std::string task = t.task, all = t.language.value_or("");
    s.whole_records = !words->languages().empty();
    std::optional<i32> language;
    if (!all.empty()) language = words->language(all);
    const std::string fingerprint =
        all.empty() && s.whole_records
            ? task + ", the language of each record"
            : fmt::format("{}", fmt::join(words->prefix(language, task, false), " "));
    return {*tokenizer, std::move(s),
            CaptionPrefix{[=](const std::string& own) {
                            return words->prefix(record_language(*words, all, own), task, false);
                          },
                          fingerprint}};
  }

  // The token of a record's language. all: transcription.language, or "". own: the record's, or "".
  // ContentsError if they differ, or if a model with languages gets none.
  static std::optional<i32> record_language(const SpeechTokens& tokens, const std::string& all,
                                            const std::string& own) {
    if (tokens.languages().empty()) return std::nullopt;
    if (all.empty() && own.empty())
      throw ContentsError(
          "no language: the model has {} languages, and a training text begins with its language. Set "
          "transcription.language, e.g. en, or give each record a \"language\"",
          tokens.languages().size());
    const std::string code = own.substr(0, own.find('-'));  // zh-CN
    if (!all.empty() && !own.empty() && code != all)
      throw ContentsError(
          "the language is {}, but transcription.language is {}. Remove the setting to use the language of "
          "each record",
          excerpt(own), all);
    if (!all.empty()) return tokens.language(all);
    const auto& known = tokens.languages();
    const auto it = std::ranges::find(known, code, &std::pair<std::string, i32>::first);
    if (it == known.end())
      throw ContentsError("the language {} is not one of the tokenizer's {}", excerpt(own), known.size());
    return it->second;
  }

  void check_generation() const {
    const GenerationSettings& g = settings->generation.settings;
    if (g.num_return_sequences != 1)
      throw UsageError("[job] predict.num_return_sequences={}: transcription gives 1 answer per recording",
                       g.num_return_sequences);
    if (settings->transcription.timestamps && !tokens().has_times())
      throw UsageError("[job] transcription.timestamps: the tokenizer {} has no tokens of time",
                       tokenizer->name());
  }

  bool with_times(const Work& w) const {
    const bool times = settings->transcription.timestamps ||
                       (w.frames > model->audio_shape().frames && tokens().has_times());
    if (times && settings->generation.settings.num_beams > 1)
      throw UsageError("[job] num_beams={}: times, and recordings longer than {} seconds, need num_beams: 1",
                       settings->generation.settings.num_beams, recordings()->spectrum().seconds());
    return times;
  }

  // That of the setting, or of the record; nullopt: to be detected.
  std::optional<i32> language_of_example(const Example& e, const std::optional<std::string>& all) const {
    if (all) return tokens().language(*all);
    if (const auto own = e.ids.find("language"); own != e.ids.end()) return own->second.at(0);
    if (const auto labels = e.ids.find("labels"); labels != e.ids.end()) return labels->second.at(0);
    return std::nullopt;
  }

  // The window's input; zeros follow the last frame, as in transformers.
  Example window_of(const Work& w) const {
    Example e;
    e.ordinal = w.example->ordinal;
    const auto& [bands, frames] = model->audio_shape();
    std::vector<float>& window = e.values["features"];
    window.assign(static_cast<size_t>(bands * frames), 0.0F);
    const i64 n = std::min(frames, w.frames - w.at);
    for (i64 b = 0; b < bands; ++b)
      std::copy_n(w.features.begin() + b * w.frames + w.at, n, window.begin() + b * frames);
    return e;
  }

  // Sets the languages that are not known.
  void find_languages(const ParamTree& params, const std::vector<Work*>& open,
                      std::span<const Example> windows, const StepContext& ctx) const {
    std::vector<Work*> unknown;
    std::vector<Example> some;
    for (size_t i = 0; i < open.size(); ++i)
      if (!open[i]->language) {
        unknown.push_back(open[i]);
        some.push_back(windows[i]);
      }
    if (unknown.empty() || tokens().languages().empty()) return;
    TextGeneration g;
    g.batch_size = settings->generation.batch_size;
    g.settings.max_new_tokens = 1;
    g.tokens.decoder_start = settings->generation.tokens.decoder_start;
    for (const auto& [name, id] : tokens().languages()) g.tokens.first_among.push_back(id);
    StepContext quiet = ctx;
    quiet.on_text = {};
    const auto answers = generate_text(params, some, g, quiet);
    for (size_t i = 0; i < unknown.size(); ++i) unknown[i]->language = answers[i].at("ids").at(0).get<i32>();
  }

  std::vector<SpeechJson> generate_text(const ParamTree& params, std::span<const Example> windows,
                                        const TextGeneration& g, const StepContext& ctx) const {
    const auto encode = [&](std::span<const i64> which) -> Memory {
      EncoderInputs in;
      in.features = example_values(windows, which, "features", input_shape());
      return {model->encode(params, in, {}), {}};
    };
    std::vector<SpeechJson> out;
    for (const std::string& line : predict_text(*model, *tokenizer, params, windows, g, ctx, encode,
                                                speech_decoder(*tokenizer, tokens())))
      out.push_back(SpeechJson::parse(line));
    return out;
  }

  // Generates the answers of one window of each of `open`, and moves on.
  void read_windows(const ParamTree& params, const std::vector<Work*>& open, std::vector<Example> windows,
                    const StepContext& ctx) const {
    find_languages(params, open, windows, ctx);
    for (const bool times : {false, true}) {
      std::vector<Work*> these;
      std::vector<Example> inputs;
      for (size_t i = 0; i < open.size(); ++i) {
        if (with_times(*open[i]) != times) continue;
        these.push_back(open[i]);
        Example& e = inputs.emplace_back(std::move(windows[i]));
        if (!tokens().any()) continue;
        e.ids["prompt"] = tokens().prefix(open[i]->language, settings->transcription.task, times);
        e.ids["prompt"].insert(e.ids["prompt"].begin(), first_token());
      }
      if (these.empty()) continue;
      TextGeneration g = settings->generation;
      if (times) g.tokens.timestamps = tokens().times();
      const auto answers = generate_text(params, inputs, g, ctx);
      for (size_t i = 0; i < these.size(); ++i) take(*these[i], answers[i], times);
    }
  }

  i32 first_token() const {
    if (const auto id = settings->generation.tokens.decoder_start) return *id;
    return model->decoder_input_ids(std::vector<i32>{0})[0];
  }

  // Adds the answer of a window.
  void take(Work& w, const SpeechJson& answer, bool times) const {
    const LogMel& spectrum = recordings()->spectrum();
    const double frame = static_cast<double>(spectrum.hop()) / static_cast<double>(spectrum.rate());
    const i64 n = std::min(w.content - w.at, model->audio_shape().frames);
    const auto ids = answer.at("ids").get<std::vector<i32>>();
    w.finish = answer.at("finish_reason");
    const auto add = [&](std::span<const i32> some, std::string text) {
      w.ids.insert(w.ids.end(), some.begin(), some.end());
      w.text += text;
    };
    if (!times) {
      add(ids, answer.at("prediction").get<std::string>());
      w.at += n;
    } else {
      const WindowSegments window = segments_of(ids, tokens(), static_cast<double>(n) * frame);
      const double begin = static_cast<double>(w.at) * frame;
      const Decode decode = speech_decoder(*tokenizer, tokens());
      const auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
      for (const SpeechSegment& s : window.segments) {
        const std::string text = decode(s.ids);
        w.segments.push_back(
            {{"start", rounded(begin + s.start)}, {"end", rounded(begin + s.end)}, {"text", text}});
        add(s.ids, text);
      }
      w.at += std::clamp<i64>(std::llround(window.next / frame), 1, std::max<i64>(n, 1));
    }
    w.done = w.at >= w.content || w.finish == SpeechJson(name_of(FinishReason::interrupted));
  }

  std::string answer_of(const Work& w) const {
    SpeechJson j = {{"prediction", w.text}, {"ids", w.ids}, {"finish_reason", w.finish}};
    for (const auto& [name, id] : tokens().languages())
      if (id == w.language) j["language"] = name;
    if (settings->transcription.timestamps) j["segments"] = w.segments;
    return dumped(j);
  }

  mutable std::once_flag tokens_made_, recordings_made_;
  mutable std::unique_ptr<const SpeechTokens> tokens_;
  mutable std::shared_ptr<const Recordings> recordings_;
};

}  // namespace

std::unique_ptr<Pipeline> make_transcription_pipeline() { return std::make_unique<Transcription>(); }

}  // namespace redco
