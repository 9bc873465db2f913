// Checks of combinations of settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/log_once.h"
#include "base/words.h"
#include "job/checks.h"
#include "job/job_config.h"
#include "launch/host.h"
#include "launch/rank_environment.h"
#include "pipelines/pipelines.h"
#include "shard/mesh_of.h"
#include "train/learning_rate.h"
#include "train/step.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

// False if the number of ranks is unknown.
bool check_parallel(const JobConfig& job, Checks& c) {
  const ParallelSettings& p = job.parallel;
  c.run([&] { parse_environment(p.environment.values); });
  if (!p.hosts.empty() && p.hostfile) {
    c.problem("parallel.hosts ({}) and {} are both given; keep one", job.origins.where("parallel.hosts"),
              c.cite("parallel.hostfile", *p.hostfile));
    return false;
  }
  HostList list;
  bool all_good = true;
  for (std::size_t i = 0; i < p.hosts.size(); ++i) {
    all_good = c.run([&] {
      const std::string key = fmt::format("parallel.hosts[{}]", i);
      list.add(p.hosts[i], fmt::format("{} ({})", key, job.origins.where(key)));
    }) && all_good;
  }
  const i64 slots = total_slots(list.hosts());
  if (p.n_ranks && !p.hosts.empty() && all_good && *p.n_ranks > slots) {
    c.problem("{} exceeds the {} slots of parallel.hosts ({}); add slots or use n_ranks <= {}",
              c.cite("parallel.n_ranks", *p.n_ranks), slots, job.origins.where("parallel.hosts"), slots);
  }
  return all_good;
}

// Settings whose conditions (Setting::only_with) do not hold. `prefix`: "" or "data.".
void check_conditions(const JobConfig& job, const std::vector<Setting>& settings, const std::string& prefix,
                      Checks& c) {
  for (const Setting& s : settings) {
    const std::string key = prefix + s.name;
    if (s.kind == Setting::Kind::section) {
      check_conditions(job, s.fields, key + ".", c);
      continue;
    }
    if (s.conditions.empty() || !c.changed(key)) continue;
    for (const SettingCondition& condition : s.conditions) {
      const std::string value = c.text_of(condition.key);
      if (std::find(condition.values.begin(), condition.values.end(), value) != condition.values.end())
        continue;
      // A custom pipeline may read every setting.
      if (condition.key != "pipeline" || pipeline_info(job.pipeline))
        c.problem("{} ({}) has no effect with {}={}: it is for {}. Remove the key.", key,
                  job.origins.where(key), condition.key, value, condition.words());
      break;
    }
  }
}

void check_metric_names(const JobConfig& job, Checks& c) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info) return;  // those of a custom pipeline are known to that pipeline only
  std::vector<std::string> families = {"loss"};
  for (const auto& [family, names] : info->all_metrics()) families.push_back(family);
  for (std::size_t i = 0; i < job.eval.metrics.size(); ++i) {
    const std::string& m = job.eval.metrics[i];
    if (std::find(families.begin(), families.end(), m) == families.end()) {
      const std::string near = nearest(m, families);
      c.problem("{}: the metrics of pipeline {} are {}{}",
                c.cite(fmt::format("eval.metrics[{}]", i), excerpt(m)), job.pipeline,
                fmt::join(families, ", "), near.empty() ? "" : "; did you mean " + near + "?");
    }
  }
}

void check_grpo(const JobConfig& job, Checks& c) {
  const GrpoSettings& g = job.grpo;
  if (g.soft_punish_cache && *g.soft_punish_cache > g.max_new_tokens)
    c.problem("{} is more than {}; use at most that", c.cite("grpo.soft_punish_cache", *g.soft_punish_cache),
              c.cite("grpo.max_new_tokens", g.max_new_tokens));
}

// Settings of answers that a built-in pipeline does not give.
void check_answers(const JobConfig& job, PipelineInfo::Answers answers, Checks& c) {
  const auto idle = [&](const std::string& key, const std::string& why) {
    if (c.changed(key))
      c.problem("{} ({}) has no effect with pipeline={}, {}. Remove the key.", key, job.origins.where(key),
                job.pipeline, why);
  };
  if (answers != PipelineInfo::Answers::images) idle("predict.images", "which makes no images");
  if (answers == PipelineInfo::Answers::texts) return;
  JobConfig fresh;
  for (const Setting& s : settings_of<GenerationSettings>(fresh.predict))
    idle("predict." + s.name, "which generates no text");
}

