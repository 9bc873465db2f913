// PyTorch's own files: every tensor equals torch's, no code runs, hostile archives are rejected.
#include "ckpt/torch_bin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "ckpt/model_files.h"
#include "ckpt/safetensors.h"
#include "ckpt/torch_pickle.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFolder = REDCO_FIXTURES "/torch_bin/";

std::string refusal_of_file(const std::string& path) {
  try {
    open_torch_bin(path);
  } catch (const ContentsError& e) {
    return e.what();
  }
  return "accepted";
}

void expect_same(const TensorFile& got, const TensorFile& expected) {
  ASSERT_EQ(got.entries().size(), expected.entries().size());
  for (const TensorEntry& e : expected.entries()) {
    SCOPED_TRACE(e.name);
    const TensorEntry& g = got.at(e.name);
    EXPECT_EQ(g.type, e.type);
    EXPECT_EQ(g.shape, e.shape);
    EXPECT_EQ(got.read<double>(g), expected.read<double>(e));
    if (!is_float(e.type)) EXPECT_EQ(got.read<i64>(g), expected.read<i64>(e));
  }
}

TEST(TorchBin, EveryTensorEqualsTorch) {
  const TensorFile got = open_torch_bin(kFolder + "state.bin");
  expect_same(got, SafetensorsFile::open(kFolder + "expected.safetensors"));
  EXPECT_EQ(got.at("tied.a").offset, got.at("tied.b").offset);
  EXPECT_FALSE(got.at("view.transposed").strides.empty());
  EXPECT_TRUE(got.at("view.rows").strides.empty());
}

// Any box, in any layout, of tensors with strided elements in the file.
TEST(TorchBin, BoxesOfStridedTensors) {
  const TensorFile got = open_torch_bin(kFolder + "state.bin");
  const SafetensorsFile expected = SafetensorsFile::open(kFolder + "expected.safetensors");
  std::mt19937 gen(3);
  for (const char* name :
       {"view.transposed", "view.columns", "view.steps", "view.permuted", "view.one_wide"}) {
    const TensorEntry &g = got.at(name), &e = expected.at(name);
    for (int i = 0; i < 200; ++i) {
      Box box;
      for (i64 n : e.shape) {
        const i64 a = static_cast<i64>(gen() % static_cast<u64>(n + 1));
        box.push_back({a, a + static_cast<i64>(gen() % static_cast<u64>(n - a + 1))});
      }
      const Strides strides = box.size() == 2 && i % 2 ? transposed(box) : contiguous(box);
      std::vector<float> a(static_cast<size_t>(numel(box))), b(a.size());
      got.read(g, box, a.data(), strides);
      expected.read(e, box, b.data(), strides);
      ASSERT_EQ(a, b) << name;
    }
  }
}

TEST(TorchBin, FoldersOfBinFiles) {
  TempDir dir;
  const ModelFiles shards = ModelFiles::open(kFolder + "sharded");
  const SafetensorsFile expected = SafetensorsFile::open(kFolder + "expected.safetensors");
  ASSERT_EQ(shards.tensors().size(), expected.entries().size());
  for (const TensorEntry& e : expected.entries()) {
    const auto& l = shards.at(e.name);
    EXPECT_EQ(l.file->read<double>(*l.entry), expected.read<double>(e)) << e.name;
  }
  spill(dir / "pytorch_model.bin", slurp(kFolder + "state.bin"));
  EXPECT_THAT(ModelFiles::open(dir.path()).at("scalar").file->path(), HasSubstr("pytorch_model.bin"));
  // safetensors take precedence.
  spill(dir / "model.safetensors", slurp(kFolder + "expected.safetensors"));
  EXPECT_THAT(ModelFiles::open(dir.path()).at("scalar").file->path(), HasSubstr("model.safetensors"));
  spill(dir / "adapter_model.bin", slurp(kFolder + "state.bin"));
  EXPECT_NO_THROW(ModelFiles::open(dir.path(), "adapter_model"));
}

