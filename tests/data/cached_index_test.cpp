// Indexes are found by the contents of the data files; the memo of the contents' hashes.
#include "data/index/cached_index.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/syscalls.h"
#include "data/index/content_hash.h"
#include "data/labelled/labelled_index.h"
#include "data/text/example_index.h"
#include "data/text/packing.h"
#include "data/text/token_index.h"
#include "support/error_text.h"
#include "support/temp_dir.h"
#include "tokenizers/tokenizer.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CachedIndexes : public ::testing::Test {
 protected:
  CachedIndexes() : bytes_(load_tokenizer("bytes")) { make_dirs(dir_ / "copy"); }
  ~CachedIndexes() override { sys::set_hook({}); }

  std::string cache() const { return dir_ / "cache"; }
  // Of a text, of examples with a bad line, of labelled rows with a bad one.
  std::string tokens(const std::string& file) const { return build_token_index({{file}}, *bytes_, cache()); }
  ExampleSource examples_of(const std::string& file) const { return {.paths = {file}, .skip_bad = true}; }
  std::string examples(const std::string& file) const {
    return build_example_index(examples_of(file), *bytes_, cache());
  }
  std::string labelled(const std::string& file) const {
    LabelledSource s;
    s.paths = {file};
    s.data.format = "tsv";
    s.data.skip_bad = true;
    s.tokenizer = bytes_.get();
    s.max_length = 16;
    s.classes = ClassNames({"no", "yes"});
    return build_labelled_index(s, cache());
  }

  test::TempDir dir_;
  std::unique_ptr<Tokenizer> bytes_;
};

const char* const kExamples = "{\"text\": \"one\"}\nnonsense\n{\"text\": \"two\"}\n";

// From now on files can't be created, as on a read-only file system.
void forbid_writing() {
  sys::set_hook([](const sys::Call& c) {
    const bool writes = (c.op == sys::Op::open && c.creates) || c.op == sys::Op::mkdir ||
                        c.op == sys::Op::rename || c.op == sys::Op::unlink || c.op == sys::Op::write;
    return writes ? sys::Verdict{sys::Verdict::fail, EROFS} : sys::Verdict{};
  });
}

TEST_F(CachedIndexes, CopiesOfAFileHaveTheSameIndex) {
  spill(dir_ / "a.txt", "some text");
  spill(dir_ / "a.jsonl", kExamples);
  spill(dir_ / "a.tsv", "text\tlabel\nx\tmaybe\nab\tno\n");
  const std::vector<std::string> built = {tokens(dir_ / "a.txt"), examples(dir_ / "a.jsonl"),
                                          labelled(dir_ / "a.tsv")};
  spill(dir_ / "copy/b.text", "some text");
  spill(dir_ / "copy/b.data", kExamples);
  spill(dir_ / "copy/b.table", "text\tlabel\nx\tmaybe\nab\tno\n");
  for (const char* name : {"b.text", "b.data", "b.table"}) {
    const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / "copy/" + name).c_str(), old, 0), 0);
  }
  std::vector<std::string> seen;
  const IndexObserver observer([&](const CachedIndex& i) {
    EXPECT_FALSE(i.built);
    EXPECT_EQ(i.bytes, file_size(i.path));
    seen.push_back(fmt::format("{} {} {}", i.examples, i.unit, i.tokens));
  });
  EXPECT_EQ(tokens(dir_ / "copy/b.text"), built[0]);
  EXPECT_EQ(examples(dir_ / "copy/b.data"), built[1]);
  EXPECT_EQ(labelled(dir_ / "copy/b.table"), built[2]);
  EXPECT_THAT(seen, ::testing::ElementsAre("1 document 10", "2 example 8", "1 example 2"));
}

