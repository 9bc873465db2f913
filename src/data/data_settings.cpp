#include "data/data_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/input_file.h"
#include "data/builtin/builtin.h"
#include "data/text/record_map.h"

namespace redco {

void DataSettings::visit(SettingsVisitor& v) {
  v.field(
       "train", train,
       "training files (.gz and .zst are read too) or folders of them, or builtin:NAME for a small "
       "generated data set: chat, markov, arithmetic (lm); arithmetic (grpo); preferences (dpo, reward); judged (dpo with loss_type kto); copy, "
       "reverse, sort (seq2seq); shapes (captioning, text_to_image); tones (transcription); paraphrases, similarity (embedding); paraphrases (reranking); entities (token_classification); questions (question_answering); choices (multiple_choice); reviews, statements, topics, glyphs (classification); shopping, ages, function (regression); glyphs, "
       "sinusoid (maml)")
      .path()
      .one_or_more()
      .on_resume(OnResume::note, "the run checks that the contents are the same")
      .decided_by(DecidedBy::job);
  v.field("eval", eval,
          "evaluation files or folders; empty: no evaluation; builtin:NAME: held-out examples of the "
          "generated set")
      .path()
      .one_or_more()
      .on_resume(OnResume::free)
      .decided_by(DecidedBy::job);
  v.items("mixture", mixture,
          "Training data from several sources with weights, instead of data.train. An epoch has as many "
          "examples as the sources together. Each source gives its share of them: a small share does not "
          "use all of the source in one epoch, the next epoch continues with the rest; a large share "
          "repeats the source, in another order each time")
      .on_resume(OnResume::note, "the run checks that the examples are the same")
      .decided_by(DecidedBy::job);
  v.items("eval_sets", eval_sets,
          "Several evaluation sets with names, instead of data.eval. Each evaluation uses all of them")
      .on_resume(OnResume::free)
      .decided_by(DecidedBy::job);
  v.field("calibration", calibration,
          "files of texts or examples, in the formats of pipeline lm, for model.weight_dtype=int4: weights "
          "whose layers have large inputs on these texts are quantized more exactly. They should resemble "
          "the texts that the model is used for; empty: all inputs count the same")
      .path()
      .one_or_more()
      .on_resume(OnResume::note)
      .decided_by(DecidedBy::job);
  v.field("calibration_tokens", calibration_tokens,
          "tokens of data.calibration that the model reads, from the beginning")
      .at_least(1)
      .on_resume(OnResume::note)
      .decided_by(DecidedBy::job);
  v.field("cache", cache,
          "folder of the indexes of the data (their tokens); several runs may share it at the same time, and "
          "all hosts must see it; ~: the folder cache in workdir")
      .path()
      .on_resume(OnResume::free)
      .decided_by(DecidedBy::job);
  v.field(
       "format", format,
       "file format. text: plain UTF-8 text; jsonl: one JSON object per line, with the keys that "
       "data.fields names; json: an array of such objects, or objects of several lines; tsv, csv, "
       "parquet, arrow: tables with such columns; webdataset: tar archives of files by key (1.png, 1.txt, 1.cls, 1.json); conll: a word and its columns per line, a blank line after each "
       "sentence; parallel: pairs of text files with one line per example; "
       "~: known from the file names (.txt, .jsonl, .ndjson, .json, .tsv, .csv, .conll, each also with .gz or "
       ".zst, .parquet, .arrow and .tar); another ending is an error")
      .one_of({"text", "jsonl", "json", "tsv", "csv", "parquet", "arrow", "webdataset", "conll", "parallel"})
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::job);
  v.field("documents", documents,
          "document unit in text files; the tokenizer's end token follows each document")
      .one_of({"file", "line", "paragraph"})
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation"});
  v.field(
       "bos", bos,
       "begin-of-text token before each document of text files, if the tokenizer adds one to a text (Gemma, "
       "LLaMA); false: none")
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation"});
  v.field("max_length", max_length, "maximum length of a row in tokens; ~: the model's maximum")
      .at_least(1)
      .at_most(1 << 24)
      .on_resume(OnResume::error);
  v.field("packing", packing,
          "packing of several examples into one training row (jsonl); text is always packed into windows "
          "of max_length tokens")
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation"});
  v.field("attention_across", attention_across,
          "attention across the examples of one row; ~: true for text, false for packed jsonl examples")
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation"});
  v.field("too_long", too_long,
          "action for examples longer than max_length: split makes several examples, truncate drops the "
          "end, skip drops the example, error ends the run; ~: split for texts, else truncate")
      .one_of({"split", "truncate", "skip", "error"})
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation", "classification", "regression", "token_classification"});
  v.field("max_source_length", max_source_length,
          "maximum length of the source in tokens, special tokens included; longer sources lose their end; "
          "~: max_length")
      .at_least(1)
      .at_most(1 << 24)
      .on_resume(OnResume::error)
      .only_with("pipeline", {"seq2seq"});
  v.field("max_target_length", max_target_length,
          "maximum length of the target in tokens, special tokens included; longer targets lose their end; "
          "~: max_length")
      .at_least(1)
      .at_most(1 << 24)
      .on_resume(OnResume::error)
      .only_with("pipeline", {"seq2seq", "captioning", "text_to_image", "contrastive", "transcription"});
  v.field("source_prefix", source_prefix,
          "text added before every source, e.g. \"translate English to German: \" for T5")
      .literal()
      .on_resume(OnResume::error)
      .only_with("pipeline", {"seq2seq"});
  v.field("header", header,
          "header line with column names in tsv and csv; ~: true unless data.fields has column numbers")
      .on_resume(OnResume::error)
      .only_with("pipeline",
                 {"lm", "distillation", "dpo", "grpo", "reward", "seq2seq", "captioning", "text_to_image",
                  "contrastive", "transcription", "classification", "regression", "embedding", "reranking",
                  "token_classification", "question_answering", "multiple_choice"})
      .decided_by(DecidedBy::job);
  v.field("group_by_length", group_by_length,
          "batches of training examples of similar length, which need less padding; examples are sorted "
          "within groups of 64 batches")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::job);
  v.field(
       "where", where,
       "which records are used, of training and evaluation: comparisons of keys or columns such as `lang == "
       "\"de\" and score >= 0.5 or meta.ok == true`; ~: all")
      .on_resume(OnResume::note, "the run checks that the examples are the same");
  v.field(
       "template", text_template,
       "text of an example, made from its keys or columns: \"{question}\\n{answer}\"; the same as data.fields.text "
       "with this value")
      .looks_like("a template")
      .only_with("pipeline",
                 {"lm", "distillation", "classification", "regression", "embedding", "token_classification"})
      .on_resume(OnResume::error);
  v.field("skip_bad", skip_bad,
          "skipping of bad lines, with a count in the log; false: the first bad line is an error")
      .on_resume(OnResume::free)
      .decided_by(DecidedBy::job);
  v.field("n_workers", n_workers,
          "number of threads per rank that read (and decode) the examples of the next step during the "
          "current step; 0: the rank reads each step's examples itself; ~: 1, and for image files the "
          "rank's number of threads, at most 4")
      .at_least(0)
      .at_most(1024)
      .on_resume(OnResume::free)
      .decided_by(DecidedBy::job);
  v.field("chat_template", chat_template,
          "chat template: a Jinja file, or builtin:chat; ~: the model's own template")
      .path()
      .on_resume(OnResume::error)
      .only_with("pipeline", {"lm", "distillation", "dpo", "grpo", "reward"})
      .decided_by(DecidedBy::overridable);
  v.field("label_names", label_names,
          "class names in the order of their ids; empty: the model's id2label, else the sorted labels of "
          "the training data")
      .on_resume(OnResume::error)
      .only_with("pipeline", {"classification", "token_classification"});
  v.field("images", images,
          "folder or .zip of the images; ~: image names are relative to the folder of the data file")
      .path()
      .on_resume(OnResume::note)
      .decided_by(DecidedBy::job);
  v.field("audio", audio,
          "folder or .zip of the recordings; ~: their names are relative to the folder of the data file")
      .path()
      .on_resume(OnResume::note)
      .only_with("pipeline", {"transcription"})
      .decided_by(DecidedBy::job);
  v.field("resize_images", resize_images,
          "resizing of images to the model's input size; ~: as in the model's preprocessor_config.json; "
          "without that file, an image of another size is an error")
      .on_resume(OnResume::error);
  v.section(
       "fields", fields,
       "Keys of a jsonl line, or columns of a table; also paths into a record (turns.0.text), and templates of keys "
       "(\"{question} {choices.0}\")")
      .on_resume(OnResume::error);
}