TEST(TorchBin, UnsupportedFilesAreErrorsWithTheName) {
  EXPECT_THAT(
      refusal_of_file(kFolder + "evil.bin"),
      AllOf(HasSubstr("system is not supported"), HasSubstr("runs no code"), HasSubstr("data.pkl, byte ")));
  EXPECT_THAT(refusal_of_file(kFolder + "legacy.bin"),
              AllOf(HasSubstr("before 1.6"), HasSubstr("python3 -c"), HasSubstr("cd ")));
  EXPECT_THAT(refusal_of_file(kFolder + "nested.bin"), HasSubstr("'model' is a nested dict"));
  EXPECT_THAT(refusal_of_file(kFolder + "expanded.bin"), HasSubstr("expanded tensors are not supported"));
  EXPECT_THAT(refusal_of_file(kFolder + "sparse.bin"), HasSubstr("_rebuild_sparse_tensor is not supported"));
  EXPECT_THAT(refusal_of_file(kFolder + "protocol4.bin"), HasSubstr("protocol 4, expected 2"));
  EXPECT_THAT(refusal_of_file(kFolder + "number.bin"), HasSubstr("'epoch' is not a tensor"));
  EXPECT_THAT(refusal_of_file(kFolder + "script.bin"), HasSubstr("TorchScript"));
  EXPECT_THAT(refusal_of_file(kFolder + "deflated.bin"), HasSubstr("is compressed (method 8)"));
  EXPECT_THROW(open_torch_bin(kFolder + "none.bin"), UsageError);
  TempDir dir;
  for (const auto& [bytes, part] : {std::pair<std::string, const char*>{"", "not a PyTorch file"},
                                    {"PK", "too few"},
                                    {"hello, world, hello", "not a PyTorch"},
                                    {"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"},
                                    {"PK" + std::string(100, 'x'), "truncated"}}) {
    spill(dir / "x.bin", bytes);
    EXPECT_THAT(refusal_of_file(dir / "x.bin"), HasSubstr(part));
  }
  const std::string whole = slurp(kFolder + "state.bin");
  for (size_t n = 0; n < whole.size(); n += 97) {
    spill(dir / "x.bin", whole.substr(0, n));
    EXPECT_NE(refusal_of_file(dir / "x.bin"), "accepted") << n;
  }
}

// --- Handmade archives ---

