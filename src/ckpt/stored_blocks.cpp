#include "ckpt/stored_blocks.h"

#include <map>

#include "ckpt/gguf_file.h"

namespace redco::ckpt {

std::optional<DType> blocks_of(const ParamSpec& s, const TensorEntry& e) {
  const auto type = e.gguf ? memory_type(e.gguf->type) : std::nullopt;
  if (!type || e.shape.size() != 2 || e.shape != s.stored.shape || e.gguf->add != 0 || e.gguf->stack ||
      e.gguf->transposed != s.stored.transposed)
    return std::nullopt;
  const i64 columns = e.shape[e.gguf->transposed ? 0 : 1];
  return columns == s.shape.back() && columns % group_of(*type) == 0 ? type : std::nullopt;
}

void keep_blocks(ModelParams& params, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical) {
  std::map<std::string, const TensorEntry*> entries;
  for (const ModelFiles::Located& l : files.tensors())
    if (const std::string name = canonical(l.entry->name); l.entry->gguf && !name.empty())
      entries[name] = l.entry;
  if (entries.empty()) return;
  for (ParamSpec& s : params.specs) {
    std::optional<DType> type;
    for (i64 k = 0; k < s.stored.tensors(); ++k) {
      const auto it = entries.find(s.stored.tensor(k));
      const auto of_one = it == entries.end() ? std::nullopt : blocks_of(s, *it->second);
      if (!of_one || (k > 0 && *of_one != *type)) {
        type.reset();
        break;
      }
      type = of_one;
    }
    if (type) s.storage = type;
  }
}

}  // namespace redco::ckpt
