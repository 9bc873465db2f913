// The report about a training run, for complete, damaged and hostile workdirs.
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/html.h"
#include "support/temp_dir.h"

namespace redco::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Report : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    spill(path, text);
  }
  std::string page(const std::string& running = "") {
    std::string p = make_report({.workdir = dir_.path(), .running = running, .now = 1.7e9});
    check(p);
    return p;
  }
  // Checks that the page is well-formed: elements are closed in order, attributes are quoted, nothing is
  // loaded from
  // elsewhere, and the points of each chart are JSON.
  static void check(const std::string& p) {
    EXPECT_EQ(p.rfind("<!doctype html>", 0), 0u);
    std::vector<std::string> open;
    for (std::size_t at = p.find('<'); at != std::string::npos; at = p.find('<', at + 1)) {
      const std::size_t end = p.find('>', at);
      ASSERT_NE(end, std::string::npos);
      const std::string tag = p.substr(at + 1, end - at - 1);
      if (tag[0] == '!') continue;
      const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" />", 1) - (tag[0] == '/'));
      if (tag[0] == '/') {
        ASSERT_FALSE(open.empty()) << tag;
        ASSERT_EQ(open.back(), name) << p.substr(at > 200 ? at - 200 : 0, 300);
        open.pop_back();
      } else if (tag.back() != '/' && name != "meta") {
        open.push_back(name);
        if (name == "script" || name == "style") {  // what is inside is no markup
          const std::size_t close = p.find("</" + name + ">", end);
          ASSERT_NE(close, std::string::npos);
          if (tag.find("application/json") != std::string::npos)
            EXPECT_TRUE(json::accept(p.substr(end + 1, close - end - 1)));
          at = close - 1;
        }
      }
    }
    EXPECT_TRUE(open.empty());
    for (const char* outside : {"http://", "https://", "src=", "@import", "url("})
      EXPECT_THAT(p, Not(HasSubstr(outside)));
  }
  TempDir dir_{TempDir::in_memory};
};

std::string line(i64 step, double loss) {
  return json{{"step", step},
              {"epoch", step / 10.0},
              {"loss", loss},
              {"learning_rate", 1e-3},
              {"grad_norm", 1},
              {"tokens_per_s", 12345.6},
              {"time", 1.7e9 + static_cast<double>(step)}}
             .dump() +
         "\n";
}

TEST_F(Report, ShowsAllParts) {
  std::string metrics;
  for (i64 s = 1; s <= 20; ++s) metrics += line(s, 4 - 0.1 * static_cast<double>(s));
  metrics += "{\"step\":20,\"eval_loss\":2.125,\"eval_perplexity\":8.37}\n";
  write("metrics.jsonl", metrics);
  write("config.resolved.yaml", "pipeline: lm\n");
  write("plan.json",
        R"({"model": "preset tiny", "n_parameters": 1234567, "mesh": {"dp": 2, "mp": 3}, "fits": true,
    "per_rank": {"parameters": 1048576, "total": 4194304}, "memory_limit": 8388608,
    "rules": [{"pattern": "(wte).weight", "spec": ["mp", null], "rule": "embedding", "tensors": 1}],
    "collectives": [{"kind": "all_reduce", "axis": "mp", "count": 4, "bytes": 2048, "where": "forward/mlp"}],
    "warnings": ["rank 5 idles"], "notes": []})");
  write("environment.json", "{\"host\": \"node1\", \"cores\": 8, \"memory_total\": 1073741824}");
  write("log.txt", "2026-11-21 10:00:00.000 info     [train] done\n");
  write("eval_outputs/step-00000010.jsonl", "{\"id\":0,\"prediction\":\"older\"}\n");
  write(
      "eval_outputs/step-00000020.jsonl",
      "{\"id\":0,\"prompt\":\"once\",\"prediction\":\"upon\",\"ids\":[1,2]}\n{\"id\":1,\"prompt\":\"a\"}\n");
  write("checkpoints/step-00000020/training/manifest.json", "{}");
  std::filesystem::create_directory_symlink("step-00000020", dir_ / "checkpoints/best-loss");
  const std::string p = page("process 7 on node1");
  for (const char* part : {"preset tiny",
                           "1.23 M",
                           "dp 2 x mp 3",
                           "(mp, None)",
                           "all_reduce",
                           "rank 5 idles",
                           "node1",
                           "1.00 GiB",
                           "process 7 on node1",
                           ">running<",
                           "pipeline: lm",
                           "[train] done",
                           "after step 20",
                           "upon",
                           "after step 10",
                           "older",
                           "step-00000020",
                           "best-loss",
                           "Evaluation perplexity",
                           "8.37",
                           "Learning rate",
                           "Gradient norm",
                           "Tokens per second",
                           "12.35 k",
                           "2.125"})
    EXPECT_THAT(p, HasSubstr(part));
  EXPECT_THAT(p, Not(HasSubstr("[1,2]")));  // token ids are not shown
  EXPECT_THAT(page(), HasSubstr(">not running<"));
}

