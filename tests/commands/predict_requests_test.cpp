// The prompts of a predict job: their order, ids and tokens.
#include "commands/predict_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/audio/decode_audio.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class Requests : public ::testing::Test {
 protected:
  JobConfig job(const Words& more) const {
    Words all = {"model.arch=gpt2", "model.tokenizer=bytes", "model.n_layer=1",
                 "model.n_embd=8",  "model.n_head=2",        "model.n_positions=16"};
    all.insert(all.end(), more.begin(), more.end());
    return job_of("", all);
  }
  // From the lines of predict.input.
  JobConfig job_with(const std::string& lines, Words more = {}) const {
    test::spill(dir / "in.jsonl", lines);
    more.push_back("predict.input=" + (dir / "in.jsonl"));
    return job(more);
  }
  static std::vector<PredictRequest> all(const JobConfig& j) {
    const PredictModel m = load_predict_model(j);
    PredictRequests requests(j, m);
    std::vector<PredictRequest> out;
    for (PredictRequest r; requests.next(r);) out.push_back(r);
    return out;
  }
  std::string refused(const std::string& lines) const {
    return error_text<ContentsError>([&] { all(job_with(lines)); });
  }
  test::TempDir dir;
};

TEST_F(Requests, PromptsOfTheJobComeInOrder) {
  const auto r = all(job({"predict={prompt: [ab, c]}"}));
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].prompt, "ab");
  EXPECT_THAT(r[0].example.ids.at("prompt"), ElementsAre(97, 98));
  EXPECT_EQ(r[1].head, R"({"id":1,"prompt":"c"})");
  EXPECT_EQ(r[1].example.ordinal, 1);
}

TEST_F(Requests, BuiltinDataAreThoseForEvaluation) {
  const auto r = all(job({"predict.input=builtin:arithmetic"}));
  EXPECT_EQ(r.size(), 80u);
  EXPECT_THAT(error_text<UsageError>([&] { all(job({"predict.input=builtin:none"})); }),
              HasSubstr("builtin:none"));
}

TEST_F(Requests, AFolderOfImagesIsALineForEach) {
  std::filesystem::create_directories(dir / "photos/b");
  const std::string png = test::slurp(std::string(REDCO_FIXTURES) + "/images/grey.png");
  for (const char* name : {"photos/b/2.png", "photos/1.png", "photos/notes.txt"})
    test::spill(dir / name, png);
  const Words vit = {"pipeline=classification",     "model.arch=vit",
                     "model.hidden_size=8",         "model.num_hidden_layers=1",
                     "model.num_attention_heads=2", "model.intermediate_size=8",
                     "model.image_size=8",          "model.patch_size=4",
                     "model.num_channels=1",        "model.num_labels=2",
                     "data.resize_images=true",     "predict.input=" + (dir / "photos")};
  const auto r = all(job_of("", vit));
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].head, "{\"id\":0,\"image\":\"" + (dir / "photos/1.png") + "\"}");
  EXPECT_EQ(r[1].head, "{\"id\":1,\"image\":\"" + (dir / "photos/b/2.png") + "\"}");
  Words named = vit;
  named.push_back("data.images=" + (dir / "photos"));
  EXPECT_THAT(usage_error([&] { all(job_of("", named)); }), HasSubstr("Remove data.images"));
  EXPECT_THAT(usage_error([&] { all(job({"predict.input=" + (dir / "photos")})); }),
              HasSubstr("is a folder of images, and pipeline lm reads no images. Give a file of JSON lines"));
}

// Their names are relative to the file with the line, or else to the current folder.
TEST_F(Requests, ImagesAndRecordingsAreFoundNextToTheirFile) {
  const std::string fixtures = REDCO_FIXTURES;
  std::filesystem::create_directories(dir / "in");
  test::spill(dir / "in/1.png", test::slurp(fixtures + "/images/grey.png"));
  test::spill(dir / "in/1.wav", test::slurp(fixtures + "/whisper/short.wav"));
  test::spill(dir / "in/a.jsonl", "{\"image\": \"1.png\"}\n");
  test::spill(dir / "in/b.jsonl", "{\"audio\": \"1.wav\"}\n");
  const auto image =
      all(job_of("", {"pipeline=classification",
                      "model={arch: vit, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "
                      "intermediate_size: 8, image_size: 8, patch_size: 4, num_channels: 1, num_labels: 2}",
                      "data.resize_images=true", "predict.input=" + (dir / "in/a.jsonl")}));
  ASSERT_EQ(image.size(), 1u);
  EXPECT_EQ(image[0].head, R"({"id":0,"image":"1.png"})");
  if (!reads_audio()) return;
  const auto sound = all(job_of("", {"pipeline=transcription", "model.path=" + fixtures + "/whisper",
                                     "predict.input=" + (dir / "in/b.jsonl")}));
  ASSERT_EQ(sound.size(), 1u);
  EXPECT_EQ(sound[0].head, R"({"id":0,"audio":"1.wav"})");
}

