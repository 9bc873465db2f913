// The page about one run, for workdirs that are whole, cut or damaged.
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/html.h"
#include "report/page_testing.h"
#include "report/series.h"

namespace redco::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Report : public PageTest {
 protected:
  std::string page(const std::string& running = "") {
    std::string p = make_report({.workdir = dir_.path(), .running = running, .now = 1.7e9});
    check_page(p);
    return p;
  }
};

// Images are shown as a grid, above the other texts of their rows. Any other text is escaped.
TEST_F(Report, ShowsImagesAsAGrid) {
  const std::string uri = "data:image/png;base64,iVBORw0KGgo=";
  const std::string evil = R"(data:image/png;base64,\"><script>alert(1)</script>)";
  write("metrics.jsonl", line(1, 2));
  write("eval_outputs/step-00000002.jsonl",
        R"({"id":17,"caption":"a <red> circle","prediction":")" + uri + "\"}\n" + R"({"id":18,"caption":")" +
            evil + R"(","prediction":")" + uri + std::string(5000, 'A') + "\"}\n");
  const std::string p = page();
  EXPECT_THAT(p, HasSubstr("<figure><img src=\"" + uri +
                           "\" alt=\"a &lt;red&gt; circle\"/><figcaption>a &lt;red&gt; "
                           "circle</figcaption></figure>"));
  EXPECT_THAT(p, HasSubstr(uri + std::string(5000, 'A') + "\""));  // an image is not cut
  EXPECT_THAT(p, HasSubstr("img-src data:"));
  EXPECT_THAT(p, Not(HasSubstr("<script>alert")));
  // A list of texts that only look like images stays a table.
  write("eval_outputs/step-00000002.jsonl", R"({"id":1,"prediction":")" + evil + "\"}\n");
  EXPECT_THAT(page(), AllOf(Not(HasSubstr("<figure><img")), Not(HasSubstr("<script>alert"))));
}