TEST_F(Report, HostileTextIsEscaped) {
  const std::string evil = "<script>alert(1)</script>\"'><img onerror=x>&\x01\xff</pre></td>";
  const std::string quoted = json(evil).dump(-1, ' ', false, json::error_handler_t::ignore);
  write("eval_outputs/step-00000001.jsonl", "{\"id\":0," + quoted + ":" + quoted + "}\n");
  write("config.resolved.yaml", evil);
  write("log.txt", evil + "\n");
  write("metrics.jsonl", "{\"step\":1," + quoted + ":2.5,\"eval_" + quoted.substr(1) + ":3}\n");
  write("plan.json", "{\"model\":" + quoted + ",\"rules\":[{\"pattern\":" + quoted + "}],\"warnings\":[" +
                         quoted + ",1,{}],\"per_rank\":{\"total\":1e999}}");
  write("environment.json", "{" + quoted + ":" + quoted + "}");
  const std::string p = page(evil);
  EXPECT_THAT(p, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img")), Not(HasSubstr("\x01"))));
  EXPECT_THAT(p, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;"));
}

TEST_F(Report, ReadsAnIncompleteOrDamagedMetricsFile) {
  write("metrics.jsonl", line(1, 3) + line(2, 2) + "{\"step\":3,\"lo");
  std::string p = page();
  EXPECT_THAT(p, Not(HasSubstr("class=\"warn\"")));  // a run that is writing
  write(
      "metrics.jsonl",
      line(1, 3) + "nonsense\n[1]\n{\"step\":\"x\"}\n{\"step\":4,\"loss\":null,\"x\":\"y\"}\n" + line(5, 2));
  EXPECT_THAT(page(),
              HasSubstr("metrics.jsonl: 3 lines are not a JSON object with a step, the first is line 2"));
  // Extremes: one point, points without a range, huge numbers, many curves.
  std::string many = "{\"step\":1";
  for (int i = 0; i < 500; ++i) many += ",\"m" + std::to_string(i) + "\":" + std::to_string(i);
  for (const std::string& text :
       {line(1, 3), line(1, 3) + line(1, 3),
        std::string("{\"step\":1e15,\"loss\":1e199}\n{\"step\":-5,\"loss\":-1e199}\n"),
        std::string("{\"step\":1,\"loss\":1e300}\n"), many + "}\n", std::string(), std::string("\n\n"),
        std::string("{\"step\":0,\"loss\":0}\n{\"step\":0.5,\"loss\":1e-310}\n")}) {
    write("metrics.jsonl", text);
    p = page();
    EXPECT_THAT(p, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf,"))));
    EXPECT_LT(p.size(), 400'000u);
  }
}

TEST_F(Report, AHugeRunGivesASmallPage) {
  std::string metrics;
  for (i64 s = 1; s <= 100000; ++s)
    metrics += "{\"step\":" + std::to_string(s) + ",\"loss\":" +
               (s == 70007 ? "9"
                : s % 2    ? "3"
                           : "2") +
               "}\n";
  write("metrics.jsonl", metrics);
  const std::string p = page();
  EXPECT_LT(p.size(), 200'000u);
  EXPECT_THAT(p, HasSubstr("the band is their range"));
}

TEST_F(Report, OtherFilesMayBeDamaged) {
  write("plan.json", "{");
  write("environment.json", "[]");
  write("config.resolved.yaml", "a: 1\n");
  write("eval_outputs/step-00000001.jsonl", "no json\n{\"prediction\": \"x\"");
  write("eval_outputs/other.jsonl", "{}\n");
  write("checkpoints/step-00000003/x", "y");
  const std::string p = page();
  EXPECT_THAT(p, AllOf(HasSubstr("plan.json is not a JSON object"),
                       HasSubstr("environment.json is not a JSON object"), HasSubstr("a: 1"),
                       HasSubstr("step-00000003")));
  // Mutations of every file: no crash, always a page.
  const std::string plan =
      R"({"mesh":{"dp":1,"mp":"x"},"per_rank":{"total":-5,"base":1},"rules":[[],{"spec":[1,null]}],)"
      R"("collectives":[{"bytes":1e40,"count":-1}],"warnings":7,"n_parameters":"many"})";
  unsigned seed = 1;
  for (int i = 0; i < 150; ++i) {
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"plan.json", plan},
                                            {"environment.json", plan},
                                            {"metrics.jsonl", line(1, 3) + line(2, -3)},
                                            {"eval_outputs/step-00000001.jsonl", plan + "\n"},
                                            {"log.txt", plan}}) {
      std::string changed = text;
      for (int k = 0; k < 3; ++k) {
        seed = seed * 1103515245u + 12345u;
        changed[(seed >> 8) % changed.size()] = static_cast<char>(seed >> 24);
      }
      write(name, i == 0 ? text : changed);
    }
    page();
  }
}

TEST_F(Report, OtherFoldersAreRefused) {
  EXPECT_THROW(make_report({.workdir = dir_ / "nowhere"}), UsageError);
  EXPECT_THROW(make_report({.workdir = dir_.path()}), UsageError);
  write("file", "x");
  EXPECT_THROW(make_report({.workdir = dir_ / "file"}), UsageError);
}

TEST(Series, KeepsMeansAndExtremes) {
  Series s;
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double v = i == 4321 ? 50 : i % 7;
    s.add(i, v);
    sum += v;
  }
  EXPECT_LE(s.buckets().size(), Series::kMostBuckets);
  EXPECT_GE(s.buckets().size(), Series::kMostBuckets / 2);
  EXPECT_TRUE(s.sampled());
  EXPECT_EQ(s.least(), 0);
  EXPECT_EQ(s.most(), 50);
  double total = 0, last = -1;
  i64 n = 0;
  for (const auto& b : s.buckets()) {
    total += b.sum;
    n += b.n;
    EXPECT_EQ(b.first, last + 1);  // no step is lost
    last = b.last;
  }
  EXPECT_EQ(total, sum);
  EXPECT_EQ(n, 10000);
  EXPECT_EQ(s.last_step(), 9999);
}

TEST(Html, Escape) {
  EXPECT_EQ(escape("a<b>&\"'\n\t"), "a&lt;b&gt;&amp;&quot;&#39;\n\t");
  EXPECT_EQ(escape(std::string("\0\x1b\r", 3)), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(escape("\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x82"),
            "\xc3\xa9 \xf0\x9f\x98\x80 \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(escape("\xc0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace redco::test
