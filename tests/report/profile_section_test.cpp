// The section about a profile, for summaries that are whole, empty or damaged.
#include "report/profile_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/page_testing.h"
#include "report/report.h"

namespace redco::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSummary = "profile/summary.json";

// Three steps of two ranks: 40 ms a step.
json whole_summary() {
  return json::parse(R"({"first_step": 10, "n_steps": 3, "n_ranks": 2, "seconds": 0.12,
    "phases": [{"name": "backward", "seconds": 0.09, "longest": 0.096},
               {"name": "forward", "seconds": 0.03, "longest": 0.036}],
    "ops": [{"name": "linear", "phase": "forward", "scope": "mlp", "calls": 12, "seconds": 0.024,
             "flops": 600000000},
            {"name": "copy", "phase": "backward", "scope": "", "calls": 7, "seconds": 0.003, "flops": 0}],
    "kernels": [{"name": "matmul", "calls": 12, "seconds": 0.018}],
    "collectives": [{"name": "all_reduce", "axis": "mp", "phase": "forward", "calls": 6, "bytes": 7500000,
                     "seconds": 0.006, "longest": 0.009}],
    "memory_peak": 123456789})");
}

class ProfileSection : public PageTest {
 protected:
  std::string page() {
    std::string p = make_report({.workdir = dir_.path(), .now = 1.7e9});
    check_page(p);
    return p;
  }
  std::string page_of(const std::string& summary) {
    write("metrics.jsonl", line(1, 3) + line(20, 2));
    write(kSummary, summary);
    return page();
  }
  // "": the page has no such section.
  static std::string section(const std::string& p) {
    const std::size_t at = p.find("<section id=\"profile\">");
    return at == std::string::npos ? "" : p.substr(at, p.find("</section>", at) - at);
  }
};

TEST_F(ProfileSection, ShowsTheTimesOfOneStep) {
  json summary = whole_summary();
  summary["collectives"][0]["transfer"] = 0.015;
  const std::string p = page_of(summary.dump()), s = section(p);
  EXPECT_THAT(p, AllOf(HasSubstr("<a href=\"#profile\">Profile</a>"), Not(HasSubstr("class=\"warn\""))));
  EXPECT_THAT(s, AllOf(HasSubstr("Steps 10 to 12 on 2 ranks: 40.00 ms per step"), HasSubstr("118 MiB"),
                       HasSubstr("<code>profile/rank-N.json</code> open in ui.perfetto.dev")));
  // 0.09 s / 3 steps, 0.096 s / 3, 0.09 s of 0.12 s.
  EXPECT_THAT(
      s, HasSubstr("<span>backward</span><div class=\"bar k0\"><i style=\"width:75.0%\"></i></div></div>"
                   "</td><td class=\"n\">30.00</td><td class=\"n\">32.00</td><td class=\"n\">75.0%</td>"));
  // 12 calls, 0.024 s and 0.6 GFLOP in 3 steps.
  EXPECT_THAT(s, HasSubstr("<td>linear</td><td>forward</td><td>mlp</td><td class=\"n\">4</td><td "
                           "class=\"n\">8.000</td><td class=\"n\">20.0%</td><td class=\"n\">25.00</td>"));
  // An op without FLOPs has no speed.
  EXPECT_THAT(s, HasSubstr("<td>copy</td><td>backward</td><td></td><td class=\"n\">2.33</td><td "
                           "class=\"n\">1.000</td><td class=\"n\">2.5%</td><td class=\"n\"></td>"));
  EXPECT_THAT(s, HasSubstr("<td>matmul</td><td class=\"n\">4</td><td class=\"n\">6.000</td><td "
                           "class=\"n\">15.0%</td>"));
  // 7.5 MB in 3 steps.
  EXPECT_THAT(s, HasSubstr("<td>all_reduce</td><td>mp</td><td>forward</td><td class=\"n\">2</td><td "
                           "class=\"n\">2.500</td><td class=\"n\">5.000</td><td class=\"n\">2.000</td><td "
                           "class=\"n\">3.000</td>"));
  // Summaries of older versions have no transfers.
  EXPECT_THAT(section(page_of(whole_summary().dump())),
              HasSubstr("<td class=\"n\">2.500</td><td class=\"n\">2.000</td><td class=\"n\">2.000</td>"));
}

TEST_F(ProfileSection, OneStepOfOneRank) {
  json j = whole_summary();
  j["n_steps"] = j["n_ranks"] = 1;
  j["collectives"] = json::array();
  const std::string s = section(page_of(j.dump()));
  EXPECT_THAT(s, AllOf(HasSubstr("Step 10 on 1 rank: 120.0 ms per step,"), Not(HasSubstr("collective")),
                       Not(HasSubstr("slowest rank"))));
  j["phases"] = j["ops"] = j["kernels"] = json::array();
  EXPECT_THAT(section(page_of(j.dump())), AllOf(HasSubstr("Step 10"), Not(HasSubstr("<table"))));
}

TEST_F(ProfileSection, NoFileNoSection) {
  write("metrics.jsonl", line(1, 3));
  write("profile/rank-0.json", "{}");
  const std::string p = page();
  EXPECT_EQ(section(p), "");
  EXPECT_THAT(p, AllOf(Not(HasSubstr("href=\"#profile\"")), Not(HasSubstr("class=\"warn\""))));
}

