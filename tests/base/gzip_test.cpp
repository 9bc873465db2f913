#include "base/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/log.h"

namespace redco {
namespace {

using testing::HasSubstr;

std::string gzipped(const std::string& text, int level = 6) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class Gzip : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string damage(const std::string& bytes, const std::string& name = "x.gz") {
    try {
      read_unpacked(write(name, bytes), 1 << 20);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::contents) << e.what();
      return e.what();
    }
    return "";
  }
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("redco_gzip_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

std::vector<std::string> lines(const std::string& path, std::size_t max_line = LineReader::kMaxLine) {
  LineReader r(path, max_line);
  std::vector<std::string> all;
  std::string line;
  while (r.next(line)) {
    all.push_back(line);
    EXPECT_EQ(r.line_number(), static_cast<i64>(all.size()));
    EXPECT_EQ(r.where(), path + ":" + std::to_string(all.size()));
  }
  EXPECT_FALSE(r.next(line));
  return all;
}

TEST_F(Gzip, LinesOfPlainAndGzippedFilesAreEqual) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 20000; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i % 37), 'x') + std::to_string(i));
    text += expected.back() + (i % 3 ? "\n" : "\r\n");
  }
  expected.push_back("no end");
  text += "no end";
  EXPECT_EQ(lines(write("a.txt", text)), expected);
  EXPECT_EQ(lines(write("a.txt.gz", gzipped(text))), expected);
  EXPECT_EQ(lines(write("renamed", gzipped(text))), expected);
  EXPECT_TRUE(InputFile::open(write("renamed", gzipped(text))).is_gzip());
  EXPECT_EQ(lines(write("e", "")), std::vector<std::string>{});
  EXPECT_EQ(lines(write("e", "\n\n")), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(lines(write("e", "\r\n\r")), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(lines(write("e.gz", gzipped(""))), std::vector<std::string>{});
}

TEST_F(Gzip, SeveralMembersAndPaddingAreOneText) {
  EXPECT_EQ(read_unpacked(write("x.gz", gzipped("one ") + gzipped("") + gzipped("two")), 100), "one two");
  EXPECT_EQ(read_unpacked(write("x.gz", gzipped("one") + std::string(100000, '\0')), 100), "one");
}

TEST_F(Gzip, EveryTruncationIsAnError) {
  const std::string bytes =
      gzipped("some text that is packed\nin two lines\n") + gzipped("and a second member");
  const std::size_t first = gzipped("some text that is packed\nin two lines\n").size();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    if (n == first) continue;  // the first member is a complete file
    EXPECT_THAT(damage(bytes.substr(0, n)), HasSubstr("x.gz: ")) << n;
  }
  EXPECT_THAT(
      damage(bytes.substr(0, bytes.size() - 1)),
      HasSubstr("at byte " + std::to_string(bytes.size() - 1) + " (57 B unpacked): it ends too early"));
}

TEST_F(Gzip, AFlippedBitIsAnErrorOrChangesNothing) {
  const std::string text = "some text that is packed, some text that is packed\n";
  const std::string bytes = gzipped(text);
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size() * 2; ++i) {
    std::string bad = bytes;
    bad[i / 2] = static_cast<char>(bad[i / 2] ^ (i % 2 ? 0x40 : 0x01));
    // The checksum does not cover time, system and level in the header; these do not change the text.
    try {
      EXPECT_EQ(read_unpacked(write("x.gz", bad), 1 << 20), text) << i;
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, static_cast<int>(bytes.size() - 10) * 2 - 4);
}

TEST_F(Gzip, TrailingBytesAreAnError) {
  EXPECT_THAT(damage(gzipped("a") + "junk"), HasSubstr("follow the end"));
  EXPECT_THAT(damage(gzipped("a") + std::string(10, '\0') + gzipped("b")), HasSubstr("follow the end"));
  EXPECT_THAT(damage(gzipped("a") + "\x1f\x8b garbage garbage"), HasSubstr("damaged gzip file"));
  EXPECT_THAT(damage("plain text"), HasSubstr("named .gz, but its first bytes are not gzip's"));
  EXPECT_THAT(damage(""), HasSubstr("named .gz, but it is empty"));
}

