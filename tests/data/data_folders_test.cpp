#include "data/index/data_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/data_settings.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::spill;
using ::testing::ElementsAre;

TEST(DataFolders, FilesOfKnownFormatSortedByName) {
  const test::TempDir dir{test::TempDir::in_memory};
  for (const char* name : {"b.jsonl", "a.JSONL.zst", "c.ndjson.gz", ".hidden.jsonl", "README.md", "d.json"})
    spill(dir / name, "");
  std::filesystem::create_symlink(dir / "b.jsonl", dir / "link.jsonl");
  std::filesystem::create_symlink(dir / "nothing", dir / "lost.jsonl");
  FolderFiles found = files_of_folder(dir.path(), std::nullopt, false);
  EXPECT_THAT(found.files,
              ElementsAre(dir / "a.JSONL.zst", dir / "b.jsonl", dir / "c.ndjson.gz", dir / "link.jsonl"));
  EXPECT_EQ(found.format, "jsonl");
  EXPECT_EQ(found.other, "");
  EXPECT_EQ(found.skipped, 3);  // README.md, d.json and the dangling link
  EXPECT_FALSE(found.has_folders);
  std::filesystem::create_directory(dir / "below.jsonl");
  spill(dir / "below.jsonl/x.jsonl", "");
  spill(dir / "t.txt", "");
  found = files_of_folder(dir.path() + "/", std::nullopt, false);
  EXPECT_TRUE(found.has_folders);
  EXPECT_EQ(found.files.size(), 5u);
  EXPECT_EQ(found.other, dir / "t.txt");
  EXPECT_THAT(files_of_folder(dir.path(), "text", false).files, ElementsAre(dir / "t.txt"));
  EXPECT_EQ(files_of_folder(dir.path(), "text", false).other, "");
  EXPECT_TRUE(files_of_folder(dir.path(), "csv", false).files.empty());
  // JSON files are data only where no other data are.
  EXPECT_THAT(files_of_folder(dir.path(), "json", false).files, ElementsAre(dir / "d.json"));
  const test::TempDir only{test::TempDir::in_memory};
  for (const char* name : {"x.json", "README.md"}) spill(only / name, "");
  EXPECT_EQ(files_of_folder(only.path(), std::nullopt, false).format, "json");
}

std::vector<std::string> names_in(const std::string& folder, bool evaluation,
                                  const std::optional<std::string>& format = std::nullopt) {
  std::vector<std::string> out;
  for (const std::string& f : files_of_folder(folder, format, evaluation).files)
    out.push_back(f.substr(folder.size() + 1));
  return out;
}

// The layout of the Hugging Face Hub.
TEST(DataFolders, FoldersBelowAndSplits) {
  const test::TempDir dir{test::TempDir::in_memory};
  for (const char* folder : {"data", "data/.cache", "flat", "own", "dirs", "dirs/train", "dirs/test"})
    std::filesystem::create_directories(dir / folder);
  for (const char* name :
       {"README.md", "dataset_infos.json", "data/train-00000-of-00002.parquet", "data/.cache/x.parquet",
        "data/train-00001-of-00002.parquet", "data/test-00000-of-00001.parquet", "flat/squad_dev.json",
        "flat/squad_train.json", "flat/test.json", "own/data.csv", "own/test.csv", "dirs/train/a.jsonl",
        "dirs/test/a.jsonl"})
    spill(dir / name, "");
  const FolderFiles found = files_of_folder(dir / "data", std::nullopt, false);
  EXPECT_EQ(found.split, "train");
  EXPECT_EQ(found.other_splits, 1);
  EXPECT_FALSE(found.below);
  EXPECT_THAT(names_in(dir / "data", false),
              ElementsAre("train-00000-of-00002.parquet", "train-00001-of-00002.parquet"));
  EXPECT_THAT(names_in(dir / "data", true), ElementsAre("test-00000-of-00001.parquet"));
  EXPECT_THAT(names_in(dir / "flat", false), ElementsAre("squad_train.json"));
  EXPECT_THAT(names_in(dir / "flat", true), ElementsAre("squad_dev.json"));
  EXPECT_THAT(names_in(dir / "own", false), ElementsAre("data.csv"));
  EXPECT_THAT(names_in(dir / "dirs", false), ElementsAre("train/a.jsonl"));
  EXPECT_THAT(names_in(dir / "dirs", true), ElementsAre("test/a.jsonl"));
  EXPECT_TRUE(files_of_folder(dir / "dirs", std::nullopt, true).below);
  // A folder of one split is that split's, whatever it is used for.
  EXPECT_THAT(names_in(dir / "dirs/test", false), ElementsAre("a.jsonl"));
  EXPECT_THAT(names_in(dir.path(), false, "parquet"),
              ElementsAre("data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"));
  spill(dir / "own/train.csv", "");
  std::filesystem::remove(dir / "own/test.csv");
  EXPECT_THAT(names_in(dir / "own", false), ElementsAre("train.csv"));
  EXPECT_THAT(usage_error([&] { names_in(dir / "own", true); }),
              ::testing::HasSubstr("has no validation or test split, but files of no split, train"));
}

