// The page that compares runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "report/chart.h"
#include "report/page.h"
#include "report/page_testing.h"
#include "report/report.h"

namespace redco::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Comparison : public PageTest {
 protected:
  // A run of 30 steps whose evaluation loss is least after step 20.
  void add_run(const std::string& name, double learning_rate, double best) {
    std::string metrics;
    for (i64 s = 1; s <= 30; ++s) {
      metrics += line(s, 4 - 0.1 * static_cast<double>(s));
      if (s % 10 == 0)
        metrics +=
            json({{"step", s}, {"eval_loss", s == 20 ? best : 3.5}, {"eval_f1", 4 - best}}).dump() + "\n";
    }
    write(name + "/metrics.jsonl", metrics);
    write(name + "/config.resolved.yaml", "pipeline: lm\nworkdir: " + name +
                                              "\ntrain:\n  learning_rate: " + std::to_string(learning_rate) +
                                              "\n  max_steps: 30\ndata: {train: [x]}\n");
    write(name + "/history.jsonl", event({{"event", "start"}, {"step", 0}, {"total_steps", 30}}) +
                                       event({{"event", "finished"}, {"step", 30}}));
  }
  std::string page(const std::vector<std::string>& names) {
    std::vector<ReportRequest> requests;
    for (const std::string& n : names) requests.push_back({.workdir = dir_ / n, .running = "", .now = 1.7e9});
    skipped_.clear();
    std::string p = make_comparison(requests, skipped_);
    check_page(p);
    return p;
  }
  std::vector<std::string> skipped_;
};

TEST_F(Comparison, ShowsSettingsThatDifferAndBestMetrics) {
  add_run("a", 0.001, 2.125);
  add_run("b", 0.002, 2.5);
  const std::string p = page({"a", "b/"});
  EXPECT_THAT(p, AllOf(HasSubstr("2 runs compared"), HasSubstr("<code>train.learning_rate</code>"),
                       HasSubstr("<code>0.001000</code>"), HasSubstr("<code>0.002000</code>")));
  // Equal settings and the workdir are not listed.
  EXPECT_THAT(p, AllOf(Not(HasSubstr("train.max_steps")), Not(HasSubstr("<code>workdir")),
                       Not(HasSubstr("data.train"))));
  EXPECT_THAT(p,
              AllOf(HasSubstr("best evaluation loss"), HasSubstr("30 of 30"), HasSubstr(">finished</span>")));
  // The better of both is marked, less for the loss and more for F1.
  EXPECT_THAT(p, AllOf(HasSubstr("<td class=\"n won\">2.125<small>step 20</small>"),
                       HasSubstr("<td class=\"n\">2.500<small>step 20</small>"),
                       HasSubstr("<td class=\"n won\">1.875<small>step 10</small>")));
  // One color per run, in every chart and in the table.
  for (const char* title : {"Loss, training", "Loss, evaluation", "Learning rate"}) {
    const std::string c = chart_of(p, title);
    EXPECT_EQ(count(c, "<path class=\"line k0 d0\""), 1) << title;
    EXPECT_EQ(count(c, "<path class=\"line k1 d0\""), 1) << title;
    EXPECT_EQ(count(c, "class=\"key k"), 2) << title;
  }
  EXPECT_GE(count(p, "key k0 d0"), 5);
}

TEST_F(Comparison, SkipsOtherFoldersAndNamesWhatIsDamaged) {
  add_run("a", 0.001, 2);
  add_run("b", 0.001, 2);
  write("b/plan.json", "{");
  write("other/x", "y");
  const std::string p = page({"a", "other", "b", "nowhere"});
  EXPECT_THAT(skipped_, ElementsAre(dir_ / "other", dir_ / "nowhere"));
  EXPECT_THAT(p, AllOf(HasSubstr("2 runs compared"), HasSubstr("plan.json: expected a JSON object")));
  write("b/config.resolved.yaml", "a: [<b>");
  EXPECT_THAT(page({"a", "b"}), HasSubstr("config.resolved.yaml:1"));
  EXPECT_THROW(page({"other", "nowhere"}), UsageError);
}

TEST_F(Comparison, ManyRunsShareOneLegendAndColorsRepeatWithOtherDashes) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) {
    names.push_back("run" + std::to_string(i));
    add_run(names.back(), 0.001 * i, 2 + 0.01 * i);
  }
  const std::string p = page(names), c = chart_of(p, "Loss, training");
  EXPECT_EQ(count(c, "<path class=\"line"), 24);
  EXPECT_EQ(count(c, "class=\"key"), 0);
  EXPECT_EQ(count(c, "line k3 d"), 3);
  EXPECT_THAT(p, AllOf(HasSubstr("class=\"legend\""), HasSubstr("The first 24 of 30 runs have curves.")));
  EXPECT_EQ(count(p, "class=\"badge finished\""), 30);
}

// --- colors ---

using Vector = std::array<double, 3>;

Vector linear(const std::string& hex) {
  Vector v;
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(hex.substr(2 * i, 2), nullptr, 16) / 255.0;
    v[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return v;
}
Vector times(const std::array<Vector, 3>& m, const Vector& v) {
  Vector out{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) out[i] += m[i][k] * v[k];
  return out;
}
// Ottosson 2020.
Vector oklab(const Vector& rgb) {
  Vector lms = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                       {0.2119034982, 0.6806995451, 0.1073969566},
                       {0.0883024619, 0.2817188376, 0.6299787005}}},
                     rgb);
  for (double& x : lms) x = std::cbrt(std::max(0.0, x));
  return times({{{0.2104542553, 0.7936177850, -0.0040720468},
                 {1.9779984951, -2.4285922050, 0.4505937099},
                 {0.0259040371, 0.7827717662, -0.8086757660}}},
               lms);
}
double luminance(const std::string& hex) {
  const Vector v = linear(hex);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
}

// The color of --NAME in the style sheet, in its light or its dark half, written out with six digits.
std::string color(const std::string& name, bool dark) {
  const std::string css = kReportStyle;
  const std::size_t half = dark ? css.find("prefers-color-scheme: dark") : 0;
  const std::size_t at = css.find("--" + name + ": #", half) + name.size() + 5;
  const std::string hex = css.substr(at, css.find(';', at) - at);
  if (hex.size() == 6) return hex;
  return {hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]};
}

// Machado, Oliveira and Fernandes 2009, severity 1. A difference of 0.02 in OKLab can just be seen; 0.1 tells
// thin lines apart. A contrast of 3 is WCAG's least for graphics.
TEST(ReportColors, AreDistinctForColorBlindReaders) {
  const std::array<std::array<Vector, 3>, 3> sights = {
      {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
       {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
       {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}}};
  for (const bool dark : {false, true}) {
    const double card = luminance(color("card", dark));
    std::vector<std::string> all;
    for (std::size_t i = 0; i < kChartColors; ++i) all.push_back(color("c" + std::to_string(i), dark));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double l = luminance(all[i]);
      EXPECT_GE((std::max(l, card) + 0.05) / (std::min(l, card) + 0.05), 2.99) << all[i];
      for (std::size_t k = 0; k < i; ++k)
        for (const auto& sight : sights) {
          const Vector a = oklab(times(sight, linear(all[i]))), b = oklab(times(sight, linear(all[k])));
          EXPECT_GE(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), 0.1) << all[i] << " " << all[k];
        }
    }
  }
}

}  // namespace
}  // namespace redco::test
