#include "config/other_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace redco {

namespace {

constexpr std::string_view kBatch =
    "the batch of one step is train.global_batch_size; gradients are accumulated over micro-batches of "
    "train.per_device_batch_size";

}  // namespace

const std::vector<OtherName>& other_names() {
  static const std::vector<OtherName> names = {
      // TrainingArguments
      {"num_train_epochs", "train.n_epochs", "", ""},
      {"num_epochs", "train.n_epochs", "", ""},
      {"epochs", "train.n_epochs", "", ""},
      {"steps", "train.max_steps", "", ""},
      {"n_steps", "train.max_steps", "", ""},
      {"num_steps", "train.max_steps", "", ""},
      {"num_train_steps", "train.max_steps", "", ""},
      {"total_steps", "train.max_steps", "", ""},
      {"iterations", "train.max_steps", "", ""},
      {"num_iterations", "train.max_steps", "", ""},
      {"max_iters", "train.max_steps", "", ""},
      {"checkpoint.steps", "checkpoint.every_n_steps", "", ""},
      {"eval.steps", "eval.every_n_steps", "", ""},
      {"per_device_train_batch_size", "train.per_device_batch_size", "", kBatch},
      {"train_batch_size", "train.global_batch_size", "", kBatch},
      {"batch_size", "train.global_batch_size", "", kBatch},
      {"micro_batch_size", "train.per_device_batch_size", "", kBatch},
      {"gradient_accumulation_steps", "train.global_batch_size", "", kBatch},
      {"per_device_eval_batch_size", "eval.per_device_batch_size", "", ""},
      {"eval_batch_size", "eval.per_device_batch_size", "", ""},
      {"lr", "train.learning_rate", "", ""},
      {"lr_scheduler_type", "train.schedule", "", ""},
      {"lr_scheduler", "train.schedule", "", ""},
      {"scheduler", "train.schedule", "", ""},
      {"optim", "train.optimizer", "", ""},
      {"max_grad_norm", "train.clip_grad_norm", "", ""},
      {"gradient_clipping", "train.clip_grad_norm", "", ""},
      {"grad_clip", "train.clip_grad_norm", "", ""},
      {"label_smoothing_factor", "train.label_smoothing", "", ""},
      {"beta1", "train.adam_beta1", "", ""},
      {"beta2", "train.adam_beta2", "", ""},
      {"betas", "train.adam_beta1", "", "train.adam_beta2 is the second one"},
      {"eps", "train.adam_epsilon", "", ""},
      {"warmup", "train.warmup_steps", "", ""},
      {"bf16", "train.compute_dtype", "bf16", ""},
      {"fp16", "train.compute_dtype", "bf16", "redco computes in fp32 or bf16"},
      {"mixed_precision", "train.compute_dtype", "bf16", ""},
      {"precision", "train.compute_dtype", "", ""},
      {"dtype", "train.compute_dtype", "", ""},
      {"gradient_checkpointing", "train.recompute", "block", ""},
      {"activation_checkpointing", "train.recompute", "block", ""},
      {"log_every_n_steps", "train.logging_steps", "", ""},
      {"output_dir", "workdir", "", ""},
      {"logging_dir", "workdir", "", ""},
      {"out_dir", "workdir", "", ""},
      {"run_name", "workdir", "", "a run is named by its folder"},
      {"overwrite_output_dir", "checkpoint.resume", "never", ""},
      {"resume_from_checkpoint", "checkpoint.resume", "", ""},
      {"save_steps", "checkpoint.every_n_steps", "", ""},
      {"save_strategy", "checkpoint.every_n_steps", "", "or checkpoint.every_n_epochs"},
      {"save_total_limit", "checkpoint.keep_last", "", ""},
      {"metric_for_best_model", "checkpoint.save_best_by.max", "", "or checkpoint.save_best_by.min"},
      {"load_best_model_at_end", "checkpoint.save_best_by.max", "", "or checkpoint.save_best_by.min"},
      {"early_stopping_patience", "train.early_stopping.patience", "", ""},
      {"eval_steps", "eval.every_n_steps", "", ""},
      {"eval_strategy", "eval.every_n_steps", "", "or eval.every_n_epochs"},
      {"evaluation_strategy", "eval.every_n_steps", "", "or eval.every_n_epochs"},
      {"dataloader_num_workers", "data.n_workers", "", ""},
      {"num_workers", "data.n_workers", "", ""},
      {"zero_stage", "parallel.shard_optimizer", "true",
       "stage 2 is parallel.shard_gradients, stage 3 parallel.shard_parameters"},
      {"deepspeed", "parallel.shard_parameters", "",
       "with parallel.shard_optimizer and parallel.shard_gradients it is ZeRO"},
      {"fsdp", "parallel.shard_parameters", "true", ""},
      {"tensor_parallel_size", "parallel.n_model_shards", "", ""},
      {"tp_size", "parallel.n_model_shards", "", ""},
      {"nproc_per_node", "parallel.n_ranks", "", ""},
      {"world_size", "parallel.n_ranks", "", ""},
      // Data
      {"max_seq_length", "data.max_length", "", ""},
      {"max_seq_len", "data.max_length", "", ""},
      {"block_size", "data.max_length", "", ""},
      {"seq_len", "data.max_length", "", ""},
      {"seq_length", "data.max_length", "", ""},
      {"context_length", "data.max_length", "", ""},
      {"cutoff_len", "data.max_length", "", ""},
      {"train_file", "data.train", "", ""},
      {"train_files", "data.train", "", ""},
      {"train_data", "data.train", "", ""},
      {"dataset", "data.train", "", ""},
      {"dataset_name", "data.train", "", "redco reads files; it downloads no data set"},
      {"data_files", "data.train", "", ""},
      {"validation_file", "data.eval", "", ""},
      {"eval_file", "data.eval", "", ""},
      {"eval_dataset", "data.eval", "", ""},
      {"dataset_text_field", "data.fields.text", "", ""},
      {"text_column", "data.fields.text", "", ""},
      {"label_column", "data.fields.label", "", ""},
      {"delimiter", "data.format", "", "csv has commas, tsv has tabs"},
      // Models and LoRA
      {"name_or_path", "model.path", "", ""},
      {"model_name_or_path", "model.path", "", ""},
      {"pretrained_model_name_or_path", "model.path", "", ""},
      {"model_name", "model.path", "", ""},
      {"tokenizer_name", "model.tokenizer", "", ""},
      {"lora_r", "train.lora.rank", "", ""},
      {"r", "train.lora.rank", "", ""},
      {"lora_rank", "train.lora.rank", "", ""},
      {"lora_alpha", "train.lora.alpha", "", ""},
      {"lora_dropout", "train.lora.dropout", "", ""},
      {"lora_target_modules", "train.lora.target_modules", "", ""},
      {"lora", "train.lora.rank", "", "also alpha, dropout, target_modules"},
      {"peft", "train.lora.rank", "", "also alpha, dropout, target_modules"},
      {"peft_config", "train.lora.rank", "", "also alpha, dropout, target_modules"},
      {"targets", "train.lora.target_modules", "", ""},
      {"load_in_8bit", "model.weight_dtype", "int8", ""},
      {"load_in_4bit", "model.weight_dtype", "int4", ""},
      {"quantization", "model.weight_dtype", "", ""},
      // GenerationConfig
      {"do_sample", "predict.temperature", "", "0 chooses the most likely token, above 0 samples"},
      {"max_tokens", "predict.max_new_tokens", "", ""},
      {"n_predict", "predict.max_new_tokens", "", ""},
      {"num_return", "predict.num_return_sequences", "", ""},
      {"stop_strings", "predict.stop", "", ""},
      {"stop_sequences", "predict.stop", "", ""},
      {"system_prompt", "predict.system", "", ""},
      // No counterpart
      {"report_to", "", "", "metrics are in metrics.jsonl and report.html of workdir"},
      {"push_to_hub", "", "", "redco does not upload models"},
      {"trust_remote_code", "", "", "redco runs no code of a model's folder"},
      {"remove_unused_columns", "", "", "columns that data.fields does not name are never read"},
      {"device", "", "", "redco computes on CPUs; parallel.n_ranks is the number of processes"},
      {"no_cuda", "", "", "redco computes on CPUs"},
      {"use_cpu", "", "", "redco computes on CPUs"},
      {"local_rank", "", "", "redco starts its ranks itself: parallel.n_ranks"},
  };
  return names;
}

