// Each kind of bad input gives one message with its place and the right exit code, without a crash or a hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;

class BadInput : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
  }
  static std::string fixture(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }
  // A job file with one line more.
  void job(const std::string& line, const std::vector<std::string>& parts) {
    write("bad.yaml", kTinyJob + line + "\n");
    refused({"train", "bad.yaml"}, 2, parts);
  }
  // `verify` and `predict` of gpt2's fixture with another file of weights.
  void weights(const std::string& what, const std::string& bytes, const std::vector<std::string>& parts,
               bool on_two = false) {
    SCOPED_TRACE(what);
    write("model/model.safetensors", bytes);
    refused({"verify", "model"}, 3, parts);
    if (on_two) refused({"verify", "model", "--ranks", "2"}, 3, parts);
  }
};

TEST_F(BadInput, Keys) {
  job("parallel: {n_model_shard: 2}",
      {"bad.yaml:5:12", "parallel.n_model_shard", "did you mean", "n_model_shards"});
  job("pipelin: lm", {"bad.yaml:5:1", "pipelin", "pipeline"});
  job("parallel: {n_ranks: 2, n_ranks: 3}", {"bad.yaml:5:24", "n_ranks"});
  job("workdir: other", {"bad.yaml:5:1", "workdir", "4:1"});
  job("parallel: {n_ranks: two}", {"bad.yaml:5:21", "integer", "two"});
  job("parallel: {n_ranks: 1.5}", {"bad.yaml:5:21", "1.5"});
  job("parallel: {n_ranks: 0}", {"bad.yaml:5:21", ">= 1", "0"});
  job("parallel: [1]", {"bad.yaml:5:11"});
  job("eval: {sanity_check: maybe}", {"bad.yaml:5:22", "true or false", "maybe"});
  job("checkpoint: {dtype: fp8}", {"bad.yaml:5:21", "fp8", "bf16"});
  job("parallel: {sharding_rules: [{match: x}]}", {"bad.yaml:5:", "spec"});
  job("parallel: {", {"bad.yaml:"});
  refused({"train", "job.yaml", "train.learning_rte=1"}, 2, {"train.learning_rte", "learning_rate"});
  refused({"train", "job.yaml", "train.learning_rate=-1"}, 2, {"train.learning_rate", "-1", ">= 0"});
  refused({"train", "job.yaml", "train.seed=[1]"}, 2, {"train.seed"});
  refused({"train", "job.yaml", "model.n_layers=3"}, 2, {"n_layers"});
  refused({"train", "job.yaml", "model.arch=gtp2"}, 2, {"model.arch=gtp2", "did you mean gpt2?"});
  refused({"train", "job.yaml", "train.max_steps", "3"}, 2, {"'train.max_steps' is a key without a value"});
  refused({"train", "job.yaml", "model.tokenizer=~"}, 2, {"model.arch=gpt2", "model.vocab_size"});
  refused({"train", "job.yaml", "checkpoint.resume=atuo"}, 2, {"checkpoint.resume=atuo", "auto, never"});
  refused({"train", "job.yaml", "pipeline=ml"}, 2, {"pipeline=ml"});
  refused({"train", "job.yaml", "pipeline=./nowhere.so"}, 2, {"nowhere.so"});
  refused({"train", "job.yaml", "pipeline=./text.txt"}, 2, {"text.txt"});
}

TEST_F(BadInput, MissingOrUnreadableFiles) {
  refused({"train", "nowhere.yaml"}, 2, {"nowhere.yaml"});
  refused({"train", "job.yaml", "data.train=nowhere.txt"}, 2, {"nowhere.txt"});
  refused({"train", "job.yaml", "data.train=nowhere.txt", "parallel.n_ranks=2"}, 2, {"nowhere.txt"});
  std::filesystem::create_directory(path("empty"));
  refused({"train", "job.yaml", "data.train=empty"}, 2, {"empty has no data file"});
  refused({"train", "job.yaml", "data.eval=nowhere.txt"}, 2, {"nowhere.txt"});
  refused({"train", "job.yaml", "model.tokenizer=nowhere"}, 2, {"nowhere"});
  refused({"predict", "model.path=nowhere", "predict.prompt=a"}, 2, {"nowhere"});
  write("file", "x");
  refused({"train", "job.yaml", "workdir=file/run"}, 2, {"file/run", "is not a folder"});
  if (geteuid() != 0) {
    write("secret.txt", "x");
    std::filesystem::permissions(path("secret.txt"), std::filesystem::perms::none);
    refused({"train", "job.yaml", "data.train=secret.txt"}, 7, {"secret.txt"});
  }
}

TEST_F(BadInput, EmptyAndBinaryData) {
  write("empty.txt", "");
  refused({"train", "job.yaml", "data.train=empty.txt"}, 3, {"empty.txt", "no text"});
  refused({"train", "job.yaml", "data.train=empty.txt", "parallel.n_ranks=2"}, 3, {"empty.txt"});
  write("cut.txt.gz", "\x1f\x8b\x08");
  refused({"train", "job.yaml", "data.train=cut.txt.gz"}, 3, {"cut.txt.gz"});
  write("latin.txt", "caf\xe9 au lait");
  refused({"train", "job.yaml", "data.train=latin.txt", "model.tokenizer=" + fixture("tokenizers/gpt2")}, 3,
          {"latin.txt", "UTF-8"});
}