TEST_F(Requests, AnImageOrARecordingIsNoFileOfPrompts) {
  const auto refusal = [&](const char* name) {
    test::spill(dir / name, "\xff\xd8");
    return usage_error([&] { all(job({"predict.input=" + (dir / name)})); });
  };
  EXPECT_THAT(refusal("x.PNG"), HasSubstr("x.PNG (override 'predict.input="));
  EXPECT_THAT(refusal("x.PNG"), HasSubstr("is an image; expected a file of prompts. Name it in a line "
                                          "{\"image\": \"x.PNG\"} of a file with the ending .jsonl"));
  EXPECT_THAT(refusal("a.b.wav"), HasSubstr("is a recording; expected a file of prompts. Name it in a line "
                                            "{\"audio\": \"a.b.wav\"}"));
}

TEST_F(Requests, LinesKeepTheirIds) {
  const auto r =
      all(job_with("{\"text\": \"a\", \"id\": {\"n\": 1}}\n\n \t\r\n{\"prompt\": \"b\", \"x\": 3}\n"));
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].head, R"({"id":{"n":1},"prompt":"a"})");
  EXPECT_EQ(r[0].example.id, R"({"n":1})");
  EXPECT_EQ(r[1].head, R"({"id":1,"prompt":"b"})");  // empty lines are not counted
}

TEST_F(Requests, EncodingsOfTheInput) {
  const auto r = all(job_with("\xEF\xBB\xBF{\"text\": \"a\"}\r\n{\"text\": \"b\"}\r\n"));
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].prompt, "a");
  EXPECT_EQ(r[1].prompt, "b");
  EXPECT_THAT(refused(std::string("\xFF\xFE{\0", 4)),
              HasSubstr("in.jsonl: the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16"));
}

TEST_F(Requests, MessagesAreRenderedByTheTemplate) {
  test::spill(dir / "t.jinja", "{% for m in messages %}<{{ m.content }}>{% endfor %}");
  const auto r = all(job_with("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n",
                              {"data.chat_template=" + (dir / "t.jinja")}));
  ASSERT_EQ(r.size(), 1u);
  EXPECT_THAT(r[0].example.ids.at("prompt"), ElementsAre('<', 'a', '>'));
  EXPECT_EQ(r[0].prompt, "");
  EXPECT_EQ(r[0].head, R"({"id":0,"messages":[{"role":"user","content":"a"}]})");
}

// A record of a test as a line.
std::string on_one_line(std::string record) {
  std::erase(record, '\n');
  return record + "\n";
}

