#include "job/resolved_job.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/compress.h"
#include "base/error.h"
#include "base/hash.h"
#include "config/bind.h"

namespace redco {

namespace {
using Json = nlohmann::json;
constexpr const char* kWhere = "[job] the job that the launcher handed over";
constexpr i64 kMostBytes = i64{64} << 20;

JobConfig without_secrets(JobConfig job) {
  for (auto& [name, value] : job.parallel.environment.values) value = "null";
  return job;
}

}  // namespace

ResolvedJob::ResolvedJob(JobConfig job)
    : job_(std::move(job)),
      text_(dump_job(job_)),
      yaml_(job_.parallel.environment.values.empty() ? text_ : dump_job(without_secrets(job_))),
      hash_(hash128(text_).hex()) {}

std::string ResolvedJob::to_text() const {
  const Json j = {{"hash", hash_},
                  {"yaml", text_},
                  {"places", job_.origins.places()},
                  {"inherited", job_.origins.inherited()},
                  {"key_places", job_.origins.key_places()}};
  return encode_base64(compress(j.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

ResolvedJob ResolvedJob::from_text(std::string_view text) {
  const std::string bytes = decompress(decode_base64(text, kWhere), kMostBytes, kWhere);
  const Json j = Json::parse(bytes, nullptr, false);
  if (!j.is_object() || !j.contains("hash") || !j["hash"].is_string() || !j.contains("yaml") ||
      !j["yaml"].is_string() || !j.contains("places") || !j["places"].is_object() ||
      !j.contains("inherited") || !j["inherited"].is_object() || !j.contains("key_places") ||
      !j["key_places"].is_object())
    throw ContentsError("{}: expected hash, yaml, places, inherited and key_places", kWhere);
  JobConfig job;
  load_settings(settings_of(job), {{"the resolved job", j["yaml"].get<std::string>()}}, {});
  job.origins = {};
  for (const auto& [key, place] : j["places"].items())
    if (place.is_string()) job.origins.set(key, place.get<std::string>());
  for (const auto& [key, place] : j["inherited"].items())
    if (place.is_string()) job.origins.inherit(key, place.get<std::string>());
  for (const auto& [key, place] : j["key_places"].items())
    if (place.is_string()) job.origins.set_key(key, place.get<std::string>());
  ResolvedJob out(std::move(job));
  if (out.hash() != j["hash"].get<std::string>())
    throw ContentsError("{} has hash {}, the launcher's has {}: use the same redco on all hosts", kWhere,
                        out.hash(), j["hash"].get<std::string>());
  load_plugins(out.job());
  return out;
}

ResolvedJob ResolvedJob::with_model_config(const std::map<std::string, std::string>& keys) const {
  JobConfig job = job_;
  for (const auto& [key, value] : keys) job.model.config.emplace(key, value);
  return ResolvedJob(std::move(job));
}

ResolvedJob ResolvedJob::with_global_batch_size(i64 rows) const {
  JobConfig job = job_;
  job.train.global_batch_size = rows;
  return ResolvedJob(std::move(job));
}

ResolvedJob ResolvedJob::with(const std::function<void(JobConfig&)>& change) const {
  JobConfig job = job_;
  change(job);
  return ResolvedJob(std::move(job));
}

}  // namespace redco
