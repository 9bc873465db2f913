// Examples of JSONL files (data/text/example_lines.h, example_index.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/builtin/builtin.h"
#include "data/examples_testing.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using test::slurp;
using test::spill;

const std::string kFixtures = REDCO_FIXTURES;

// Ids, loss masks and prompts against transformers (scripts/make_instruction_fixtures.py). The template here
// has no generation marks, so the reader finds the assistant's turns itself.
TEST_F(Examples, TokensAndMasksEqualTransformers) {
  for (const std::string name : {"gpt2", "llama2", "qwen"}) {
    const auto tokenizer = load_tokenizer(kFixtures + "/tokenizers/" + name);
    const ChatTemplate chat =
        ChatTemplate::parse(slurp(kFixtures + "/chat_templates/chatml.jinja"), "chatml");
    const ExampleLines lines(*tokenizer, &chat, {});
    std::ifstream in(kFixtures + "/instruct/" + name + ".jsonl");
    int n = 0;
    for (std::string text; std::getline(in, text); ++n) {
      const Json expected = Json::parse(text);
      const TokenizedExample e = lines.read(expected["line"].dump());
      EXPECT_EQ(e.ids, expected["ids"].get<std::vector<i32>>()) << expected["line"];
      EXPECT_EQ(e.in_loss, expected["in_loss"].get<std::vector<std::uint8_t>>()) << expected["line"];
      EXPECT_EQ(e.prompt_tokens, expected["prompt_tokens"].get<i64>()) << expected["line"];
    }
    EXPECT_GE(n, 12);
  }
}

TEST_F(Examples, OtherKeysAndIds) {
  ExampleFields fields;
  fields.prompt = "question";
  fields.completion = "answer";
  const ExampleLines lines(*bytes_, nullptr, fields);
  const auto e =
      lines.read(R"({"question": "ab", "answer": "c", "prompt": 1, "id": [1, "x"], "score": 0.5})");
  EXPECT_EQ(e.ids, (std::vector<i32>{'a', 'b', 'c', 256}));
  EXPECT_EQ(e.in_loss, (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(e.id, "[1,\"x\"]");
  EXPECT_EQ(e.reference, "c");
  fields.text.reset();
  const ExampleLines without(*bytes_, nullptr, fields);
  EXPECT_EQ(without.read(R"({"question": "ab", "answer": "c", "text": "both"})").kind,
            ExampleKind::completion);
  EXPECT_NE(lines.fingerprint(), without.fingerprint());
}

// Forms of other libraries equal the messages that they describe.
TEST_F(Examples, FormsOfMessagesAreEqual) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "template");
  const ExampleLines lines(*bytes_, &chat, {});
  const auto expected = lines.read(
      R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]})");
  for (
      const char* line :
      {R"({"prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "yo"}]})",
       R"({"prompt": [{"role": "user", "content": "hi"}], "completion": "yo", "score": NaN, "x": -Infinity})",
       R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]},
            {"role": "assistant", "content": "yo"}]})",
       R"({"messages": "[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"yo\"}]"})",
       R"({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}], "text": null})"}) {
    const auto e = lines.read(line);
    EXPECT_EQ(e.ids, expected.ids) << line;
    EXPECT_EQ(e.in_loss, expected.in_loss) << line;
  }
  // An earlier answer in the prompt of TRL's form is not learned.
  const auto two = lines.read(
      R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "c"}], "completion": [{"role": "assistant", "content": "d"}]})");
  EXPECT_EQ(std::count(two.in_loss.begin(), two.in_loss.end(), 1), 5);  // d</s>
}