TEST_F(Gzip, AnUnpackingBombCostsNoMemory) {
  // 64 MB of zeros in 64 KB, 50 times over.
  const std::string member = gzipped(std::string(64 << 20, '\0'), 9);
  ASSERT_LT(member.size(), 100000u);
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += member;
  const std::string path = write("bomb.gz", bytes);
  EXPECT_THROW(read_unpacked(path, 1 << 20), ContentsError);
  std::string line;
  LineReader r(path, 1 << 20);
  try {
    r.next(line);
    ADD_FAILURE() << "no line end in sight, and yet a line";
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("bomb.gz:1: the line is longer than 1.00 MiB"));
  }
  EXPECT_LT(line.capacity(), std::size_t{4} << 20);
}

TEST_F(Gzip, MissingFilesAndFoldersAreUsageErrors) {
  EXPECT_THROW(InputFile::open((folder_ / "none").string()), UsageError);
  EXPECT_THROW(InputFile::open(folder_.string()), UsageError);
}

TEST_F(Gzip, PositionsCountUnpackedAndStoredBytes) {
  const std::string path = write("x.gz", gzipped(std::string(100000, 'a')));
  InputFile f = InputFile::open(path);
  char buffer[1000];
  EXPECT_EQ(f.read(buffer, 1000), 1000u);
  EXPECT_EQ(f.position(), 1000u);
  while (f.read(buffer, 1000)) {
  }
  EXPECT_EQ(f.position(), 100000u);
  EXPECT_EQ(f.stored_position(), std::filesystem::file_size(path));
}

TEST_F(Gzip, TextHasNoByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(lines(write("a", mark + "one\n" + mark + "two\n")),
            (std::vector<std::string>{"one", mark + "two"}));
  EXPECT_EQ(lines(write("b.gz", gzipped(mark + "one"))), std::vector<std::string>{"one"});
  EXPECT_EQ(lines(write("c", mark)), std::vector<std::string>{});
  EXPECT_EQ(lines(write("d", "\xEF\xBB")), std::vector<std::string>{"\xEF\xBB"});
  EXPECT_EQ(lines(write("e", "")), std::vector<std::string>{});
  InputFile file = InputFile::open_text(write("f", mark + "abc"));
  EXPECT_EQ(file.position(), 3u);  // of the bytes in the file
  char c;
  EXPECT_EQ(file.read(&c, 1), 1u);
  EXPECT_EQ(c, 'a');
  EXPECT_EQ(file.position(), 4u);
}

TEST_F(Gzip, WideEncodingsAreErrorsWithTheCommandThatConverts) {
  using std::string_literals::operator""s;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xFF\xFEh\0i\0"s, "UTF-16"},    {"\xFE\xFF\0h\0i"s, "UTF-16"},    {"\xFF\xFE\0\0h\0\0\0"s, "UTF-32"},
      {"h\0e\0l\0l\0o\0"s, "UTF-16LE"}, {"\0h\0e\0l\0l\0o"s, "UTF-16BE"},
  };
  for (const auto& [bytes, encoding] : cases)
    for (const bool gzip : {false, true}) {
      const std::string path = write(gzip ? "t.gz" : "t", gzip ? gzipped(bytes) : bytes);
      try {
        lines(path);
        ADD_FAILURE() << encoding;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ExitCode::contents);
        EXPECT_EQ(e.what(), path + ": the file is " + encoding +
                                ", expected UTF-8. Convert it with: iconv -f " + encoding + " -t UTF-8");
      }
    }
  // Zero bytes alone do not make UTF-16.
  for (const std::string& bytes : {"a\0b\0"s, "\0\0\0\0\0\0\0\0"s, "text with a \0 in it"s})
    EXPECT_EQ(lines(write("t", bytes)), std::vector<std::string>{bytes});
}

TEST_F(Gzip, CarriageReturnsAreMentionedOncePerFile) {
  const std::string log = write("log", ""), dos = write("dos", "a\r\nb\r\n"),
                    unix = write("unix", "a\nb\r\n");
  set_log_file(log);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(lines(dos), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(lines(unix), (std::vector<std::string>{"a", "b"}));
  }
  set_log_file("");
  const std::vector<std::string> said = lines(log);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr(dos + ": the lines end in CRLF"));
}

}  // namespace
}  // namespace redco
