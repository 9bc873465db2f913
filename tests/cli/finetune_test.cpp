// The commands of docs/finetune_chat.md in order, on a tiny model folder and 200 chats.
#include <filesystem>
#include <regex>
#include <sstream>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;

class Finetune : public Cli {};

// The lines of the page that are commands.
std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> out;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("    redco ")) out.push_back(line.substr(10));
  return out;
}

TEST_F(Finetune, TheDocumentedCommandsGiveAModelThatAnswers) {
  // models/base: a LLaMA with the LLaMA 2 tokenizer and a template.
  const std::string fixtures = REDCO_FIXTURES;
  fs::create_directories(path("models/base"));
  for (const char* f : {"config.json", "model.safetensors", "generation_config.json"})
    fs::copy(fixtures + "/llama/" + f, path("models/base/") + f);
  for (const char* f : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy(fixtures + "/tokenizers/llama2/" + f, path("models/base/") + f);
  fs::copy(fixtures + "/chat_templates/zephyr.jinja", path("models/base/chat_template.jinja"));
  std::string chats;
  for (int i = 0; i < 200; ++i)
    chats += "{\"messages\": [{\"role\": \"user\", \"content\": \"What is " + std::to_string(i % 10) +
             " + 1?\"}, " + "{\"role\": \"assistant\", \"content\": \"" + std::to_string(i % 10 + 1) +
             "\"}]}\n";
  write("chats.jsonl", chats);
  write("questions.txt", "What is 2 + 1?\nWhat is 7 + 1?\n");
  // The page's job with fewer steps.
  write("tiny.yaml",
        "train: {max_steps: 6, global_batch_size: 4, learning_rate: 0.01}\ndata: {max_length: 96}\n"
        "predict: {max_new_tokens: 6}\n");

  std::vector<std::string> answers;
  std::string merge_says;
  for (const std::string& line : commands_of(slurp(REDCO_SOURCE_DIR "/docs/finetune_chat.md"))) {
    SCOPED_TRACE(line);
    Words words;
    std::string input;
    std::istringstream in(line);
    for (std::string w; in >> w;) {
      if (w == "<") {
        in >> w;
        input = read(w);
        continue;
      }
      words.push_back(w);
      if (w == "chat.yaml" && words.size() >= 2 && words[words.size() - 2] == "-c") {
        words.push_back("-c");
        words.push_back("tiny.yaml");
      }
    }
    const Ran r = good(words, {}, input);
    if (words[0] == "data") EXPECT_THAT(r.out, HasSubstr("2 samples, 4 to learn"));
    if (words[0] == "plan") EXPECT_THAT(r.out, HasSubstr("fits"));
    if (words[0] == "merge") merge_says = r.out + r.err;
    if (words[0] == "chat") answers.push_back(r.out);
  }
  EXPECT_TRUE(has("runs/chat/checkpoints/last/adapter_config.json"));
  EXPECT_TRUE(has("models/merged/model.safetensors"));
  EXPECT_TRUE(has("models/merged/chat_template.jinja"));
  EXPECT_THAT(read("report.html"), HasSubstr("</html>"));
  EXPECT_THAT(merge_says, HasSubstr("difference"));
  // The base with adapters and the merged model give the same answers.
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_FALSE(answers[0].empty());
  EXPECT_EQ(answers[0], answers[1]);
}

}  // namespace
}  // namespace redco::test
