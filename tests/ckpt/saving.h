// Checkpoints as a trainer saves them, for tests of saving and finding.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "ckpt/model_files.h"
#include "ckpt/publish.h"
#include "ckpt/safetensors_write.h"
#include "support/temp_dir.h"

namespace redco::ckpt {

// Skips syncs: CrashDisk tests what a disk keeps, and a killed process loses nothing that it wrote.
inline sys::Verdict no_sync(const sys::Call& c) {
  return c.op == sys::Op::sync ? sys::Verdict{sys::Verdict::skip} : sys::Verdict{};
}

class Saving : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::error);  // hundreds of failures would be logged as warnings
    sys::set_hook(no_sync);
  }
  void TearDown() override {
    set_log_level(LogLevel::info);
    sys::set_hook({});
  }
};

inline const std::map<std::string, i64> kVersions = {{"rng", 1}, {"shuffle", 1}, {"packing", 1}, {"init", 1}};

// A save like a trainer's: all weights have `value`, so that old and new checkpoints differ.
inline void write_files(const std::string& temp, float value, std::vector<FileRecord>* records) {
  FilePlan plan = plan_file("model.safetensors", {{"w", StoredType::f32, {4}}, {"b", StoredType::bf16, {2}}});
  auto w = SafetensorsWriter::create(temp, plan);
  std::vector<float> v(4, value);
  w.write("w", {{0, 4}}, v.data());
  w.write("b", {{0, 2}}, v.data());
  w.commit();
  records->push_back(record_file(temp, "model.safetensors"));
  write_file_durable(join_path(temp, "config.json"), fmt::format("{{\"value\": {}}}", value));
  write_file_durable(join_path(temp, "training/state.json"), "{}");
  test::spill(join_path(temp, "vocab.txt"), "a");  // copied without a sync
}

inline void save(CheckpointFolder& c, i64 step, float value, i64 keep_last = 1) {
  std::vector<FileRecord> records;
  write_files(c.begin(step, 1000), value, &records);
  c.publish(step, kVersions, records);
  c.point("last", step);
  c.point("best-loss", step);
  c.prune(keep_last);
}

inline float value_of(const std::string& checkpoint) {
  ModelFiles m = ModelFiles::open(checkpoint);
  return m.at("w").file->read<float>(*m.at("w").entry)[3];
}

// The damage in a checkpoint's bytes; "": none.
inline std::string damage(const std::string& path) {
  try {
    const Manifest m = read_manifest(path);
    if (const auto missing = missing_bytes(path, m)) return *missing;
    for (const FileRecord& f : m.files)
      for (i64 i = 0; i < m.chunks_of(f); ++i) check_chunk(path, m, f, i);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The value of the newest complete checkpoint; also checks that `last` refers to a complete one. -1: none.
inline float found_value(const std::string& folder) {
  const auto found = CheckpointFolder(folder).find_newest("checkpoint.resume");
  if (!found) return -1;
  EXPECT_EQ(damage(found.path), "");
  return value_of(found.path);
}

}  // namespace redco::ckpt
