// Expected values: the scores of a Unigram model after `Tokenizer.from_str(...).to_str()` of Hugging Face's
// library. The first 14 differ from the nearest f64.
#include "tokenizers/load/hf_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace redco {
namespace {

TEST(HfNumber, EqualsSerdeJson) {
  const struct {
    const char* text;
    double value;
  } kCases[] = {
      {"-0.45715890107081325", -0x1.d4217684b2a11p-2},
      {"-6.45211041695877910053", -0x1.9cef6087c1356p+2},
      {"-14.6498401472745009472832760", -0x1.d4cb7d90857f6p+3},
      {"-0.11921923923368605", -0x1.e8526ed900be7p-4},
      {"9909421193789330.5", 0x1.19a487517bfcap+53},
      {"2.9019670421251865e-75", 0x1.50065b0b003bbp-248},
      {"-0.9569252450108381", -0x1.e9f21b1013a0dp-1},
      {"85724976982176194354.5", 0x1.296b1317fe49ap+66},
      {"-15.536328354553163", -0x1.f1299a14d7259p+3},
      {"2.3928750928261642e+98", 0x1.c01b4eb4237d6p+326},
      {"4.61697001528607e-179", 0x1.7f29ed6ed7a2ap-593},
      {"-11.8557527648599231627397784", -0x1.7b62539f511e4p+3},
      {"8.1859783692116445e-165", 0x1.e2b64c920770bp-546},
      {"5560424420618948266098727.5", 0x1.265dcd8ec46f4p+82},
      {"-3.5538262198e+15", -0x1.9405f4ad96b80p+51},
      {"-0.39259027283430958300", -0x1.92032f3a344d8p-2},
      {"-1.9912194231690272", -0x1.fdc08e5dabc3dp+0},
      {"-0.509019747153896", -0x1.049e3c7e169dcp-1},
      {"-3.2766546740072036", -0x1.a3696b9c92bfep+1},
      {"-8.671920472469736", -0x1.15805f5cd8a70p+3},
      {"-18.883927620572628", -0x1.2e249149e63fap+4},
      {"-8.469798463316483", -0x1.0f0896c974f8ap+3},
      {"-9.53590701551958", -0x1.312626782b506p+3},
      {"766488764435678912893.5", 0x1.4c6958f1c825ap+69},
  };
  int k = 0;
  for (const auto& c : kCases) {
    EXPECT_EQ(hf_number(c.text), c.value) << c.text;
    EXPECT_EQ(std::strtod(c.text, nullptr) != c.value, k++ < 14) << c.text;
  }
}

TEST(HfNumber, Edges) {
  EXPECT_EQ(hf_number("0.0"), 0);
  EXPECT_TRUE(std::signbit(hf_number("-0.0")));
  EXPECT_EQ(hf_number("-7"), -7);
  EXPECT_EQ(hf_number("1E+2"), 100);
  EXPECT_EQ(hf_number("1e-400"), 0);
  EXPECT_EQ(hf_number("0e999999999999999999999"), 0);
  EXPECT_TRUE(std::isinf(hf_number("1e999999999999999999999")));
  EXPECT_EQ(hf_number("1e-999999999999999999999"), 0);
}

}  // namespace
}  // namespace redco
