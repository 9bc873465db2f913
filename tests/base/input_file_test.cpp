#include "base/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/log.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::AnyOf;
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

// A frame with a checksum, as the program zstd writes it.
std::string zstded(const std::string& text, int level = 3) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> z(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(z.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(z.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(z.get(), out.data(), out.size(), text.data(), text.size()));
  return out;
}

// A whole file, unpacked. Throws ContentsError if it unpacks to more than max_bytes.
std::string read_unpacked(const std::string& path, std::size_t max_bytes) {
  InputFile file = InputFile::open(path);
  std::string out;
  char chunk[1 << 15];
  while (const std::size_t n = file.read(chunk, sizeof chunk)) {
    out.append(chunk, n);
    if (out.size() > max_bytes) throw ContentsError("{}: more than {} bytes", path, max_bytes);
  }
  return out;
}

using std::string_literals::operator""s;

// A frame that decoders ignore; `number` from 0 to 15.
std::string skippable(int number, const std::string& bytes) {
  return static_cast<char>(0x50 + number) + "\x2A\x4D\x18"s + static_cast<char>(bytes.size()) + "\0\0\0"s +
         bytes;
}

// A frame with the text "a" and this descriptor of its window: 8 * (log2 - 10) + eighths.
std::string frame_of_window(int descriptor) {
  return "\x28\xB5\x2F\xFD\0"s + static_cast<char>(descriptor) + "\x09\0\0a"s;
}

class InputFiles : public testing::Test {
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
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("redco_input_file_test_" + std::to_string(getpid()));
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

TEST_F(InputFiles, LinesOfPlainAndCompressedFilesAreEqual) {
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
  EXPECT_EQ(lines(write("a.txt.zst", zstded(text))), expected);
  EXPECT_EQ(lines(write("renamed", zstded(text))), expected);
  EXPECT_TRUE(InputFile::open(write("renamed", zstded(text))).is_compressed());
  EXPECT_FALSE(InputFile::open(write("a.txt", text)).is_compressed());
  EXPECT_TRUE(InputFile::open(write("renamed", gzipped(text))).is_compressed());
  EXPECT_EQ(lines(write("e", "")), std::vector<std::string>{});
  EXPECT_EQ(lines(write("e", "\n\n")), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(lines(write("e", "\r\n\r")), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(lines(write("e.gz", gzipped(""))), std::vector<std::string>{});
  EXPECT_EQ(lines(write("e.zst", zstded(""))), std::vector<std::string>{});
}

TEST_F(InputFiles, SeveralMembersAndPaddingAreOneText) {
  EXPECT_EQ(read_unpacked(write("x.gz", gzipped("one ") + gzipped("") + gzipped("two")), 100), "one two");
  EXPECT_EQ(read_unpacked(write("x.gz", gzipped("one") + std::string(100000, '\0')), 100), "one");
}

TEST_F(InputFiles, EveryTruncationIsAnError) {
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

TEST_F(InputFiles, AFlippedBitIsAnErrorOrChangesNothing) {
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

TEST_F(InputFiles, TrailingBytesAreAnError) {
  EXPECT_THAT(damage(gzipped("a") + "junk"), HasSubstr("follow the end"));
  EXPECT_THAT(damage(gzipped("a") + std::string(10, '\0') + gzipped("b")), HasSubstr("follow the end"));
  EXPECT_THAT(damage(gzipped("a") + "\x1f\x8b garbage garbage"), HasSubstr("damaged gzip file"));
  EXPECT_THAT(damage("plain text"), HasSubstr("named .gz, but its first bytes are not gzip's"));
  EXPECT_THAT(damage(""), HasSubstr("named .gz, but it is empty"));
}

TEST_F(InputFiles, AnUnpackingBombCostsNoMemory) {
  // 64 MB of zeros in at most 64 KB, 50 times over.
  const std::string zeros(64 << 20, '\0');
  for (const auto& [name, member] :
       {std::pair("bomb.gz", gzipped(zeros, 9)), std::pair("bomb.zst", zstded(zeros))}) {
    ASSERT_LT(member.size(), 100000u);
    std::string bytes;
    for (int i = 0; i < 50; ++i) bytes += member;
    const std::string path = write(name, bytes);
    EXPECT_THROW(read_unpacked(path, 1 << 20), ContentsError);
    std::string line;
    LineReader r(path, 1 << 20);
    try {
      r.next(line);
      ADD_FAILURE() << "no line end in sight, and yet a line";
    } catch (const ContentsError& e) {
      EXPECT_THAT(e.what(), HasSubstr(std::string(name) + ":1: the line is longer than 1.00 MiB"));
    }
    EXPECT_LT(line.capacity(), std::size_t{4} << 20);
  }
}

TEST_F(InputFiles, SeveralZstdFramesAreOneText) {
  EXPECT_EQ(read_unpacked(write("x.zst", zstded("one ") + zstded("") + zstded("two")), 100), "one two");
  EXPECT_EQ(read_unpacked(write("x.zst", skippable(0, "note") + zstded("one ") + skippable(15, "") +
                                             zstded("two") + skippable(7, std::string(200, 'x'))),
                          100),
            "one two");
  EXPECT_EQ(read_unpacked(write("x.zst", skippable(3, "only this")), 100), "");
}

TEST_F(InputFiles, ZstdIsReadInPiecesOfAnySize) {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i * i) + ' ';
  const std::string path = write("x.zst", zstded(text) + zstded(text));
  for (const std::size_t n : {1, 7, 4096, 1 << 20}) {
    InputFile f = InputFile::open(path);
    std::string all, piece(n, '\0');
    while (const std::size_t got = f.read(piece.data(), n)) all.append(piece, 0, got);
    EXPECT_TRUE(all == text + text) << n;
    EXPECT_EQ(f.position(), all.size());
    EXPECT_EQ(f.stored_position(), std::filesystem::file_size(path));
  }
}

TEST_F(InputFiles, EveryTruncationOfZstdIsAnError) {
  const std::string first = skippable(1, "note") + zstded("some text that is packed\nin two lines\n");
  const std::string bytes = first + zstded("and a second frame");
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    if (n == first.size() || n == skippable(1, "note").size()) continue;  // complete files
    EXPECT_THAT(damage(bytes.substr(0, n), "x.zst"), HasSubstr("x.zst: ")) << n;
  }
  EXPECT_THAT(damage(bytes.substr(0, bytes.size() - 1), "x.zst"),
              AllOf(HasSubstr("damaged zstd file at byte " + std::to_string(bytes.size() - 1)),
                    HasSubstr("it ends too early; check that it was copied or written completely")));
}

TEST_F(InputFiles, AFlippedBitOfZstdIsAnErrorOrChangesNothing) {
  const std::string text = "some text that is packed, some text that is packed\n";
  const std::string bytes = zstded(text);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string bad = bytes;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << i % 8));
    try {
      EXPECT_EQ(read_unpacked(write("x.zst", bad), 1 << 20), text) << i;
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, bytes.size() * 8 - 8);  // a reserved bit or two do not count
}

TEST_F(InputFiles, RandomZstdBytesAreErrors) {
  std::mt19937 random(5);
  const std::string good = zstded(std::string(3000, 'a') + "some text, some text") + zstded("more");
  int refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string bytes = k % 2 ? good : good.substr(0, 4);
    if (k % 2 == 0)
      for (int n = static_cast<int>(random() % 60); n > 0; --n) bytes += static_cast<char>(random());
    for (int m = static_cast<int>(random() % 4); m >= 0 && k % 2; --m)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      read_unpacked(write("x", bytes), 1 << 20);
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST_F(InputFiles, TrailingBytesOfZstdAreAnError) {
  for (const std::string& tail : {"junk"s, "x"s, "\0"s, "\x28\xB5\x2F\x00"s, "\x1f\x8b\x08"s})
    EXPECT_THAT(damage(zstded("a") + tail, "x.zst"), HasSubstr("bytes that are not zstd data follow the end"))
        << tail;
  EXPECT_THAT(damage(zstded("a") + "\x28", "x.zst"), HasSubstr("it ends too early"));
  EXPECT_THAT(damage(zstded("a") + "\x28\xB5\x2F\xFD garbage", "x.zst"), HasSubstr("damaged zstd file"));
  EXPECT_THAT(damage("plain text", "x.zst"), HasSubstr("named .zst, but its first bytes are not zstd's"));
  EXPECT_THAT(damage(gzipped("a"), "x.zst"), HasSubstr("named .zst, but its first bytes are not zstd's"));
  EXPECT_THAT(damage(zstded("a"), "x.gz"), HasSubstr("named .gz, but its first bytes are not gzip's"));
  EXPECT_THAT(damage("", "x.zst"), HasSubstr("named .zst, but it is empty"));
}

TEST_F(InputFiles, AZstdWindowOfMoreThan128MiBIsAnError) {
  EXPECT_EQ(read_unpacked(write("x.zst", frame_of_window(8 * (27 - 10))), 100), "a");
  for (const int descriptor : {8 * (27 - 10) + 1, 8 * (28 - 10), 8 * (31 - 10), 0xFF})
    EXPECT_THAT(damage(frame_of_window(descriptor), "x.zst"),
                AnyOf(HasSubstr("needs a window of more than 128 MiB, expected at most --long=27"),
                      HasSubstr("damaged zstd file")))
        << descriptor;
  EXPECT_THAT(damage(zstded("a") + frame_of_window(8 * (31 - 10)), "x.zst"), HasSubstr("more than 128 MiB"));
  // A frame that names dictionary 7.
  EXPECT_THAT(damage("\x28\xB5\x2F\xFD\x01\x58\x07\x09\0\0a"s, "x.zst"),
              HasSubstr("compressed with a dictionary, which redco does not have"));
}

TEST_F(InputFiles, NamesWithoutTheCompression) {
  EXPECT_EQ(name_unpacked("Data/A.JSONL.GZ"), "data/a.jsonl");
  EXPECT_EQ(name_unpacked("a.txt.zst"), "a.txt");
  EXPECT_EQ(name_unpacked("a.txt"), "a.txt");
  EXPECT_EQ(name_unpacked(".gz"), "");
}

TEST_F(InputFiles, MissingFilesAndFoldersAreUsageErrors) {
  EXPECT_THROW(InputFile::open((folder_ / "none").string()), UsageError);
  EXPECT_THROW(InputFile::open(folder_.string()), UsageError);
}

TEST_F(InputFiles, PositionsCountUnpackedAndStoredBytes) {
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

TEST_F(InputFiles, TextHasNoByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(lines(write("a", mark + "one\n" + mark + "two\n")),
            (std::vector<std::string>{"one", mark + "two"}));
  EXPECT_EQ(lines(write("b.gz", gzipped(mark + "one"))), std::vector<std::string>{"one"});
  EXPECT_EQ(lines(write("b.zst", zstded(mark + "one"))), std::vector<std::string>{"one"});
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

TEST_F(InputFiles, WideEncodingsAreErrorsWithTheCommandThatConverts) {
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

TEST_F(InputFiles, CarriageReturnsAreMentionedOncePerFile) {
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