template <class T>
std::string raw(T v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

struct Made {
  std::string name, bytes;
  bool in_directory_only = false;  // an entry that refers to the bytes of the previous one
  u64 size_off = 0;                // added to the size in the directory
};

// A zip archive of uncompressed entries; wide: with the 64-bit fields of archives over 4 GiB.
std::string zip(const std::vector<Made>& entries, bool wide = false) {
  std::string out, directory;
  u64 header = 0;
  for (const Made& e : entries) {
    const u64 size = e.bytes.size() + e.size_off;
    if (!e.in_directory_only) {
      header = out.size();
      const std::string padding =
          raw<std::uint16_t>(0x4246) + raw<std::uint16_t>(5) + "ZZZZZ";  // aligned as by torch
      out += "PK\3\4" + std::string(14, '\0') + raw<u32>(0) + raw<u32>(0) +
             raw<std::uint16_t>(static_cast<std::uint16_t>(e.name.size())) +
             raw<std::uint16_t>(static_cast<std::uint16_t>(padding.size())) + e.name + padding + e.bytes;
    }
    const std::string extra =
        wide ? raw<std::uint16_t>(1) + raw<std::uint16_t>(24) + raw(size) + raw(size) + raw(header) : "";
    auto narrow = [&](u64 v) { return raw<u32>(wide ? 0xFFFFFFFF : static_cast<u32>(v)); };
    directory += "PK\1\2" + std::string(16, '\0') + narrow(size) + narrow(size) +
                 raw<std::uint16_t>(static_cast<std::uint16_t>(e.name.size())) +
                 raw<std::uint16_t>(static_cast<std::uint16_t>(extra.size())) + std::string(10, '\0') +
                 narrow(header) + e.name + extra;
  }
  const u64 begin = out.size(), n = entries.size();
  out += directory;
  if (wide) {
    const u64 record = out.size();
    out += "PK\6\6" + raw<u64>(44) + std::string(12, '\0') + std::string(8, '\0') + raw(n) +
           raw<u64>(directory.size()) + raw(begin);
    out += "PK\6\7" + raw<u32>(0) + raw(record) + raw<u32>(1);
  }
  auto narrow = [&](u64 v) { return raw<u32>(wide ? 0xFFFFFFFF : static_cast<u32>(v)); };
  return out + "PK\5\6" + std::string(4, '\0') + std::string(2, '\0') +
         raw<std::uint16_t>(wide ? 0xFFFF : static_cast<std::uint16_t>(n)) + narrow(directory.size()) +
         narrow(begin) + raw<std::uint16_t>(0);
}

std::string text(const std::string& s) { return "X" + raw<u32>(static_cast<u32>(s.size())) + s; }

// The pickle of {"w": tensor}.
std::string pickled(i64 storage_numel, i64 offset, const std::vector<i64>& shape,
                    const std::vector<i64>& steps) {
  auto number = [](i64 v) { return "\x8a\x08" + raw(v); };
  auto numbers = [&](const std::vector<i64>& v) {
    std::string s = "(";
    for (i64 x : v) s += number(x);
    return s + "t";
  };
  return std::string("\x80\x02}") + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(storage_numel) + "tQ" + number(offset) +
         numbers(shape) + numbers(steps) + "\x89" + "ccollections\nOrderedDict\n)RtRs.";
}

class MadeBin : public ::testing::Test {
 protected:
  TempDir dir_{TempDir::in_memory};
  std::string refused(const std::string& bytes) {
    spill(dir_ / "x.bin", bytes);
    return refusal_of_file(dir_ / "x.bin");
  }
  std::string refused_tensor(i64 numel, i64 offset, const std::vector<i64>& shape,
                             const std::vector<i64>& steps) {
    return refused(
        zip({{"x/data.pkl", pickled(numel, offset, shape, steps)}, {"x/data/0", std::string(24, '\0')}}));
  }
  std::string refused_pickle(const std::string& pickle) {
    return refused(zip({{"x/data.pkl", pickle}, {"x/data/0", std::string(24, '\0')}}));
  }
};

TEST_F(MadeBin, ValidArchives) {
  std::string floats;
  for (float f : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f}) floats += raw(f);
  for (bool wide : {false, true}) {
    const std::string good = zip({{"x/data.pkl", pickled(6, 1, {2, 2}, {1, 2})}, {"x/data/0", floats}}, wide);
    ASSERT_EQ(refused(good), "accepted") << wide;
    const TensorFile f = open_torch_bin(dir_ / "x.bin");
    EXPECT_EQ(f.read<float>(f.at("w")), (std::vector<float>{1, 3, 2, 4}));
  }
  EXPECT_EQ(refused_tensor(6, 0, {2, 3}, {3, 1}), "accepted");
  EXPECT_EQ(refused_tensor(6, 5, {}, {}), "accepted");
  EXPECT_EQ(refused_tensor(6, 6, {0, 7}, {7, 1}), "accepted");
  EXPECT_EQ(refused_tensor(6, 0, {1, 6}, {1000000, 1}), "accepted");  // an unused stride
}

TEST_F(MadeBin, TensorsOutsideTheirStorageAreErrors) {
  const i64 huge = std::numeric_limits<i64>::max();
  EXPECT_THAT(refused_tensor(5, 0, {5}, {1}),
              HasSubstr("should have 5 elements of 4 bytes, but has 24 bytes"));
  EXPECT_THAT(refused_tensor(huge, 0, {5}, {1}), HasSubstr("should have"));
  EXPECT_THAT(refused_tensor(-6, 0, {5}, {1}), HasSubstr("a storage of -6"));
  for (const auto& [offset, shape, steps] : {std::tuple<i64, std::vector<i64>, std::vector<i64>>{1, {6}, {1}},
                                             {6, {1}, {1}},
                                             {7, {0}, {1}},
                                             {0, {7}, {1}},
                                             {0, {2}, {6}},
                                             {0, {2, 2}, {5, 1}},
                                             {huge, {2}, {1}},
                                             {0, {huge}, {huge}},
                                             {0, {huge, huge}, {1, 1}},
                                             {0, {3}, {huge}},
                                             {0, {1LL << 40, 1LL << 40}, {0, 0}}})
    EXPECT_THAT(refused_tensor(6, offset, shape, steps), HasSubstr("exceeds the"));
  EXPECT_THAT(refused_tensor(6, 0, {7}, {0}), HasSubstr("expanded"));
  EXPECT_THAT(refused_tensor(6, -1, {1}, {1}), HasSubstr("offset -1"));
  EXPECT_THAT(refused_tensor(6, 0, {-1}, {1}), HasSubstr("not a list of sizes"));
  EXPECT_THAT(refused_tensor(6, 0, {2}, {-1}), HasSubstr("not a list of sizes"));
  EXPECT_THAT(refused_tensor(6, 0, {2, 2}, {1}), HasSubstr("2 dims with 1 strides"));
  EXPECT_THAT(refused_tensor(6, 0, std::vector<i64>(33, 1), std::vector<i64>(33, 1)), HasSubstr("33 dims"));
}

