// The ledger and the bytes of a plan equal those of a real step, line by line.
#include "plan/trace.h"

#include <gtest/gtest.h>

#include "comm/group.h"
#include "kernels/threads.h"
#include "nn/lora.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/redistribute.h"
#include "ops/reduce.h"
#include "pipeline/rollouts.h"
#include "planning.h"
#include "support/ranks.h"
#include "tokenizers/tokenizer.h"

namespace redco {
namespace {

using redco::testing::Planned;

struct RealStep {
  std::vector<LedgerLine> lines;
  i64 high_water = 0;
  i64 all_reduces = 0, all_reduce_bytes = 0;  // counted by the communicators of both axes
  std::vector<double> parameters;             // afterwards, whole
};

// A real step on random tokens, as the Trainer makes it: collate all, then run; or several steps on the same
// tokens.
std::vector<RealStep> run_step(Planned& p, const Mesh& mesh, i64 global, i64 per_device, i64 length,
                               const StepOptions& options, i64 steps = 1,
                               ComputeDType compute = ComputeDType::fp32) {
  std::vector<RealStep> out(mesh.ranks());
  const auto sharded = shard_specs(p.model->params().specs, mesh.mp(), p.request.rules, options.weights);
  redco::testing::on_mesh(mesh, [&](Context& c) {
    c.compute_dtype = compute;
    ParamTree params =
        make_params(p.model->params(), sharded.layouts,
                    {.sharding = options.sharding, .weights = options.weights, .trains = true});
    initialize(params, 1);
    TrainStep step(*p.pipeline, params, options);
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (const MicroBatch& m : micro_batches(global, per_device, mesh.dp())) {
      const BatchShape shape{
          .rows = m.rows, .mine = shard_range(m.rows, 1, mesh.dp(), c.coord().dp()), .length = length};
      std::vector<Example> mine(shape.mine.size());
      for (size_t r = 0; r < mine.size(); ++r) {
        redco::testing::Random random(static_cast<u64>(m.first + shape.mine.begin) + r);
        for (i64 t = 0; t < length; ++t)
          for (const char* field : {"input_ids", "labels"})
            mine[r].ids[field].push_back(static_cast<i32>(random.below(p.model->vocab_size())));
      }
      batches.push_back(p.pipeline->collate(mine, shape));
      offsets.push_back(m.first);
    }
    // From the second step on, sharded parameters are gathered ahead.
    if (options.sharding == StateSharding::parameters) step.run(batches, offsets, 0, 0, 1e-3, {});
    c.keep_ledger();
    for (Axis a : Context::current().mesh().axes()) c.group(a).reset_counts();
    for (i64 s = 0; s < steps; ++s) step.run(batches, offsets, s, 0, 1e-3, {});
    RealStep& run = out[c.rank()];
    run.lines = c.ledger()->lines();
    run.high_water = c.arena().high_water();
    for (Axis a : Context::current().mesh().axes()) {
      run.all_reduces += c.group(a).counted(Collective::all_reduce).calls;
      run.all_reduce_bytes += c.group(a).counted(Collective::all_reduce).bytes;
    }
    for (const Tensor& t : params.values()) {
      const auto values = to_values(widened(t));
      run.parameters.insert(run.parameters.end(), values.begin(), values.end());
    }
  });
  return out;
}

std::string show(const LedgerLine& l) {
  return fmt::format("{} in {}: {} x, {} FLOPs, {} bytes", l.what, l.where, l.count, l.flops, l.bytes);
}

struct Case {
  const char* name;
  const char* config;
  i64 global, per_device;
  bool recompute;
  bool lora = false;
  bool sequence_parallel = false;
  StateSharding sharding = StateSharding::none;
  DType weights = DType::f32;
  ComputeDType compute = ComputeDType::fp32;
  OptimizerSettings optimizer = AdamWSettings{};
};

// Rules of plugins: on each element, and with a product of matrices.
struct SignRule : UpdateRule {
  bool elementwise() const override { return true; }
  std::vector<std::string> state() const override { return {"m"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const Tensor m = 0.9 * state[0] + 0.1 * g;
    return {p - c.learning_rate * tanh(m), {m}};
  }
};
struct ProductRule : UpdateRule {
  Update update(const Tensor& p, const Tensor& g, const Tensors&, const UpdateContext& c) const override {
    if (p.rank() != 2) return {p};
    return {p - c.learning_rate * matmul(matmul(g, g, false, true), g)};
  }
};
// State with a number for each row, of whole matrices.
struct RowsRule : UpdateRule {
  std::vector<StateSpec> state_of(const ParamSpec& spec) const override {
    Shape rows = spec.shape;
    for (std::size_t d = 1; d < rows.size(); ++d) rows[d] = 1;
    return {{"m", spec.shape}, {"rows", rows}};
  }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const Tensor m = 0.9 * state[0] + g;
    Tensor rows = state[1];
    if (p.rank() == 2) rows = rows + mean(square(matmul(matmul(g, g, false, true), m)), {1}, true);
    return {p - c.learning_rate * m, {m, rows}};
  }
};
RuleSettings rule(std::shared_ptr<const UpdateRule> r) {
  return {.name = "rule", .origin = "", .rule = std::move(r)};
}

void adapt(Model& m) {
  LoraConfig l;
  l.rank = 3;
  l.dropout = 0.1;
  l.target_modules = {kAllLinear};
  m.set_params(with_lora(m.params(), l, lora_targets(m.params(), l, "the test"), "the test"));
}

class PlanIsRun : public ::testing::TestWithParam<Case> {};

TEST_P(PlanIsRun, LedgerLinesAndBytesAreEqual) {
  const Case& k = GetParam();
  kernels::set_threads(1);  // as the ranks of run_step(): workspaces depend on it
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}, Mesh{1, 3}}) {
    Planned p = Planned::config(k.config);
    if (k.lora) adapt(*p.model);
    const StepOptions options{.clip_grad_norm = 1.0,
                              .recompute_blocks = k.recompute,
                              .sequence_parallel = k.sequence_parallel,
                              .optimizer = k.optimizer,
                              .sharding = k.sharding,
                              .weights = k.weights};
    const auto runs = run_step(p, mesh, k.global, k.per_device, 24, options, 1, k.compute);
    const auto sharded = shard_specs(p.model->params().specs, mesh.mp(), {}, k.weights);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      SCOPED_TRACE(fmt::format("dp {} x mp {}, rank {}", mesh.dp(), mesh.mp(), rank));
      const Trace plan = trace_step({.pipeline = p.pipeline.get(),
                                     .mesh = mesh,
                                     .rank = rank,
                                     .layouts = sharded.layouts,
                                     .global_batch = k.global,
                                     .per_device = k.per_device,
                                     .length = 24,
                                     .step = options,
                                     .compute = k.compute});
      const RealStep& run = runs[rank];
      ASSERT_EQ(plan.lines.size(), run.lines.size());
      for (size_t i = 0; i < run.lines.size(); ++i)
        EXPECT_TRUE(plan.lines[i] == run.lines[i])
            << "plan: " << show(plan.lines[i]) << "\nrun:  " << show(run.lines[i]);
      // Steps of up to four micro-batches are traced completely. For larger ones the gaps between tensors may
      // differ: a few per cent of these small tensors.
      const i64 micro = (k.global + k.per_device * mesh.dp() - 1) / (k.per_device * mesh.dp());
      if (micro <= 4) EXPECT_EQ(plan.high_water, run.high_water);
      EXPECT_NEAR(static_cast<double>(plan.high_water), static_cast<double>(run.high_water),
                  0.05 * static_cast<double>(run.high_water));
      // The ledger's all-reduces are those of the communicators (the vote is on neither axis).
      i64 calls = 0, bytes = 0;
      for (const LedgerLine& l : plan.collectives)
        if (l.what == "all_reduce mp" || l.what == "all_reduce dp") {
          calls += l.count;
          bytes += l.bytes;
        }
      EXPECT_EQ(calls, run.all_reduces);
      EXPECT_EQ(bytes, run.all_reduce_bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, PlanIsRun,
    ::testing::Values(Case{"gpt2", redco::testing::kGpt2, 4, 2, false},
                      Case{"gpt2_tail", redco::testing::kGpt2, 7, 1, false},
                      Case{"gpt2_recompute", redco::testing::kGpt2, 4, 2, true},
                      Case{"gptj", redco::testing::kGptj, 4, 4, false},
                      Case{"llama", redco::testing::kLlama, 4, 4, false},
                      Case{"mixtral", redco::testing::kMixtral, 4, 2, false},
                      Case{"balanced", redco::testing::kBalanced, 4, 1, true},
                      Case{"gpt_oss", redco::testing::kGptOss, 4, 2, false},
                      Case{"opt", redco::testing::kOpt, 4, 2, false},
                      Case{"mamba2", redco::testing::kMamba2, 4, 2, false},
                      Case{"mamba2_tokens", redco::testing::kMamba2, 4, 2, true, false, true},
                      Case{"gpt2_lora", redco::testing::kGpt2, 4, 2, false, true},
                      Case{"llama_lora", redco::testing::kLlama, 4, 2, true, true},
                      Case{.name = "gpt2_lora_bf16",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .lora = true,
                           .weights = DType::bf16},
                      Case{.name = "gpt2_in_bf16",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .compute = ComputeDType::bf16},
                      Case{.name = "llama_all_bf16",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 4,
                           .recompute = true,
                           .sequence_parallel = true,
                           .weights = DType::bf16,
                           .compute = ComputeDType::bf16},
                      Case{.name = "llama_lora_int8",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 2,
                           .recompute = true,
                           .lora = true,
                           .weights = DType::q8},
                      Case{.name = "shard_parameters_int4",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 1,
                           .recompute = false,
                           .lora = true,
                           .sharding = StateSharding::parameters,
                           .weights = DType::q4},
                      Case{.name = "mixtral_lora_int4",
                           .config = redco::testing::kMixtral,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .lora = true,
                           .weights = DType::q4},
                      Case{"gpt2_tokens", redco::testing::kGpt2, 7, 1, false, false, true},
                      Case{"gptj_tokens", redco::testing::kGptj, 4, 4, false, false, true},
                      Case{"mixtral_tokens", redco::testing::kMixtral, 4, 2, true, false, true},
                      Case{"llama_lora_tokens", redco::testing::kLlama, 4, 2, false, true, true},
                      Case{.name = "shard_optimizer",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 1,
                           .recompute = false,
                           .sharding = StateSharding::optimizer},
                      Case{.name = "shard_gradients",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 1,
                           .recompute = true,
                           .sharding = StateSharding::gradients},
                      Case{.name = "shard_parameters",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 1,
                           .recompute = true,
                           .lora = true,
                           .sequence_parallel = true,
                           .sharding = StateSharding::parameters},
                      Case{.name = "shard_parameters_tail",
                           .config = redco::testing::kGpt2,
                           .global = 7,
                           .per_device = 1,
                           .recompute = false,
                           .sharding = StateSharding::parameters},
                      Case{.name = "bf16",
                           .config = redco::testing::kGpt2,
                           .global = 5,
                           .per_device = 2,
                           .recompute = false,
                           .weights = DType::bf16},
                      Case{.name = "muon",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .optimizer = MuonSettings{}},
                      Case{.name = "muon_shard_optimizer",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::optimizer,
                           .weights = DType::bf16,
                           .optimizer = MuonSettings{}},
                      Case{.name = "muon_shard_parameters",
                           .config = redco::testing::kMixtral,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::parameters,
                           .optimizer = MuonSettings{}},
                      Case{.name = "adafactor",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .weights = DType::bf16,
                           .optimizer = AdafactorSettings{}},
                      Case{.name = "adafactor_shard_parameters",
                           .config = redco::testing::kMixtral,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::parameters,
                           .optimizer = AdafactorSettings{.scale_parameter = true}},
                      Case{.name = "rule_of_rows",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::optimizer,
                           .optimizer = rule(std::make_shared<RowsRule>())},
                      Case{.name = "elementwise_rule",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::gradients,
                           .optimizer = rule(std::make_shared<SignRule>())},
                      Case{.name = "rule_of_matrices",
                           .config = redco::testing::kGpt2,
                           .global = 4,
                           .per_device = 2,
                           .recompute = false,
                           .sharding = StateSharding::parameters,
                           .optimizer = rule(std::make_shared<ProductRule>())},
                      Case{.name = "bf16_shard_optimizer",
                           .config = redco::testing::kLlama,
                           .global = 4,
                           .per_device = 1,
                           .recompute = true,
                           .sharding = StateSharding::optimizer,
                           .weights = DType::bf16}),
    [](const auto& info) { return std::string(info.param.name); });

// Answers that a training samples between its steps: the plan has the memory of the run.
TEST(PlannedRollouts, HaveTheMemoryOfSampling) {
  kernels::set_threads(1);
  const auto tokenizer = load_tokenizer("bytes");
  constexpr i64 kPrompt = 20, kAnswer = 30, kTogether = 3;
  for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}}) {
      Planned p = Planned::config(redco::testing::kGpt2);
      p.pipeline->tokenizer = tokenizer.get();
      const auto sharded = shard_specs(p.model->params().specs, mesh.mp(), {}, DType::f32);
      const ParamStorage storage{.sharding = sharding, .weights = DType::f32, .trains = true};
      const std::vector<std::vector<i32>> prompts(4, std::vector<i32>(kPrompt, 65));
      TextGeneration g;
      g.settings.max_new_tokens = g.settings.min_new_tokens = kAnswer;
      g.settings.num_return_sequences = 3;
      g.settings.temperature = 1;
      g.batch_size = kTogether;
      std::vector<i64> run(mesh.ranks());
      redco::testing::on_mesh(mesh, [&](Context& c) {
        ParamTree params = make_params(p.model->params(), sharded.layouts, storage);
        initialize(params, 1);
        sample(*p.pipeline, params, prompts, g);
        run[c.rank()] = c.arena().high_water();
      });
      for (int rank = 0; rank < mesh.ranks(); ++rank) {
        SCOPED_TRACE(
            fmt::format("{}, dp {} x mp {}, rank {}", name_of(sharding), mesh.dp(), mesh.mp(), rank));
        const auto context = Context::meta(mesh, rank);
        const Context::Use use(*context);
        const ParamTree params = make_params(p.model->params(), sharded.layouts, storage);
        trace_sample(*p.model, params, kTogether, kPrompt, kPrompt + kAnswer);
        EXPECT_EQ(context->arena().high_water(), run[rank]);
      }
    }
}

