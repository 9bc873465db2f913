// Folders, archives and IDX files of images, valid and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "data/images/idx.h"
#include "data/images/image_folder.h"
#include "data/images/image_source.h"
#include "data/images/image_text.h"
#include "data/text/webdataset.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPng = test::slurp(std::string(REDCO_FIXTURES) + "/images/grey.png");  // 9 x 13

std::string le(u64 v, int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += static_cast<char>(v >> (8 * i));
  return s;
}

// A zip archive of uncompressed files; if `size` isn't negative, it is the first file's wrong size in the
// header.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files, i64 size = -1) {
  std::string out, directory;
  for (const auto& [name, bytes] : files) {
    const u64 crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const u64 n = size >= 0 && out.empty() ? static_cast<u64>(size) : bytes.size();
    const std::string common = le(0, 8) + le(crc, 4) + le(n, 4) + le(n, 4) + le(name.size(), 2) + le(0, 2);
    directory += "PK\1\2" + le(20, 2) + le(20, 2) + common + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) +
                 le(out.size(), 4) + name;
    out += "PK\3\4" + le(20, 2) + common + name + bytes;
  }
  const u64 at = out.size();
  return out + directory + "PK\5\6" + le(0, 4) + le(files.size(), 2) + le(files.size(), 2) +
         le(directory.size(), 4) + le(at, 4) + le(0, 2);
}

// Files in any folders, as a folder or as a zip.
std::string tree(const TempDir& dir, const std::vector<std::string>& names, bool zip) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& name : names) files.emplace_back(name, name.ends_with("txt") ? "text" : kPng);
  if (zip) {
    spill(dir / "a.zip", zip_of(files));
    return dir / "a.zip";
  }
  for (const auto& [name, bytes] : files) {
    std::filesystem::create_directories(std::filesystem::path(dir / ("a/" + name)).parent_path());
    spill(dir / ("a/" + name), bytes);
  }
  return dir / "a";
}