TEST_F(MadeBin, DamagedArchivesAreErrors) {
  const Made pickle{"x/data.pkl", pickled(6, 0, {6}, {1})}, data{"x/data/0", std::string(24, '\0')};
  EXPECT_THAT(refused(zip({pickle})), HasSubstr("its storage 0 is missing"));
  EXPECT_THAT(refused(zip({data})), HasSubstr("has no data.pkl"));
  EXPECT_THAT(refused(zip({})), HasSubstr("has no data.pkl"));
  EXPECT_THAT(refused(zip({pickle, data, pickle})), HasSubstr("twice"));
  EXPECT_THAT(refused(zip({pickle, data, {"y/data.pkl", pickle.bytes}})), HasSubstr("has both"));
  EXPECT_THAT(refused(zip({pickle, data, {"x/byteorder", "big"}})), HasSubstr("the byte order is big"));
  EXPECT_THAT(refused(zip({pickle, data, {"x/data/1", data.bytes, true}})),
              HasSubstr("isn't where the directory says"));
  EXPECT_THAT(refused(zip({pickle, {"x/data/0", data.bytes, false, 1}})),
              HasSubstr("overlaps the archive's"));
  EXPECT_THAT(refused(zip({{"x/data/0", data.bytes, false, 8}, pickle})), HasSubstr("overlap"));
  for (bool wide : {false, true})
    EXPECT_THAT(refused(zip({pickle, {"x/data/0", data.bytes, false, u64{1} << 31}}, wide)),
                HasSubstr("above the file"));
  EXPECT_THAT(refused(zip({pickle, {"x/data/0", data.bytes, false, u64{1} << 62}}, true)),
              HasSubstr("above the file"));
}

