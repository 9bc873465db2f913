// Token classification, question answering, multiple choice, reranking, several classes: records, answers,
// losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipelines/pipelines.h"
#include "pipelines/qa_texts.h"
#include "pipelines/tagged_texts.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"

namespace redco {
namespace {

using namespace redco::testing;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using TaskJson = nlohmann::json;

// A job as job/ makes it from a config.
struct TextTask {
  TextTask(const std::string& pipeline_name, const std::string& architecture, const std::string& labels,
           const std::string& family = "bert")
      : model(make_model({R"({"model_type": ")" + family +
                              R"(", "vocab_size": 257, "hidden_size": 24, "num_hidden_layers": 1,
                            "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 64,
                            "pad_token_id": 256, "initializer_range": 0.2, "architectures": [")" +
                              architecture + R"("])" + labels + "}",
                          "test"})),
        pipeline(make_pipeline(pipeline_name)) {
    settings->question_answering.doc_stride = 8;
    settings->train.global_batch_size = 8;
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    pipeline->settings = settings;
  }
  void make() {
    const ModelParams all = pipeline->all_params();
    params.emplace(make_params(all, shard_specs(all.specs, Context::current().mesh().mp()).layouts));
    initialize(*params, 1);
  }
  TaskJson answer(const std::string& line) {
    const std::vector<Example> one = {*pipeline->request(line, "here")};
    return TaskJson::parse(pipeline->predict(*params, one, {}).at(0));
  }
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline;
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

const char* kEntityLabels =
    R"(, "id2label": {"0": "O", "1": "B-OWNER", "2": "B-THING", "3": "B-PLACE", "4": "I-PLACE"})";

// Every task evaluates its built-in data on two ranks, with loss and metrics.
TEST(TextTasks, EvaluateTheirDataOnEveryMesh) {
  TempDir dir(TempDir::in_memory);
  struct Case {
    const char *pipeline, *architecture, *labels, *data;
    std::vector<std::string> metrics;
  };
  const std::vector<Case> cases = {
      {"token_classification",
       "BertForTokenClassification",
       kEntityLabels,
       "entities",
       {"accuracy", "f1", "loss", "precision", "recall"}},
      {"question_answering", "BertForQuestionAnswering", "", "questions", {"exact_match", "f1", "loss"}},
      {"multiple_choice", "BertForMultipleChoice", "", "choices", {"accuracy", "loss"}},
      {"reranking",
       "BertForSequenceClassification",
       R"(, "num_labels": 1)",
       "paraphrases",
       {"accuracy", "loss", "mrr_10", "ndcg_10"}},
      {"classification",
       "BertForSequenceClassification",
       R"(, "problem_type": "multi_label_classification", "id2label": {"0": "clothes", "1": "dishes", "2": "furniture",
          "3": "paper", "4": "toy", "5": "vehicle"})",
       "topics",
       {"accuracy", "f1", "f1_macro", "f1_micro", "f1_weighted", "loss"}}};
  for (const Case& c : cases) {
    std::map<std::string, double> first;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
      on_mesh(mesh, [&](Context& context) {
        TextTask task(c.pipeline, c.architecture, c.labels);
        task.make();
        const auto data = task.pipeline->open({.evaluation = true,
                                               .files = {std::string("builtin:") + c.data},
                                               .cache = dir / "cache",
                                               .max_length = 64});
        const Evaluation e = evaluate_sets(*task.pipeline, *task.params, {{data}}, 16, 0, false);
        if (context.rank() != 0) return;
        std::vector<std::string> names;
        for (const auto& [name, value] : e.metrics) names.push_back(name);
        EXPECT_EQ(names, c.metrics) << c.pipeline;
        if (first.empty()) first = e.metrics;
        EXPECT_NEAR(e.metrics.at("loss"), first.at("loss"), 1e-4) << c.pipeline;
      });
  }
}