// A line of training data is asked for the answer that it has.
TEST_F(Requests, LinesOfTrainingDataAreTheirPrompts) {
  test::spill(
      dir / "t.jinja",
      "{% for m in messages %}<{{ m.content }}>{% endfor %}{% if tools %}{{ tools | length }}{% endif %}"
      "{{ mood }}");
  const auto prompt = [&](const std::string& line, Words more = {}) {
    more.push_back("data.chat_template=" + (dir / "t.jinja"));
    more.push_back("model.n_positions=64");
    const auto r = all(job_with(on_one_line(line), more));
    return load_tokenizer("bytes")->decode(r.at(0).example.ids.at("prompt"));
  };
  const std::string turns = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])";
  EXPECT_EQ(prompt(R"({"messages": )" + turns + "}"), "<q>");
  EXPECT_EQ(prompt(R"({"prompt": "q", "messages": )" + turns + "}"), "<q>");  // ultrachat_200k
  EXPECT_EQ(prompt(R"({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})"),
            "<q>");
  EXPECT_EQ(prompt(R"({"instruction": "q", "input": "i", "output": "a"})"), "<q\n\ni>");
  EXPECT_EQ(prompt(R"({"instruction": "q", "context": "i", "response": "a"})"), "<q\n\ni>");
  EXPECT_EQ(
      prompt(R"({"question": "q", "answer": "a"})", {"data.fields={instruction: question, output: answer}"}),
      "<q>");
  EXPECT_EQ(prompt(R"({"prompt": "q", "completion": "a"})"), "q");
  EXPECT_EQ(prompt(R"({"prompt": "q", "completion": [{"role": "assistant", "content": "a"}]})"), "<q>");
  EXPECT_EQ(prompt(R"({"chosen": "q: yes", "rejected": "q: no"})", {"pipeline=dpo"}), "q:");
  EXPECT_EQ(prompt(R"({"chosen": )" + turns + R"(, "rejected": [{"role": "user", "content": "q"},
                       {"role": "assistant", "content": "b"}]})",
                   {"pipeline=dpo"}),
            "<q>");
  EXPECT_EQ(prompt(R"({"question": "q", "answer": "a"})", {"pipeline=grpo"}), "q");
  EXPECT_THAT(
      error_text<ContentsError>([&] { prompt(R"({"text": "t", "instruction": "q", "output": "a"})"); }),
      HasSubstr("both \"text\" and \"instruction\""));
}

TEST_F(Requests, SettingsOfChatsHoldForLinesWithoutTheirOwn) {
  test::spill(
      dir / "t.jinja",
      "{% for m in messages %}<{{ m.content }}>{% endfor %}{% if tools %}{{ tools | length }}{% endif %}"
      "{{ mood }}");
  test::spill(dir / "tools.json", R"([{"type": "function"}, {"type": "function"}])");
  const Words settings = {"data.chat_template=" + (dir / "t.jinja"), "predict.system=s",
                          "predict.tools=" + (dir / "tools.json"), "predict.chat_template_kwargs.mood=glad"};
  const auto prompt = [&](const std::string& line) {
    const auto r = all(job_with(on_one_line(line), settings));
    EXPECT_EQ(r.at(0).head.find("glad"), std::string::npos);
    return load_tokenizer("bytes")->decode(r.at(0).example.ids.at("prompt"));
  };
  EXPECT_EQ(prompt(R"({"messages": [{"role": "user", "content": "q"}]})"), "<s><q>2glad");
  EXPECT_EQ(prompt(R"({"conversations": [{"from": "human", "value": "q"}]})"), "<s><q>2glad");
  EXPECT_EQ(prompt(R"({"messages": [{"role": "system", "content": "o"}, {"role": "user", "content": "q"}],
                       "tools": [{"type": "function"}], "chat_template_kwargs": {"mood": "sad"}})"),
            "<o><q>1sad");
  EXPECT_THAT(usage_error([&] { prompt(R"({"prompt": "q"})"); }),
              HasSubstr("in.jsonl:1: predict.system has no effect on a line without messages"));
  test::spill(dir / "tools.json", R"({"type": "function"})");
  EXPECT_THAT(error_text<ContentsError>([&] { prompt("{}"); }),
              HasSubstr("tools.json: expected a JSON file with a list of tools"));
}

// Folders of data files, images next to them, and texts in the format of the data.
TEST_F(Requests, InputsAreReadAsTheDataAre) {
  std::filesystem::create_directories(dir / "set");
  test::spill(dir / "set/test-1.jsonl", "{\"prompt\": \"a\"}\n");
  test::spill(dir / "set/test-2.jsonl", "{\"prompt\": \"b\"}\n");
  EXPECT_EQ(all(job({"predict.input=" + (dir / "set")})).size(), 2u);
  test::spill(dir / "table.txt", "prompt,completion\nab,c\n");
  const auto r = all(job({"predict.input=" + (dir / "table.txt"), "data.format=csv"}));
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(r[0].prompt, "ab");
  std::filesystem::create_directories(dir / "photos");
  test::spill(dir / "photos/1.png", test::slurp(std::string(REDCO_FIXTURES) + "/images/grey.png"));
  test::spill(dir / "photos/metadata.csv", "file_name,label\n1.png,0\n");
  const auto image = all(job_of(
      "", {"pipeline=classification",
           "model={arch: vit, hidden_size: 8, num_hidden_layers: 1, "
           "num_attention_heads: 2, intermediate_size: 8, image_size: 8, patch_size: 4, num_channels: 1, "
           "num_labels: 2}",
           "data.resize_images=true", "predict.input=" + (dir / "photos")}));
  ASSERT_EQ(image.size(), 1u);
  EXPECT_THAT(image[0].head, HasSubstr("\"file_name\":\"1.png\""));
}

