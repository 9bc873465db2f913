// The `data:` section: data files, their format, and how they become examples.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/settings.h"

namespace redco {

// data.fields: keys of a JSONL line, or columns of a table; also paths (turns.0.text) and templates
// ("{question}\n"), which RecordMap resolves (data/text/record_map.h).
struct ExampleFields {
  std::optional<std::string> text = "text", prompt = "prompt", completion = "completion",
                             messages = "messages", id = "id";
  std::optional<std::string> instruction = "instruction", input = "input", output = "output",
                             conversations = "conversations";
  std::string source = "source", target = "target";
  std::string text_pair = "text_pair", image = "image", caption = "caption", audio = "audio";
  std::optional<std::string> chosen = "chosen", rejected = "rejected";
  std::optional<std::string> anchor, positive, negative, score;
  std::optional<std::string> tokens, tags, spans, question, context, answers, choices;
  std::vector<std::string> label = {"label"}, features = {"features"};

  void visit(SettingsVisitor& v) {
    v.field(
         "text", text,
         "key or column of the text: a training text for lm, the input of classification and regression, the "
         "text of token classification and of requests for embeddings, what a recording says; ~: no line has one")
        .looks_like("a key")
        .only_with("pipeline", {"lm", "distillation", "classification", "regression", "embedding",
                                "token_classification", "transcription"});
    const auto of_lm = [&](const char* name, std::optional<std::string>& key, const std::string& help,
                           const std::vector<std::string>& others = {}) {
      std::vector<std::string> pipelines = {"lm", "distillation"};
      pipelines.insert(pipelines.end(), others.begin(), others.end());
      v.field(name, key, help + "; ~: no line has one")
          .looks_like("a key")
          .only_with("pipeline", std::move(pipelines));
    };
    of_lm("prompt", prompt, "key of the prompt, which gets no loss", {"dpo", "grpo", "reward"});
    of_lm("completion", completion, "key of the completion, the answer to the prompt",
          {"dpo", "grpo", "reward"});
    of_lm("messages", messages, "key of a chat conversation", {"reward"});
    for (const auto& [name, key, help] : {std::tuple("chosen", &chosen, "key of the preferred answer"),
                                          std::tuple("rejected", &rejected, "key of the other answer")})
      v.field(name, *key, help).looks_like("a key").only_with("pipeline", {"dpo", "reward"});
    of_lm("instruction", instruction, "Alpaca format: key of the instruction");
    of_lm("input", input, "Alpaca format: key of the input, a text that belongs to the instruction");
    of_lm("output", output, "Alpaca format: key of the answer");
    of_lm("conversations", conversations, "key of a chat conversation in ShareGPT format");
    v.field("id", id, "key of an identifier that predictions repeat; ~: no line has one")
        .looks_like("a key")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    const char* column = "a key or column";
    v.field("source", source,
            "key or column of the source text; a.b: key b of the object under key a; in tsv and csv also a "
            "column number, from 1")
        .looks_like(column)
        .only_with("pipeline", {"seq2seq"});
    v.field("target", target, "key or column of the target text")
        .looks_like(column)
        .only_with("pipeline", {"seq2seq"});
    v.field("text_pair", text_pair, "key or column of the second text of a text pair; optional per row")
        .looks_like(column)
        .only_with("pipeline", {"classification", "regression"});
    v.field("image", image, "key or column of an image's file name, relative to data.images")
        .looks_like(column)
        .only_with("pipeline",
                   {"captioning", "text_to_image", "contrastive", "classification", "regression"});
    v.field("audio", audio, "key or column of a recording's file name, relative to data.audio")
        .looks_like(column)
        .only_with("pipeline", {"transcription"});
    v.field("caption", caption, "key or column of an image's caption")
        .looks_like(column)
        .only_with("pipeline", {"captioning", "text_to_image", "contrastive"});
    v.field(
         "label", label,
         "key or column of the class, or of a list of classes; for regression, of the target value or values")
        .one_or_more()
        .only_with("pipeline", {"classification", "regression"});
    const auto found = [&](const char* name, std::optional<std::string>& key, const char* help,
                           const char* known, std::vector<std::string> pipelines) {
      v.field(name, key,
              fmt::format("key or column of {}; ~: the first of these that a line has: {}", help, known))
          .looks_like(column)
          .only_with("pipeline", std::move(pipelines));
    };
    found("anchor", anchor, "the text that is compared with the positive and the negatives",
          "anchor, query, question, sentence1, text1, source", {"embedding", "reranking"});
    found("positive", positive, "the text that belongs to the anchor",
          "positive, pos, document, passage, answer, sentence2, text2, target", {"embedding", "reranking"});
    found("negative", negative, "a text, or a list of texts, that does not belong to the anchor; optional",
          "negative, neg, negatives; and negative_1, negative_2, ...", {"embedding", "reranking"});
    found("score", score, "the similarity of the pair; optional", "score, similarity, label",
          {"embedding", "reranking"});
    found("tokens", tokens, "the list of words", "tokens, words", {"token_classification"});
    found("tags", tags, "the list of the words' tags, names or numbers", "tags, ner_tags, labels",
          {"token_classification"});
    found("spans", spans, "the list of entities in the text, {start, end, label} in characters",
          "spans, entities", {"token_classification"});
    found("question", question, "the question", "question; multiple choice: also prompt, sent2, goal",
          {"question_answering", "multiple_choice"});
    found("context", context, "the text that contains the answer",
          "context, passage; multiple choice: also ctx, article, sent1",
          {"question_answering", "multiple_choice"});
    found("answers", answers,
          "the answers: {text: [...], answer_start: [...]}, or a list of {text, answer_start}",
          "answers, answer", {"question_answering"});
    found("choices", choices, "the list of choices", "choices, endings, options; and ending0, ending1, ...",
          {"multiple_choice"});
    v.field("features", features,
            "keys or columns of the input numbers of models on feature vectors; a key may hold a list")
        .one_or_more()
        .only_with("pipeline", {"classification", "regression"});
  }