TEST(TextTasks, WordsAreCutAtBlanksAndPunctuation) {
  std::vector<std::string> shown;
  for (const Word& w : words_of_text("Zoë's  car, $5."))
    shown.push_back(fmt::format("{}{}-{} {}", w.joined ? "+" : "", w.begin, w.end, w.text));
  EXPECT_THAT(shown, ElementsAre("0-3 Zoë", "+3-4 '", "+4-5 s", "7-10 car", "+10-11 ,", "12-13 $", "+13-14 5",
                                 "+14-15 ."));
  const auto tokenizer = load_tokenizer("bytes");
  const WordTokens t = tokens_of_words(*tokenizer, words_of_text("ab c,d"));
  EXPECT_EQ(tokenizer->decode(t.ids), "ab c,d");
  EXPECT_THAT(t.first, ElementsAre(0, 2, 4, 5, 6));
  EXPECT_EQ(text_between("Zoë's", 2, 4), "ë'");
}

TEST(TextTasks, TagsComeFromListsAndSpans) {
  const auto tags = [](const std::string& line) { return *read_tagged_text(Record(line, "x:1"), {}).tags; };
  EXPECT_THAT(tags(R"({"text": "Anna lives in New York.", "spans": [{"start": 14, "end": 22, "label": "LOC"},
                       {"start": 0, "end": 4, "label": "PER"}]})"),
              ElementsAre("B-PER", "O", "O", "B-LOC", "I-LOC", "O"));
  EXPECT_THAT(tags(R"({"tokens": ["a", "b"], "ner_tags": [0, 3]})"), ElementsAre("0", "3"));
  // spaCy's and doccano's exports
  EXPECT_THAT(tags(R"({"text": "Anna lives", "entities": [[0, 4, "PER"]]})"), ElementsAre("B-PER", "O"));
  EXPECT_THAT(tags(R"({"text": "Anna lives", "label": [[0, 4, "PER"]]})"), ElementsAre("B-PER", "O"));
  EXPECT_THAT(
      tags(R"({"text": "Anna lives", "entities": [{"start_offset": 0, "end_offset": 4, "label": "PER"}]})"),
      ElementsAre("B-PER", "O"));
  // Label Studio's exports, JSON-MIN and JSON; other results than spans are skipped
  EXPECT_THAT(
      tags(R"({"text": "Anna lives", "label": [{"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}]})"),
      ElementsAre("B-PER", "O"));
  EXPECT_THAT(tags(R"({"text": "Anna lives", "spans": [{"value": {"start": 0, "end": 4, "labels": ["PER"]}},
                       {"value": {"choices": ["good"]}, "type": "choices"}]})"),
              ElementsAre("B-PER", "O"));
  // Prodigy's
  EXPECT_THAT(tags(R"({"text": "Anna lives", "tokens": [{"text": "Anna", "start": 0, "end": 4, "id": 0}],
                       "spans": [{"start": 0, "end": 4, "token_start": 0, "token_end": 0, "label": "PER"}]})"),
              ElementsAre("B-PER", "O"));
  const auto problem = [&](const std::string& line) {
    return error_text<ContentsError>([&] { tags(line); });
  };
  EXPECT_THAT(problem(R"({"tokens": ["a", "b"], "tags": ["O"]})"),
              HasSubstr("x:1: \"tags\" has 1 tag, but \"tokens\" has 2 words"));
  EXPECT_THAT(problem(R"({"text": "ab", "spans": [[0, 1]]})"),
              HasSubstr("\"spans\" has [0,1]; expected {\"start\""));
  EXPECT_THAT(problem(R"({"text": "ab", "spans": [{"start": 2, "end": 9, "label": "X"}]})"),
              HasSubstr("the span 2 to 9 is not inside"));
  EXPECT_THAT(
      problem(
          R"({"text": "ab", "spans": [{"start": 0, "end": 1, "label": "X"}, {"start": 1, "end": 2, "label": "Y"}]})"),
      HasSubstr("overlaps another one"));
  EXPECT_THAT(error_text<ContentsError>([] {
                tag_number(ClassNames({"O", "B-X"}), "B-Y");
              }),
              HasSubstr("the tag 'B-Y' is not one of the 2 classes: O, B-X"));
}

