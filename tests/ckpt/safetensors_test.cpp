#include "ckpt/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/syscalls.h"
#include "ckpt/safetensors_write.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::HasSubstr;

std::string file_of(const std::string& json, const std::string& data) {
  u64 n = json.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + json + data;
}

std::string refusal_of_header(const std::string& bytes) {
  TempDir dir;
  spill(dir / "x.safetensors", bytes);
  try {
    SafetensorsFile::open(dir / "x.safetensors");
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("x.safetensors"));
    return e.what();
  }
  return "accepted";
}
std::string refusal_of_header(const std::string& json, size_t data_bytes) {
  return refusal_of_header(file_of(json, std::string(data_bytes, 'd')));
}
std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

TEST(Safetensors, ReadsFilesOfAnotherWriter) {
  SafetensorsFile f = SafetensorsFile::open(REDCO_FIXTURES "/gpt2/expected.safetensors");
  EXPECT_EQ(f.metadata().at("format"), "pt");
  std::vector<i64> ids = f.read<i64>(f.at("input_ids"));
  std::vector<i32> ids32 = f.read<i32>(f.at("input_ids"));
  std::vector<float> idsf = f.read<float>(f.at("input_ids"));
  ASSERT_FALSE(ids.empty());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], ids32[i]);
    EXPECT_EQ(static_cast<float>(ids[i]), idsf[i]);
  }
  EXPECT_EQ(f.at("loss").shape, Shape{});
  EXPECT_EQ(f.find("no such"), nullptr);
  EXPECT_THROW(f.at("no such"), ContentsError);
  EXPECT_THROW(f.read<i64>(f.at("loss")), ContentsError);
  EXPECT_THROW(SafetensorsFile::open(REDCO_FIXTURES "/gpt2/no.safetensors"), UsageError);
}

TEST(Safetensors, HalfFormatsGiveTheSameNumbersRounded) {
  for (auto [wide, narrow, type] : {std::tuple("llama", "llama-bf16", StoredType::bf16),
                                    std::tuple("opt", "opt-fp16", StoredType::f16)}) {
    SafetensorsFile full =
        SafetensorsFile::open(fmt::format("{}/{}/model.safetensors", REDCO_FIXTURES, wide));
    SafetensorsFile half =
        SafetensorsFile::open(fmt::format("{}/{}/model.safetensors", REDCO_FIXTURES, narrow));
    ASSERT_EQ(full.entries().size(), half.entries().size());
    for (const TensorEntry& e : full.entries()) {
      ASSERT_EQ(half.at(e.name).type, type);
      std::vector<float> a = full.read<float>(e), b = half.read<float>(half.at(e.name));
      for (size_t i = 0; i < a.size(); ++i) {
        std::uint16_t bits = type == StoredType::f16 ? to_f16(a[i]) : to_bf16(a[i]);
        float rounded = 0;
        decode(type, reinterpret_cast<unsigned char*>(&bits), 1, &rounded);
        ASSERT_EQ(b[i], rounded) << e.name << " " << i << ": " << a[i];
      }
    }
  }
}

