#include "ckpt/verify_checkpoint.h"

#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "ckpt/manifest.h"
#include "ckpt/publish.h"
#include "comm/group.h"
#include "tensor/context.h"

namespace redco::ckpt {

namespace {

// This rank's place among the ranks of its host.
struct HostPlace {
  i64 index = 0, count = 0;
};
HostPlace place_on_host(Group& world) {
  const u64 hash = hash64(host_name());
  const std::array<i32, 2> mine = {static_cast<i32>(hash >> 32), static_cast<i32>(hash & 0xFFFFFFFF)};
  const auto n = static_cast<std::size_t>(world.size());
  std::vector<i32> all(2 * n);
  world.all_gather<i32>(mine.data(), all.data(), std::vector<i64>(n, 2));
  HostPlace p;
  for (int r = 0; r < world.size(); ++r) {
    if (all[2 * r] != mine[0] || all[2 * r + 1] != mine[1]) continue;
    p.index += r < world.rank();
    ++p.count;
  }
  return p;
}

// For a step of a workdir, the same advice as the search for the newest checkpoint gives.
std::string remedy(const std::string& folder, const std::optional<RunIdentity>& run,
                   const std::string& setting) {
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(folder, none);
  const auto step = parse_step_name(real.filename());
  return step ? CheckpointFolder(real.parent_path(), run).remedy(*step, setting) : "";
}

// Runs f(run), which sets the run when it is known; errors get the checkpoint's remedy.
template <class F>
auto with_remedy(const std::string& folder, const std::string& setting, const F& f) {
  std::optional<RunIdentity> run;
  try {
    return f(run);
  } catch (const IoError& e) {
    throw IoError("[checkpoint] {}{}", e.what(), remedy(folder, run, setting));
  } catch (const BugError&) {
    throw;
  } catch (const Error& e) {
    throw ContentsError("[checkpoint] {}{}", e.what(), remedy(folder, run, setting));
  }
}

constexpr i64 kMostBytes = i64{64} << 20;

}  // namespace

std::string read_verified(const std::string& folder, const std::string& file, const std::string& setting) {
  return with_remedy(folder, setting, [&](std::optional<RunIdentity>& run) {
    if (exists(join_path(folder, kManifestPath))) {
      Manifest m = read_manifest(folder);
      run = m.run;
      std::erase_if(m.files, [&](const FileRecord& f) { return f.path != file; });
      if (const auto missing = missing_bytes(folder, m)) throw ContentsError("{}: {}", folder, *missing);
      for (const FileRecord& f : m.files)
        for (i64 i = 0; i < m.chunks_of(f); ++i) check_chunk(folder, m, f, i);
    }
    return read_file(join_path(folder, file), kMostBytes);
  });
}

void verify_checkpoint(const std::string& folder, Part part, const std::string& setting) {
  Group& world = Context::current().world();
  const HostPlace place = place_on_host(world);
  world.together([&] {
    with_remedy(folder, setting, [&](std::optional<RunIdentity>& run) {
      if (!exists(join_path(folder, kManifestPath))) return;
      Manifest m = read_manifest(folder);
      run = m.run;
      if (part == Part::model)
        std::erase_if(m.files, [](const FileRecord& f) { return f.path.starts_with("training/"); });
      if (const auto missing = missing_bytes(folder, m)) throw ContentsError("{}: {}", folder, *missing);
      i64 k = 0;
      for (const FileRecord& f : m.files)
        for (i64 i = 0; i < m.chunks_of(f); ++i)
          if (k++ % place.count == place.index) check_chunk(folder, m, f, i);
    });
  });
}

}  // namespace redco::ckpt
