// Parts of pages that tests make from the registries. REDCO_UPDATE_DOCS=1 build/tests/test_commands
// --gtest_filter=*Generated* writes them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/temp_dir.h"

namespace redco::testing {

// The text between two marks of a page, which REDCO_UPDATE_DOCS writes.
inline void expect_in_page(const std::string& page, const std::string& name, const std::string& table) {
  const std::string path = REDCO_SOURCE_DIR "/" + page,
                    begin = "<!-- " + name + ": from the registries -->\n",
                    end = "<!-- end of " + name + " -->\n", text = test::slurp(path);
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != text.npos && to != text.npos && from < to) << path << ": " << begin;
  const std::size_t first = from + begin.size();
  if (std::getenv("REDCO_UPDATE_DOCS"))
    test::spill(path, text.substr(0, first) + "\n" + table + "\n" + text.substr(to));
  else
    EXPECT_EQ(text.substr(first, to - first), "\n" + table + "\n")
        << "run REDCO_UPDATE_DOCS=1 build/tests/test_commands --gtest_filter=*Generated*";
}

}  // namespace redco::testing