ExampleFields ExampleFields::without_shared() const {
  ExampleFields f = *this;
  const auto shared = [&](const std::optional<std::string>& key) {
    return key && (key == text || key == prompt || key == completion || key == messages);
  };
  if (shared(instruction) || shared(input) || shared(output))
    f.instruction = f.input = f.output = std::nullopt;
  if (shared(conversations)) f.conversations.reset();
  const auto made = [](const std::optional<std::string>& key) { return key && is_template(*key); };
  const bool text_made = made(text), pair_made = made(prompt) || made(completion), chat_made = made(messages);
  if (text_made || pair_made || chat_made)
    f.instruction = f.input = f.output = f.conversations = std::nullopt;
  if (text_made || pair_made) f.messages.reset();
  if (text_made || chat_made) f.prompt = f.completion = std::nullopt;
  if (pair_made || chat_made) f.text.reset();
  return f;
}

const char* const kKnownEndings =
    ".txt (text), .jsonl, .ndjson, .json, .csv, .tsv, .conll (each also with .gz or .zst), .parquet, .arrow and "
    ".tar (webdataset)";

std::string format_by_name(const std::string& path) {
  if (is_builtin(path)) return "jsonl";
  const std::string name = name_unpacked(path);
  if (name.ends_with(".txt")) return "text";
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return "jsonl";
  for (const std::string format : {"json", "tsv", "csv", "parquet", "arrow", "conll"})
    if (name.ends_with("." + format)) return format;
  if (name.ends_with(".tar")) return "webdataset";
  return "";
}