// The template writes a default system message, and other headers than the generation prompt has: neither is
// the assistant's text.
TEST_F(Examples, HeadersAreNotInTheLoss) {
  const auto learned = [&](const std::string& text, const std::string& line) {
    const ChatTemplate chat = ChatTemplate::parse(text, "template");
    const TokenizedExample e = ExampleLines(*bytes_, &chat, {}).read(line);
    std::string out;
    for (std::size_t i = 0; i < e.ids.size(); ++i)
      if (e.in_loss[i]) out += static_cast<char>(e.ids[i]);
    return out;
  };
  const std::string system =
      "{% if messages[0]['role'] != 'system' %}<s>system: be nice<e>{% endif %}{% for m in messages %}"
      "<s>{{ m['role'] }}: {{ m['content'] }}<e>{% endfor %}{% if add_generation_prompt %}<s>assistant: {% endif %}";
  EXPECT_EQ(learned(system, R"({"conversations": [{"from": "gpt", "value": "Welcome"},
                               {"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]})"),
            "Welcome<e>y<e>");
  const std::string other_prompt =
      "{% for m in messages %}<s>{{ m['role'] }}|header> {{ m['content'] }}<e>{% endfor %}"
      "{% if add_generation_prompt %}<s>model>{% endif %}";
  EXPECT_EQ(learned(other_prompt, R"({"messages": [{"role": "user", "content": "a"},
                                     {"role": "assistant", "content": "b"}]})"),
            "b<e>");
}

