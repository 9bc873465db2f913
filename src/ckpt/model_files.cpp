#include "ckpt/model_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/strict_json.h"
#include "ckpt/gguf_file.h"
#include "ckpt/mxfp4.h"
#include "ckpt/safetensors.h"
#include "ckpt/torch_bin.h"
#include "gguf/folder.h"

namespace redco::ckpt {
namespace {

constexpr i64 kMaxIndexBytes = 100'000'000;

// name -> shard, from the index.
std::map<std::string, std::string> read_index(const std::string& path, const std::string& ending) {
  nlohmann::json index = read_strict_json(path, kMaxIndexBytes);
  auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty())
    throw ContentsError("{}: expected an object weight_map, from tensor to file", path);
  std::map<std::string, std::string> shards;
  for (const auto& [name, value] : map->items()) {
    if (!value.is_string())
      throw ContentsError("{}: {} is {}, expected a file name", path, shown(name), value.type_name());
    const std::string& file = value.get_ref<const std::string&>();
    if (file.find('/') != file.npos || !file.ends_with(ending) || file.size() > 255)
      throw ContentsError("{}: {} is {}, expected the name of a {} file in the same folder", path,
                          shown(name), shown(file), ending);
    shards[name] = file;
  }
  return shards;
}

std::unique_ptr<TensorFile> open_file(const std::string& path) {
  if (path.ends_with(".bin")) return std::make_unique<TensorFile>(open_torch_bin(path));
  return std::make_unique<SafetensorsFile>(SafetensorsFile::open(path));
}

bool has_tensor(const std::vector<std::unique_ptr<TensorFile>>& files, const std::string& file,
                const std::string& tensor) {
  return std::ranges::any_of(files,
                             [&](const auto& f) { return file_name(f->path()) == file && f->find(tensor); });
}

}  // namespace

ModelFiles ModelFiles::open(const std::string& folder, const std::string& stem) {
  if (!is_folder(folder))
    throw UsageError("[model] {} is not a folder, expected one with {}.safetensors", folder, stem);
  ModelFiles m;
  m.folder_ = folder;
  std::map<std::string, std::string> wanted;
  std::string index_path;
  const std::string torch = stem == "model" ? "pytorch_model" : stem;
  for (const auto& [name, ending] : {std::pair(stem, ".safetensors"), std::pair(torch, ".bin")}) {
    const std::string path = join_path(folder, name + ending);
    if (exists(path)) {
      m.files_.push_back(open_file(path));
      if (exists(path + ".index.json"))
        log_once(LogLevel::warn,
                 fmt::format("{}: reading {}, as transformers does, and not the shards of {}. Remove the one "
                             "that is out of date",
                             folder, file_name(path), file_name(path) + ".index.json"));
      break;
    }
    if (!exists(path + ".index.json")) continue;
    index_path = path + ".index.json";
    wanted = read_index(index_path, ending);
    std::vector<std::string> names;
    for (const auto& [tensor, file] : wanted) names.push_back(file);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& shard : names) {
      if (!exists(join_path(folder, shard)))
        throw ContentsError("{}: the index lists {}, which is missing. Download it again", index_path, shard);
      m.files_.push_back(open_file(join_path(folder, shard)));
    }
    break;
  }
  if (const std::string gguf = gguf::file_in(folder); m.files_.empty() && stem == "model" && !gguf.empty())
    m.files_ = open_gguf(gguf);
  if (m.files_.empty())
    for (const std::string& name : list_dir(folder))
      if (const std::string path = join_path(folder, name);
          !exists(path) && name.find(stem) != name.npos)  // a link
        throw ContentsError("{}: the link points to {}, which is missing. Download the model again", path,
                            std::filesystem::read_symlink(path).string());
  if (m.files_.empty())
    throw ContentsError("{}: the folder has no {}.safetensors, {}.safetensors.index.json or {}.bin", folder,
                        stem, stem, torch);
  for (const auto& file : m.files_)
    for (const TensorEntry& e : file->entries()) {
      const std::string name = file_name(file->path());
      const auto place = wanted.find(e.name);
      if (place == wanted.end() || place->second == name || !has_tensor(m.files_, place->second, e.name)) {
        m.tensors_.push_back({file.get(), &e});
      } else {
        log_once(LogLevel::info, fmt::format("{}: reading {} from {}, as the index says; {} has it too",
                                             folder, e.name, place->second, name));
      }
    }
  std::sort(m.tensors_.begin(), m.tensors_.end(),
            [](const Located& a, const Located& b) { return a.entry->name < b.entry->name; });
  for (size_t i = 1; i < m.tensors_.size(); ++i)
    if (m.tensors_[i - 1].entry->name == m.tensors_[i].entry->name)
      throw ContentsError("{}: {} is in both {} and {}", folder, m.tensors_[i].entry->name,
                          file_name(m.tensors_[i - 1].file->path()), file_name(m.tensors_[i].file->path()));
  for (const auto& [tensor, file] : wanted) {
    const Located* l = m.find(tensor);
    if (!l || file_name(l->file->path()) != file)
      throw ContentsError("{}: the index places {} in {}, but {}", index_path, shown(tensor), file,
                          l ? "it is in " + file_name(l->file->path()) : "it isn't");
  }
  m.join_mxfp4();
  return m;
}

void ModelFiles::join_mxfp4() {
  std::string name;
  std::set<std::string> parts;
  std::vector<Located> made;
  for (const Located& blocks : tensors_) {
    if (!is_mxfp4_blocks(*blocks.entry, &name)) continue;
    const Located* const scales = find(name + "_scales");
    if (!scales) continue;
    joined_.push_back(std::make_unique<TensorEntry>(
        mxfp4_entry(name, *blocks.file, *blocks.entry, *scales->file, *scales->entry)));
    made.push_back({blocks.file, joined_.back().get()});
    parts.insert({blocks.entry->name, scales->entry->name});
  }
  if (made.empty()) return;
  std::erase_if(tensors_, [&](const Located& l) { return parts.contains(l.entry->name); });
  for (const Located& l : made)
    if (find(l.entry->name))
      throw ContentsError("{}: {} is stored, and so are its blocks in MXFP4; one of them must go", folder_,
                          l.entry->name);
  tensors_.insert(tensors_.end(), made.begin(), made.end());
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Located& a, const Located& b) { return a.entry->name < b.entry->name; });
}

const ModelFiles::Located* ModelFiles::find(std::string_view name) const {
  auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                             [](const Located& l, std::string_view n) { return l.entry->name < n; });
  return it != tensors_.end() && it->entry->name == name ? &*it : nullptr;
}

const ModelFiles::Located& ModelFiles::at(std::string_view name) const {
  if (const Located* l = find(name)) return *l;
  throw ContentsError("{}: the tensor {} is missing", folder_, name);
}

}  // namespace redco::ckpt