TEST(DataFolders, SplitsOfNames) {
  for (const auto& [name, split] : {std::pair("train-00000-of-00002.parquet", "train"),
                                    {"a/validation/x.csv", "validation"},
                                    {"SST2_Dev.tsv.gz", "validation"},
                                    {"eval.jsonl", "test"},
                                    {"train.txt", "train"},
                                    {"test_pilots.txt", ""},
                                    {"the_test_of_time.jsonl", ""},
                                    {"contest.jsonl", ""},
                                    {"1.jsonl", ""}})
    EXPECT_EQ(split_of(name), split) << name;
}

// save_to_disk of the library datasets.
TEST(DataFolders, SplitsOfImageFolders) {
  const test::TempDir dir(test::TempDir::in_memory);
  for (const char* folder : {"a/train", "a/val", "a/test", "b/train", "b/bus", "c/train"})
    std::filesystem::create_directories(dir / folder);
  EXPECT_EQ(folder_of_image_split(dir / "a", false), dir / "a/train");
  EXPECT_EQ(folder_of_image_split(dir / "a", true), dir / "a/val");
  EXPECT_EQ(folder_of_image_split(dir / "b", false), "");  // classes
  EXPECT_EQ(folder_of_image_split(dir / "c", true), "");
}

TEST(DataFolders, SavedDataSets) {
  const test::TempDir dir{test::TempDir::in_memory};
  for (const std::string folder : {"d", "d/train", "d/dev"})
    std::filesystem::create_directories(dir / folder);
  spill(dir / "d/dataset_dict.json", R"({"splits": ["train", "dev"]})");
  for (const std::string split : {"d/train", "d/dev"}) {
    for (const std::string name : {"cache-1a.arrow", "data-00000-of-00001.arrow", "dataset_info.json"})
      spill(dir / (split + "/" + name), "{}");
    spill(dir / (split + "/state.json"), R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  }
  EXPECT_THAT(names_in(dir / "d/train", false), ElementsAre("data-00000-of-00001.arrow"));
  EXPECT_THAT(names_in(dir / "d", false), ElementsAre("train/data-00000-of-00001.arrow"));
  EXPECT_THAT(names_in(dir / "d", true), ElementsAre("dev/data-00000-of-00001.arrow"));
  for (const auto& [text, what] :
       {std::pair(R"({"_data_files": [{"filename": "../x.arrow"}]})", "expected the names of files"),
        {R"({"_data_files": [1]})", "expected the names of files"},
        {R"({"_data_files": [{"filename": "x.arrow"}]})", "it names"},
        {"[", "expected a JSON object"}}) {
    spill(dir / "d/train/state.json", text);
    EXPECT_THAT(error_text<ContentsError>([&] { names_in(dir / "d", false); }), ::testing::HasSubstr(what));
  }
  spill(dir / "d/dataset_dict.json", R"({"splits": ["."]})");
  EXPECT_THAT(error_text<ContentsError>([&] { names_in(dir / "d", false); }),
              ::testing::HasSubstr("expected the names of files"));
}

TEST(DataFolders, FormatsByName) {
  for (const auto& [name, format] : {std::pair("a.txt", "text"),
                                     {"a.TXT.GZ", "text"},
                                     {"a.jsonl.zst", "jsonl"},
                                     {"a.ndjson", "jsonl"},
                                     {"a.tsv.zst", "tsv"},
                                     {"a.csv.gz", "csv"},
                                     {"builtin:chat", "jsonl"},
                                     {"a.json.gz", "json"},
                                     {"a.parquet", "parquet"},
                                     {"a-000001.tar", "webdataset"},
                                     {"a.conll.gz", "conll"},
                                     {"a.arrow", "arrow"},
                                     {"a.xlsx", ""},
                                     {"a.zst", ""}})
    EXPECT_EQ(format_by_name(name), format) << name;
  EXPECT_EQ(DataSettings{}.format_of({"a.jsonl.zst", "b.jsonl"}), "jsonl");
  EXPECT_EQ(DataSettings{}.format_of({"a.jsonl.zst", "b.txt"}), "text");
}

}  // namespace
}  // namespace redco
