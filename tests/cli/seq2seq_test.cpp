// Text to text: from the files to the scores, as in its documentation; bad inputs.
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using Json = nlohmann::json;

const char* kJob =
    "pipeline: seq2seq\n"
    "model: {arch: bart, tokenizer: bytes, d_model: 32, encoder_layers: 1, decoder_layers: 1,\n"
    "  encoder_attention_heads: 4, decoder_attention_heads: 4, encoder_ffn_dim: 64, decoder_ffn_dim: 64,\n"
    "  max_position_embeddings: 32}\n"
    "data: {format: parallel, train: [a.en, a.de], eval: [a.en, a.de], group_by_length: true}\n"
    "train: {global_batch_size: 8, max_steps: 6, learning_rate: 1.0e-2, logging_steps: 1}\n"
    "eval: {every_n_steps: 3, generation: {num_beams: 2, max_new_tokens: 6}}\n"
    "checkpoint: {save_best_by: {max: [rouge2, rougeL]}}\n"
    "workdir: run\n";

class Seq2Seq : public Cli {
 protected:
  Seq2Seq() {
    std::string en, de;
    for (int i = 0; i < 20; ++i) {
      en += std::to_string(i) + " plus\n";
      de += "und " + std::to_string(i * i) + "\n";
    }
    write("a.en", en);
    write("a.de", de);
    write("job.yaml", kJob);
  }
  Json last_evaluation() {
    Json out;
    std::istringstream in(read("run/metrics.jsonl"));
    for (std::string line; std::getline(in, line);)
      if (Json j = Json::parse(line); j.contains("eval_loss")) out = j;
    return out;
  }
};

TEST_F(Seq2Seq, BenchTimesGenerationWithoutData) {
  const Words command = {
      "bench",   "job.yaml", "data.train=[]",        "--predict",           "--json",
      "--steps", "1",        "predict.batch_size=2", "predict.num_beams=2", "predict.max_new_tokens=8"};
  Words sources = command;
  sources.emplace_back("data.max_source_length=20");
  const Json p = Json::parse(good(sources).out);
  EXPECT_EQ(p["length"], 20);
  EXPECT_EQ(p["new_tokens"], 8);
  EXPECT_NEAR(p["decode_tokens_per_s"].get<double>() * p["step_s"].get<double>(), 2, 1e-6);
  EXPECT_GT(p["prefill_ceiling_share"].get<double>(), 0);
  EXPECT_TRUE(p["step_bytes"].is_null());
  sources.back() = "data.max_source_length=64";
  refused(sources, 2, {"data.max_source_length=64", "32 positions"});
}

TEST_F(Seq2Seq, FromFilesToScores) {
  const Ran trained = good({"train", "job.yaml", "parallel.n_model_shards=2"});
  EXPECT_THAT(trained.err, HasSubstr("training data: 20 pairs of "));
  const Json e = last_evaluation();
  for (const char* best : {"best-rouge2", "best-rougeL"})
    EXPECT_TRUE(has(std::string("run/checkpoints/") + best));
  // evaluate gives the same numbers for the checkpoint, up to fp32 sums in other groups of rows.
  const Json again = Json::parse(good({"evaluate", "job.yaml", "eval.per_device_batch_size=3"}).out);
  for (const char* m : {"loss", "rouge1", "rouge2", "rougeL", "rougeLsum", "bleu", "chrf", "exact_match"}) {
    ASSERT_TRUE(again.contains(m)) << m;
    EXPECT_NEAR(again[m].get<double>(), e[std::string("eval_") + m].get<double>(), 1e-4) << m;
  }
  // redco score gives the same numbers for the answers.
  std::string lines;
  std::istringstream en(read("a.en")), de(read("a.de"));
  for (std::string s, t; std::getline(en, s) && std::getline(de, t);)
    lines += Json{{"source", s}, {"reference", t}}.dump() + "\n";
  write("in.jsonl", lines);
  good({"predict", "job.yaml", "predict.input=in.jsonl", "predict.output=out.jsonl", "predict.num_beams=2",
        "predict.max_new_tokens=6"});
  const Json scores =
      Json::parse(good({"score", "out.jsonl", "--metrics", "rouge,bleu,chrf,exact_match"}).out);
  for (const char* m : {"rouge1", "rougeLsum", "bleu", "chrf", "exact_match"})
    EXPECT_NEAR(scores[m].get<double>(), again[m].get<double>(), 1e-9) << m;
  // For one prompt only its answer is printed.
  const Json first = Json::parse(read("out.jsonl").substr(0, read("out.jsonl").find('\n')));
  EXPECT_EQ(good({"predict", "job.yaml", "predict.prompt=0 plus", "predict.num_beams=2",
                  "predict.max_new_tokens=6"})
                .out,
            first["prediction"].get<std::string>() + "\n");
  EXPECT_THAT(good({"plan", "job.yaml"}).out, HasSubstr("fits"));
}

TEST_F(Seq2Seq, BadInputs) {
  write("ragged.tsv", "source\ttarget\na\tb\nc\n");
  write("empty.jsonl", "{\"source\": \"a\", \"target\": \"\"}\n");
  write("short.de", "x\n");
  const auto with = [](const std::string& files, const std::string& format = "~") {
    return Words{"train",
                 "job.yaml",
                 "data.train=" + files,
                 "data.format=" + format,
                 "data.eval=[]",
                 "checkpoint.save_best_by.max=[]"};
  };
  refused(with("ragged.tsv"), 3, {"ragged.tsv:3: the row has 1 cell, but the first row has 2"});
  refused(with("empty.jsonl"), 3, {"empty.jsonl:1: the target is empty"});
  refused(with("[a.en, short.de]", "parallel"), 3, {"short.de ends after 1 line", "a.en has more"});
  refused(with("a.en", "parallel"), 2, {"pairs of files"});
  refused(
      with("a.en"), 2,
      {"a.en: text pairs need one of the formats jsonl, json, tsv, csv, parquet and arrow", "data.format"});
  refused(with("[a.en, none.de]", "parallel"), 2, {"none.de does not exist"});
  refused({"train", "job.yaml", "data.max_source_length=64"}, 2,
          {"data.max_source_length=64", "32 positions"});
  refused({"train", "job.yaml", "eval.metrics=[rogue]"}, 2, {"eval.metrics[0]=rogue", "did you mean rouge?"});
  refused({"train", "job.yaml", "checkpoint.save_best_by={max: [rouge]}"}, 2,
          {"save_best_by.max[0]=rouge", "is not evaluated", "rouge2"});
  refused({"train", "job.yaml", "data.packing=false"}, 2,
          {"data.packing", "has no effect with pipeline=seq2seq"});
  refused({"train", "job.yaml", "maml.n_ways=3"}, 2, {"maml.n_ways", "has no effect with pipeline=seq2seq"});
  refused({"train", "job.yaml", "eval.n_outputs=0"}, 2,
          {"rouge2 compares generated text", "eval.generation"});
  write("gpt2.yaml",
        "pipeline: seq2seq\nmodel: {arch: gpt2, tokenizer: bytes, n_layer: 1, n_embd: 8, n_head: 2, "
        "n_positions: 32}\n"
        "data: {train: builtin:copy}\ntrain: {max_steps: 1, global_batch_size: 1}\nworkdir: run\n");
  refused({"train", "gpt2.yaml"}, 2, {"gpt2 is a causal-lm model"});
}

}  // namespace
}  // namespace redco::test
