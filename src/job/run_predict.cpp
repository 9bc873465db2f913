#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/log.h"
#include "ckpt/publish.h"
#include "comm/group.h"
#include "job/assemble.h"
#include "job/run.h"
#include "job/session.h"
#include "pipelines/pipelines.h"
#include "train/predictor.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// predict.checkpoint, else workdir's last, else the model's own folder ("").
std::string checkpoint_folder(const JobConfig& job) {
  const std::string folder = job.workdir ? join_path(*job.workdir, "checkpoints") : "";
  if (job.predict.checkpoint) {
    const std::string& what = *job.predict.checkpoint;
    if (what.find('/') != std::string::npos || is_folder(what)) return what;
    if (folder.empty())
      throw UsageError("[predict] predict.checkpoint={} is a pointer of a workdir; give workdir", what);
    return ckpt::CheckpointFolder(folder).resolve(what);
  }
  if (!folder.empty() && is_folder(folder)) {
    const auto found = ckpt::CheckpointFolder(folder).find_newest_whole(false);
    if (found) return found.path;
  }
  return "";
}

struct Request {
  Json id;  // null: none given
  std::string prompt;
};

std::vector<Request> read_requests(const JobConfig& job) {
  std::vector<Request> out;
  for (const std::string& p : job.predict.prompt) out.push_back({nullptr, p});
  if (!job.predict.input) return out;
  LineReader lines(*job.predict.input);
  std::string line;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json j = Json::parse(line, nullptr, false);
    if (!j.is_object()) throw ContentsError("[predict] {}: not a JSON object", lines.where());
    const auto it = j.find("prompt");
    if (it == j.end() || !it->is_string())
      throw ContentsError("[predict] {}: no text under \"prompt\"", lines.where());
    out.push_back({j.contains("id") ? j["id"] : Json(), it->get<std::string>()});
  }
  if (out.empty()) throw ContentsError("[predict] {} holds no prompt", *job.predict.input);
  return out;
}

int predict_on_ranks(const JobConfig& job, Context& c) {
  Group& world = c.world();
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline;
  ModelSource source;
  std::vector<Request> requests;
  std::vector<Example> examples;
  world.together([&] {
    requests = read_requests(job);
    const std::string folder = checkpoint_folder(job);
    tokenizer = job_tokenizer(job, folder);
    if (!tokenizer)
      throw UsageError("[model] no tokenizer; give model.tokenizer (`bytes` or a tokenizer's folder)");
    source = model_source(job, tokenizer.get(), folder);
    if (source.folder.empty() && world.rank() == 0)
      warn("[predict] no checkpoint in workdir and no model.path: the weights are random");
    model = make_job_model(job, source);
    pipeline = make_pipeline(job.pipeline);
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    const EndIds end = end_ids(source, tokenizer.get());
    const PredictSettings& p = job.predict;
    pipeline->settings_json = Json{
        {"predict",
         {{"max_new_tokens", p.max_new_tokens},
          {"temperature", p.temperature},
          {"top_k", p.top_k ? Json(*p.top_k) : Json()},
          {"top_p", p.top_p},
          {"seed", p.seed},
          {"eos_ids", end.eos},
          {"pad_id", end.pad}}}}.dump();
    for (size_t i = 0; i < requests.size(); ++i) {
      Example e;
      e.ordinal = static_cast<i64>(i);
      auto ids = tokenizer->encode(requests[i].prompt);
      // The text goes on: an end token that the template appends is not part of it.
      const auto plain = tokenizer->encode(requests[i].prompt, false);
      const auto eos = tokenizer->special().eos;
      if (eos && ids.size() > 1 && ids.back() == *eos && (plain.empty() || plain.back() != *eos))
        ids.pop_back();
      if (ids.empty()) {
        const auto start = tokenizer->special().bos ? tokenizer->special().bos : eos;
        if (!start)
          throw UsageError("[predict] prompt {} is empty, and the tokenizer has no token to begin with",
                           i + 1);
        ids = {*start};
      }
      for (i32 id : ids)
        if (id >= model->vocab_size())
          throw ContentsError(
              "[predict] prompt {}: token id {} is outside the model's vocabulary of {}: the tokenizer is "
              "another vocabulary's",
              i + 1, id, model->vocab_size());
      if (static_cast<i64>(ids.size()) >= model->max_length())
        throw ContentsError("[predict] prompt {} has {} tokens, the model has {} positions", i + 1,
                            ids.size(), model->max_length());
      e.ids["prompt"] = std::move(ids);
      examples.push_back(std::move(e));
    }
  });
  c.random.seed = static_cast<u64>(job.train.seed);
  c.compute_dtype = job.train.compute_dtype == "bf16" ? ComputeDType::bf16 : ComputeDType::fp32;
  const ParamTree params = make_job_params(job, source, model.get(), pipeline->params());
  const auto outputs = predict(*pipeline, params, examples, job.predict.batch_size);
  world.on_first([&] {
    std::string text;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Json out = Json::parse(outputs[i]);
      if (job.predict.output || job.predict.input) {
        Json line = {{"id", requests[i].id.is_null() ? Json(i) : requests[i].id},
                     {"prompt", requests[i].prompt}};
        line.update(out);
        text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      } else {
        text += requests[i].prompt + out.value("prediction", "") + "\n";
      }
    }
    if (job.predict.output) {
      write_file_durable(*job.predict.output, text);
      info("[predict] {} predictions in {}", outputs.size(), *job.predict.output);
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  });
  return 0;
}

}  // namespace

int run_predict(const JobConfig& job, const std::vector<std::string>& program) {
  return run_session(job.parallel, {.program = program},
                     [&](Context& c) { return predict_on_ranks(job, c); });
}

}  // namespace redco