// All types, shapes up to 4-D, random boxes, contiguous, transposed and padded memory, against element-wise
// indexing.
TEST(Safetensors, BoxesEqualTheNaiveReadForEveryType) {
  using S = StoredType;
  TempDir dir;
  std::mt19937 gen(7);
  auto below = [&](i64 n) { return static_cast<i64>(gen() % static_cast<u64>(n)); };
  std::vector<TensorPlan> plan;
  const StoredType types[] = {S::boolean, S::u8,  S::i8,  S::i16, S::f16,
                              S::bf16,    S::i32, S::f32, S::f64, S::i64};
  const Shape shapes[] = {{}, {0}, {7}, {5, 9}, {3, 4, 5}, {2, 3, 4, 5}, {3, 0, 2}, {1, 6, 1}};
  for (StoredType t : types)
    for (const Shape& s : shapes)
      plan.push_back({fmt::format("{}{}", name_of(t), redco::to_string(s)), t, s});
  auto value = [](StoredType t, i64 i) {
    return static_cast<float>(t == S::boolean ? i % 2 : t == S::u8 ? i : i - 50);
  };
  auto writer = SafetensorsWriter::create(dir.path(), plan_file("x.safetensors", plan));
  for (const TensorPlan& t : plan) {
    std::vector<float> v(static_cast<size_t>(redco::numel(t.shape)));
    for (size_t i = 0; i < v.size(); ++i) v[i] = value(t.type, static_cast<i64>(i));
    writer.write(t.name, whole(t.shape), v.data());
  }
  writer.commit();
  SafetensorsFile f = SafetensorsFile::open(dir / "x.safetensors");
  ASSERT_EQ(f.entries().size(), plan.size());
  for (const TensorPlan& t : plan) {
    const TensorEntry& e = f.at(t.name);
    ASSERT_EQ(e.shape, t.shape);
    EXPECT_EQ(e.offset % size_of(t.type), 0) << e.name;
    for (int repeat = 0; repeat < 12; ++repeat) {
      Box box;
      for (i64 d : t.shape) {
        i64 a = below(d + 1), b = below(d + 1);
        box.push_back(repeat == 0 ? Range{0, d} : Range{std::min(a, b), std::max(a, b)});
      }
      Strides strides = contiguous(box);
      if (repeat % 3 == 1) {  // dims in a random order, with gaps
        std::vector<size_t> order(box.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), gen);
        i64 step = 1 + below(2);
        for (size_t d : order) {
          strides[d] = step;
          step *= std::max<i64>(box[d].size(), 1) + below(2);
        }
      } else if (repeat % 3 == 2 && box.size() == 2) {
        strides = transposed(box);
      }
      std::vector<float> out(2000, -1e9F), want = out;
      f.read(e, box, out.data(), strides);
      std::vector<i64> at(box.size());
      for (i64 n = 0; n < numel(box); ++n) {
        i64 rest = n, memory = 0, element = 0;
        for (size_t d = box.size(); d-- > 0;) {
          at[d] = box[d].begin + rest % box[d].size();
          rest /= box[d].size();
        }
        for (size_t d = 0; d < box.size(); ++d) {
          memory += (at[d] - box[d].begin) * strides[d];
          element = element * t.shape[d] + at[d];
        }
        want[static_cast<size_t>(memory)] = value(t.type, element);
      }
      ASSERT_EQ(out, want) << e.name << " repeat " << repeat;
    }
  }
}

TEST(Safetensors, ATransposedWriteReadsBackTransposed) {
  TempDir dir;
  const i64 rows = 37, columns = 53;
  std::vector<float> m(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i);
  Box all = whole({rows, columns});
  for (StoredType t : {StoredType::f32, StoredType::f64, StoredType::i32}) {
    auto w = SafetensorsWriter::create(dir.path(), plan_file("x.safetensors", {{"w", t, {rows, columns}}}));
    w.write("w", {{0, 20}, {0, columns}}, m.data(), {1, rows});  // two pieces of a column-major matrix
    w.write("w", {{20, rows}, {0, columns}}, m.data() + 20, {1, rows});
    w.commit();
    SafetensorsFile f = SafetensorsFile::open(dir / "x.safetensors");
    std::vector<float> back(m.size()), plain = f.read<float>(f.at("w"));
    f.read(f.at("w"), all, back.data(), transposed(all));
    EXPECT_EQ(back, m);
    EXPECT_EQ(plain[1], static_cast<float>(rows));
  }
}