// TRL's stepwise supervision: the line break after each step has its label.
TEST(TextTasks, StepsOfAnswersHaveLabels) {
  const std::string line = R"({"prompt": "2+3+4?", "completions": ["2+3=5", "9"], "labels": [true, false]})";
  const TaggedText t = read_tagged_text(Record(line, "x:1"), {});
  EXPECT_THAT(*t.tags, ElementsAre("true", "false"));
  EXPECT_THAT(t.tagged(), ElementsAre(2, 4));
  EXPECT_THAT(error_text<ContentsError>([&] {
                read_tagged_text(Record(R"({"prompt": "a", "completions": ["b"], "labels": [1, 0]})", "x:1"),
                                 {});
              }),
              HasSubstr("x:1: \"labels\" has 2 labels, but \"completions\" has 1 step"));
  on_one_rank([&](Context&) {
    TextTask task("token_classification", "LlamaForTokenClassification",
                  R"(, "id2label": {"0": "false", "1": "true"}, "classifier_dropout": 0)", "llama");
    task.make();
    const TempDir dir(TempDir::in_memory);
    test::spill(dir / "a.jsonl", line + "\n");
    const auto data = task.pipeline->open({.files = {dir / "a.jsonl"}, .cache = dir / "cache"});
    const Example e = data->get(0);
    EXPECT_EQ(load_tokenizer("bytes")->decode(e.ids.at("input_ids")), "2+3+4?2+3=5\n9\n");
    std::vector<i32> labels(14, -100);
    labels[11] = 1;
    labels[13] = 0;
    EXPECT_EQ(e.ids.at("labels"), labels);
    const TaskJson answer = task.answer(line);
    EXPECT_EQ(answer.at("prediction").size(), 2u);
    EXPECT_EQ(answer.at("scores").size(), 2u);
  });
}

// A text of many rows gets a tag for every word, equal to those of its parts.
TEST(TextTasks, LongTextsAreTaggedInRows) {
  on_one_rank([](Context&) {
    TextTask task("token_classification", "BertForTokenClassification", kEntityLabels);
    task.make();
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format("word{} ", i);
    const TaskJson all = task.answer(TaskJson{{"text", text}}.dump());
    EXPECT_EQ(all.at("prediction").size(), 40u);
    const TaskJson begin = task.answer(R"({"text": "word0 word1"})");
    ASSERT_EQ(begin.at("prediction").size(), 2u);
    for (const TaskJson& e : begin.at("entities"))
      EXPECT_GT(e.at("end").get<int>(), e.at("start").get<int>());
  });
}

TEST(TextTasks, ContextsAreReadInOverlappingRows) {
  const auto tokenizer = load_tokenizer("bytes");
  const QaText text{"who?", "anna has a kite. ben has a red boat.", {{{"red boat", 27}}}};
  const QaTokens t = qa_tokens(*tokenizer, pair_frame(*tokenizer), text, 24, 5);  // 20 tokens of the context
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_EQ(t.rows[1].begin, 15);
  EXPECT_EQ(t.rows.back().end, 36);
  EXPECT_EQ(tokenizer->decode(t.rows[0].ids), "who?anna has a kite. ben");
  const auto [first, last] = tokens_of_answer(t, text.answers->front());
  EXPECT_EQ(
      text_between(text.context, t.words[word_of_token(t, first)].begin, t.words[word_of_token(t, last)].end),
      "red boat");
  EXPECT_THAT(error_text<ContentsError>([&] { qa_tokens(*tokenizer, pair_frame(*tokenizer), text, 8, 5); }),
              HasSubstr("the question has 4 tokens, so a row of 8 has room for 4"));
  EXPECT_THAT(
      error_text<ContentsError>([] {
        read_qa_text(
            Record(R"({"question": "q", "context": "abc", "answers": {"text": ["b"], "answer_start": [2]}})",
                   "x:1"),
            {});
      }),
      HasSubstr("x:1: the context has no 'b' at answer_start 2"));
  EXPECT_EQ(
      read_qa_text(
          Record(R"({"question": "q", "context": "abc", "answers": [{"text": "b", "answer_start": 1}]})",
                 "x"),
          {})
          .answers->front()
          .start,
      1);
}