TEST_F(MadeBin, PicklesOutsideAStateDictAreErrors) {
  const std::string begin = "\x80\x02";
  EXPECT_EQ(refused_pickle(begin + "}."), "accepted");  // without tensors
  for (const auto& [pickle, part] : {
           std::pair<std::string, const char*>{"", "truncated"},
           {begin, "truncated"},
           {begin + ".", "more than one value"},
           {begin + "}}.", "more than one value"},
           {begin + "(}.", "more than one value"},
           {begin + "N.", "expected a dict"},
           {begin + "}K\1Ns.", "not a text"},
           {begin + "}" + text("a") + "Ns.", "'a' is not a tensor"},
           {begin + "}(" + text("a") + "u.", "without a value"},
           {begin + "cos\nsystem\n" + text("echo") + "\x85R.", "os.system is not supported"},
           {begin + "cbuiltins\neval\n.", "builtins.eval is not supported"},
           {begin + "ctorch.storage\n_load_from_bytes\n.", "_load_from_bytes is not supported"},
           {begin + "ctorch\nFloatStorage\n)R.", "can't be called"},
           {begin + "ctorch._utils\n_rebuild_tensor_v2\n)R.", "expected a tensor's storage"},
           {begin + "ctorch._utils\n_rebuild_parameter\n)R.", "expected a parameter's tensor"},
           {begin + "ccollections\nOrderedDict\n" + text("a") + "\x85R.", "with initial values"},
           {begin + "ios\nsystem\n.", "0x69 (INST)"},
           {begin + ")\x81.", "0x81 (NEWOBJ)"},
           {begin + "\x82\x01.", "0x82 (EXT1)"},
           {begin + "\x93.", "0x93 (STACK_GLOBAL)"},
           {begin + "Pos\n.", "0x50 (PERSID)"},
           {begin + "\xff.", "0xff (unknown)"},
           {"\x80\x05}.", "protocol 5"},
           {begin + "}}b.", "accepted"},
           {begin + "}Nb.", "state to be a dict"},
           {begin + "]}b.", "a dict to give its state to"},
           {begin + "h\5.", "does not exist"},
           {begin + "q\1.", "no value to store"},
           {begin + "\x85.", "lacks its operand"},
           {begin + "t.", "lacks its mark"},
           {begin + "(s.", "lacks its operand"},
           {begin + "Ns.", "lacks its operand"},
           {begin + "NNNs.", "a dict to fill"},
           {begin + "NNa.", "a list to append to"},
           {begin + "X\xff\xff\xff\xff.", "a text of 4294967295 bytes"},
           {begin + "X" + raw<u32>(100) + "x", "truncated"},
           {begin + "\x8a\x09" + std::string(9, '\1') + ".", "an integer of 9 bytes"},
           {begin + std::string(100, '('), "open marks"},
           {begin + "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "tQ.",
            "expected a storage"},
           {begin + "NQ.", "expected a storage"},
           {begin + "c" + std::string(100'000, 'x'), "a name without an end"},
           {begin + "}(" + text("a\xff") + "NuN0", ""},
       })
    EXPECT_THAT(refused_pickle(pickle), HasSubstr(part)) << pickle.substr(0, 100);
  // Many values and cycles: bounded, and freed without recursion.
  EXPECT_THAT(refused_pickle(begin + std::string(1'500'000, ')')), HasSubstr("more than 1000000 values"));
  EXPECT_THAT(refused_pickle(begin + std::string(9'000'000, 'N')), HasSubstr("more than 8000000 values"));
  EXPECT_THAT(refused_pickle(begin + "]q\1h\1a."), HasSubstr("expected a dict"));
  EXPECT_THAT(refused_pickle(begin + std::string(900'000, ']') + std::string(899'999, 'a') + "."),
              HasSubstr("expected a dict"));
}

// --- Mutations ---

// Opens and reads any file; sizes are bounded by the file's.
void open_and_read(const std::string& path, size_t file_bytes, int* accepted, int* refused) {
  try {
    const TensorFile f = open_torch_bin(path);
    for (const TensorEntry& e : f.entries()) {
      ASSERT_LE(e.bytes, static_cast<i64>(file_bytes));
      f.read<double>(e);
    }
    ++*accepted;
  } catch (const ContentsError&) {
    ++*refused;
  }
}

TEST(TorchBin, FuzzedFiles) {
  TempDir dir(TempDir::in_memory);
  const std::string whole = slurp(kFolder + "state.bin");
  std::mt19937 gen(11);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    const size_t directory = bytes.size() * 2 / 3;
    for (u64 n = 1 + gen() % 4; n > 0; --n) {
      const size_t at = i % 2 ? directory + gen() % (bytes.size() - directory) : gen() % bytes.size();
      switch (gen() % 4) {
        case 0:
          bytes[at] = static_cast<char>(gen());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << gen() % 8));
          break;
        case 2:
          bytes[at] = gen() % 2 ? '\xff' : '\0';
          break;
        default:
          if (gen() % 8 == 0) bytes.erase(at, 1 + gen() % 8);
      }
    }
    spill(dir / "x.bin", bytes);
    open_and_read(dir / "x.bin", bytes.size(), &accepted, &refused);
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(accepted, 100);  // the change is in the bytes of tensors
}

TEST(TorchBin, FuzzedPickles) {
  const std::string good = [] {
    const std::string whole = slurp(kFolder + "state.bin");
    const size_t begin = whole.find("\x80\x02");
    return whole.substr(begin, whole.find("u}q", begin) + 200 - begin);
  }();
  static constexpr char kOps[] = "().NJKMXtaes}]uqrhjcQRb\x80\x85\x86\x87\x88\x89\x8a";
  std::mt19937 gen(12);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = i % 3 ? good : pickled(6, 0, {2, 3}, {3, 1});
    for (u64 n = 1 + gen() % 3; n > 0; --n) {
      const size_t at = gen() % bytes.size();
      switch (gen() % 4) {
        case 0:
          bytes[at] = static_cast<char>(gen());
          break;
        case 1:
          bytes[at] = kOps[gen() % (sizeof kOps - 1)];
          break;
        case 2:
          bytes.insert(at, 1, kOps[gen() % (sizeof kOps - 1)]);
          break;
        default:
          bytes.erase(at, 1 + gen() % 4);
      }
      if (bytes.empty()) bytes = ".";
    }
    try {
      read_torch_pickle(bytes, "x");
      ++accepted;
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace redco::ckpt