// Settings of commands and parts that the job does not use.
void check_idle(const JobConfig& job, JobUse use, Checks& c) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (use == JobUse::train && info && info->needs_data && !job.data.has(true))
    for (const char* key : {"eval.every_n_steps", "eval.every_n_epochs"})
      if (c.changed(key))
        log_once(LogLevel::warn, fmt::format("{} ({}) has no effect without evaluation data (data.eval)", key,
                                             job.origins.where(key)));
  if ((use == JobUse::train || use == JobUse::validate) && info)
    for (const auto& [key, value] : job.settings.values)
      log_once(
          LogLevel::warn,
          fmt::format(
              "settings.{} ({}) has no effect: `settings` belong to pipelines of users, and {} is built in",
              key, job.origins.where("settings." + key), job.pipeline));
  if (use != JobUse::predict) return;
  if (info) check_answers(job, info->answers, c);
  if (job.predict.prompt.empty()) return;
  const PredictSettings& p = job.predict;
  for (const auto& [key, given] :
       {std::pair("predict.system", p.system.has_value()), std::pair("predict.tools", p.tools.has_value()),
        std::pair("predict.chat_template_kwargs", !p.chat_template_kwargs.values.empty())})
    if (given)
      c.problem(
          "{} ({}) has no effect with predict.prompt ({}): a prompt is a text, not a chat. Use `redco chat`, or give "
          "messages in predict.input",
          key, job.origins.where(key), job.origins.where("predict.prompt"));
}