// A member of a tar archive.
std::string tar_of(const std::string& name, const std::string& bytes, char type = '0') {
  std::string h(512, '\0');
  h.replace(0, name.size(), name);
  h.replace(124, 11, fmt::format("{:011o}", bytes.size()));
  h[156] = type;
  h.replace(257, 5, "ustar");
  h.replace(148, 8, 8, ' ');
  i64 sum = 0;
  for (const char c : h) sum += static_cast<unsigned char>(c);
  h.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return h + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

// Texts and labels of a web data set are in the records; images are read from their places.
TEST(Webdataset, SamplesAreFilesOfOneKey) {
  const TempDir dir;
  const std::string name(120, 'n');  // longer than a header's
  const std::string tar = tar_of("a", "", '5') + tar_of("a/1.png", kPng) + tar_of("a/1.cls", "3\n") +
                          tar_of("././@LongLink", name + ".txt", 'L') + tar_of("nnn", "a text") +
                          tar_of("pax", "15 path=b.json\n", 'x') + tar_of("z", R"({"id": 7, "image": "x"})") +
                          tar_of("b.JPG", kPng) + tar_of("c.json", "[") + std::string(1024, '\0');
  spill(dir / "x.tar", tar);
  WebdatasetSamples samples(dir / "x.tar");
  std::string json;
  ASSERT_TRUE(samples.next(json));
  const auto first = nlohmann::json::parse(json);
  EXPECT_EQ(first, nlohmann::json({{"image", "x.tar@1024+" + std::to_string(kPng.size()) + ":a/1.png"},
                                   {"label", "3"},
                                   {"id", "a/1"}}));
  EXPECT_EQ(samples.where(), dir / "x.tar:a/1");
  ASSERT_TRUE(samples.next(json));
  EXPECT_EQ(nlohmann::json::parse(json),
            nlohmann::json({{"text", "a text"}, {"caption", "a text"}, {"id", name}}));
  ASSERT_TRUE(samples.next(json));
  const auto last = nlohmann::json::parse(json);
  EXPECT_EQ(last.at("id"), 7);
  ASSERT_TRUE(samples.next(json));
  EXPECT_THAT(samples.problem(), HasSubstr("c.json: not a JSON object"));
  EXPECT_FALSE(samples.next(json));

  const ImageSource source(std::nullopt);
  EXPECT_EQ(source.read(first.at("image"), dir.path()).width, 13);
  EXPECT_EQ(source.read(last.at("image"), dir.path()).width, 13);
  EXPECT_EQ(source.where(last.at("image"), "d"), "d/x.tar:b.JPG");
  for (const char* bad : {"x.tar@1+99999999:a", "x.tar@99999999999+8:a", "x.tar@0+8:a", "y.tar@0+8:a"})
    EXPECT_THROW(source.read(bad, dir.path()), Error) << bad;
  EXPECT_THROW(source.read("x.tar@0+9999999999:a", dir.path()), ContentsError);
  for (const char* path : {"x.tar@1:a", "x.tar@1+2", "x.tar@-1+2:a", "x.tar@1+x:a", "x@1+2:a"})
    EXPECT_FALSE(TarPlace::of(path)) << path;
}

// Any damage is an error or another sample, never a crash.
TEST(Webdataset, DamagedArchives) {
  const TempDir dir(TempDir::in_memory);
  const std::string tar =
      tar_of("1.txt", "a text") + tar_of("pax", "15 path=2.json\n", 'x') + tar_of("z", "{}");
  std::mt19937 random(7);
  int errors = 0;
  for (int k = 0; k < 300; ++k) {
    std::string bad = tar;
    if (k % 3 == 0) bad.resize(random() % bad.size());
    for (int i = 0; i < k % 4; ++i)
      if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
    spill(dir / "x.tar", bad);
    try {
      WebdatasetSamples samples(dir / "x.tar");
      for (std::string json; samples.next(json);) {
      }
    } catch (const ContentsError& e) {
      ++errors;
      EXPECT_THAT(e.what(), HasSubstr("x.tar"));
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(ImageFolder, ClassesAreFolders) {
  for (const bool zip : {false, true}) {
    const TempDir dir;
    const ImageFolder f = ImageFolder::open(tree(
        dir,
        {"dog/2.png", "cat/b.PNG", "cat/a.png", "cat/notes.txt", "cat/.hidden.png", "__MACOSX/cat/a.png"},
        zip));
    EXPECT_THAT(f.classes(), ElementsAre("cat", "dog"));
    ASSERT_EQ(f.files().size(), 3u);
    EXPECT_EQ(f.files()[0].name, "cat/a.png");
    EXPECT_EQ(f.files()[2].label, 1);
    EXPECT_EQ(f.count(0), 2);
    EXPECT_EQ(f.begin(1), 2);
    EXPECT_EQ(f.read(1), kPng);
    EXPECT_THAT(f.where(1), HasSubstr(zip ? "a.zip:cat/b.PNG" : "a/cat/b.PNG"));
    EXPECT_EQ(decode_image(f.read(0), f.where(0)).width, 13);
    EXPECT_THAT(f.ignored(), ::testing::MatchesRegex("; .*: 1 other file ignored, such as .*cat/notes.txt"));
  }
}

TEST(ImageFolder, ASingleTopFolderIsNotAClass) {
  const TempDir dir;
  const ImageFolder omniglot = ImageFolder::open(tree(
      dir,
      {"images/Greek/character01/1.png", "images/Greek/character02/1.png", "images/Latin/character01/1.png"},
      true));
  EXPECT_THAT(omniglot.classes(), ElementsAre("Greek/character01", "Greek/character02", "Latin/character01"));
  const TempDir one;
  EXPECT_THAT(ImageFolder::open(tree(one, {"cat/1.png", "cat/2.png"}, false)).classes(), ElementsAre("cat"));
}

TEST(ImageFolder, SplitsAreNotClasses) {
  const TempDir dir;
  const std::string both = tree(dir, {"images/train/cat/1.png", "images/test/cat/2.png"}, true);
  EXPECT_THAT(usage_error([&] { ImageFolder::open(both); }),
              HasSubstr("its folders are splits, such as test"));
  EXPECT_EQ(ImageFolder::open(both, true).files().size(), 2u);
}

TEST(ImageFolder, InvalidPathsAreErrors) {
  const TempDir dir;
  EXPECT_THAT(usage_error([&] { ImageFolder::open(dir / "none"); }), HasSubstr("none does not exist"));
  spill(dir / "x.zip", "PK nothing");
  EXPECT_THAT(error_text<ContentsError>([&] { ImageFolder::open(dir / "x.zip"); }),
              HasSubstr("x.zip: neither a folder nor a readable zip archive"));
  const TempDir empty, flat;
  EXPECT_THAT(error_text<ContentsError>([&] { ImageFolder::open(tree(empty, {"a/b.txt"}, true)); }),
              HasSubstr("no image (PNG, JPEG, GIF, WebP) in its 1 files"));
  EXPECT_THAT(error_text<ContentsError>([&] {
                ImageFolder::open(tree(flat, {"a.png", "c/a.png"}, false));
              }),
              HasSubstr("a.png: the image is not in the folder of a class"));
}

TEST(FileStore, HarmfulArchivesAreHarmless) {
  const TempDir dir(TempDir::in_memory);
  // Names of entries can't reach other files.
  spill(dir / "up.zip", zip_of({{"../../etc/passwd", "x"}, {"/abs.png", kPng}}));
  const FileStore up = FileStore::open(dir / "up.zip");
  EXPECT_FALSE(up.has("etc/passwd"));
  EXPECT_EQ(up.read("/abs.png"), kPng);
  // The same name twice, a wrong size, a wrong checksum.
  spill(dir / "twice.zip", zip_of({{"a", "1"}, {"a", "2"}}));
  EXPECT_THAT(error_text<ContentsError>([&] { FileStore::open(dir / "twice.zip"); }),
              HasSubstr("the archive has two entries a"));
  for (const i64 size : {i64{1} << 31, i64{3}}) {
    spill(dir / "size.zip", zip_of({{"a.png", kPng}}, size));
    EXPECT_NE(error_text<ContentsError>([&] { FileStore::open(dir / "size.zip").read("a.png"); }),
              "no error");
  }
  std::string bytes = zip_of({{"a.png", kPng}});
  bytes[60] = static_cast<char>(bytes[60] + 1);
  spill(dir / "crc.zip", bytes);
  EXPECT_THAT(error_text<ContentsError>([&] { FileStore::open(dir / "crc.zip").read("a.png"); }),
              HasSubstr("crc.zip:a.png: damaged"));
  EXPECT_THAT(error_text<ContentsError>([&] { up.read("b.png"); }),
              HasSubstr("up.zip:b.png: the file does not exist"));
  // Any damaged archive gives files or a ContentsError.
  const std::string whole = zip_of({{"a/1.png", kPng}, {"b/2.png", kPng}});
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::string b = whole;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n)
      b[random() % b.size()] = static_cast<char>(random());
    spill(dir / "fuzz.zip", b);
    try {
      const FileStore s = FileStore::open(dir / "fuzz.zip");
      for (const std::string& name : s.names()) s.read(name);
    } catch (const ContentsError&) {
    }
  }
}

TEST(ImageSource, DecodesImagesInTexts) {
  const ImageSource paths{std::nullopt};
  for (const std::string name : {"rgb.png", "rgb.jpg", "codes.gif", "rgb.webp"}) {
    const std::string file = test::slurp(std::string(REDCO_FIXTURES) + "/images/" + name);
    const Image expected = decode_image(file, name);
    const std::string text = media_text_of(file).value();
    EXPECT_EQ(paths.read(text, ".").pixels, expected.pixels) << name;
    EXPECT_EQ(paths.read("data:image/png" + text.substr(5), ".").pixels, expected.pixels) << name;
    if (name != "rgb.jpg" || text.size() > 5000)
      EXPECT_EQ(paths.read(text.substr(13), ".").pixels, expected.pixels) << name;
    EXPECT_THAT(error_text<ContentsError>([&] { paths.read(text.substr(0, 40) + "!", "."); }),
                HasSubstr("[data] data:;base64,"));
  }
  EXPECT_FALSE(media_text_of("RIFF....AVI LIST"));
  EXPECT_FALSE(media_file_in("/9j/x.png", ""));
  nlohmann::ordered_json image = {{"bytes", nullptr}, {"path", "a.png"}},
                         other = {{"bytes", 3}, {"path", "a"}};
  join_media_parts(image);
  join_media_parts(other);
  EXPECT_EQ(image, "a.png");
  EXPECT_EQ(other.size(), 2u);
}

TEST(ImageSource, FindsImagesByName) {
  const TempDir dir;
  const std::string folder = tree(dir, {"c/1.png"}, false);
  const ImageSource paths{std::nullopt};
  EXPECT_EQ(paths.read("c/1.png", folder).height, 9);
  EXPECT_EQ(paths.read(folder + "/c/1.png", "elsewhere").height, 9);
  EXPECT_EQ(paths.read("drawn:glyphs/1", folder).height, 28);
  EXPECT_THAT(error_text<ContentsError>([&] { paths.read("c/2.png", folder); }),
              HasSubstr("c/2.png: the image file does not exist"));
  EXPECT_EQ(ImageSource(folder).read("c/1.png", "elsewhere").height, 9);
}

std::string idx(int type, const std::vector<u32>& shape, const std::string& bytes) {
  std::string out{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const u32 n : shape)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(n >> shift);
  return out + bytes;
}

TEST(Idx, ImagesAndLabels) {
  const TempDir dir;
  const std::string path = dir / "x", images = idx(8, {2, 2, 3}, "abcdefghijkl");
  spill(path, images);
  const IdxImages read = read_idx_images(path);
  EXPECT_EQ(read.count, 2);
  EXPECT_EQ(read.at(1).pixels, (std::vector<std::uint8_t>{'g', 'h', 'i', 'j', 'k', 'l'}));
  gzFile gz = gzopen((dir / "x.gz").c_str(), "wb");
  gzwrite(gz, images.data(), static_cast<unsigned>(images.size()));
  gzclose(gz);
  EXPECT_EQ(read_idx_images(dir / "x.gz").pixels, read.pixels);
  spill(path, idx(8, {3}, "\1\2\xff"));
  EXPECT_THAT(read_idx_labels(path), ElementsAre(1, 2, 255));
  spill(path, idx(0x0b, {2}, std::string("\xff\xfe\0\7", 4)));
  EXPECT_THAT(read_idx_labels(path), ElementsAre(-2, 7));
}

TEST(Idx, BadFilesAreErrorsWithTheReason) {
  const TempDir dir;
  const std::string path = dir / "x";
  const auto refused = [&](const std::string& bytes, bool images = true) {
    spill(path, bytes);
    return error_text<ContentsError>([&] {
      if (images)
        read_idx_images(path);
      else
        read_idx_labels(path);
    });
  };
  EXPECT_THAT(refused(""), HasSubstr("too short to be an IDX file"));
  EXPECT_THAT(refused("hello world"), HasSubstr("not an IDX file: it begins with 68 65 6c 6c"));
  EXPECT_THAT(refused(idx(8, {2, 2, 3}, "abc")),
              HasSubstr("ends after 3 of the 12 bytes that its header (2, 2, 3)"));
  EXPECT_THAT(refused(idx(8, {1, 1, 1}, "abc")), HasSubstr("more than the 1 bytes"));
  EXPECT_THAT(refused(idx(8, {60000, 0xffffffff, 0xffffffff}, "abc")),
              HasSubstr("more than 68719476736 bytes"));
  EXPECT_THAT(refused(idx(8, {4000000, 100, 100}, "abc")), HasSubstr("ends after 3"));
  EXPECT_THAT(refused(idx(8, {0, 0, 3}, "")), HasSubstr("images of 0 x 3 pixels"));
  EXPECT_THAT(refused(idx(8, {3}, "abc")), HasSubstr("images are unsigned bytes (images, height, width)"));
  EXPECT_THAT(refused(idx(0x0d, {1}, "abcd"), false), HasSubstr("labels are whole numbers"));
  EXPECT_THAT(refused(idx(8, {2, 2}, "abcd").substr(0, 9)), HasSubstr("ends inside its header"));
}

}  // namespace
}  // namespace redco