TEST_F(CachedIndexes, MessagesNameTheFilesOfThisRun) {
  spill(dir_ / "a.jsonl", kExamples);
  spill(dir_ / "a.tsv", "text\tlabel\nx\tmaybe\nab\tno\n");
  const std::string path = examples(dir_ / "a.jsonl"), table = labelled(dir_ / "a.tsv");
  EXPECT_THAT(slurp(path), Not(HasSubstr("a.jsonl")));
  EXPECT_THAT(slurp(table), Not(HasSubstr("a.tsv")));
  const ExampleIndex index = ExampleIndex::open(path, {"copy/b.data"});
  EXPECT_EQ(index.where(index.entry(1)), "copy/b.data:3");
  EXPECT_THAT(index.bad_lines(), ::testing::StartsWith("copy/b.data:2: not JSON"));
  EXPECT_THAT(LabelledIndex::open(table, {"copy/b.table"}).first_bad(),
              ::testing::StartsWith("copy/b.table:2: the label 'maybe'"));
  const std::string too_long =
      error_text<ContentsError>([&] { build_rows(index, {.max_length = 2, .too_long = "error"}); });
  EXPECT_THAT(too_long, HasSubstr("copy/b.data:1: 4 tokens"));
  EXPECT_THAT(error_text<ContentsError>([&] { build_rows(index, {.max_length = 2, .too_long = "skip"}); }),
              HasSubstr("copy/b.data: no example remains"));
}

// The borders between files count, and so does their order.
TEST_F(CachedIndexes, FilesAreDistinctInTheirOrder) {
  spill(dir_ / "a.txt", "ab");
  spill(dir_ / "b.txt", "c");
  spill(dir_ / "copy/a.txt", "a");
  spill(dir_ / "copy/b.txt", "bc");
  const auto build = [&](std::vector<std::string> files) {
    return build_token_index({std::move(files)}, *bytes_, cache());
  };
  const std::string path = build({dir_ / "a.txt", dir_ / "b.txt"});
  EXPECT_NE(build({dir_ / "b.txt", dir_ / "a.txt"}), path);
  EXPECT_NE(build({dir_ / "copy/a.txt", dir_ / "copy/b.txt"}), path);
  EXPECT_NE(build({dir_ / "a.txt"}), path);
}

TEST_F(CachedIndexes, TheMemoSavesReadingAndNoMore) {
  const std::string file = dir_ / "a.txt", memo = cache() + "/" + kMemoName;
  spill(file, "some text");
  const auto hash = [&] { return content_hashes({file}, cache())[0]; };
  const Hash128 first = hash128("some text"), second = hash128("some tixt");
  // The file is too young to be remembered.
  EXPECT_EQ(hash().hash, first);
  EXPECT_FALSE(exists(memo));
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(1000 * kMemoAge) + 100));
  EXPECT_FALSE(hash().remembered);
  EXPECT_TRUE(hash().remembered);
  EXPECT_EQ(hash().hash, first);

  // Damage, truncation, an entry that isn't one.
  const std::string whole = slurp(memo);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    spill(memo, damaged);
    const ContentHash h = hash();
    EXPECT_FALSE(h.remembered) << at;
    EXPECT_EQ(h.hash, first) << at;
    spill(memo, whole.substr(0, at));
    EXPECT_FALSE(hash().remembered) << at;
    EXPECT_EQ(slurp(memo), whole) << at;
  }
  const std::string nonsense = "nonsense\n";
  spill(memo, "redco content hashes 1 " + hex64(hash64(nonsense)) + "\n" + nonsense);
  EXPECT_FALSE(hash().remembered);
  remove_file(memo);
  EXPECT_FALSE(hash().remembered);
  EXPECT_TRUE(hash().remembered);

  // A memo that can't be read or written costs only time.
  remove_file(memo);
  forbid_writing();
  EXPECT_EQ(hash().hash, first);
  sys::set_hook({});
  EXPECT_FALSE(exists(memo));
  EXPECT_FALSE(hash().remembered);
  sys::set_hook([](const sys::Call& c) {
    return c.op == sys::Op::read ? sys::Verdict{sys::Verdict::fail, EIO} : sys::Verdict{};
  });
  EXPECT_EQ(hash().hash, first);
  sys::set_hook({});

  // Another path of the same file is another entry; both are kept.
  ASSERT_EQ(::link(file.c_str(), (dir_ / "b.txt").c_str()), 0);
  ASSERT_EQ(::symlink(file.c_str(), (dir_ / "link.txt").c_str()), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(1000 * kMemoAge) + 100));
  EXPECT_FALSE(content_hashes({file, dir_ / "b.txt"}, cache())[1].remembered);
  for (const ContentHash& h : content_hashes({file, dir_ / "b.txt", dir_ / "link.txt"}, cache()))
    EXPECT_TRUE(h.remembered);

  // One byte differs, with the same size and modification time.
  struct stat st {};
  ASSERT_EQ(::stat(file.c_str(), &st), 0);
  const std::string before = tokens(file);
  spill(file, "some tixt");
  const timespec times[2] = {st.st_atim, st.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  EXPECT_FALSE(hash().remembered);
  EXPECT_EQ(hash().hash, second);
  EXPECT_NE(tokens(file), before);
}