TEST_F(Requests, AnErrorNamesTheBadLine) {
  EXPECT_THAT(refused("{\"prompt\": \"a\"}\n[1]\n"), HasSubstr("in.jsonl:2: not a JSON object: [1]"));
  EXPECT_THAT(refused("{\"text\": \"a\", \"messages\": []}\n"),
              HasSubstr("in.jsonl:1: both \"text\" and \"messages\""));
  EXPECT_THAT(refused("{\"x\": 1}\n"), HasSubstr("no \"prompt\", \"text\" or \"messages\""));
  EXPECT_THAT(refused("{\"text\": 7}\n"), HasSubstr("\"text\" is of type number; expected a text"));
}

// The ordinal, the key of random draws, is the place among all lines, bad ones included.
TEST_F(Requests, BadLinesAreCountedAndKeepTheirOrdinal) {
  const JobConfig j =
      job_with("nonsense\n{\"prompt\": \"a\"}\n{}\n{\"prompt\": \"bcd\"}\n", {"predict.skip_bad=true"});
  const auto r = all(j);
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].example.ordinal, 1);
  EXPECT_EQ(r[1].example.ordinal, 3);
  EXPECT_EQ(r[1].example.id, "3");
  const PredictScan scan = scan_requests(j, load_predict_model(j));
  EXPECT_EQ(scan.n, 2);
  EXPECT_EQ(scan.skipped, 2);
  EXPECT_EQ(scan.longest, 3);
  EXPECT_THAT(scan.first_reason, HasSubstr("in.jsonl:1"));
  const JobConfig none = job_with("nonsense\n", {"predict.skip_bad=true"});
  EXPECT_THAT(error_text<ContentsError>([&] { scan_requests(none, load_predict_model(none)); }),
              HasSubstr("in.jsonl holds no prompt"));
}

// Images are decoded on several threads; the requests, the errors and the skipped lines are the same.
TEST_F(Requests, ImagesAreReadAheadInOrder) {
  const std::string images = std::string(REDCO_FIXTURES) + "/images/";
  std::string lines;
  for (int k = 0; k < 40; ++k)
    lines += fmt::format("{{\"image\": \"{}{}\", \"k\": {}}}\n", images,
                         k == 17 || k == 31 ? fmt::format("none-{}.png", k) : "rgb.jpg", k);
  test::spill(dir / "in.jsonl", lines);
  for (const char* n_workers : {"0", "1", "3"}) {
    const Words words = {"pipeline=classification",
                         "model.arch=vit",
                         "model.image_size=16",
                         "model.patch_size=8",
                         "model.hidden_size=8",
                         "model.num_hidden_layers=1",
                         "model.num_attention_heads=2",
                         "model.intermediate_size=8",
                         "data.resize_images=true",
                         "predict.input=" + (dir / "in.jsonl"),
                         std::string("data.n_workers=") + n_workers};
    EXPECT_THAT(error_text<ContentsError>([&] { all(job_of("", words)); }),
                ::testing::AllOf(HasSubstr("in.jsonl:18: "), HasSubstr("none-17.png")));
    Words tolerant = words;
    tolerant.push_back("predict.skip_bad=true");
    const JobConfig j = job_of("", tolerant);
    const auto r = all(j);
    ASSERT_EQ(r.size(), 38u);
    EXPECT_EQ(r[16].example.ordinal, 16);
    EXPECT_EQ(r[17].example.ordinal, 18);
    EXPECT_EQ(r[37].example.ordinal, 39);
    EXPECT_THAT(r[37].head, HasSubstr("\"k\":39"));
    const PredictScan scan = scan_requests(j, load_predict_model(j));
    EXPECT_EQ(scan.skipped, 2);
    EXPECT_THAT(scan.first_reason, HasSubstr("in.jsonl:18"));
  }
}

}  // namespace
}  // namespace redco
