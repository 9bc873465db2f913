// Sequence parallelism: the residual stream is sharded over tokens. Same numbers, reduce-scatters and
// all-gathers in place of all-reduces, less memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

constexpr const char* kSharded[] = {"gpt2",         "gptj",
                                    "opt",          "opt-postnorm",
                                    "llama",        "llama-tied-bias",
                                    "qwen3",        "gemma2",
                                    "mixtral",      "t5",
                                    "t5-v1_1",      "bart",
                                    "bert-seqcls",  "bert-mlm",
                                    "vit",          "dinov2",
                                    "dinov2-gated", "deberta-v2-conv",
                                    "vit-gpt2",     "bart-variants",
                                    "performer",    "mistral-window",
                                    "mamba2",       "granitemoehybrid",
                                    "nemotron_h",   "qwen3_next",
                                    "dit",          "falcon",
                                    "bloom",        "deepseek_v3",
                                    "clip",         "siglip",
                                    "falcon_h1",    "lfm2",
                                    "mamba",        "apertus"};

class SequenceParallel : public ::testing::TestWithParam<const char*> {};

// Two and four ranks; three ranks and odd lengths give uneven shards.
TEST_P(SequenceParallel, GivesTheResultsOfPyTorch) {
  const std::string folder = fixture(GetParam());
  for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 3}}) {
    SCOPED_TRACE(fmt::format("dp {} x mp {}", mesh.dp(), mesh.mp()));
    expect_matches(folder, run_model(folder, mesh, {.sequence_parallel = true}));
  }
  expect_matches(folder, run_model(folder, {1, 4}, {.recompute = true, .sequence_parallel = true}));
}

INSTANTIATE_TEST_SUITE_P(Families, SequenceParallel, ::testing::ValuesIn(kSharded), [](const auto& info) {
  std::string text = info.param;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
});

// The collectives over mp of a planned forward and backward pass of 2 rows of 30 tokens: "all_reduce
// forward" -> calls. Only those of whole activations.
struct Pass {
  std::map<std::string, i64> calls;
  i64 other_bytes = 0;  // of smaller collectives
  i64 high_water = 0;
};
Pass trace_pass(const std::string& name, int mp, bool sequence_parallel) {
  const auto model = load_model(fixture(name));
  const auto context = Context::meta({1, mp}, 0);
  const Context::Use use(*context);
  const auto sharded = shard_specs(model->params().specs, mp);
  const ParamTree params = make_params(model->params(), sharded.layouts).watched();
  const i64 before = context->arena().in_use();
  const Tensor ids = from_ids({2, 30}, {});
  context->phase = "forward";
  context->keep_ledger();
  const ApplyOptions o{.train = true, .sequence_parallel = sequence_parallel};
  const Tensor logits = model->apply(params, {.input_ids = ids, .positions = ids, .key_mask = {}}, o);
  const Tensor loss = sum_all(cross_entropy(logits, ids));
  context->phase = "backward";
  const auto gradients = grad(loss, params.values());
  Pass out;
  const i64 activation = 4 * 2 * 30 * params["model.norm.weight"].numel();
  for (const LedgerLine& l : context->ledger()->collectives()) {
    const bool whole = l.count > 0 && l.bytes / l.count == activation;
    if (whole) {
      out.calls[l.what.substr(0, l.what.find(' ')) + " " + l.where.substr(0, l.where.find('/'))] += l.count;
    } else {
      out.other_bytes += l.bytes;
    }
  }
  out.high_water = context->arena().high_water() - before;
  return out;
}

// Each all-reduce of an activation, of 2 (n - 1) / n of its bytes, becomes a reduce-scatter and an all-gather
// of half of these each. No other one exists.
TEST(SequenceParallelCollectives, ReplaceEachAllReduceByAReduceScatterAndAnAllGather) {
  using ::testing::Pair;
  using ::testing::UnorderedElementsAre;
  for (const char* name : {"llama", "gemma2", "qwen3"}) {
    SCOPED_TRACE(name);
    const i64 n = 2 * load_model(fixture(name))->n_layers() + 1;
    const Pass off = trace_pass(name, 2, false), on = trace_pass(name, 2, true);
    EXPECT_THAT(off.calls,
                UnorderedElementsAre(Pair("all_reduce forward", n), Pair("all_reduce backward", n)));
    EXPECT_THAT(on.calls,
                UnorderedElementsAre(Pair("reduce_scatter forward", n), Pair("all_gather forward", n),
                                     Pair("reduce_scatter backward", n), Pair("all_gather backward", n)));
    // The rest is cross-entropy's. Gradients of norms stay Partial here; a step reduces them in a bucket.
    EXPECT_EQ(on.other_bytes, off.other_bytes);
  }
}

TEST(SequenceParallelMemory, IsLower) {
  for (const int mp : {2, 4}) {
    const i64 off = trace_pass("llama", mp, false).high_water, on = trace_pass("llama", mp, true).high_water;
    EXPECT_LT(on, off) << "mp " << mp;
  }
}

// Draws of dropout depend on coordinates, so a rank draws for its tokens what one rank draws for all.
TEST(SequenceParallel, DropoutDropsTheSameElements) {
  const std::map<std::string, std::map<std::string, std::string>> rates = {
      {"gpt2", {{"resid_pdrop", "0.3"}, {"embd_pdrop", "0.2"}, {"attn_pdrop", "0.1"}}},
      {"gptj", {{"resid_pdrop", "0.3"}, {"embd_pdrop", "0.2"}, {"attn_pdrop", "0.1"}}},
      {"t5", {{"dropout_rate", "0.3"}}}};
  for (const auto& [name, overrides] : rates) {
    SCOPED_TRACE(name);
    const auto model = load_model(fixture(name), {.overrides = overrides});
    const auto files = ckpt::ModelFiles::open(fixture(name));
    const Expected expected = Expected::open(fixture(name), "");
    const auto logits_on = [&](const Mesh& mesh, bool sequence_parallel) {
      const auto sharded = shard_specs(model->params().specs, mesh.mp());
      std::vector<double> logits;
      on_mesh(mesh, [&](Context& c) {
        c.random = {.seed = 7, .step = 3, .row_offset = 0};
        const ParamTree params = detail::load_tree(*model, sharded, files);
        const TaskInputs in = read_task_inputs(*model, expected);
        const auto values = to_values(
            task_logits(*model, params, in, {.train = true, .sequence_parallel = sequence_parallel}));
        if (c.rank() == 0) logits = values;
      });
      return logits;
    };
    const auto one = logits_on({1, 1}, false);
    // Each run may have the error that the fixture's tolerance allows without dropout.
    const double tolerance = 2 * expected.tolerance("logits");
    for (const Mesh& mesh : {Mesh{1, 2}, Mesh{1, 3}}) {
      const auto many = logits_on(mesh, true);
      for (std::size_t i = 0; i < one.size(); ++i)
        ASSERT_NEAR(many[i], one[i], tolerance) << "mp " << mesh.mp();
    }
  }
}

}  // namespace
}  // namespace redco::testing