// A rendered chat as a prompt brings its own first token, and may end with the end token.
TEST_F(Examples, RenderedPromptsHaveOneFirstTokenAndKeepTheirLast) {
  const auto llama = load_tokenizer(kFixtures + "/tokenizers/llama2");
  const i32 bos = *llama->special().bos, eos = *llama->special().eos;
  const auto ids = ExampleLines::prompt_ids(*llama, "<s>Hi</s>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), bos), 1);
  EXPECT_EQ(ids.back(), eos);
  const auto e = ExampleLines(*llama, nullptr, {}).read(R"({"prompt": "<s>Hi", "completion": " yes"})");
  EXPECT_EQ(std::count(e.ids.begin(), e.ids.end(), bos), 1);
  const auto plain = ExampleLines::prompt_ids(*llama, "Hi");
  EXPECT_EQ(std::count(plain.begin(), plain.end(), bos), 1);
}

// A changed hash of the data would end runs that resume with a newer redco.
TEST_F(Examples, NewKeysDoNotChangeOldFingerprints) {
  const auto old = [&](const ExampleFields& f) {
    Hasher h;
    put(h, kExampleVersion);
    put(h, bytes_->fingerprint());
    put(h, static_cast<u64>(*bytes_->special().eos));
    put(h, "");
    for (const auto& key : {f.text, f.prompt, f.completion, f.messages, f.id}) put(h, key ? "=" + *key : "");
    return h.digest128().hex();
  };
  const auto now = [&](const ExampleFields& f) { return ExampleLines(*bytes_, nullptr, f).fingerprint(); };
  ExampleFields usual, by_hand, renamed, none;
  by_hand.prompt = "instruction", by_hand.completion = "output", by_hand.messages = "conversations";
  EXPECT_EQ(now(usual), old(usual));
  EXPECT_EQ(now(by_hand), old(by_hand));
  renamed.conversations = "turns";
  none.instruction = none.input = none.output = std::nullopt;
  EXPECT_EQ((std::set<std::string>{now(usual), now(by_hand), now(renamed), now(none)}).size(), 4u);
}

TEST_F(Examples, EncodingsOfFiles) {
  const std::string mark = "\xEF\xBB\xBF", lines = R"({"text": "ab"})"
                                                   "\r\n"
                                                   R"({"text": "c"})"
                                                   "\r\n";
  EXPECT_EQ(build(mark + lines).size(), 2);
  EXPECT_THAT(refused(std::string("\xFF\xFE{\0", 4), {}),
              HasSubstr("a.jsonl: the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16"));
}

TEST_F(Examples, EveryBadLineIsNamedWithItsReason) {
  const std::string good = R"({"text": "good"})";
  const struct {
    std::string line, reason;
  } cases[] = {
      {"no json", "not JSON"},
      {R"({"text": "cut short)", "not JSON"},
      {R"({"text": "a"} {"text": "b"})", "not JSON"},
      {"{\"text\": \"\xFF\"}", "byte 11 (0xFF) is not UTF-8"},
      {R"({"text": "\ud800"})", "not JSON"},
      {R"(["text"])", "not an object of keys and values but array"},
      {R"({"texts": "a"})",
       "no \"text\" or \"prompt\" or \"messages\" or \"instruction\" or \"conversations\"; its keys are "
       "texts"},
      {"{}", "its keys are none"},
      {R"({"id": 1, "inputs": "a", "targets": "b"})",
       "data.fields='{instruction: inputs, output: targets}' reads records of this form"},
      {R"({"text": "a", "parent_id": null, "role": "prompter"})", "one message of a conversation"},
      {R"({"text": 3})", "\"text\" is not a text but number"},
      {R"({"text": "a", "text": "b"})", "the key \"text\" is given twice"},
      {R"({"text": "a", "messages": []})", "both \"text\" and \"messages\""},
      {R"({"prompt": "a"})", "\"prompt\" without \"completion\""},
      {R"({"completion": "a"})", "\"completion\" without \"prompt\""},
      {R"({"prompt": "a", "completion": ""})", "the completion is empty"},
      {R"({"prompt": ["a"], "completion": "b"})", "message 1: expected an object with a role"},
      {R"({"prompt": "a", "completion": null})", "\"completion\" is null, expected a text"},
      {"{", "the file holds an object over several lines. Set data.format: json"},
      {R"([{"text": "a"}])", "an array. For a file of one array of objects set data.format: json"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]})",
       "message 2, of the assistant, is empty"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistent", "content": "b"}]})",
       "message 2: the role is 'assistent'; did you mean assistant?"},
      {R"({"messages": [{"role": "user", "content": 3}, {"role": "assistant", "content": "b"}]})",
       "message 1: the content is of type int; expected a text"},
      {R"({"messages": "hello"})", "\"messages\" is not a list but string"},
      {R"({"messages": []})", "\"messages\""},
      {R"({"messages": [{"content": "a"}]})", "role"},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "no turn of the assistant"},
      {R"({"messages": [{"role": "assistant", "content": "a"}]})", "users first"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": 3})",
       "\"tools\" is not a list"},
      {R"({"text": "a", "instruction": "b", "output": "c"})",
       "both \"text\" and \"instruction\". data.fields.text=~ selects \"instruction\", "
       "data.fields.instruction=~ "
       "data.fields.output=~ selects \"text\""},
      {R"({"messages": [], "conversations": []})", "both \"messages\" and \"conversations\""},
      {R"({"instruction": "a", "input": "b"})", "\"instruction\" without \"output\""},
      {R"({"output": "a"})", "\"output\" without \"instruction\""},
      {R"({"instruction": "a", "output": ""})", "\"output\" is empty"},
      {R"({"instruction": "", "output": "b"})", "\"instruction\" is empty"},
      {R"({"instruction": "a", "output": 3})", "\"output\" is not a text but number"},
      {R"({"instruction": "a", "input": ["x"], "output": "b"})", "\"input\" is a list of texts"},
      {R"({"instruction": "a", "output": "b", "system": 1})", "\"system\" is not a text but number"},
      {R"({"instruction": "a", "output": "b", "history": [["c"]]})", "\"history\" is [[\"c\"]], expected"},
      {R"({"instruction": "a", "output": "b", "history": [["c", ""]]})", "\"history\" is"},
      {R"({"instruction": "a", "output": "b", "history": "d"})", "\"history\" is"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "rain"}]})",
       "\"conversations[1]\" is a function_call but holds rain, expected JSON"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "[]"}]})",
       "\"conversations[1]\" is a function_call but holds []"},
      {R"({"conversations": [{"from": "human", "value": "a"}, )"
       R"({"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}"}]})",
       "the template has no place for tool calls, so message 2"},
      {R"({"conversations": "hello"})", "\"conversations\" is not a list but string"},
      {R"({"conversations": []})", "\"conversations\""},
      {R"({"conversations": ["a"]})", "\"conversations[0]\" is not an object but string"},
      {R"({"conversations": [{"from": "human"}]})", "\"conversations[0]\" has no \"value\""},
      {R"({"conversations": [{"role": "user", "content": "a"}]})", "set data.fields.messages=conversations"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "bing", "value": "b"}]})",
       "\"conversations[1]\" has the role bing, expected human, gpt, user, assistant, model, function_call, "
       "tool, observation or system"},
      {R"({"conversations": [{"from": "human", "value": 1}]})", "\"conversations[0].value\" is not a text"},
      {R"({"conversations": [{"from": "human", "value": "a"}]})", "no turn of the assistant"},
      {"{\"text\": " + std::string(100, '[') + std::string(100, ']') + "}", "nested more than 64 deep"},
  };
  const ChatTemplate chat = ChatTemplate::parse(
      "{% if messages[0]['role'] == 'assistant' %}{{ raise_exception('users first') }}{% endif %}"
      "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "template");
  ExampleSource source{.chat = &chat};
  std::string all = good + "\n\n";
  for (const auto& c : cases) {
    const std::string why = refused(good + "\n\n" + c.line + "\n" + good + "\n", source);
    EXPECT_THAT(why, HasSubstr("a.jsonl:3: ")) << c.line;
    EXPECT_THAT(why, HasSubstr(c.reason)) << c.line;
    EXPECT_THAT(why, HasSubstr("data.skip_bad=true"));
    all += c.line + "\n";
  }
  source.skip_bad = true;
  const ExampleIndex index = build(all + good, source);
  EXPECT_EQ(index.size(), 2);
  EXPECT_EQ(index.n_bad(), static_cast<i64>(std::size(cases)));
  EXPECT_THAT(index.bad_lines(), HasSubstr("a.jsonl:3: not JSON"));
  const std::string first = index.bad_lines();
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 5);
  EXPECT_EQ(index.where(index.entry(1)), file("a.jsonl") + ":" + std::to_string(3 + std::size(cases)));
  EXPECT_THAT(refused("x\ny\n", source), HasSubstr("the files have no examples; 2 bad lines, the first: "));
  EXPECT_THAT(refused("\n \n", source), HasSubstr("the files have no examples"));
  EXPECT_THROW(build(R"({"messages": [{"role": "user", "content": "a"}]})"),
               UsageError);  // no chat template
}

