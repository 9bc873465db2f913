// The `embedding:`, `question_answering:` and `transcription:` sections, with the names of
// sentence-transformers and transformers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// Sentence embeddings (Reimers & Gurevych 2019).
struct EmbeddingSettings {
  std::optional<std::string> pooling;
  std::optional<bool> normalize;
  double scale = 20;
  bool symmetric = false;
  std::string scored_loss = "cosent";
  std::vector<i64> matryoshka_dims;
  std::vector<double> matryoshka_weights;
  std::optional<std::string> prompt, query_prompt, document_prompt;
  std::optional<i64> dimensions;

  void visit(SettingsVisitor& v) {
    v.field(
         "pooling", pooling,
         "how the hidden states of a text become its embedding. mean: their mean; cls: the first token; "
         "lasttoken: the last token; weightedmean: their mean with weights 1, 2, 3, ...; max: the largest "
         "value of each feature; mean_sqrt_len_tokens: their sum divided by the root of their number; ~: as "
         "in 1_Pooling/config.json of the model's folder, else mean for encoders and lasttoken for decoders")
        .one_of({"mean", "cls", "lasttoken", "weightedmean", "max", "mean_sqrt_len_tokens"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("normalize", normalize,
            "scaling of the embeddings to length 1; ~: as in modules.json of the model's folder, else true")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field(
         "scale", scale,
         "factor of the cosine similarities in the losses infonce and cosent, the inverse of the temperature")
        .above(0)
        .on_resume(OnResume::note);
    v.field(
         "symmetric", symmetric,
         "InfoNCE in both directions: the mean of the loss of the anchors and of the loss of the positives")
        .on_resume(OnResume::note);
    v.field(
         "scored_loss", scored_loss,
         "loss of pairs with a score. cosent: log(1 + sum of exp(scale (cos_i - cos_j)) over all i, j of the "
         "step where pair i has the lower score), CoSENT; cosine_mse: squared error of the cosine similarity")
        .one_of({"cosent", "cosine_mse"})
        .on_resume(OnResume::note);
    v.field(
         "matryoshka_dims", matryoshka_dims,
         "sizes for Matryoshka embeddings: the loss is the sum over these numbers of first features, so that "
         "shortened embeddings are useful; empty: all features only")
        .one_or_more()
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("matryoshka_weights", matryoshka_weights,
            "weight of the loss of each of matryoshka_dims; empty: 1 for each")
        .one_or_more()
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("prompt", prompt,
            "text before each text that is neither query nor document: scored pairs, and lines with \"text\" "
            "or \"prompt\"; ~: the default prompt of config_sentence_transformers.json, else none")
        .literal()
        .on_resume(OnResume::error);
    v.field("query_prompt", query_prompt,
            "text before each anchor, and before lines with \"query\"; ~: the prompt `query` of "
            "config_sentence_transformers.json, else none")
        .literal()
        .on_resume(OnResume::error);
    v.field("document_prompt", document_prompt,
            "text before each positive and negative, and before lines with \"document\"; ~: the prompt "
            "`document`, `passage` or `corpus` of config_sentence_transformers.json, else none")
        .literal()
        .on_resume(OnResume::error);
    v.field("dimensions", dimensions,
            "number of first features in the embeddings of predict and embed, scaled to length 1 again if "
            "embeddings are; ~: all")
        .at_least(1)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
  }
};

// Extractive question answering.
struct QuestionAnsweringSettings {
  i64 doc_stride = 128, max_answer_length = 30, n_best_size = 20;
  bool no_answer = false;
  double null_score_diff_threshold = 0;

  void visit(SettingsVisitor& v) {
    v.field("doc_stride", doc_stride, "tokens of a long context that two consecutive rows share")
        .at_least(0)
        .at_most(1 << 20)
        .on_resume(OnResume::error);
    v.field("max_answer_length", max_answer_length, "maximum length of an answer in tokens")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::free);
    v.field("n_best_size", n_best_size, "number of the best starts, and of the best ends, that are combined")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::free);
    v.field(
         "no_answer", no_answer,
         "questions may have no answer (SQuAD 2.0); false: a question without answer is an error in the data, "
         "and every prediction is a text")
        .on_resume(OnResume::error);
    v.field(
         "null_score_diff_threshold", null_score_diff_threshold,
         "with no_answer: the prediction is empty if the score of no answer exceeds that of the best answer by "
         "more than this")
        .on_resume(OnResume::free);
  }
};

// Speech to text.
struct TranscriptionSettings {
  std::optional<std::string> language;
  std::string task = "transcribe";
  bool timestamps = false, cut_long = false;

  void visit(SettingsVisitor& v) {
    v.field(
         "language", language,
         "language of the recordings, as in the tokenizer's tokens: en for <|en|>; ~: that of each record "
         "(language or locale), else the most likely one. The training of a model with languages needs one "
         "of the two")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("task", task,
            "text of a recording in a model with languages. transcribe: its words; translate: their "
            "translation to English")
        .one_of({"transcribe", "translate"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("timestamps", timestamps,
            "times in predictions: each has the list `segments` of {start, end, text}, in seconds")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("cut_long", cut_long,
            "recordings of the training and evaluation data that are longer than the model's window lose "
            "their end; false: they are an error. Requests of predict may have any length")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
  }
};

}  // namespace redco
