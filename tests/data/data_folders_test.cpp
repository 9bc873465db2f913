#include "data/index/data_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/data_settings.h"
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
  FolderFiles found = files_of_folder(dir.path(), std::nullopt);
  EXPECT_THAT(found.files,
              ElementsAre(dir / "a.JSONL.zst", dir / "b.jsonl", dir / "c.ndjson.gz", dir / "link.jsonl"));
  EXPECT_EQ(found.format, "jsonl");
  EXPECT_EQ(found.other, "");
  EXPECT_EQ(found.skipped, 3);  // README.md, d.json and the dangling link
  EXPECT_FALSE(found.has_folders);
  std::filesystem::create_directory(dir / "below.jsonl");
  spill(dir / "below.jsonl/x.jsonl", "");
  spill(dir / "t.txt", "");
  found = files_of_folder(dir.path() + "/", std::nullopt);
  EXPECT_TRUE(found.has_folders);
  EXPECT_EQ(found.files.size(), 5u);
  EXPECT_EQ(found.other, dir / "t.txt");
  EXPECT_THAT(files_of_folder(dir.path(), "text").files, ElementsAre(dir / "t.txt"));
  EXPECT_EQ(files_of_folder(dir.path(), "text").other, "");
  EXPECT_TRUE(files_of_folder(dir.path(), "csv").files.empty());
  // JSON files are data only where no other data are.
  EXPECT_THAT(files_of_folder(dir.path(), "json").files, ElementsAre(dir / "d.json"));
  const test::TempDir only{test::TempDir::in_memory};
  for (const char* name : {"x.json", "README.md"}) spill(only / name, "");
  EXPECT_EQ(files_of_folder(only.path(), std::nullopt).format, "json");
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
                                     {"a.xlsx", ""},
                                     {"a.zst", ""}})
    EXPECT_EQ(format_by_name(name), format) << name;
  EXPECT_EQ(DataSettings{}.format_of({"a.jsonl.zst", "b.jsonl"}), "jsonl");
  EXPECT_EQ(DataSettings{}.format_of({"a.jsonl.zst", "b.txt"}), "text");
}

}  // namespace
}  // namespace redco
