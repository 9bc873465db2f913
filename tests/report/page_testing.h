// A workdir that a test fills, and checks that hold for every page.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/types.h"
#include "support/temp_dir.h"

namespace redco::test {

using nlohmann::json;

class PageTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    spill(path, text);
  }
  // Well-formed: every element that is opened is closed in order; attributes are quoted; nothing is loaded
  // from anywhere; the points of each chart are JSON.
  static void check_page(const std::string& p) {
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
    for (const char* outside : {"http://", "https://", "@import", "url("})
      EXPECT_THAT(p, testing::Not(testing::HasSubstr(outside)));
    // Images are in the page itself.
    EXPECT_EQ(count(p, "src="), count(p, "<img src=\"data:image/png;base64,"));
  }
  static int count(const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
    return n;
  }
  // The figure with that title.
  static std::string chart_of(const std::string& page, const std::string& title) {
    const std::size_t at = page.find("<figcaption><b>" + title + "</b>");
    return at == std::string::npos ? "" : page.substr(at, page.find("</figure>", at) - at);
  }

  TempDir dir_{TempDir::in_memory};
};

inline std::string line(i64 step, double loss) {
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

// A line of history.jsonl.
inline std::string event(json e) {
  if (!e.contains("time")) e["time"] = 1.7e9;
  return e.dump() + "\n";
}

}  // namespace redco::test