// A tensor of 40 MB through the bounded buffer. Counts the calls: near rows share one, distant rows have
// separate ones.
TEST(Safetensors, LargeReadsAreBoundedAndNearRowsShareACall) {
  TempDir dir;
  const i64 rows = 5000, columns = 2000;
  auto w = SafetensorsWriter::create(dir.path(),
                                     plan_file("x.safetensors", {{"w", StoredType::f32, {rows, columns}}}));
  std::vector<float> m(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i % 8191);
  w.write("w", whole({rows, columns}), m.data());
  w.commit();
  SafetensorsFile f = SafetensorsFile::open(dir / "x.safetensors");
  i64 calls = 0, largest = 0;
  sys::set_hook([&](const sys::Call& c) {
    ++calls;
    largest = std::max(largest, c.bytes);
    return sys::Verdict{};
  });
  std::vector<float> all = f.read<float>(f.at("w"));
  const i64 buffers = (rows * columns * 4 + kBufferBytes - 1) / kBufferBytes;  // 40 MB in 4 MiB: 10
  EXPECT_EQ(calls, buffers);
  EXPECT_LE(largest, kBufferBytes);
  calls = 0;
  Box half{{0, rows}, {500, 1500}};
  std::vector<float> part(static_cast<size_t>(numel(half)));
  f.read(f.at("w"), half, part.data());
  EXPECT_EQ(calls, buffers);
  EXPECT_LE(largest, kBufferBytes);
  sys::set_hook({});
  EXPECT_EQ(all, m);
  for (i64 r = 0; r < rows; ++r)
    ASSERT_TRUE(
        std::equal(part.begin() + r * 1000, part.begin() + (r + 1) * 1000, m.begin() + r * columns + 500))
        << r;
}

TEST(Safetensors, ShortReadsAreContinuedAndATruncatedFileIsAnError) {
  TempDir dir;
  std::string bytes = slurp(REDCO_FIXTURES "/gpt2/model.safetensors");
  spill(dir / "x.safetensors", bytes);
  SafetensorsFile f = SafetensorsFile::open(dir / "x.safetensors");
  const TensorEntry& e = f.entries().back();
  std::vector<float> before = f.read<float>(e);
  sys::set_hook([](const sys::Call&) { return sys::Verdict{sys::Verdict::shorten}; });
  std::vector<float> after = f.read<float>(e);
  sys::set_hook({});
  EXPECT_EQ(after, before);
  std::filesystem::resize_file(dir / "x.safetensors", static_cast<u64>(e.offset + e.bytes - 1));
  EXPECT_THROW(f.read<float>(e), ContentsError);
}

TEST(Safetensors, HostileSizesAreErrors) {
  EXPECT_THAT(refusal_of_header(std::string()), HasSubstr("too few"));
  EXPECT_THAT(refusal_of_header(std::string(7, '\0')), HasSubstr("too few"));
  EXPECT_THAT(refusal_of_header(std::string(8, '\xff') + "{}"), HasSubstr("at most 100000000"));
  EXPECT_THAT(refusal_of_header(std::string(8, '\0')), HasSubstr("not a safetensors file"));
  EXPECT_THAT(refusal_of_header(file_of("{}", "").substr(0, 9)), HasSubstr("the file has 9"));
  u64 n = 100'000'001;
  EXPECT_THAT(refusal_of_header(std::string(reinterpret_cast<char*>(&n), 8) + "{}"),
              HasSubstr("at most 100000000"));
  EXPECT_THAT(refusal_of_header("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_EQ(refusal_of_header("{}", 0), "accepted");
}

TEST(Safetensors, HostileJsonIsAnError) {
  for (const char* bad :
       {"[]", " {}", "{", "{}}", "{} x", "{\"a\":}", "{'a':1}", "{\"a\":1,}", "{\"\xff\":1}", "{\"a\":NaN}"})
    EXPECT_NE(refusal_of_header(bad, 0), "accepted") << bad;
  EXPECT_NE(refusal_of_header(std::string("{\0}", 3), 0), "accepted");
  EXPECT_NE(refusal_of_header(std::string("{}\0", 3), 0), "accepted");
  EXPECT_EQ(refusal_of_header("{}       ", 0), "accepted");
  for (const char* bad : {"null", "true", "1", "-1", "1.5", "\"s\"", "[]", "[[]]"})
    EXPECT_THAT(refusal_of_header(std::string("{\"a\":") + bad + "}", 0),
                HasSubstr("expected an object with dtype"))
        << bad;
  EXPECT_THAT(refusal_of_header("{\"a\":" + std::string(1'000'000, '[') + "}", 0),
              HasSubstr("expected an object"));
  EXPECT_THAT(refusal_of_header("{\"a\":{\"dtype\":" + std::string(1'000'000, '{') + "}", 0),
              HasSubstr("expected the type's name"));
  EXPECT_THAT(refusal_of_header("{\"a\":{\"shape\":[[1]]}}", 0), HasSubstr("sizes >= 0"));
}

TEST(Safetensors, DuplicateNamesAndFieldsAreErrors) {
  EXPECT_THAT(refusal_of_header(
                  "{" + tensor("a", "U8", "[1]", "[0,1]") + "," + tensor("a", "U8", "[1]", "[1,2]") + "}", 2),
              HasSubstr("a: the name appears twice"));
  EXPECT_THAT(
      refusal_of_header(
          "{" + tensor("a", "U8", "[1]", "[0,1]") + "," + tensor("\\u0061", "U8", "[1]", "[1,2]") + "}", 2),
      HasSubstr("a: the name appears twice"));
  EXPECT_THAT(refusal_of_header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("twice"));
  EXPECT_THAT(refusal_of_header(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("twice"));
  EXPECT_THAT(refusal_of_header(R"({"__metadata__":{"a":"b","a":"c"}})", 0),
              HasSubstr("the key a appears twice"));
}

TEST(Safetensors, WrongFieldsAreErrors) {
  EXPECT_THAT(refusal_of_header(R"({"a":{"dtype":"U8","shape":[1]}})", 1), HasSubstr("lacks one of"));
  EXPECT_THAT(refusal_of_header(R"({"a":{}})", 0), HasSubstr("lacks one of"));
  EXPECT_THAT(refusal_of_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1),
              HasSubstr("unknown field x"));
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "F8_E4M3", "[1]", "[0,1]") + "}", 1),
              HasSubstr("dtype is F8_E4M3"));
  EXPECT_THAT(refusal_of_header(R"({"__metadata__":{"a":1}})", 0), HasSubstr("expected a string"));
  EXPECT_THAT(refusal_of_header(R"({"__metadata__":[]})", 0), HasSubstr("expected an object of strings"));
  EXPECT_THAT(refusal_of_header(R"({"__metadata__":{"a":{}}})", 0), HasSubstr("expected a string"));
  std::string dims = "[1";
  for (int i = 0; i < 40; ++i) dims += ",1";
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "U8", dims + "]", "[0,1]") + "}", 1),
              HasSubstr("more than 32 dims"));
}

