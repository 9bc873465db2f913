#include "pipelines/pipelines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "models/model.h"

namespace redco {

namespace {

std::string language_model(const std::string& family) { return language_model_class(family); }

// For pipelines with their own networks.
std::string no_model(const std::string&) { return ""; }

std::string text_to_text(const std::string& family) {
  static const std::map<std::string, std::string> classes = {
      {"t5", "T5ForConditionalGeneration"},
      {"mt5", "MT5ForConditionalGeneration"},
      {"umt5", "UMT5ForConditionalGeneration"},
      {"bart", "BartForConditionalGeneration"},
      {"mbart", "MBartForConditionalGeneration"},
      {"marian", "MarianMTModel"},
      {"plbart", "PLBartForConditionalGeneration"},
      {"blenderbot", "BlenderbotForConditionalGeneration"},
      {"blenderbot-small", "BlenderbotSmallForConditionalGeneration"},
      {"pegasus", "PegasusForConditionalGeneration"},
      {"m2m_100", "M2M100ForConditionalGeneration"}};
  const auto it = classes.find(family);
  return it == classes.end() ? "" : it->second;
}

// transformers' class of a decoder with another head.
std::string decoder_class(const std::string& family, const std::string& ending) {
  std::string name = language_model_class(family);
  for (const std::string& end : {std::string("ForCausalLM"), std::string("LMHeadModel")})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name + ending;
}
// With a score per class; "": it has none.
std::string decoder_classes(const std::string& family) {
  static const std::set<std::string> families = {
      "bloom",     "deepseek_v2", "deepseek_v3", "exaone4",    "falcon",
      "gemma",     "gemma2",      "glm4",        "minicpm3",   "modernbert-decoder",
      "persimmon", "gpt2",        "gpt_bigcode", "gpt_neox",   "gptj",
      "llama",     "mistral",     "mixtral",     "mpt",        "olmo",
      "olmo2",     "olmo3",       "nemotron",    "openai-gpt", "opt",
      "phi",       "phi3",        "qwen2",       "qwen3",      "qwen2_moe",
      "qwen3_moe", "smollm3",     "stablelm",    "starcoder2"};
  if (family == "gemma3_text") return "Gemma3TextForSequenceClassification";
  return families.count(family) ? decoder_class(family, "ForSequenceClassification") : "";
}
// With a score per class for each token.
std::string decoder_tags(const std::string& family) {
  static const std::set<std::string> families = {
      "arcee",     "bloom",    "deepseek_v3", "exaone4",  "falcon",     "gemma",    "gemma2", "glm",
      "glm4",      "gpt2",     "gpt_bigcode", "gpt_neox", "gpt_oss",    "helium",   "llama",  "mistral",
      "mixtral",   "mpt",      "nemotron",    "phi",      "phi3",       "qwen2",    "qwen3",  "qwen2_moe",
      "qwen3_moe", "seed_oss", "smollm3",     "stablelm", "starcoder2", "persimmon"};
  return families.count(family) ? decoder_class(family, "ForTokenClassification") : "";
}

// Encoders: the beginning of the names of their classes.
std::string encoder_class(const std::string& family, const std::string& ending) {
  static const std::map<std::string, std::string> classes = {{"bert", "Bert"},
                                                             {"roberta", "Roberta"},
                                                             {"xlm-roberta", "XLMRoberta"},
                                                             {"camembert", "Camembert"},
                                                             {"data2vec-text", "Data2VecText"},
                                                             {"ernie", "Ernie"},
                                                             {"esm", "Esm"},
                                                             {"distilbert", "DistilBert"},
                                                             {"mpnet", "MPNet"},
                                                             {"electra", "Electra"},
                                                             {"albert", "Albert"},
                                                             {"deberta-v2", "DebertaV2"},
                                                             {"modernbert", "ModernBert"},
                                                             {"nomic_bert", "NomicBert"},
                                                             {"gte", "Gte"},
                                                             {"jina_embeddings_v3", "JinaEmbeddingsV3"},
                                                             {"eurobert", "EuroBert"},
                                                             {"roformer", "RoFormer"},
                                                             {"megatron-bert", "MegatronBert"},
                                                             {"roberta-prelayernorm", "RobertaPreLayerNorm"},
                                                             {"xlm-roberta-xl", "XLMRobertaXL"}};
  const auto it = classes.find(family);
  return it == classes.end() ? "" : it->second + ending;
}
std::string labelling(const std::string& family) {
  static const std::map<std::string, std::string> classes = {
      {"bart", "BartForSequenceClassification"},
      {"mbart", "MBartForSequenceClassification"},
      {"vit", "ViTForImageClassification"},
      {"deit", "DeiTForImageClassification"},
      {"dinov2", "Dinov2ForImageClassification"},
      {"cnn", "CnnForImageClassification"},
      {"mlp-mixer", "MlpMixerForImageClassification"},
      {"performer", "PerformerForSequenceClassification"},
      {"mlp", "MlpModel"}};
  if (const auto it = classes.find(family); it != classes.end()) return it->second;
  const std::string name = encoder_class(family, "ForSequenceClassification");
  return name.empty() ? decoder_classes(family) : name;
}

// Encoders without head, and decoders.
std::string text_embedding(const std::string& family) {
  const std::string name = encoder_class(family, "Model");
  return name.empty() ? language_model(family) : name;
}
std::string tagging(const std::string& family) {
  const std::string name = encoder_class(family, "ForTokenClassification");
  return name.empty() ? decoder_tags(family) : name;
}
// Encoders for which transformers has neither class.
bool scores_texts_only(const std::string& family) { return family == "gte" || family == "eurobert"; }
std::string span_finding(const std::string& family) {
  return scores_texts_only(family) ? "" : encoder_class(family, "ForQuestionAnswering");
}
std::string choosing(const std::string& family) {
  const bool none = family == "electra" || family == "roformer" || family == "jina_embeddings_v3" ||
                    scores_texts_only(family);
  return none ? "" : encoder_class(family, "ForMultipleChoice");
}

// Encoders and decoders that score a text.
std::string scoring(const std::string& family) {
  const std::string name = labelling(family);
  return name.ends_with("ForSequenceClassification") ? name : "";
}

// Models with both towers, and classifiers of images or texts.
std::string embedding_pairs(const std::string& family) {
  return family == "clip" ? "CLIPModel" : family == "siglip" ? "SiglipModel" : labelling(family);
}

std::string image_to_text(const std::string& family) {
  return family == "vision-encoder-decoder" ? "VisionEncoderDecoderModel" : "";
}

std::string speech_to_text(const std::string& family) {
  return family == "whisper" ? "WhisperForConditionalGeneration" : "";
}

std::string diffusion_transformer(const std::string& family) {
  return family == "dit" ? "DiTForTextToImage" : "";
}

std::string few_shot(const std::string& family) {
  return family == "cnn" ? "CnnForImageClassification" : family == "mlp" ? "MlpModel" : "";
}

// One entry per pipeline.
const std::vector<PipelineInfo>& pipelines() {
  static const std::vector<PipelineInfo> all = {
      {.name = "lm",
       .make = make_lm_pipeline,
       .reads_lines = true,
       .reads_files_only = true,
       .metrics = {{"perplexity", {"perplexity"}}},
       .architecture = language_model,
       .answers = PipelineInfo::Answers::texts},
      {.name = "seq2seq",
       .make = make_seq2seq_pipeline,
       .reads_files_only = true,
       .metrics = built_in_text_metrics(),
       .scores_texts = true,
       .architecture = text_to_text,
       .generates = true,
       .answers = PipelineInfo::Answers::texts},
      {.name = "captioning",
       .make = make_captioning_pipeline,
       .reads_files_only = true,
       .metrics = built_in_text_metrics(),
       .scores_texts = true,
       .architecture = image_to_text,
       .generates = true,
       .answers = PipelineInfo::Answers::texts},
      {.name = "transcription",
       .make = make_transcription_pipeline,
       .reads_files_only = true,
       .metrics = speech_metrics(),
       .scores_texts = true,
       .architecture = speech_to_text,
       .generates = true,
       .answers = PipelineInfo::Answers::texts},
      {.name = "classification",
       .make = make_classification_pipeline,
       .metrics = {{"accuracy", {"accuracy"}},
                   {"f1", {"f1", "f1_macro", "f1_micro", "f1_weighted"}},
                   {"matthews", {"matthews"}}},
       .architecture = labelling,
       .new_head = true,
       .config = classification_config},
      {.name = "regression",
       .make = make_regression_pipeline,
       .metrics = {{"mse", {"mse"}}, {"mae", {"mae"}}, {"pearson", {"pearson"}}, {"spearman", {"spearman"}}},
       .architecture = labelling,
       .new_head = true,
       .config = regression_config},
      {.name = "dpo",
       .make = make_dpo_pipeline,
       .reads_files_only = true,
       .metrics = {{"accuracy", {"accuracy"}},
                   {"margin", {"margin"}},
                   {"rewards", {"chosen_reward", "rejected_reward"}},
                   {"kl", {"kl"}},
                   {"nll", {"nll"}}},
       .architecture = language_model,
       .answers = PipelineInfo::Answers::texts,
       .reference = true,
       .renders_chats = true},
      {.name = "reward",
       .make = make_reward_pipeline,
       .reads_files_only = true,
       .metrics = {{"accuracy", {"accuracy"}},
                   {"margin", {"margin"}},
                   {"rewards", {"chosen_reward", "rejected_reward"}}},
       .architecture = scoring,
       .new_head = true,
       .renders_chats = true},
      {.name = "distillation",
       .make = make_distillation_pipeline,
       .reads_lines = true,
       .reads_files_only = true,
       .metrics = {{"cross_entropy", {"cross_entropy"}}, {"kl", {"kl"}}},
       .architecture = language_model,
       .answers = PipelineInfo::Answers::texts},
      {.name = "contrastive",
       .make = make_contrastive_pipeline,
       .reads_files_only = true,
       .metrics = {{"recall",
                    {"image_to_text_recall_1", "image_to_text_recall_5", "text_to_image_recall_1",
                     "text_to_image_recall_5"}}},
       .architecture = embedding_pairs,
       .new_head = true},
      {.name = "embedding",
       .make = make_embedding_pipeline,
       .reads_files_only = true,
       .metrics = {{"ndcg", {"ndcg_10"}},
                   {"mrr", {"mrr_10"}},
                   {"recall", {"recall_1", "recall_5", "recall_10"}},
                   {"spearman", {"spearman"}},
                   {"pearson", {"pearson"}}},
       .architecture = text_embedding,
       .new_head = true,
       .headless = true,
       .needs_tokenizer = true},
      {.name = "reranking",
       .make = make_reranking_pipeline,
       .reads_files_only = true,
       .metrics = {{"ndcg", {"ndcg_10"}}, {"mrr", {"mrr_10"}}, {"accuracy", {"accuracy"}}},
       .architecture = labelling,
       .new_head = true,
       .needs_tokenizer = true,
       .config = reranking_config},
      {.name = "token_classification",
       .make = make_token_classification_pipeline,
       .reads_files_only = true,
       .metrics = {{"f1", {"f1", "precision", "recall"}}, {"accuracy", {"accuracy"}}},
       .architecture = tagging,
       .new_head = true,
       .needs_tokenizer = true,
       .config = token_classification_config},
      {.name = "question_answering",
       .make = make_question_answering_pipeline,
       .reads_files_only = true,
       .metrics = {{"exact_match", {"exact_match"}}, {"f1", {"f1"}}},
       .architecture = span_finding,
       .new_head = true,
       .needs_tokenizer = true},
      {.name = "multiple_choice",
       .make = make_multiple_choice_pipeline,
       .reads_files_only = true,
       .metrics = {{"accuracy", {"accuracy"}}},
       .architecture = choosing,
       .new_head = true,
       .needs_tokenizer = true},
      {.name = "grpo",
       .make = make_grpo_pipeline,
       .reads_files_only = true,
       .metrics = {{"reward", {"reward"}}},
       .architecture = language_model,
       .generates = true,
       .answers = PipelineInfo::Answers::texts,
       .renders_chats = true},
      {.name = "text_to_image",
       .make = make_text_to_image_pipeline,
       .reads_files_only = true,
       .architecture = diffusion_transformer,
       .answers = PipelineInfo::Answers::images},
      {.name = "maml",
       .make = make_maml_pipeline,
       .metrics = {{"accuracy", {"accuracy", "accuracy_ci95"}}},
       .architecture = few_shot},
      {.name = "rl",
       .make = make_rl_pipeline,
       .needs_model = false,
       .needs_data = false,
       .metrics = {{"return", {"mean_return", "std_return", "min_return", "max_return"}},
                   {"length", {"mean_length"}}},
       .architecture = no_model},
  };
  return all;
}

}  // namespace

MetricFamilies PipelineInfo::all_metrics() const {
  MetricFamilies out = metrics;
  if (scores_texts)
    for (const PluginMetric& m : plugin_metrics()) out.push_back({m.name, {m.name}});
  return out;
}

std::vector<std::string> PipelineInfo::metric_names(const std::vector<EvalSetSettings>& sets) const {
  std::vector<std::string> all = {"loss"};
  for (const auto& [family, names] : all_metrics()) all.insert(all.end(), names.begin(), names.end());
  if (sets.empty()) return all;
  std::vector<std::string> out;
  for (const EvalSetSettings& set : sets)
    for (const std::string& name : all) out.push_back(set.name + "_" + name);
  return out;
}

const PipelineInfo* pipeline_info(const std::string& name) {
  for (const PipelineInfo& p : pipelines())
    if (name == p.name) return &p;
  return nullptr;
}

std::map<std::string, double> wanted_metrics(const char* pipeline, const std::vector<std::string>& families,
                                             std::map<std::string, double> metrics) {
  if (families.empty()) return metrics;
  for (const auto& [family, names] : pipeline_info(pipeline)->metrics)
    if (std::find(families.begin(), families.end(), family) == families.end())
      for (const std::string& name : names) metrics.erase(name);
  return metrics;
}

std::vector<std::string> pipeline_names() {
  std::vector<std::string> out;
  for (const PipelineInfo& p : pipelines()) out.emplace_back(p.name);
  return out;
}

std::unique_ptr<Pipeline> make_pipeline(const std::string& name) {
  if (const PipelineInfo* p = pipeline_info(name)) return p->make();
  if (name.find('/') != std::string::npos || name.ends_with(".so") || name.ends_with(".py"))
    return load_pipeline(name);
  throw UsageError(
      "[pipeline] '{}' is neither a built-in pipeline ({}) nor the path of a Python file or a shared object",
      name, fmt::join(pipeline_names(), ", "));
}

}  // namespace redco
