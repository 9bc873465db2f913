#include "ckpt/weights_hash.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/syscalls.h"
#include "ckpt/manifest.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::spill;
using test::TempDir;

class WeightsHash : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("XDG_CACHE_HOME");
    before_ = before ? before : "";
    ::setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1);
    std::filesystem::create_directories(dir_ / "m");
    bytes_ = std::string(300'000, 'w');
    spill(dir_ / "m/model.safetensors", bytes_);
    spill(dir_ / "m/config.json", "{}");
  }
  void TearDown() override {
    sys::set_hook({});
    ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  std::string hash() { return weights_hash(dir_ / "m"); }
  TempDir dir_{TempDir::in_memory};
  std::string bytes_, before_;
};

TEST_F(WeightsHash, DependsOnEachByteOfTheWeightsOnly) {
  const std::string before = hash();
  EXPECT_TRUE(before.starts_with(kWeightsHash));
  bytes_[150'000] = 'x';  // far from both ends
  spill(dir_ / "m/model.safetensors", bytes_);
  EXPECT_NE(hash(), before);
  bytes_[150'000] = 'w';
  spill(dir_ / "m/model.safetensors", bytes_);
  spill(dir_ / "m/config.json", "{\"a\": 1}");
  EXPECT_EQ(hash(), before);
  std::filesystem::rename(dir_ / "m/model.safetensors", dir_ / "m/pytorch_model.bin");
  EXPECT_NE(hash(), before);
}

TEST_F(WeightsHash, OfAManifestIsThatOfTheFiles) {
  const std::string before = hash();
  Manifest m;
  m.files = {record_file(dir_ / "m", "model.safetensors")};
  std::filesystem::create_directories(dir_ / "m/training");
  spill(dir_ / (std::string("m/") + kManifestPath), to_json(m));
  i64 read = 0;
  sys::set_hook([&](const sys::Call& c) {
    if (c.op == sys::Op::read && c.path.ends_with("model.safetensors")) read += c.bytes;
    return sys::Verdict{};
  });
  EXPECT_EQ(hash(), before);
  EXPECT_EQ(read, 0);
}

TEST_F(WeightsHash, AFileIsReadOnce) {
  const std::string young = hash();  // its bytes might still change without a new time
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  i64 read = 0;
  sys::set_hook([&](const sys::Call& c) {
    if (c.op == sys::Op::read && c.path.ends_with("model.safetensors")) read += c.bytes;
    return sys::Verdict{};
  });
  EXPECT_EQ(hash(), young);
  EXPECT_EQ(read, 300'000);
  EXPECT_EQ(hash(), young);
  EXPECT_EQ(read, 300'000);
  bytes_[150'000] = 'x';
  spill(dir_ / "m/model.safetensors", bytes_);
  EXPECT_NE(hash(), young);
}

}  // namespace
}  // namespace redco::ckpt
