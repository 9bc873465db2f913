// Errors of one rank pass, wherever the stream is cut into pieces.
#include "launch/rank_errors.h"

#include <gtest/gtest.h>

namespace redco {
namespace {

std::string heard(const std::string& stream, std::size_t piece) {
  OneVoice v;
  std::string out;
  for (std::size_t at = 0; at < stream.size(); at += piece)
    out += v.feed(std::string_view(stream).substr(at, piece));
  return out + v.flush();
}

TEST(OneVoice, OnlyErrorsOfTheFirstRankPass) {
  const std::string stream = "warning: a\n" + marked("error: one\ntwo\n", 3) + "half\rwhole\n" +
                             marked("error: one\ntwo", 0) + marked("more", 3) + "end";
  for (const std::size_t piece : {1, 2, 3, 7, 1000})
    EXPECT_EQ(heard(stream, piece), "warning: a\nerror: one\ntwo\nhalf\rwhole\nmore\nend") << piece;
}

TEST(OneVoice, LinesOfTwoRanksMayAlternate) {
  const std::string a = marked("a1\na2", 1), b = marked("b1\nb2", 2);
  const auto cut = [](const std::string& s) { return s.find('\n') + 1; };
  EXPECT_EQ(heard(a.substr(0, cut(a)) + b.substr(0, cut(b)) + a.substr(cut(a)) + b.substr(cut(b)), 5),
            "a1\na2\n");
}

// mpirun ends the ranks that are left after a rank was killed.
TEST(OneVoice, AnEndByASignalIsNoError) {
  OneVoice v;
  EXPECT_EQ(v.feed(marked_end("stopped by SIGTERM", 2) + "a\n" + marked_end("stopped by SIGINT", 0)), "a\n");
  EXPECT_FALSE(v.heard());
  EXPECT_EQ(v.end_text(), "stopped by SIGTERM\n");
  EXPECT_EQ(v.feed(marked("error: b", 1)), "error: b\n");
}

TEST(OneVoice, TextWithoutAValidMarkPassesUnchanged) {
  for (const std::string text : {"\x1e\n",
                                 "\x1e"
                                 "12\n",
                                 "\x1ex\x1f"
                                 "y\n",
                                 "\x1e-1\x1f"
                                 "y\n",
                                 "a\x1e"
                                 "0\x1f"
                                 "b\n",
                                 "\x1e"
                                 "99999999999\x1f"
                                 "y\n"})
    EXPECT_EQ(heard(text, 1), text);
  OneVoice v;
  EXPECT_FALSE(v.heard());
  EXPECT_EQ(v.feed("text"), "text");
  EXPECT_EQ(v.feed("\n" + marked("cut", 5).substr(0, 4)), "\n");
  EXPECT_EQ(v.flush(), "c");
  EXPECT_TRUE(v.heard());
}

}  // namespace
}  // namespace redco