// Wikitext has an empty line between paragraphs, and tables have empty cells.
TEST_F(Examples, RecordsWithoutATextAreLeftOutAndCounted) {
  const ExampleIndex index = build(R"({"text": "ab"}
{"text": ""}
{"text": " \n"}
{"text": null, "title": "x"}
{"text": "c"})");
  ASSERT_EQ(index.size(), 2);
  EXPECT_EQ(index.n_empty(), 3);
  EXPECT_EQ(index.n_bad(), 0);
  EXPECT_EQ(index.n_tokens(), 5);
  EXPECT_EQ(index.where(index.entry(1)), file("a.jsonl") + ":5");
  EXPECT_THAT(refused("{\"text\": \"\"}\n", {}),
              HasSubstr("the files have no examples; 1 record without a text"));
}

// Examples are read back as written, from tables of several blocks and with both widths of ids.
TEST_F(Examples, TheIndexHasAllExamples) {
  const auto gpt2 = load_tokenizer(kFixtures + "/tokenizers/gpt2");
  for (const Tokenizer* t : {bytes_.get(), gpt2.get()}) {
    std::string lines;
    for (int k = 0; k < 9000; ++k)
      lines += fmt::format("{{\"prompt\": \"p{}\", \"completion\": \"c{}\", \"id\": {}}}\n", k, 7 * k, k);
    ExampleSource source{.references = true};
    const ExampleIndex index = build(lines, source, t);
    ASSERT_EQ(index.size(), 9000);
    const ExampleLines reader(*t, nullptr, {});
    i64 tokens = 0, targets = 0;
    for (i64 k = 0; k < 9000; ++k) {
      const ExampleEntry entry = index.entry(k);
      const StoredExample e = index.read(entry);
      tokens += entry.tokens;
      targets += entry.targets;
      if (k % 500 != 499) continue;
      const TokenizedExample expected =
          reader.read(fmt::format("{{\"prompt\": \"p{}\", \"completion\": \"c{}\"}}", k, 7 * k));
      EXPECT_EQ(e.ids, expected.ids);
      EXPECT_EQ(e.in_loss, expected.in_loss);
      EXPECT_EQ(e.prompt_tokens, expected.prompt_tokens);
      EXPECT_EQ(e.id, std::to_string(k));
      EXPECT_EQ(e.reference, "c" + std::to_string(7 * k));
      EXPECT_EQ(entry.line, static_cast<u64>(k + 1));
      EXPECT_EQ(entry.first_target, expected.prompt_tokens);
    }
    EXPECT_EQ(index.n_tokens(), tokens);
    EXPECT_EQ(index.n_targets(), targets);
  }
}