bool has_unknown_ending(const std::string& path) {
  if (!format_by_name(path).empty()) return false;
  const std::string name = file_name(name_unpacked(path));
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return false;
  for (const std::string_view text : {"text", "tokens", "raw", "md", "rst", "tex"})
    if (std::string_view(name).substr(dot + 1) == text) return false;
  return true;
}

std::string DataSettings::format_of(const std::vector<std::string>& files) const {
  if (format) return *format;
  std::string common;
  for (const std::string& f : files) {
    const std::string one = format_by_name(f);
    if (one.empty() || (!common.empty() && one != common)) return "text";
    common = one;
  }
  return common.empty() ? "text" : common;
}

std::vector<DataSource> DataSettings::sources(bool evaluation) const {
  std::vector<DataSource> out;
  const std::vector<std::string>& unnamed = evaluation ? eval : train;
  if (!unnamed.empty()) out.push_back({.name = "", .files = unnamed});
  if (evaluation)
    for (const EvalSetSettings& s : eval_sets) out.push_back({.name = s.name, .files = s.files});
  else
    for (const MixtureSource& s : mixture)
      out.push_back({.name = s.name, .files = s.files, .weight = s.weight});
  return out;
}

std::vector<std::string> DataSettings::files(bool evaluation) const {
  std::vector<std::string> all;
  for (const DataSource& s : sources(evaluation)) all.insert(all.end(), s.files.begin(), s.files.end());
  return all;
}

void DataSettings::each_list(
    bool evaluation, const std::function<void(const std::string& key, std::vector<std::string>& files)>& f) {
  f(evaluation ? "data.eval" : "data.train", evaluation ? eval : train);
  if (evaluation)
    for (std::size_t i = 0; i < eval_sets.size(); ++i)
      f(fmt::format("data.eval_sets[{}].files", i), eval_sets[i].files);
  else
    for (std::size_t i = 0; i < mixture.size(); ++i)
      f(fmt::format("data.mixture[{}].files", i), mixture[i].files);
}

bool DataSettings::has_records() const {
  std::vector<std::string> all = files(false);
  for (std::string& f : files(true)) all.push_back(std::move(f));
  if (format) return *format != "text";
  return !all.empty() &&
         std::none_of(all.begin(), all.end(), [&](const auto& f) { return format_of({f}) == "text"; });
}

}  // namespace redco