TEST(Safetensors, WrongNumbersAreErrors) {
  for (const char* shape :
       {"[-1]", "[1.0]", "[1e0]", "[99999999999999999999]", "[18446744073709551615]", "[true]", "[\"1\"]"})
    EXPECT_NE(refusal_of_header("{" + tensor("a", "U8", shape, "[0,1]") + "}", 1), "accepted") << shape;
  for (const char* offsets :
       {"[0]", "[]", "[0,1,1]", "[-1,0]", "[0.0,1]", "[1,0]", "[0,18446744073709551615]", "{}", "3"})
    EXPECT_NE(refusal_of_header("{" + tensor("a", "U8", "[1]", offsets) + "}", 1), "accepted") << offsets;
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "U8", "[0,4294967296,4294967296]", "[0,0]") + "}", 0),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "F64", "[2305843009213693952]", "[0,0]") + "}", 0),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "F32", "[2]", "[0,4]") + "}", 4),
              HasSubstr("span 4 bytes, but F32 of shape (2) has 8"));
  EXPECT_THAT(refusal_of_header("{" + tensor("a", "U8", "[0]", "[0,1]") + "}", 1), HasSubstr("span 1 bytes"));
}

TEST(Safetensors, HolesOverlapsAndBytesOutsideAreErrors) {
  std::string a = tensor("a", "U8", "[4]", "[0,4]");
  EXPECT_EQ(refusal_of_header("{" + a + "}", 4), "accepted");
  EXPECT_THAT(refusal_of_header("{" + a + "}", 3), HasSubstr("truncated"));
  EXPECT_THAT(refusal_of_header("{" + a + "}", 5), HasSubstr("1 bytes after the last tensor"));
  EXPECT_THAT(refusal_of_header("{" + a + "," + tensor("b", "U8", "[2]", "[5,7]") + "}", 7),
              HasSubstr("1 bytes before b"));
  EXPECT_THAT(refusal_of_header("{" + a + "," + tensor("b", "U8", "[2]", "[3,5]") + "}", 5),
              HasSubstr("a and b overlap"));
  EXPECT_THAT(refusal_of_header("{" + a + "," + tensor("b", "U8", "[4]", "[0,4]") + "}", 4),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal_of_header("{" + a + "," + tensor("b", "U8", "[0]", "[2,2]") + "}", 4),
              HasSubstr("overlap"));
  EXPECT_EQ(refusal_of_header("{" + a + "," + tensor("b", "U8", "[0]", "[4,4]") + "}", 4), "accepted");
  EXPECT_EQ(refusal_of_header("{" + a + "," + tensor("b", "U8", "[0]", "[0,0]") + "}", 4), "accepted");
  EXPECT_THAT(
      refusal_of_header("{" + tensor("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]") + "}", 4),
      HasSubstr("truncated"));
  EXPECT_THAT(refusal_of_header("{}", 1), HasSubstr("belong to no tensor"));
}

