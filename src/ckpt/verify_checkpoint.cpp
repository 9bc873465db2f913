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

// This rank among those of its host.
struct Place {
  i64 index = 0, count = 0;
};
Place place_on_host(Group& world) {
  const u64 hash = hash64(host_name());
  const std::array<i32, 2> mine = {static_cast<i32>(hash >> 32), static_cast<i32>(hash & 0xFFFFFFFF)};
  const auto n = static_cast<std::size_t>(world.size());
  std::vector<i32> all(2 * n);
  world.all_gather<i32>(mine.data(), all.data(), std::vector<i64>(n, 2));
  Place p;
  for (int r = 0; r < world.size(); ++r) {
    if (all[2 * r] != mine[0] || all[2 * r + 1] != mine[1]) continue;
    p.index += r < world.rank();
    ++p.count;
  }
  return p;
}

// The same advice as a search for the newest checkpoint gives, where the folder is a step of a workdir.
std::string remedy(const std::string& folder, const std::optional<RunIdentity>& run,
                   const std::string& setting) {
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(folder, none);
  const auto step = parse_step_name(real.filename());
  return step ? CheckpointFolder(real.parent_path(), run).remedy(*step, setting) : "";
}

}  // namespace

void verify_checkpoint(const std::string& folder, Part part, const std::string& setting) {
  Group& world = Context::current().world();
  const Place place = place_on_host(world);
  world.together([&] {
    std::optional<RunIdentity> run;
    try {
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
    } catch (const IoError& e) {
      throw IoError("[checkpoint] {}{}", e.what(), remedy(folder, run, setting));
    } catch (const BugError&) {
      throw;
    } catch (const Error& e) {
      throw ContentsError("[checkpoint] {}{}", e.what(), remedy(folder, run, setting));
    }
  });
}

}  // namespace redco::ckpt