TEST_F(ProfileSection, ShowsTheLongestOps) {
  json j = whole_summary();
  const json one = j["ops"][0];
  j["ops"] = json::array();
  for (int i = 0; i < 40; ++i) {  // the file's order does not matter
    j["ops"].push_back(one);
    j["ops"].back()["name"] = "op" + std::to_string(i) + "x";
    j["ops"].back()["seconds"] = 1e-4 * i;
  }
  const std::string s = section(page_of(j.dump()));
  EXPECT_THAT(s, AllOf(HasSubstr("the longest 15 of 40"), HasSubstr("op25x"), Not(HasSubstr("op24x"))));
  EXPECT_LT(s.find("op39x"), s.find("op38x"));
}

TEST_F(ProfileSection, ADamagedFileIsNamed) {
  const auto expect_problem = [&](const std::string& text, const std::string& problem) {
    const std::string p = page_of(text);
    EXPECT_EQ(section(p), "") << text;
    EXPECT_EQ(count(p, "class=\"warn\""), 1) << text;
    EXPECT_THAT(p,
                AllOf(HasSubstr("profile/summary.json: " + problem), HasSubstr("<section id=\"curves\">")));
  };
  for (const char* text : {"", "{", "[]", "7", "null", "\xff\xfe{}", "{\"first_step\": 1e999}"})
    expect_problem(text, "expected a JSON object");
  expect_problem("{}", "profile: the field &#39;first_step&#39; is missing");
  // Each field has to be there, with its type and in its range.
  const json good = whole_summary();
  const auto damage = [&](const std::string& where, const std::function<json&(json&)>& at) {
    json fields = good;
    for (const auto& [key, value] : at(fields).items()) {
      json j = good;
      at(j).erase(key);
      expect_problem(j.dump(), where + ": the field &#39;" + key + "&#39; is missing");
      for (const json& bad :
           {json(-1), json(-0.5), json(true), json(json::object()), json("<7>"), json(1e300)}) {
        if (value.is_string() && bad.is_string()) continue;
        j = good;
        at(j)[key] = bad;
        expect_problem(j.dump(), where + "." + key + ": ");
      }
    }
  };
  damage("profile", [](json& j) -> json& { return j; });
  damage("profile.phases[1]", [](json& j) -> json& { return j["phases"][1]; });
  damage("profile.ops[0]", [](json& j) -> json& { return j["ops"][0]; });
  damage("profile.kernels[0]", [](json& j) -> json& { return j["kernels"][0]; });
  damage("profile.collectives[0]", [](json& j) -> json& { return j["collectives"][0]; });
  for (const char* key : {"n_steps", "n_ranks"}) {
    json j = good;
    j[key] = 0;
    expect_problem(j.dump(), std::string("profile.") + key + ": found 0");
  }
  json j = good;
  j["ops"][1] = 3;
  expect_problem(j.dump(), "profile.ops[1]: found 3, expected an object");
  // A folder of that name.
  std::filesystem::remove(dir_ / kSummary);
  std::filesystem::create_directories(dir_ / kSummary);
  EXPECT_THAT(page(), AllOf(HasSubstr("class=\"warn\""), HasSubstr("summary.json")));
}

TEST_F(ProfileSection, HostileValuesGiveAPage) {
  json j = whole_summary();
  const std::string evil = "<script>alert(1)</script>\"'><img onerror=x>&\x01</td>";
  for (const char* list : {"phases", "ops", "kernels", "collectives"})
    for (auto& [key, value] : j[list][0].items())
      if (value.is_string()) value = evil + std::string(100000, 'x');
  std::string s = section(page_of(j.dump()));
  EXPECT_THAT(s, AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script>")), Not(HasSubstr("<img"))));
  EXPECT_LT(s.size(), 10'000u);
  // Extremes of the range, and no time at all.
  for (const double x : {0.0, 1e-300, 1e30}) {
    j = whole_summary();
    j["seconds"] = x;
    j["memory_peak"] = x;
    for (const char* list : {"phases", "ops", "kernels", "collectives"})
      for (auto& [key, value] : j[list][0].items())
        if (value.is_number()) value = key == "flops" ? 1e30 : x;
    s = section(page_of(j.dump()));
    EXPECT_THAT(s, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")), HasSubstr("<table")));
  }
  // Many entries give a small section.
  j = whole_summary();
  for (const char* list : {"phases", "ops", "kernels", "collectives"}) {
    const json one = j[list][0];
    for (int i = 0; i < 2000; ++i) j[list].push_back(one);
  }
  EXPECT_LT(section(page_of(j.dump())).size(), 40'000u);
  // Mutations: a section, or a line that names the file.
  const std::string text = whole_summary().dump();
  unsigned seed = 1;
  for (int i = 0; i < 500; ++i) {
    std::string changed = text;
    for (int k = 0; k < 1 + i % 3; ++k) {
      seed = seed * 1103515245u + 12345u;
      changed[(seed >> 8) % changed.size()] = static_cast<char>(seed >> 24);
    }
    const std::string p = page_of(changed);
    EXPECT_EQ(section(p).empty(), p.find("class=\"warn\"") != std::string::npos) << changed;
  }
}

}  // namespace
}  // namespace redco::test