void check_train(const JobConfig& job, JobUse use, Checks& c) {
  const TrainSettings& t = job.train;
  if (t.warmup_steps && c.changed("train.warmup_ratio")) {
    c.problem("{} and {} are both given; keep one", c.cite("train.warmup_ratio", t.warmup_ratio),
              c.cite("train.warmup_steps", *t.warmup_steps));
  }
  if (t.warmup_steps && t.max_steps && *t.warmup_steps > *t.max_steps) {
    c.problem("{} is more than {}: training would end before the peak learning rate; use fewer warm-up steps",
              c.cite("train.warmup_steps", *t.warmup_steps), c.cite("train.max_steps", *t.max_steps));
  }
  const auto found_in = [&](const char* key, const auto& check) {
    try {
      check();
    } catch (const UsageError& e) {
      c.problem("{}: {}", job.origins.where(key), e.what());
    }
  };
  found_in("train.optimizer", [&] { step_options(t); });
  found_in("train.schedule", [&] { schedule_of(t, 0); });
  const SaveBestSettings& best = job.checkpoint.save_best_by;
  // Metrics of a built-in pipeline. Those of a custom pipeline are known to that pipeline only.
  const PipelineInfo* info = pipeline_info(job.pipeline);
  const bool data_needed = info && info->needs_data;
  std::vector<std::string> known;
  if (info) known = info->metric_names(job.data.eval_sets);
  const auto unknown = [&](const std::string& m) {
    return info && std::find(known.begin(), known.end(), m) == known.end();
  };
  std::vector<std::string> named;
  for (const bool max : {true, false}) {
    const std::vector<std::string>& metrics = max ? best.max : best.min;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const std::string key = fmt::format("checkpoint.save_best_by.{}[{}]", max ? "max" : "min", i);
      if (unknown(metrics[i]))
        c.problem("{} is not evaluated; use {}", c.cite(key, metrics[i]), fmt::join(known, " or "));
      if (std::find(named.begin(), named.end(), metrics[i]) != named.end()) {
        c.problem("{} is named twice in checkpoint.save_best_by; keep one", c.cite(key, metrics[i]));
      }
      named.push_back(metrics[i]);
    }
  }
  if (info && info->generates && job.eval.n_outputs.value_or(0) == 0) {
    std::vector<std::string> wanted = job.eval.metrics;
    wanted.insert(wanted.end(), named.begin(), named.end());
    if (t.early_stopping.metric) wanted.push_back(*t.early_stopping.metric);
    std::erase(wanted, "loss");
    if (!wanted.empty())
      c.problem(
          "{} compares generated text with the reference, but evaluation generates none: set e.g. "
          "eval.generation.max_new_tokens=64",
          wanted[0]);
  }
  if (t.lora.rank) {
    if (!job.model.path && use == JobUse::train)
      c.problem("{} needs model.path, the folder of the pretrained weights",
                c.cite("train.lora.rank", *t.lora.rank));
    if (t.lora.target_modules.empty())
      c.problem("train.lora.target_modules ({}) is empty; use names of layers, or all-linear",
                job.origins.where("train.lora.target_modules"));
  } else if (!job.model.adapter) {
    for (const char* key : {"alpha", "dropout", "target_modules", "use_rslora", "modules_to_save"})
      if (const std::string name = std::string("train.lora.") + key; c.changed(name))
        c.problem("{} ({}) has no effect without train.lora.rank; set it, e.g. to 8", name,
                  job.origins.where(name));
  }
  const EarlyStoppingSettings& early = t.early_stopping;
  if (early.metric) {
    if (unknown(*early.metric))
      c.problem("{} is not evaluated; use {}", c.cite("train.early_stopping.metric", *early.metric),
                fmt::join(known, " or "));
    if (data_needed && !job.data.has(true))
      c.problem("{} needs an evaluation: set data.eval",
                c.cite("train.early_stopping.metric", *early.metric));
    if (!job.eval.every_n_steps && !job.eval.every_n_epochs)
      c.problem("{} needs evaluations during training: set eval.every_n_steps or eval.every_n_epochs",
                c.cite("train.early_stopping.metric", *early.metric));
  } else {
    const EarlyStoppingSettings fresh;
    std::string idle;
    if (early.mode) idle = c.cite("train.early_stopping.mode", *early.mode);
    if (early.patience != fresh.patience) idle = c.cite("train.early_stopping.patience", early.patience);
    if (early.min_delta != fresh.min_delta) idle = c.cite("train.early_stopping.min_delta", early.min_delta);
    if (!idle.empty()) c.problem("{} has no effect: set train.early_stopping.metric, e.g. to loss", idle);
  }
  if (!named.empty() && !job.data.has(true) && data_needed) {
    c.problem(
        "checkpoint.save_best_by ({}) needs an evaluation: set data.eval",
        job.origins.where(best.max.empty() ? "checkpoint.save_best_by.min" : "checkpoint.save_best_by.max"));
  }
}

// Reports generation settings that exclude each other; `section` is their section.
void check_generation(const std::string& section, const GenerationSettings& g, Checks& c) {
  const auto key = [&](const char* name) { return section + "." + name; };
  const auto cite = [&](const char* name, const auto& value) { return c.cite(key(name), value); };
  const GenerationSettings fresh;
  if (!g.draws()) {
    std::string idle;
    if (g.top_k) idle = cite("top_k", *g.top_k);
    if (g.top_p != fresh.top_p) idle = cite("top_p", g.top_p);
    if (g.min_p != fresh.min_p) idle = cite("min_p", g.min_p);
    if (!idle.empty())
      c.problem("{} has no effect: with {}=0 the most likely token is chosen; set it above 0 to sample", idle,
                key("temperature"));
  } else if (g.num_beams > 1) {
    c.problem("{} samples tokens, {} is beam search; keep one", cite("temperature", g.temperature),
              cite("num_beams", g.num_beams));
  }
  if (g.num_beams == 1) {
    if (g.length_penalty != fresh.length_penalty)
      c.problem("{} has no effect without beams; set {} above 1", cite("length_penalty", g.length_penalty),
                key("num_beams"));
    if (g.early_stopping != fresh.early_stopping)
      c.problem("{} has no effect without beams; set {} above 1", cite("early_stopping", g.early_stopping),
                key("num_beams"));
    if (g.num_return_sequences > 1 && !g.draws())
      c.problem("{}: all answers would be the same; set {} above 0, or {} to this number",
                cite("num_return_sequences", g.num_return_sequences), key("temperature"), key("num_beams"));
  } else if (g.num_return_sequences > g.num_beams) {
    c.problem(
        "{} is more than {}: beam search gives at most one answer per beam; use fewer answers or more beams",
        cite("num_return_sequences", g.num_return_sequences), cite("num_beams", g.num_beams));
  }
  if (g.min_new_tokens > g.max_new_tokens)
    c.problem("{} is more than {}; use a smaller minimum", cite("min_new_tokens", g.min_new_tokens),
              cite("max_new_tokens", g.max_new_tokens));
  for (std::size_t i = 0; i < g.stop.size(); ++i)
    if (g.stop.size() == 1 && g.stop[i].starts_with("[\"") && g.stop[i].ends_with("\"]"))
      c.problem(
          "{}: the value is one text, as typed. For several texts write a list in the job "
          "file: stop: [\"...\", \"...\"]",
          c.cite(key("stop"), g.stop[i]));
  for (std::size_t i = 0; i < g.stop.size(); ++i)
    if (g.stop[i].empty())
      c.problem("{} is empty, so every answer would end before its first token; remove it",
                c.cite(fmt::format("{}[{}]", key("stop"), i), "\"\""));
}