TEST_F(CachedIndexes, SourcesAreRegularFiles) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_text<UsageError>([&] { tokens(dir_ / "pipe"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_text<UsageError>([&] { tokens(dir_ / "copy"); }), HasSubstr("is a folder"));
  EXPECT_THAT(error_text<UsageError>([&] { tokens(dir_ / "none"); }), HasSubstr("does not exist"));
}

TEST_F(CachedIndexes, AFileThatChangesDuringTheBuildIsAnError) {
  const std::string file = dir_ / "a.txt";
  spill(file, "some text");
  const SourceFiles files({file}, cache());
  files.check_unchanged(0);
  spill(dir_ / "b.txt", "some text");
  ASSERT_EQ(::rename((dir_ / "b.txt").c_str(), file.c_str()), 0);  // another file with the same contents
  files.check_unchanged(0);
  spill(file, "some tixt");
  EXPECT_THAT(error_text<ContentsError>([&] { files.check_unchanged(0); }),
              HasSubstr("changed while it was read"));
  remove_file(file);
  EXPECT_THROW(files.check_unchanged(0), ContentsError);
}

// Processes and threads that build the same index in parallel: each gets it, and at no moment is it
// incomplete.
TEST_F(CachedIndexes, ConcurrentBuilds) {
  const std::string file = dir_ / "a.jsonl";
  std::string lines;
  for (int k = 0; k < 20000; ++k) lines += fmt::format("{{\"text\": \"line {}\"}}\n", k);
  spill(file, lines);
  const std::string path = examples(file), bytes = slurp(path);
  for (int round = 0; round < 3; ++round) {
    remove_file(path);
    std::vector<pid_t> children;
    for (int k = 0; k < 3; ++k) {
      children.push_back(::fork());
      if (children.back() == 0) ::_exit(examples(file) == path && slurp(path) == bytes ? 0 : 1);
    }
    std::atomic<int> running = 2;
    std::vector<std::thread> threads;
    for (int k = 0; k < 2; ++k)
      threads.emplace_back([&] {
        EXPECT_EQ(examples(file), path);
        --running;
      });
    while (running > 0)
      if (exists(path)) EXPECT_EQ(slurp(path), bytes);
    for (std::thread& t : threads) t.join();
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    for (const std::string& name : list_dir(cache()))  // no temporary files
      EXPECT_THAT(name, AnyOf(file_name(path), kMemoName));
  }
}

TEST_F(CachedIndexes, AReadOnlyFolderWithTheIndexIsEnough) {
  const std::string file = dir_ / "a.jsonl";
  spill(file, kExamples);
  const std::string path = examples(file);
  const ExampleIndex index = ExampleIndex::open(path, {file});
  const std::string rows = build_rows(index, {.max_length = 8});
  forbid_writing();
  EXPECT_EQ(examples(file), path);
  EXPECT_EQ(build_rows(index, {.max_length = 8}), rows);
  // Without the index, or with a damaged one, the error names the setting.
  const auto refusal = AllOf(HasSubstr(cache()), HasSubstr("Read-only file system"), HasSubstr("data.cache"));
  EXPECT_THAT(error_text<UsageError>([&] { build_rows(index, {.max_length = 4}); }), refusal);
  sys::set_hook({});
  std::string damaged = slurp(path);
  damaged.back() ^= 1;
  spill(path, damaged);
  forbid_writing();
  EXPECT_THAT(error_text<UsageError>([&] { examples(file); }), refusal);
  EXPECT_THAT(error_text<UsageError>([&] { tokens(file); }), refusal);
}

}  // namespace
}  // namespace redco