// Updates of AdamW with dropout, several micro-batches, clipping and an odd length, which two and four ranks
// share unevenly.
TEST(SequenceParallelSteps, UpdateTheParametersLikeOneRank) {
  for (const char* config : {redco::testing::kGpt2, redco::testing::kGptj}) {
    Planned p = Planned::config(config);
    // An epsilon of the size of the gradients: AdamW does not turn rounding errors into whole updates.
    StepOptions options{.clip_grad_norm = 1.0, .optimizer = AdamWSettings{.epsilon = 1e-3}};
    const auto one = run_step(p, {1, 1}, 5, 2, 21, options, 3)[0].parameters;
    const auto before = run_step(p, {1, 1}, 5, 2, 21, options, 0)[0].parameters;
    options.sequence_parallel = true;
    for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 4}}) {
      SCOPED_TRACE(fmt::format("dp {} x mp {}", mesh.dp(), mesh.mp()));
      double worst = 0, moved = 0;
      for (const RealStep& run : run_step(p, mesh, 5, mesh.dp() == 2 ? 1 : 2, 21, options, 3)) {
        ASSERT_EQ(run.parameters.size(), one.size());
        for (std::size_t i = 0; i < one.size(); ++i) {
          worst = std::max(worst, std::abs(run.parameters[i] - one[i]));
          moved = std::max(moved, std::abs(one[i] - before[i]));
        }
      }
      EXPECT_GT(moved, 1e-3);
      // fp32 gradients have relative errors of about 1e-6, and an update is at most the learning rate.
      EXPECT_LT(worst, 1e-6);
    }
  }
}

}  // namespace
}  // namespace redco