TEST_F(Examples, CacheIsUsedWhileNothingChanges) {
  const std::string lines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
  spill(file("a.jsonl"), lines);
  const ExampleSource source{.paths = {file("a.jsonl")}};
  const std::string path = build_example_index(source, *bytes_, cache());
  const std::string hash = ExampleIndex::open(path).data_hash();
  const auto time = std::filesystem::last_write_time(path);
  EXPECT_EQ(build_example_index(source, *bytes_, cache()), path);
  EXPECT_EQ(std::filesystem::last_write_time(path), time);
  ExampleSource other = source;
  other.fields.text = "t";
  other.fields.completion.reset();
  EXPECT_THROW(build_example_index(other, *bytes_, cache()), ContentsError);
  // The same lines in another gzipped file: another index, the same data hash.
  gzFile z = gzopen(file("b.jsonl.gz").c_str(), "wb");
  gzwrite(z, lines.data(), static_cast<unsigned>(lines.size()));
  gzclose(z);
  const std::string again = build_example_index({.paths = {file("b.jsonl.gz")}}, *bytes_, cache());
  EXPECT_NE(again, path);
  EXPECT_EQ(ExampleIndex::open(again).data_hash(), hash);
  // A damaged index is rebuilt, wherever the damage is.
  const std::string whole = slurp(path);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    spill(path, damaged);
    try {  // open() or read() throws, or the values are in range
      const ExampleIndex index = ExampleIndex::open(path);
      for (i64 i = 0; i < std::min<i64>(index.size(), 4); ++i) index.read(index.entry(i));
      EXPECT_THROW(index.verify(), ContentsError);
    } catch (const ContentsError&) {
    }
    if (at % 35 == 0) {
      EXPECT_EQ(build_example_index(source, *bytes_, cache()), path);
      EXPECT_EQ(slurp(path), whole);
    }
  }
}

TEST_F(Examples, HostileLinesAreErrors) {
  const ChatTemplate chat = ChatTemplate::parse(slurp(kFixtures + "/chat_templates/chatml.jinja"), "chatml");
  const ExampleLines reader(*bytes_, &chat, {});
  const std::vector<std::string> seeds = {
      R"({"text": "hello", "id": 1})", R"({"prompt": "a\u00e9", "completion": "b\n", "id": "x"})",
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 1}]})",
      R"({"instruction": "a", "input": "b", "output": "c", "system": "d", "history": []})",
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b", "weight": 1}]})"};
  std::mt19937 random(3);
  int read = 0, refused = 0;
  for (int k = 0; k < 6000; ++k) {
    std::string line = seeds[random() % seeds.size()];
    for (int m = static_cast<int>(random() % 4); m >= 0; --m) {
      const std::size_t at = random() % line.size();
      switch (random() % 4) {
        case 0:
          line[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          line.erase(at, 1 + random() % 5);
          break;
        case 2:
          line.insert(at, line.substr(random() % line.size(), random() % 8));
          break;
        default:
          line.insert(at, 1, "{}[]\":,\\"[random() % 8]);
      }
      if (line.empty()) line = "x";
    }
    try {
      const TokenizedExample e = reader.read(line);
      EXPECT_EQ(e.ids.size(), e.in_loss.size());
      EXPECT_LE(e.prompt_tokens, static_cast<i64>(e.ids.size()));
      ++read;
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

TEST_F(Examples, BuiltInChats) {
  const auto train = data_files({"builtin:chat"}, false, cache()),
             eval = data_files({"builtin:chat"}, true, cache());
  const ChatTemplate chat =
      ChatTemplate::parse(builtin_chat_template(), "builtin:chat", {{"eos_token", "<|endoftext|>"}});
  const ExampleIndex a =
      ExampleIndex::open(build_example_index({.paths = train, .chat = &chat}, *bytes_, cache()));
  EXPECT_EQ(a.size(), 800);
  EXPECT_EQ(ExampleIndex::open(build_example_index({.paths = eval, .chat = &chat}, *bytes_, cache())).size(),
            80);
  const StoredExample e = a.read(a.entry(0));
  EXPECT_EQ(e.ids[static_cast<std::size_t>(e.prompt_tokens) - 1], '\n');
  EXPECT_EQ(std::count(e.ids.begin(), e.ids.end(), 256), 2);  // each turn ends with the end token
  EXPECT_THAT(slurp(eval[0]), Not(HasSubstr(slurp(train[0]).substr(10, 60))));
  EXPECT_THROW(data_files({"builtin:cats"}, false, cache()), UsageError);
}

}  // namespace
}  // namespace redco