TEST_F(Report, ShowsWhatThereIs) {
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
                           "12.3 k",
                           "2.125"})
    EXPECT_THAT(p, HasSubstr(part));
  EXPECT_THAT(p, Not(HasSubstr("[1,2]")));  // token ids are not for people
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
              HasSubstr("metrics.jsonl: 3 lines are not a JSON object with a step; the first is line 2"));
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
  EXPECT_THAT(p, AllOf(HasSubstr("plan.json: expected a JSON object"),
                       HasSubstr("environment.json: expected a JSON object"), HasSubstr("a: 1"),
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

// Each state has its badge, and one line that says why.
TEST_F(Report, ShowsTheEndOfTheRun) {
  write("metrics.jsonl", line(1, 3) + line(7, 2));
  const std::string start = event({{"event", "start"}, {"step", 0}, {"total_steps", 20}});
  const auto with = [&](const json& e) {
    write("history.jsonl", start + event(e));
    return page();
  };
  EXPECT_THAT(with({{"event", "finished"}, {"step", 20}}),
              AllOf(HasSubstr(">finished</span>"), HasSubstr("finished after step 20 ")));
  EXPECT_THAT(with({{"event", "finished"}, {"step", 12}, {"reason", "early stopping"}}),
              HasSubstr("finished after step 12 of 20 (early stopping)"));
  EXPECT_THAT(with({{"event", "stopped"}, {"step", 7}, {"reason", "SIGTERM"}}),
              AllOf(HasSubstr(">stopped</span>"),
                    HasSubstr("stopped by SIGTERM after step 7 of 20; the same command resumes it")));
  EXPECT_THAT(with({{"event", "failed"}, {"code", 6}, {"reason", "[train] step 8: <not finite>\nline 2"}}),
              AllOf(HasSubstr(">failed</span>"), HasSubstr("failed with exit code 6"),
                    HasSubstr("<pre class=\"error\">[train] step 8: &lt;not finite&gt;\nline 2</pre>")));
  write("history.jsonl", start);
  EXPECT_THAT(page(), AllOf(HasSubstr(">killed</span>"), HasSubstr("ended without a record")));
  EXPECT_THAT(
      page("process 7 on node1"),
      AllOf(HasSubstr(">running</span>"), HasSubstr("in use by process 7 on node1"), HasSubstr("of 20")));
  write("history.jsonl", "nonsense\n" + start + "{\"event\": \"sta");
  EXPECT_THAT(page(), AllOf(HasSubstr(">killed</span>"), HasSubstr("history.jsonl: 1 line is not an event")));
}

TEST_F(Report, MarksResumesOnTheCurves) {
  std::string metrics;
  for (i64 s = 1; s <= 20; ++s) metrics += line(s, 4 - 0.1 * static_cast<double>(s));
  write("metrics.jsonl", metrics);
  EXPECT_THAT(page(), Not(HasSubstr("class=\"mark\"")));
  std::string history;
  for (const i64 step : {0, 5, 15})
    history += event({{"event", "start"}, {"step", step}, {"total_steps", 20}});
  write("history.jsonl", history);
  const std::string p = page();
  EXPECT_THAT(p, AllOf(HasSubstr("resumed from step 5"), HasSubstr("resumed from step 15"),
                       Not(HasSubstr("resumed from step 0"))));
  EXPECT_EQ(count(p, "class=\"mark\""), 2 * count(p, "<svg"));
}

TEST_F(Report, ListsTheStartsOfARun) {
  write("metrics.jsonl", line(1, 4) + line(2, 3));
  write("history.jsonl",
        event({{"event", "start"}, {"step", 0}, {"start", 1}, {"time", 1000}, {"hosts", "a:1, b:1"}}));
  EXPECT_THAT(page(), Not(HasSubstr("lost steps")));
  write(
      "history.jsonl",
      event({{"event", "start"}, {"step", 0}, {"start", 1}, {"time", 1000}, {"hosts", "a:1, b:1"}}) +
          event(
              {{"event", "failed"}, {"step", 23}, {"time", 1060}, {"code", 5}, {"reason", "host b <lost>"}}) +
          event({{"event", "restart"},
                 {"step", 23},
                 {"time", 1060},
                 {"code", 5},
                 {"lost_steps", 3},
                 {"hosts", "b"}}) +
          event({{"event", "start"}, {"step", 21}, {"start", 2}, {"time", 1090}, {"hosts", "a:2"}}) +
          event({{"event", "finished"}, {"step", 40}, {"time", 1200}}));
  // The second start continued from a buddy checkpoint that was newer than the checkpoint of step 20.
  EXPECT_THAT(page(), AllOf(HasSubstr("2 starts, 2 steps made again, 0.5 minutes until restarts"),
                            HasSubstr("a:1, b:1"), HasSubstr("host b &lt;lost&gt;"), HasSubstr("a:2")));
}

TEST_F(Report, OnePointIsANumberAndNoChart) {
  write("metrics.jsonl", line(3, 2.5) + "{\"step\":3,\"eval_loss\":2.25}\n");
  const std::string p = page();
  EXPECT_EQ(count(p, "<svg"), 0);
  EXPECT_THAT(p, AllOf(HasSubstr("<span>Loss, training</span><b>2.500</b><small>step 3</small>"),
                       HasSubstr("<span>Loss, evaluation</span><b>2.250</b><small>step 3</small>")));
  // Two points are a curve; the one evaluation is a point in it.
  write("metrics.jsonl", line(3, 2.5) + line(4, 2) + "{\"step\":4,\"eval_loss\":2.25}\n");
  const std::string two = page();
  EXPECT_EQ(count(chart_of(two, "Loss"), "<circle"), 1);
  EXPECT_THAT(two, Not(HasSubstr("<span>Loss, ")));
}

TEST_F(Report, EvaluationsArePointsOnTheLearningCurve) {
  std::string metrics;
  for (i64 s = 1; s <= 30; ++s) {
    metrics += line(s, 4 - 0.1 * static_cast<double>(s));
    if (s % 10 == 0)
      metrics +=
          json({{"step", s}, {"eval_loss", 2 + (s == 20 ? 0.0 : 1.0)}, {"eval_accuracy", 0.5}}).dump() + "\n";
  }
  write("metrics.jsonl", metrics);
  const std::string p = page(), loss = chart_of(p, "Loss");
  EXPECT_EQ(count(loss, "<circle class=\"k1 d0\""), 3);
  EXPECT_EQ(count(loss, "<path class=\"line"), 2);
  EXPECT_THAT(loss, AllOf(HasSubstr(">training</span>"), HasSubstr(">evaluation</span>")));
  EXPECT_EQ(count(chart_of(p, "Evaluation accuracy"), "<circle"), 3);
  EXPECT_THAT(p, HasSubstr("<span>best evaluation loss</span><b>2.000</b><small>step 20</small>"));
}

TEST_F(Report, ShowsTheNewestConfusionMatrix) {
  write("metrics.jsonl", line(1, 3));
  const auto details = [](const json& counts) {
    return json({{"confusion_matrix", {{"classes", {"cat", "<dog>"}}, {"counts", counts}}}}).dump();
  };
  write("eval_outputs/step-00000010.details.json", details({{77, 0}, {0, 0}}));
  write("eval_outputs/step-00000020.details.json", details({{30, 10}, {5, 15}}));
  const std::string p = page();
  EXPECT_THAT(p,
              AllOf(HasSubstr("evaluation after step 20"), HasSubstr("&lt;dog&gt;"), Not(HasSubstr(">77<"))));
  // Rows are true classes: recall 30/40 and 15/20, precision 30/35 and 15/25.
  EXPECT_THAT(p, AllOf(HasSubstr("<td class=\"n hit\" style=\"--p:0.75\">30</td><td class=\"n\" "
                                 "style=\"--p:0.25\">10</td><td class=\"n edge\">75%</td>"),
                       HasSubstr("<td class=\"n edge\">86%</td><td class=\"n edge\">60%</td>")));
  for (const json& bad :
       {json({{1, 2}}), json({{1, 2}, {3}}), json({{1, -2}, {3, 4}}), json({{1, 2}, {3, "x"}}), json(7)}) {
    write("eval_outputs/step-00000020.details.json", details(bad));
    EXPECT_THAT(page(), AllOf(HasSubstr("class=\"warn\""), HasSubstr("a row and a column per class"))) << bad;
  }
}

TEST_F(Report, RefusesAFolderThatIsNoWorkdir) {
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
  EXPECT_EQ(s.least().value, 0);
  EXPECT_EQ(s.least().step, 0);
  EXPECT_EQ(s.most().value, 50);
  EXPECT_EQ(s.most().step, 4321);
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
  EXPECT_EQ(s.last().value, 9999 % 7);
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