TEST_F(BadInput, ATokenizerWithALargerVocabulary) {
  // gpt2's fixture has 257 ids or fewer rows than llama3's tokenizer has tokens.
  const std::string tokenizer = "model.tokenizer=" + fixture("tokenizers/llama3");
  refused({"train", "job.yaml", "model.vocab_size=100"}, 3, {"the model's embedding has 100 rows"});
  refused({"train", "job.yaml", "model.vocab_size=100", tokenizer, "parallel.n_model_shards=2"}, 3,
          {"llama3"});
  refused({"predict", "job.yaml", "model.vocab_size=100", tokenizer, "predict.prompt=How are you?",
           "model.random=true"},
          3, {"vocabulary"});
}

TEST_F(BadInput, RanksThatDoNotFit) {
  refused({"train", "job.yaml", "parallel.n_ranks=6", "parallel.n_model_shards=4"}, 2,
          {"parallel.n_ranks=6", "not a multiple of parallel.n_model_shards=4", "use n_ranks 4, 8 or 12"});
  refused({"train", "job.yaml", "parallel.n_ranks=16"}, 2, {"train.global_batch_size=8", "16 replicas"});
  refused({"train", "job.yaml", "train.per_device_batch_size=9"}, 2,
          {"per_device_batch_size=9", "global_batch_size=8"});
  refused({"train", "job.yaml", "parallel.hosts=[localhost:2]", "parallel.n_ranks=4"}, 2, {"4", "2 slots"});
  refused({"train", "job.yaml", "parallel.hosts=[a:2]", "parallel.hostfile=x"}, 2, {"both given"});
  refused({"train", "job.yaml", "data.max_length=33"}, 2, {"data.max_length=33", "32"});
}

TEST_F(BadInput, ALossThatIsNotFinite) {
  for (const char* ranks : {"1", "2"}) {
    const Ran r = run({"train", "job.yaml", "train.learning_rate=1e30", "train.warmup_steps=0",
                       "train.clip_grad_norm=~", std::string("parallel.n_ranks=") + ranks});
    EXPECT_EQ(r.code, 6) << r.err;
    EXPECT_EQ(lines_with(r.err, "error: "), 1) << r.err;
    EXPECT_THAT(r.err, AllOf(HasSubstr("not finite"), HasSubstr("step "), HasSubstr("train.learning_rate")));
  }
  const Ran r = good(
      {"train", "job.yaml", "train.learning_rate=1e30", "train.warmup_steps=0", "train.on_non_finite=skip"});
  EXPECT_THAT(r.err, HasSubstr("skipped"));
}

TEST_F(BadInput, Weights) {
  std::filesystem::copy(fixture("gpt2"), path("model"), std::filesystem::copy_options::recursive);
  const std::string good_bytes = read("model/model.safetensors");
  std::uint64_t n = 0;
  std::memcpy(&n, good_bytes.data(), 8);
  const json header = json::parse(good_bytes.substr(8, n));
  const std::string body = good_bytes.substr(8 + n), file = "model/model.safetensors";
  const auto with = [&](const json& h, const std::string& data) {
    const std::string text = h.dump();
    const std::uint64_t size = text.size();
    return std::string(reinterpret_cast<const char*>(&size), 8) + text + data;
  };
  const std::string name = "transformer.wte.weight";
  ASSERT_TRUE(header.contains(name));

  weights("empty", "", {file});
  weights("cut in the length", good_bytes.substr(0, 5), {file});
  weights("cut in the header", good_bytes.substr(0, 100), {file});
  weights("cut in the data", good_bytes.substr(0, good_bytes.size() - 10), {file}, true);
  weights("longer than it says", good_bytes + "more", {file});
  weights("a header of 2^63 bytes", std::string("\0\0\0\0\0\0\0\x80", 8) + good_bytes.substr(8), {file});
  weights("not JSON", std::string("\x10\0\0\0\0\0\0\0", 8) + "{not json at all", {file});
  weights("deep JSON",
          with(json(), "").substr(0, 0) + std::string("\0\0\x01\0\0\0\0\0", 8) + std::string(65536, '['),
          {file});
  json h = header;
  h[name]["data_offsets"] = header["transformer.wpe.weight"]["data_offsets"];
  weights("overlapping", with(h, body), {file});
  h = header;
  h[name]["data_offsets"] = {0, std::uint64_t{1} << 62};
  weights("past the end", with(h, body), {file, name});
  h = header;
  h[name]["shape"] = {std::uint64_t{1} << 33, std::uint64_t{1} << 33};
  weights("a product that overflows", with(h, body), {file, name});
  h = header;
  h[name]["shape"][0] = -1;
  weights("a negative size", with(h, body), {file, name});
  h = header;
  h[name]["dtype"] = "F31";
  weights("no such type", with(h, body), {file, name, "F31"});
  h = header;
  std::swap(h[name]["shape"][0], h[name]["shape"][1]);
  weights("another shape than config.json's", with(h, body), {name}, true);
  h = header;
  h["unknown.name"] = h[name];
  h.erase(name);
  weights("a tensor missing, another too many", with(h, body), {name});
  // Other values in config.json.
  write("model/model.safetensors", good_bytes);
  refused({"verify", "model", "model.n_embd=8"}, 3, {"shape"});
  write("model/config.json", "{\"model_type\": \"gpt2\", \"n_layer\": ");
  refused({"verify", "model"}, 3, {"config.json"});
  write("model/config.json", "{\"model_type\": \"gpt5\"}");
  refused({"verify", "model"}, 3, {"config.json", "gpt5"});
  std::filesystem::remove(path("model/config.json"));
  refused({"verify", "model"}, 2, {"config.json"});
}

}  // namespace
}  // namespace redco::test
