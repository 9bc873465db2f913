// The `data:` section: what is trained on and how it is cut into examples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// The names of a JSONL line's keys.
struct ExampleFields {
  std::optional<std::string> text = "text", prompt = "prompt", completion = "completion",
                             messages = "messages", id = "id";
  std::string source = "source", target = "target";
  std::string text_pair = "text_pair", image = "image", caption = "caption";
  std::vector<std::string> label = {"label"}, features = {"features"};

  void visit(SettingsVisitor& v) {
    v.field(
         "text", text,
         "key of a text that is learnt whole; classification and regression: key or column of the text; ~: "
         "no line has one")
        .looks_like("a key");
    v.field("prompt", prompt, "key of what is given to the model; ~: no line has one").looks_like("a key");
    v.field("completion", completion, "key of what the model is to answer").looks_like("a key");
    v.field("messages", messages, "key of a conversation; ~: no line has one").looks_like("a key");
    v.field("id", id, "key of a line's name, which predictions repeat")
        .looks_like("a key")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    const char* column = "a key or column";
    v.field("source", source,
            "pipeline seq2seq: key or column of what is read; a.b is key b of the object under key a; of tsv "
            "and csv also a column's number, from 1")
        .looks_like(column);
    v.field("target", target, "pipeline seq2seq: key or column of what is to be written").looks_like(column);
    v.field("text_pair", text_pair,
            "classification and regression: key or column of the second text of a pair; rows may have none")
        .looks_like(column);
    v.field("image", image, "key or column of an image's name: see data.images").looks_like(column);
    v.field("caption", caption, "pipeline captioning: key or column of what the image shows")
        .looks_like(column);
    v.field("label", label,
            "classification: key or column of the class; regression: of the value, or of several")
        .one_or_more();
    v.field("features", features,
            "models of vectors: keys or columns of the numbers; under a key there may be a list of them")
        .one_or_more();
  }
};

struct DataSettings {
  std::vector<std::string> train, eval;
  std::optional<std::string> format;
  std::string documents = "file";
  std::optional<i64> max_length;
  bool packing = true;
  std::optional<bool> attention_across;
  std::optional<std::string> too_long;
  std::optional<i64> max_source_length, max_target_length;
  std::string source_prefix;
  std::optional<bool> header;
  bool group_by_length = false;
  bool skip_bad = false;
  std::optional<std::string> chat_template;
  std::vector<std::string> label_names;
  std::optional<std::string> images;
  std::optional<bool> resize_images;
  ExampleFields fields;

  void visit(SettingsVisitor& v) {
    v.field("train", train,
            "training files, plain or .gz; or builtin:NAME, a small generated set: chat, markov (lm); copy, "
            "reverse, sort (seq2seq); shapes (captioning); reviews, statements, glyphs (classification); "
            "shopping, ages, function (regression); glyphs, sinusoid (maml)")
        .path()
        .one_or_more()
        .on_resume(OnResume::note, "the run checks that the contents are the same")
        .decided_by(DecidedBy::job);
    v.field("eval", eval,
            "evaluation files; [] is no evaluation; builtin ones are others than those trained on")
        .path()
        .one_or_more()
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field(
         "format", format,
         "text is plain UTF-8 text; jsonl is one object a line: {\"text\"}, {\"prompt\", \"completion\"} or "
         "{\"messages\"}, or what fields name; tsv and csv are tables; parallel is pairs of files, a line of "
         "one for each line of the other; ~ is what all files' names end in (.jsonl, .ndjson, .tsv, .csv, or "
         "so with .gz), else text")
        .one_of({"text", "jsonl", "tsv", "csv", "parallel"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
    v.field("documents", documents,
            "what one document of a text file is; behind each comes the tokenizer's end token")
        .one_of({"file", "line", "paragraph"})
        .on_resume(OnResume::error);
    v.field("max_length", max_length, "tokens of a row; ~ is the model's maximum")
        .at_least(1)
        .at_most(1 << 24)
        .on_resume(OnResume::error);
    v.field(
         "packing", packing,
         "text: windows of max_length tokens, across lines (always); jsonl: several whole examples in a row "
         "of training, else one")
        .on_resume(OnResume::error);
    v.field("attention_across", attention_across,
            "whether a token sees the samples before its own in its row; ~: in text, not in packed examples")
        .on_resume(OnResume::error);
    v.field(
         "too_long", too_long,
         "examples of more than max_length tokens: split makes several of one, truncate leaves out the end, "
         "skip the example; ~ is split for texts, truncate for others")
        .one_of({"split", "truncate", "skip", "error"})
        .on_resume(OnResume::error);
    v.field("max_source_length", max_source_length,
            "pipeline seq2seq: most tokens of what is read, special ones included; the end of longer ones is "
            "left out. ~ is max_length")
        .at_least(1)
        .at_most(1 << 24)
        .on_resume(OnResume::error);
    v.field("max_target_length", max_target_length, "pipeline seq2seq: the same of what is to be written")
        .at_least(1)
        .at_most(1 << 24)
        .on_resume(OnResume::error);
    v.field("source_prefix", source_prefix,
            "pipeline seq2seq: stands before every source, as \"translate English to German: \" for T5")
        .on_resume(OnResume::error);
    v.field("header", header,
            "whether the first line of a table names its columns; ~: unless fields give their numbers")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
    v.field("group_by_length", group_by_length,
            "batches of training examples of about one length, which need less padding: each is drawn from "
            "64 batches' examples, sorted")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
    v.field("skip_bad", skip_bad, "count, report and pass over bad lines; false stops at the first")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("chat_template", chat_template,
            "file of a chat template (Jinja), or builtin:chat; ~ is the model's own")
        .path()
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("label_names", label_names,
            "pipeline classification: the classes in the order of their numbers; [] is the model's "
            "(id2label), else those of the training data, sorted")
        .on_resume(OnResume::error);
    v.field("images", images,
            "folder or .zip that the images are in which lines name; ~ is the folder of the lines' file")
        .path()
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::job);
    v.field("resize_images", resize_images,
            "whether images become the size that the model reads; ~ is what preprocessor_config.json beside "
            "the model's weights says: without one, another size is an error")
        .on_resume(OnResume::error);
    v.section("fields", fields, "The names of a jsonl line's keys").on_resume(OnResume::error);
  }

  // `format`, or what the names of all of these files say; "text" where they say nothing.
  std::string format_of(const std::vector<std::string>& files) const;
  // Whether the files hold lines of JSON.
  bool is_jsonl() const;
  // Whether rows have several samples that don't see one another.
  bool segmented() const {
    return is_jsonl() ? packing && !attention_across.value_or(false) : !attention_across.value_or(true);
  }
};

}  // namespace redco
