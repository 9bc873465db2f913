#include "pipelines/pipelines.h"

#include <fmt/ranges.h>

#include <map>

#include "base/error.h"

namespace redco {

namespace {

std::string language_model(const std::string& family) {
  static const std::map<std::string, std::string> classes = {
      {"gpt2", "GPT2LMHeadModel"},   {"gptj", "GPTJForCausalLM"},       {"opt", "OPTForCausalLM"},
      {"llama", "LlamaForCausalLM"}, {"mistral", "MistralForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}};
  const auto it = classes.find(family);
  return it == classes.end() ? "" : it->second;
}

// One line a pipeline.
const std::vector<PipelineInfo>& pipelines() {
  static const std::vector<PipelineInfo> all = {
      {.name = "lm",
       .make = make_lm_pipeline,
       .reads_lines = true,
       .metrics = {{"perplexity", {"perplexity"}}},
       .architecture = language_model},
  };
  return all;
}

}  // namespace

std::vector<std::string> PipelineInfo::metric_names() const {
  std::vector<std::string> out = {"loss"};
  for (const auto& [family, names] : metrics) out.insert(out.end(), names.begin(), names.end());
  return out;
}

const PipelineInfo* pipeline_info(const std::string& name) {
  for (const PipelineInfo& p : pipelines())
    if (name == p.name) return &p;
  return nullptr;
}

std::vector<std::string> pipeline_names() {
  std::vector<std::string> out;
  for (const PipelineInfo& p : pipelines()) out.emplace_back(p.name);
  return out;
}

std::unique_ptr<Pipeline> make_pipeline(const std::string& name) {
  if (const PipelineInfo* p = pipeline_info(name)) return p->make();
  if (name.find('/') != std::string::npos || name.ends_with(".so")) return load_pipeline(name);
  throw UsageError("[pipeline] '{}' is no built-in pipeline ({}) and no path of a shared object", name,
                   fmt::join(pipeline_names(), ", "));
}

}  // namespace redco
