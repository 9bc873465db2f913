#include "models/model.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace redco {

std::vector<i32> Model::positions(std::span<const i32> mask, bool generating) const {
  std::vector<i32> out(mask.size());
  i32 seen = 0;
  for (size_t t = 0; t < mask.size(); ++t) {
    seen += mask[t];
    out[t] = generating ? std::max(seen - 1, 0) : static_cast<i32>(t);
  }
  return out;
}

namespace {

struct Family {
  const char* model_type;
  std::unique_ptr<Model> (*make)(ModelConfig&);
};
// The registry: explicit, no static initializers.
constexpr Family kFamilies[] = {
    {"gpt2", make_gpt2},   {"gptj", make_gptj},     {"opt", make_opt},
    {"llama", make_llama}, {"mistral", make_llama}, {"qwen2", make_llama},
};

}  // namespace

std::vector<std::string> model_families() {
  std::vector<std::string> out;
  for (const Family& f : kFamilies) out.push_back(f.model_type);
  return out;
}

std::unique_ptr<Model> make_model(ModelConfig config) {
  const std::string type = config.text_or("model_type", "");
  for (const Family& f : kFamilies)
    if (type == f.model_type) return f.make(config);
  config.fail("model_type",
              fmt::format("this family is not supported; supported: {}", fmt::join(model_families(), ", ")));
}

}  // namespace redco