std::string counterpart(std::string_view key, std::string_view section) {
  const std::string_view last = key.substr(key.rfind('.') + 1);
  // The name in this section, else in any.
  auto found = std::ranges::find(other_names(), std::string(section) + std::string(last), &OtherName::name);
  if (found == other_names().end()) found = std::ranges::find(other_names(), last, &OtherName::name);
  if (found == other_names().end()) return "";
  std::string target(found->key);
  // Evaluations have the same generation settings.
  if (section == "eval.generation." && target.starts_with("predict."))
    target = "eval.generation." + target.substr(8);
  std::string out = target.empty() ? fmt::format("; redco has no such setting: {}", found->note)
                                   : fmt::format("; redco's key is {}", target);
  if (!target.empty() && !found->value.empty()) out += fmt::format("={}", found->value);
  if (!target.empty() && !found->note.empty()) out += fmt::format(" ({})", found->note);
  return out;
}

bool is_other_name_of_model(std::string_view key) {
  const std::string_view names[] = {"name_or_path", "model_name_or_path",  "pretrained_model_name_or_path",
                                    "model_name",   "tokenizer_name",      "lora",
                                    "lora_r",       "lora_rank",           "lora_alpha",
                                    "lora_dropout", "lora_target_modules", "peft",
                                    "peft_config",  "load_in_8bit",        "load_in_4bit",
                                    "quantization"};
  return std::ranges::find(names, key) != std::end(names);
}

}  // namespace redco