void check_model(const JobConfig& job, Checks& c) {
  const std::string_view p = job.pipeline;
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info && p.find('/') == std::string::npos && !p.ends_with(".so") && !p.ends_with(".py")) {
    const std::string near = nearest(job.pipeline, pipeline_names());
    c.problem(
        "{}: unknown pipeline; {}expected one of {}, or the path of a pipeline such as ./mine.py or "
        "./mine.so",
        c.cite("pipeline", excerpt(p)), near.empty() ? "" : "did you mean " + near + "? ",
        fmt::join(pipeline_names(), ", "));
  }
  const ModelSettings& m = job.model;
  // A custom pipeline may have its own parameters; it reports an error if it needs a model.
  const bool own = info ? !info->needs_model : true;
  if (!m.path && !m.preset && !m.arch && !m.adapter && !own)
    c.problem("model: path, preset or arch is missing; set one of them, e.g. model.preset=gpt2");
  if (m.random && m.path)
    c.problem("{} and {} are both given; keep one", c.cite("model.random", m.random),
              c.cite("model.path", *m.path));
  if (m.preset && m.arch) {
    c.problem("{} and {} are both given; keep one", c.cite("model.preset", *m.preset),
              c.cite("model.arch", *m.arch));
  }
}

}  // namespace

std::optional<std::string> cache_folder(const JobConfig& job) {
  if (job.data.cache) return job.data.cache;
  return job.workdir ? std::optional(join_path(*job.workdir, workdir::kCache)) : std::nullopt;
}

std::optional<i64> declared_ranks(const JobConfig& job) {
  const ParallelSettings& p = job.parallel;
  if (p.n_ranks) return p.n_ranks;
  if (p.hostfile) return std::nullopt;
  if (p.hosts.empty()) return p.n_model_shards;
  return total_slots(parse_hosts(p.hosts));
}

Mesh mesh_of(const JobConfig& job, i64 n_ranks, const std::string& counted) {
  const Checks c(job);
  MeshNames names;
  names.given_ranks = job.origins.given("parallel.n_ranks")
                          ? c.cite("parallel.n_ranks", n_ranks)
                          : fmt::format("n_ranks={} ({})", n_ranks, counted);
  names.given_shards = c.cite("parallel.n_model_shards", job.parallel.n_model_shards);
  return mesh_of(n_ranks, job.parallel.n_model_shards, names);
}

BatchSizes batch_sizes(const JobConfig& job, i64 dp) {
  REDCO_CHECK(dp >= 1);
  const TrainSettings& t = job.train;
  const Checks c(job);
  BatchSizes b;
  if (t.global_batch_size) {
    b.global = *t.global_batch_size;
    if (dp > b.global) {
      throw UsageError(
          "{} is less than the {} replicas (n_ranks / n_model_shards), so some replicas would get no row; "
          "use at least {}, or fewer ranks",
          c.cite("train.global_batch_size", b.global), dp, dp);
    }
    if (t.per_device_batch_size && *t.per_device_batch_size > b.global) {
      throw UsageError("{} is more than {}; use at most {}",
                       c.cite("train.per_device_batch_size", *t.per_device_batch_size),
                       c.cite("train.global_batch_size", b.global), b.global);
    }
    const i64 share = ceil_div(b.global, dp);
    b.per_device = std::min(t.per_device_batch_size.value_or(share), share);
  } else {
    b.per_device = t.per_device_batch_size.value_or(1);
    b.global = b.per_device * dp;
    b.assumed = t.per_device_batch_size
                    ? fmt::format("train.global_batch_size is not given: {} assumed", b.global)
                    : fmt::format("no batch size is given: one row per replica assumed ({} in all)", dp);
  }
  b.accumulation = ceil_div(b.global, b.per_device * dp);
  return b;
}

