#include "gguf/folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "gguf/folder_config.h"
#include "gguf/folder_tokenizer.h"

namespace redco::gguf {

namespace {

constexpr int kReaderVersion = 1;  // changes with the contents of the folders

std::string cache() {
  const auto variable = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  if (const std::string x = variable("XDG_CACHE_HOME"); !x.empty()) return join_path(x, "redco/gguf");
  if (const std::string h = variable("HOME"); !h.empty()) return join_path(h, ".cache/redco/gguf");
  return join_path(std::filesystem::temp_directory_path().string(), fmt::format("redco-gguf-{}", getuid()));
}

void write_folder(const std::string& folder, const Model& m, Contents contents) {
  const auto write = [&](const char* name, const std::string& text) {
    write_file_durable(join_path(folder, name), text);
  };
  if (contents == Contents::model) {
    write("config.json", folder_config(m));
    write("generation_config.json", folder_generation_config(m.header));
  }
  if (const auto tokenizer = folder_tokenizer(m.header)) {
    write("tokenizer.json", tokenizer->tokenizer_json);
    write("tokenizer_config.json", tokenizer->tokenizer_config_json);
  }
  for (const ReadFile& part : m.parts)
    symlink_durable(std::filesystem::absolute(part.path()).lexically_normal().string(),
                    join_path(folder, file_name(part.path())));
}

}  // namespace

bool is_gguf(const std::string& path) { return path.ends_with(".gguf"); }

std::string folder_of(const std::string& path, Contents contents) {
  if (!is_gguf(path) || !exists(path) || is_folder(path)) return path;
  const auto place = std::filesystem::canonical(path);
  const std::string facts = fmt::format("{} {} {} {} {}", kReaderVersion, static_cast<int>(contents),
                                        place.string(), std::filesystem::file_size(place),
                                        std::filesystem::last_write_time(place).time_since_epoch().count());
  std::string stem = file_name(path);
  stem.resize(stem.size() - 5);
  const std::string folder = join_path(cache(), fmt::format("{}-{:016x}", stem, hash64(facts)));
  if (is_folder(folder)) return folder;
  const std::string made = fmt::format("{}.tmp-{}", folder, getpid());
  make_dirs(made);
  try {
    write_folder(made, open_model(path), contents);
    std::error_code failed;
    std::filesystem::rename(made, folder, failed);
    if (failed && !is_folder(folder)) throw IoError("cannot rename {} to {}", made, folder);
  } catch (...) {
    remove_tree(made);
    throw;
  }
  remove_tree(made);  // where another process was faster
  return folder;
}

std::string source_of(const std::string& folder) {
  const std::string file = file_in(folder);
  std::error_code none;
  const auto target = std::filesystem::read_symlink(file, none);
  const std::string source = target.string();
  return !source.empty() && exists(source) && folder_of(source) == folder ? source : "";
}

std::string file_in(const std::string& folder) {
  std::vector<std::string> found;
  if (is_folder(folder))
    for (const std::string& name : list_dir(folder))
      if (is_gguf(name)) found.push_back(join_path(folder, name));
  if (found.empty()) return "";
  // The first part of a split model represents all.
  if (found.size() > 1 && found[0].find("-00001-of-") == std::string::npos) return "";
  return found[0];
}

}  // namespace redco::gguf
