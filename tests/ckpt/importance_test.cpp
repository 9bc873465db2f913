#include "ckpt/importance.h"

#include <gtest/gtest.h>

namespace redco::ckpt {
namespace {

// Matrices with the same inputs share the coefficients, also when they are read.
TEST(Importance, BytesKeepAll) {
  const auto shared = std::make_shared<const gguf::ErrorFeedback>(std::vector<float>{2, 1, 1, 3}, i64{2});
  const Importances all = {{"a", {{2, 3}, shared}}, {"b", {{0.5F}, nullptr}}, {"c", {{2, 3}, shared}}};
  const std::string bytes = to_bytes(all);
  const auto read = importances_of_bytes(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ(read->at("b").squares, all.at("b").squares);
  EXPECT_FALSE(read->at("b").feedback);
  EXPECT_EQ(read->at("a").squares, all.at("a").squares);
  EXPECT_EQ(read->at("a").feedback->coefficients(), shared->coefficients());
  EXPECT_EQ(read->at("a").feedback, read->at("c").feedback);
}

TEST(Importance, OtherBytesAreNone) {
  const auto feedback = std::make_shared<const gguf::ErrorFeedback>(std::vector<float>{2, 1, 1, 3}, i64{2});
  const std::string bytes = to_bytes({{"a", {{2, 3}, feedback}}});
  for (const std::string& other :
       {std::string(), std::string("{}"), std::string("{"), bytes.substr(0, bytes.size() - 1), bytes + "x",
        bytes.substr(0, bytes.find('\n')), std::string(R"({"columns":[-5],"matrices":{}})") + "\n",
        std::string(R"({"columns":[],"matrices":{"a":{"squares":[1],"feedback":0}}})") + "\n"})
    EXPECT_FALSE(importances_of_bytes(other)) << other.substr(0, 60);
}

}  // namespace
}  // namespace redco::ckpt