TEST(TextTasks, AnswersHaveTheFormsOfTheirTasks) {
  on_mesh({1, 2}, [](Context&) {
    TextTask qa("question_answering", "BertForQuestionAnswering", "");
    qa.make();
    const TaskJson span = qa.answer(
        R"({"question": "who?", "context": "anna has a kite. ben has a red boat. carl has nothing at all, and fay too."})");
    const std::string text = span.at("prediction");
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(static_cast<size_t>(span.at("end").get<int>() - span.at("start").get<int>()), text.size());

    TextTask choice("multiple_choice", "BertForMultipleChoice", "");
    choice.make();
    const TaskJson chosen = choice.answer(R"({"question": "which?", "choices": ["red", "blue", "green"]})");
    EXPECT_EQ(chosen.at("probabilities").size(), 3u);
    EXPECT_EQ(chosen.at("prediction"),
              (std::vector<std::string>{"red", "blue", "green"})[chosen.at("label_id").get<size_t>()]);

    // HellaSwag's and SWAG's keys, and ARC's choices, have the text of the same question with its choices.
    for (
        const char* line :
        {R"({"question": "which?", "choices": {"text": ["red", "blue", "green"], "label": ["A", "B", "C"]}})",
         R"({"goal": "which?", "sol1": "red", "sol2": "blue", "sol3": "green"})"})
      EXPECT_EQ(choice.answer(line), chosen) << line;
    EXPECT_EQ(choice.answer(R"({"ctx": "a", "endings": ["b", "c"]})"),
              choice.answer(R"({"context": "a", "ending0": "b", "ending1": "c"})"));
    const TempDir dir(TempDir::in_memory);
    const auto right = [&](const std::string& line) {
      test::spill(dir / "a.jsonl", line + "\n");
      const auto data = choice.pipeline->open({.files = {dir / "a.jsonl"}, .cache = dir / "cache"});
      const std::vector<float> labels = data->get(0).values.at("labels");
      return std::find(labels.begin(), labels.end(), 1) - labels.begin();
    };
    // The name of a choice precedes its index.
    EXPECT_EQ(
        right(R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answerKey": "1"})"),
        0);
    EXPECT_EQ(right(R"({"sentence": "q", "option1": "a", "option2": "b", "answer": "2"})"), 1);
    EXPECT_EQ(right(R"({"goal": "q", "sol1": "a", "sol2": "b", "label": 1})"), 1);
    EXPECT_EQ(right(R"({"ctx": "q", "endings": ["a", "b"], "label": "1"})"), 1);
    EXPECT_EQ(right(R"({"question": "q", "answerA": "a", "answerB": "b", "label": "1"})"), 0);

    TextTask rank("reranking", "BertForSequenceClassification", R"(, "num_labels": 1)");
    rank.make();
    const TaskJson ranked =
        rank.answer(R"({"query": "q", "documents": ["one text", "two", "a third text"]})");
    const std::vector<double> scores = ranked.at("scores");
    const std::vector<size_t> order = ranked.at("ranking");
    ASSERT_EQ(order.size(), 3u);
    EXPECT_GE(scores[order[0]], scores[order[1]]);
    EXPECT_GE(scores[order[1]], scores[order[2]]);
    // MS MARCO's form
    EXPECT_EQ(
        rank.answer(
            R"({"query": "q", "passages": {"passage_text": ["one text", "two", "a third text"], "is_selected": [0, 1, 0]}})"),
        ranked);
    // Each document is scored alone.
    const TaskJson alone = rank.answer(R"({"query": "q", "document": "two"})");
    EXPECT_NEAR(alone.at("scores").at(0).get<double>(), scores[1], 1e-6);
  });
}

}  // namespace
}  // namespace redco