  // Without the keys of Alpaca and ShareGPT that text, prompt, completion or messages also name. So a job
  // that maps these formats by hand keeps its meaning. A template turns the other forms off: its columns may
  // have their keys.
  ExampleFields without_shared() const;
};

// A source of data.mixture.
struct MixtureSource {
  std::string name;
  std::vector<std::string> files;
  double weight = 0;

  void visit(SettingsVisitor& v) {
    v.field("name", name, "name of the source in the log").required().looks_like("a name");
    v.field("files", files, "training files or folders, as in data.train").required().path().one_or_more();
    v.field("weight", weight,
            "share of the examples of an epoch, relative to the other weights; weights 3 and 1 give 75 % and "
            "25 %")
        .required()
        .above(0);
  }
};

// A set of data.eval_sets.
struct EvalSetSettings {
  std::string name;
  std::vector<std::string> files;

  void visit(SettingsVisitor& v) {
    v.field("name", name, "name of the set: its metrics are eval_NAME_loss and so on")
        .required()
        .looks_like("a name");
    v.field("files", files, "evaluation files or folders, as in data.eval").required().path().one_or_more();
  }
};

// Files that are opened as one data set. The name is empty for data.train and data.eval.
struct DataSource {
  std::string name;
  std::vector<std::string> files;
  double weight = 1;
};

struct DataSettings {
  std::vector<std::string> train, eval;
  std::vector<MixtureSource> mixture;
  std::vector<EvalSetSettings> eval_sets;
  std::vector<std::string> calibration;
  i64 calibration_tokens = 8192;
  std::optional<std::string> cache;
  std::optional<std::string> format;
  std::optional<std::string> where, text_template;
  std::string documents = "file";
  bool bos = true;
  std::optional<i64> max_length;
  bool packing = true;
  std::optional<bool> attention_across;
  std::optional<std::string> too_long;
  std::optional<i64> max_source_length, max_target_length;
  std::string source_prefix;
  std::optional<bool> header;
  bool group_by_length = false;
  bool skip_bad = false;
  std::optional<i64> n_workers;
  std::optional<std::string> chat_template;
  std::vector<std::string> label_names;
  std::optional<std::string> images, audio;
  std::optional<bool> resize_images;
  ExampleFields fields;

  void visit(SettingsVisitor& v);

  // The training or evaluation data: data.mixture or data.eval_sets, or one source without a name; none if
  // the job has none.
  std::vector<DataSource> sources(bool evaluation) const;
  bool has(bool evaluation) const { return !sources(evaluation).empty(); }
  // The files of all sources.
  std::vector<std::string> files(bool evaluation) const;
  // Calls f(key, files) for each list of training or evaluation files: "data.train", "data.mixture[0].files".
  void each_list(bool evaluation,
                 const std::function<void(const std::string& key, std::vector<std::string>& files)>& f);

  // `format`, else the format that all file names have in common, else "text" (check_data() refuses files
  // of several formats and unknown endings).
  std::string format_of(const std::vector<std::string>& files) const;
  // Whether all data files have records (jsonl, json, csv, tsv, parquet, arrow, parallel); plain text has
  // none.
  bool has_records() const;
  // Whether attention stops at the borders of the examples packed into one row.
  bool segmented() const {
    return has_records() ? packing && !attention_across.value_or(false) : !attention_across.value_or(true);
  }
};

// The format of a data file by its name: text (.txt), jsonl (.jsonl, .ndjson, builtin:NAME), json, tsv, csv
// or conll, each also compressed, parquet or arrow; "" if the name does not tell.
std::string format_by_name(const std::string& path);
// Whether the name has an ending that is neither a format's nor usual for plain text, such as .xlsx.
bool has_unknown_ending(const std::string& path);
// The known endings, for messages.
extern const char* const kKnownEndings;

}  // namespace redco