void check_job(const JobConfig& job, JobUse use, const MoreProblems& more) {
  Checks c(job);
  if (use != JobUse::verify && use != JobUse::data) check_model(job, c);
  const bool ranks_known = check_parallel(job, c);
  c.run([&] {
    if (const auto ranks = ranks_known ? declared_ranks(job) : std::nullopt) {
      const i64 dp = mesh_of(job, *ranks).dp();
      if (use == JobUse::validate || use == JobUse::plan || use == JobUse::train || use == JobUse::evaluate ||
          use == JobUse::bench)
        batch_sizes(job, dp);
    }
  });
  if (use == JobUse::train || use == JobUse::validate || use == JobUse::evaluate || use == JobUse::data) {
    check_data(job, c);
    JobConfig fresh;
    check_conditions(job, settings_of(fresh), "", c);
  }
  if (use == JobUse::train || use == JobUse::validate || use == JobUse::evaluate) check_metric_names(job, c);
  check_idle(job, use, c);
  check_grpo(job, c);
  if (use == JobUse::train || use == JobUse::validate) check_train(job, use, c);
  if (use == JobUse::train || use == JobUse::validate || use == JobUse::evaluate)
    check_generation("eval.generation", job.eval.generation, c);
  if (use == JobUse::validate) check_generation("predict", job.predict, c);
  const PipelineInfo* pipeline = pipeline_info(job.pipeline);
  if (use == JobUse::evaluate && !job.data.has(true) && pipeline && pipeline->needs_data)
    c.problem("data.eval is missing; set the files to evaluate on, e.g. data.eval=book.txt");
  if (use == JobUse::train) {
    if (const PipelineInfo* info = pipeline_info(job.pipeline);
        !job.data.has(false) && info && info->needs_data)
      c.problem("data.train is missing; set the files to train on, e.g. data.train=book.txt");
    if (!job.workdir)
      c.problem("workdir is missing; set the folder for checkpoints and logs, e.g. workdir=runs/first");
    if (!job.train.global_batch_size && !job.train.per_device_batch_size) {
      c.problem("train.global_batch_size is missing; set the rows of one optimizer step, e.g. 32");
    }
  }
  if (use == JobUse::predict || use == JobUse::chat) {
    const PredictSettings& p = job.predict;
    check_generation("predict", p, c);
    if (use == JobUse::chat) {
      if (p.num_beams > 1)
        c.problem(
            "{}: chat prints each token when it is generated, but beam search chooses its answer at the end; "
            "use 1",
            c.cite("predict.num_beams", p.num_beams));
      if (p.num_return_sequences > 1)
        c.problem("{}: chat has one answer per message; use 1",
                  c.cite("predict.num_return_sequences", p.num_return_sequences));
    } else if (!p.input && p.prompt.empty()) {
      c.problem("predict.prompt or predict.input is missing; add e.g. --prompt 'Once upon a time'");
    }
    if (p.input && !p.prompt.empty()) {
      c.problem("{} and predict.prompt ({}) are both given; keep one", c.cite("predict.input", *p.input),
                job.origins.where("predict.prompt"));
    }
    const bool named = p.checkpoint && (*p.checkpoint == "last" || p.checkpoint->rfind("best-", 0) == 0);
    if (named && !job.workdir) {
      c.problem(
          "{} is a checkpoint of workdir, but workdir is missing; set it, or give the checkpoint's path",
          c.cite("predict.checkpoint", *p.checkpoint));
    }
  }
  c.done(more);
}

}  // namespace redco
