// The Jinja interpreter: results equal jinja2's, errors have positions, and broken or hostile templates are
// errors.
#include "jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "jinja/ops.h"
#include "support/time_factor.h"
#include "support/tokenizers.h"

namespace redco::jinja {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kFolder = std::string(REDCO_FIXTURES) + "/chat_templates/";

std::string render(const std::string& text, const std::string& variables = "{}") {
  const Template t = Template::parse(text, "t.jinja");
  Budget budget = budget_for(variables.size());
  BudgetScope scope(&budget);
  std::vector<std::pair<std::string, Value>> all;
  const Value v = from_json(variables, "variables");
  for (const auto& [name, value] : v.map().entries) all.emplace_back(name.text(), value);
  return t.render(std::move(all)).text;
}

std::string error_of(const std::string& text, const std::string& variables = "{}") {
  const auto [code, message] = test::failure_of([&] { render(text, variables); });
  EXPECT_EQ(code, ExitCode::contents) << text;
  return message;
}

TEST(Jinja, GroupsHaveNames) {
  const std::string items = R"({"m": [{"role": "user", "x": 1}, {"role": "assistant", "x": 2}]})";
  EXPECT_EQ(render("{% for g in m | groupby('role') %}[{{ g.grouper }}:{{ g.list | length }}:{{ g[0] }}:"
                   "{{ g['grouper'] }}]{% endfor %}",
                   items),
            "[assistant:1:assistant:assistant][user:1:user:user]");
  EXPECT_EQ(render("{% for k, v in m | groupby('role') %}({{ k }} {{ v | length }}){% endfor %}"
                   "{{ (m | groupby('role') | first).count('user') }}",
                   items),
            "(assistant 1)(user 1)0");
  EXPECT_EQ(render("{{ m | groupby('role') | map(attribute='grouper') | join(',') }}", items),
            "assistant,user");
}

// 700 expressions and statements with jinja2's results; null: an error in both.
TEST(Jinja, Conformance) {
  const std::string variables = test::slurp(kFolder + "variables.json");
  std::istringstream lines(test::slurp(kFolder + "jinja.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const json c = json::parse(line);
    const std::string text = c["template"];
    std::string got;
    const auto [code, message] = test::failure_of([&] { got = render(text, variables); });
    if (c["expected"].is_null()) {
      EXPECT_EQ(code, ExitCode::contents) << text << " gives " << got;
      EXPECT_THAT(message, StartsWith("t.jinja:")) << text;
    } else {
      ASSERT_EQ(message, "") << text;
      EXPECT_EQ(got, c["expected"].get<std::string>()) << text;
    }
  }
  EXPECT_GT(cases, 600);
}

TEST(Jinja, ErrorsHaveAPosition) {
  EXPECT_EQ(error_of("a\n  {{ 1 / 0 }}"), "t.jinja:2:8: division by zero");
  EXPECT_EQ(error_of("é😀{{ x.y }}"), "t.jinja:1:7: 'x' is undefined");
  EXPECT_EQ(error_of("{% if x %}\n\n{% endfor %}"),
            "t.jinja:3:4: unknown tag 'endfor'; expected elif or else or endif");
  EXPECT_THAT(error_of("{% if x %}"),
              HasSubstr("expected {% elif %} or {% else %} or {% endif %}, found the"));
  EXPECT_THAT(error_of("{{ 'abc }}"), StartsWith("t.jinja:1:4: this string has no closing quote"));
  EXPECT_THAT(error_of("{{ x | urlize }}"), HasSubstr("1:8: the filter 'urlize' is not supported"));
  EXPECT_THAT(error_of("{% include 'x' %}"), HasSubstr("'include' is not supported"));
  EXPECT_THAT(error_of("{{ 'x'.encode() }}"), HasSubstr("str.encode() is not supported"));
  EXPECT_THAT(error_of("{{ raise_exception('Roles!') }}"), HasSubstr("refuses the conversation: Roles!"));
  EXPECT_THAT(error_of("{{ x.y.z }}", R"({"x": {"a": 1}})"), HasSubstr("'dict object' has no attribute 'y'"));
  // In a macro, the position is inside of the macro.
  EXPECT_THAT(error_of("{% macro m() %}\n{{ 1 + none }}{% endmacro %}{{ m() }}"), StartsWith("t.jinja:2:6:"));
}

TEST(Jinja, NotUtf8OrTooLarge) {
  EXPECT_THAT(error_of("ab\xFF"), HasSubstr("byte 2"));
  EXPECT_THAT(error_of(std::string(2 << 20, 'x')), HasSubstr("at most"));
}

TEST(Jinja, GenerationBlocks) {
  const Template t = Template::parse(
      "a{% generation %}b{{ 1 }}{% endgeneration %}c{% generation %}{% endgeneration %}", "t");
  EXPECT_TRUE(t.has_generation());
  Budget budget = budget_for(0);
  BudgetScope scope(&budget);
  const Rendered r = t.render({});
  EXPECT_EQ(r.text, "ab1c");
  EXPECT_EQ(r.generation, (std::vector<std::pair<std::size_t, std::size_t>>{{1, 3}, {4, 4}}));
  EXPECT_THAT(error_of("{% set x %}{% generation %}{% endgeneration %}{% endset %}"),
              HasSubstr("generation"));
}

TEST(Jinja, StrftimeNow) {
  EXPECT_EQ(render("{{ strftime_now('%%') }}"), "%");
  EXPECT_EQ(render("{{ strftime_now('%Y') | length }}"), "4");
}

TEST(Jinja, JsonNumbersKeepTheirKind) {
  EXPECT_EQ(render("{{ x }} {{ x | tojson }}", R"({"x": [1, 1.0, -0.0, 1e300, 9223372036854775807, true]})"),
            "[1, 1.0, -0.0, 1e+300, 9223372036854775807, True] "
            "[1, 1.0, -0.0, 1e+300, 9223372036854775807, true]");
  EXPECT_THAT(error_of("", R"({"x": 9223372036854775808})"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("", "{\"x\": " + std::string(100, '[')), HasSubstr("deeper"));
  EXPECT_THAT(error_of("", "{\"x\": 1"), HasSubstr("not valid JSON"));
}

// Templates that need excessive time or memory end with an error soon.
TEST(Jinja, Bombs) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string deep_parentheses = "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}";
  const std::string deep_not = [] {
    std::string s = "{{ ";
    for (int i = 0; i < 5000; ++i) s += "not ";
    return s + "1 }}";
  }();
  const std::string long_sum = [] {
    std::string s = "{{ 1";
    for (int i = 0; i < 50'000; ++i) s += "+1";
    return s + " }}";
  }();
  const std::string many_ifs = [] {
    std::string s;
    for (int i = 0; i < 5000; ++i) s += "{% if 1 %}";
    return s;
  }();
  const std::pair<std::string, const char*> bombs[] = {
      {deep_parentheses, "too deep"},
      {deep_not, "too deep"},
      {long_sum, "too deep"},
      {many_ifs, "too deep"},
      {"{{ " + std::string(5000, '-') + "1 }}", "too deep"},
      {"{{ x" +
           [] {
             std::string s;
             for (int i = 0; i < 5000; ++i) s += "[0]";
             return s;
           }() +
           " }}",
       "too deep"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deep"},
      {"{% macro f(x) %}{{ f([x]) }}{% endmacro %}{{ f(1) }}", "too deep"},
      {"{% set n = namespace(x=1) %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}", "too deep"},
      {"{% set n = namespace(x=1) %}{% for i in range(1000) %}{% set n.x = {'a': n.x} %}{% endfor %}",
       "too deep"},
      {"{% set n = namespace(x=(1,)) %}{% for i in range(90) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ n.x "
       "}}",
       "too"},
      {"{% set n = namespace(x=(1,)) %}{% for i in range(90) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ "
       "{n.x: 1} }}",
       "too large"},
      {"{% set n = namespace(x=(1,)) %}{% for i in range(90) %}{% set n.x = (n.x, n.x) %}{% endfor %}"
       "{{ n.x == n.x }}",
       "too many steps"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x | "
       "tojson }}",
       "too"},
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "too"},
      {"{{ 'x' * 1000000000000 }}", "memory"},
      {"{{ [1] * 1000000000000 }}", "memory"},
      {"{{ '%1000000000d' % 1 }}", "width"},
      {"{{ '{:1000000000d}'.format(1) }}", "width"},
      {"{{ 'x'.center(100000000000) }}", "memory"},
      {"{{ 'x' | indent(100000000000) }}", "width"},
      {"{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
       "memory"},
      {"{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x.replace('x', 'xx') %}{% "
       "endfor %}",
       "memory"},
      {"{% set x = 'a' * 9000000 %}{% set y = 'a' * 4000000 ~ 'b' %}{{ y in x }}", "too many steps"},
      {"{% set x = 'a' * 60000000 %}{% for i in range(100) %}{{ x }}{% endfor %}", "too much text"},
      {"{% set n = namespace(x=[]) %}{% for i in range(100000) %}{% set n.x = n.x + [i] %}{% endfor %}",
       "too"},
      {"{{ range(0, 9223372036854775807) }}", "Range too big"},
      {"{{ 2 ** 2 ** 64 }}", "64 bits"},
      {"{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
      {"{{ -(-9223372036854775807 - 1) }}", "64 bits"},
      {"{% for i in x recursive %}{{ loop(x) }}{% endfor %}", "too deep"},
      {"{% set n = namespace() %}{% set n.n = n %}{{ n }}", "too deep"},
  };
  for (const auto& [text, part] : bombs)
    EXPECT_THAT(error_of(text, R"({"x": [1]})"), HasSubstr(part)) << text.substr(0, 200);
  EXPECT_EQ(render("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(render("{{ 1 ** 9223372036854775807 }}{{ (-1) ** 9223372036854775807 }}"), "1-1");
  EXPECT_EQ(render("{{ [1, 2, 3][::-9223372036854775807] }}{{ 'abc'[::9223372036854775807] }}"), "[3]a");
  // None takes longer than a second or two (several with a sanitizer).
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60 * test::kTimeFactor));
}

// A namespace that contains itself, a macro that holds its frame: the address sanitizer finds no leak.
TEST(Jinja, ReferenceCyclesDontLeak) {
  EXPECT_EQ(
      render("{% set n = namespace() %}{% set n.n = [n] %}{% macro m() %}{{ n is defined }}{% endmacro %}"
             "{% set n.m = m %}{{ n.m() }}{% for i in [1] %}{% set n.l = loop %}{% endfor %}{{ n.l.index }}"),
      "True1");
}

// A long conversation is within the limits.
TEST(Jinja, LongInputs) {
  json messages = json::array();
  for (int i = 0; i < 5000; ++i)
    messages.push_back({{"role", i % 2 ? "a" : "b"}, {"content", std::string(200, 'x')}});
  const std::string out = render(
      "{% set n = namespace(x='') %}{% for m in messages %}{% set n.x = n.x + m.content | trim %}{% endfor %}"
      "{{ n.x | length }}",
      json{{"messages", messages}}.dump());
  EXPECT_EQ(out, "1000000");
}

// Mutated templates: text or an error, never a crash or a hang.
TEST(Jinja, Fuzz) {
  std::vector<std::string> seeds;
  for (const char* name : {"llama3.1", "qwen3", "mistral-v3", "typed-tools", "deepseek", "gemma3"})
    seeds.push_back(test::slurp(kFolder + name + ".jinja"));
  std::istringstream lines(test::slurp(kFolder + "jinja.jsonl"));
  std::string all;
  for (std::string line; std::getline(lines, line);)
    all += json::parse(line)["template"].get<std::string>() + "\n";
  seeds.push_back(all.substr(0, 8000));
  const json chats = json::parse(test::slurp(kFolder + "conversations.json"));
  const std::string variables = json{
      {"messages", chats["conversations"]["called"]},
      {"tools", chats["tools"]},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      {"eos_token", "</s>"}}.dump();
  static constexpr const char* kPieces[] = {
      "{{",     "}}",       "{%",     "%}",     "{#",         "#}",        "-%}",    "{%-",
      "(",      ")",        "[",      "]",      "{",          "}",         "|",      "'",
      "\"",     "\\",       ".",      ",",      "~",          " if ",      " else ", " for ",
      " in ",   " is ",     " not ",  "endif",  "endfor",     "set ",      "loop",   "messages",
      "[::-1]", "**",       "//",     "0",      "9999999999", "\n",        "\r",     "é",
      "\xFF",   "| tojson", "| list", "| sort", "| map('x')", "namespace("};
  std::mt19937 random(7);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int rendered = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0:
          text.insert(at, kPieces[below(std::size(kPieces))]);
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text = text.substr(0, at) + text.substr(std::min(text.size(), at + below(200)));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(random());
      }
    }
    const auto [code, message] = test::failure_of([&] {
      render(text, variables);
      ++rendered;
    });
    EXPECT_TRUE(code == ExitCode::ok || code == ExitCode::contents) << message;
  }
  EXPECT_GT(rendered, 100);  // some mutations are still valid
}

}  // namespace
}  // namespace redco::jinja