TEST(Safetensors, HostileNamesAreShortenedInMessages) {
  std::string message =
      refusal_of_header("{" + tensor(std::string(1'000'000, 'n'), "U8", "[4]", "[0,5]") + "}", 5);
  EXPECT_LT(message.size(), 1000u);
}

// Random changes of a valid file: open() rejects it, or everything in it is readable. Runs for at most two
// seconds; the address sanitizer's build checks memory errors.
TEST(Safetensors, ChangedBytesNeverCrash) {
  TempDir dir;
  std::string sound =
      file_of("{\"__metadata__\":{\"format\":\"pt\"}," + tensor("a", "F32", "[2,3]", "[0,24]") + "," +
                  tensor("b", "I64", "[]", "[24,32]") + "," + tensor("c", "BOOL", "[0]", "[32,32]") + "}",
              std::string(32, '\1'));
  std::mt19937 gen(11);
  auto stop = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int accepted = 0, refused = 0;
  static const char kAlphabet[] = "{}[]\",:0123456789-.eEabtrufls \\FIU";
  for (int i = 0; i < 200'000 && std::chrono::steady_clock::now() < stop; ++i) {
    std::string bytes = sound;
    for (u32 k = 1 + gen() % 4; k > 0; --k) {
      size_t at = gen() % bytes.size();
      switch (gen() % 5) {
        case 0:
          bytes[at] = static_cast<char>(gen());
          break;
        case 1:
          bytes[at] = kAlphabet[gen() % (sizeof(kAlphabet) - 1)];
          break;
        case 2:
          bytes.erase(at, 1 + gen() % 9);
          break;
        case 3:
          bytes.insert(at, 1 + gen() % 3, kAlphabet[gen() % (sizeof(kAlphabet) - 1)]);
          break;
        default:
          bytes.insert(at, bytes.substr(gen() % bytes.size(), gen() % 40));
          break;
      }
      if (bytes.empty()) bytes = "{";
    }
    if (i % 2 && bytes.size() > 40) {  // keep the size consistent half of the time, to test later checks
      u64 n = bytes.size() - 40;
      bytes.replace(0, 8, reinterpret_cast<const char*>(&n), 8);
    }
    try {
      u64 n = 0;
      if (bytes.size() >= 8) std::memcpy(&n, bytes.data(), 8);
      if (bytes.size() < 8 || n > bytes.size() - 8 || i % 64 == 0) {
        spill(dir / "x", bytes);  // as a file
        SafetensorsFile f = SafetensorsFile::open(dir / "x");
        for (const TensorEntry& e : f.entries()) f.read<double>(e);
      } else {
        Header h = parse_header(std::string_view(bytes).substr(8, n), 8 + static_cast<i64>(n),
                                static_cast<i64>(bytes.size()), "x");
        for (const TensorEntry& e : h.entries) {
          ASSERT_GE(e.offset, 8 + static_cast<i64>(n));
          ASSERT_LE(e.offset + e.bytes, static_cast<i64>(bytes.size()));
          ASSERT_EQ(redco::numel(e.shape) * size_of(e.type), e.bytes);
        }
      }
      ++accepted;
    } catch (const ContentsError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace redco::ckpt
