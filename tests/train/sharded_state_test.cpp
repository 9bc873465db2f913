// How parameters and state are kept in training: sharded over the replicas (shard/state_sharding.h), and
// weights in bf16. The numbers are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ckpt/params_io.h"
#include "ckpt/params_save.h"
#include "models/model.h"
#include "nn/lora.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"
#include "ops/shape.h"
#include "optim/gradients.h"
#include "pipelines/pipelines.h"
#include "support/ranks.h"
#include "support/storage.h"
#include "support/temp_dir.h"
#include "train/replica_check.h"
#include "train/step.h"

namespace redco {
namespace {

using test::TempDir;

constexpr StateSharding kAllShardings[] = {StateSharding::none, StateSharding::optimizer,
                                           StateSharding::gradients, StateSharding::parameters};

struct ShardedRun {
  std::string config;
  Mesh mesh;
  i64 rows = 6, per_device = 6;
  StepOptions options;
  bool lora = false;
  DType weights = DType::f32;
  DType rounded = DType::f32;  // fp32 weights that are not trained have the values that this type keeps
};

// Of the first rank, after three steps: parameters and optimizer state by name, and the gradient norms.
struct Trained {
  std::map<std::string, std::vector<double>> values;
  std::vector<double> norms;
};

std::unique_ptr<Model> model_of(const ShardedRun& run) {
  auto model = make_model(ModelConfig(run.config, "test"));
  if (!run.lora) return model;
  LoraConfig l;
  l.rank = 3;
  l.target_modules = {kAllLinear};
  model->set_params(with_lora(model->params(), l, lora_targets(model->params(), l, "the test"), "the test"));
  return model;
}

Batch batch_of(const Pipeline& pipeline, const Model& model, const MicroBatch& m, i64 step) {
  constexpr i64 kLength = 12;
  const Context& c = Context::current();
  const BatchShape shape{
      .rows = m.rows, .mine = shard_range(m.rows, 1, c.mesh().dp(), c.coord().dp()), .length = kLength};
  std::vector<Example> mine(shape.mine.size());
  for (size_t r = 0; r < mine.size(); ++r) {
    redco::testing::Random random(static_cast<u64>(100 * step + m.first + shape.mine.begin) + r);
    for (i64 t = 0; t < kLength; ++t)
      for (const char* field : {"input_ids", "labels"})
        mine[r].ids[field].push_back(static_cast<i32>(random.below(model.vocab_size())));
  }
  return pipeline.collate(mine, shape);
}

Trained train_sharded(const ShardedRun& run, StateSharding sharding) {
  const auto model = model_of(run);
  const auto layouts = shard_specs(model->params().specs, run.mesh.mp(), {}, run.weights).layouts;
  Trained out;
  redco::testing::on_mesh(run.mesh, [&](Context& c) {
    const auto pipeline = make_lm_pipeline();
    pipeline->model = model.get();
    c.random.seed = 3;
    ParamTree params =
        make_params(model->params(), layouts, {.sharding = sharding, .weights = run.weights, .trains = true});
    initialize(params, 1);
    const ParamTree stored = make_params(model->params(), layouts, {.weights = DType::bf16, .trains = true});
    for (size_t i = 0; i < params.size() && run.rounded != DType::f32; ++i)
      if (const Tensor& p = params.values()[i]; is_storage_type(stored.values()[i].dtype()))
        c.run(&Kernels::copy, redco::testing::kept_values(p, run.rounded), p);
    StepOptions options = run.options;
    options.sharding = sharding;
    TrainStep train(*pipeline, params, options);
    for (i64 step = 0; step < 3; ++step) {
      std::vector<Batch> batches;
      std::vector<i64> offsets;
      for (const MicroBatch& m : micro_batches(run.rows, run.per_device, run.mesh.dp())) {
        batches.push_back(batch_of(*pipeline, *model, m, step));
        offsets.push_back(m.first);
      }
      const StepOutcome o = train.run(batches, offsets, step, 0, 1e-2);
      EXPECT_TRUE(o.finite);
      if (c.rank() == 0) out.norms.push_back(o.grad_norm);
    }
    check_replicas(params, 3);
    const auto keep = [&](const std::string& prefix, const ParamTree& tree) {
      for (size_t i = 0; i < tree.size(); ++i) {
        const auto values = to_values(widened(tree.values()[i]));
        if (c.rank() == 0) out.values[prefix + tree.specs()[i].name] = values;
      }
    };
    keep("", params);
    keep("master/", train.masters());
    for (const Optimizer::State& s : train.state()) keep(s.name + "/", s.tree);
  });
  return out;
}

constexpr const char* kSmallGpt2 =
    R"({"model_type": "gpt2", "n_embd": 20, "n_head": 4, "n_layer": 2, "n_positions": 16, "vocab_size": 67,
        "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})";
constexpr const char* kSmallLlama =
    R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 37, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 61, "max_position_embeddings": 16,
        "tie_word_embeddings": false})";

constexpr const char* kWiderLlama =
    R"({"model_type": "llama", "hidden_size": 128, "intermediate_size": 200, "num_attention_heads": 8,
        "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 61, "max_position_embeddings": 16,
        "tie_word_embeddings": false})";

constexpr const char* kSmallMixtral =
    R"({"model_type": "mixtral", "hidden_size": 48, "intermediate_size": 72, "num_attention_heads": 4,
        "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 61, "max_position_embeddings": 16,
        "num_local_experts": 3, "num_experts_per_tok": 2})";

std::vector<ShardedRun> sharded_runs() {
  const StepOptions adamw{.clip_grad_norm = 0.5, .optimizer = AdamWSettings{}};
  StepOptions sgd = adamw, plain = adamw, recompute = adamw, tokens = adamw, bf16 = adamw;
  sgd.optimizer = SgdSettings{.momentum = 0.9, .weight_decay = 0.1};
  plain.optimizer = SgdSettings{};
  recompute.recompute_blocks = true;
  tokens.sequence_parallel = true;
  bf16.weights = DType::bf16;
  return {{kSmallGpt2, {2, 1}, 6, 6, adamw},
          {kSmallGpt2, {3, 1}, 6, 6, recompute},
          {kSmallGpt2, {2, 2}, 5, 6, sgd},
          {kSmallLlama, {2, 1}, 6, 6, recompute},
          {kSmallLlama, {2, 2}, 6, 6, adamw},
          {kSmallLlama, {1, 2}, 6, 6, adamw},
          {kSmallLlama, {2, 4}, 6, 6, plain},
          {kSmallLlama, {4, 1}, 6, 6, adamw, true},
          {kSmallGpt2, {2, 2}, 6, 6, recompute, true},
          {kSmallLlama, {2, 2}, 6, 6, tokens},
          {kSmallGpt2, {2, 2}, 6, 6, bf16},
          {kSmallLlama, {3, 1}, 6, 6, bf16}};
}

// Also with dropout, clipping, key/value weights that are repeated, rows that no replica has.
TEST(ShardedState, OneMicroBatchGivesTheSameBits) {
  for (const ShardedRun& run : sharded_runs()) {
    SCOPED_TRACE(fmt::format("{} dp {} x mp {}", run.config.substr(16, 6), run.mesh.dp(), run.mesh.mp()));
    const Trained whole = train_sharded(run, StateSharding::none);
    for (const StateSharding sharding : kAllShardings) {
      SCOPED_TRACE(name_of(sharding));
      const Trained part = train_sharded(run, sharding);
      EXPECT_EQ(part.norms, whole.norms);
      EXPECT_EQ(part.values, whole.values);
    }
  }
}

TEST(ShardedState, MicroBatchesDifferByRoundingOnly) {
  for (ShardedRun run : sharded_runs()) {
    run.rows = 7;
    run.per_device = 1;
    run.options.optimizer = SgdSettings{};  // AdamW's first step turns rounding into whole steps
    const Trained whole = train_sharded(run, StateSharding::none);
    for (const StateSharding sharding : kAllShardings) {
      SCOPED_TRACE(name_of(sharding));
      const Trained part = train_sharded(run, sharding);
      if (sharding <= StateSharding::optimizer) EXPECT_EQ(part.values, whole.values);
      for (const auto& [name, values] : whole.values) {
        // Weights in bf16 are their masters, rounded: a master between two of them may go either way.
        double rounding = 0;
        if (whole.values.contains("master/" + name))
          for (const double v : values) rounding = std::max(rounding, std::abs(v) / 128);
        EXPECT_LT(redco::testing::distance(part.values.at(name), values), 1e-6 + rounding) << name;
      }
    }
  }
}

// Adapters of weights in a storage type are trained as those of fp32 weights with the same values. The wider
// model has several groups a row, and key/value heads of half a group.
class StoredWeightsOf : public ::testing::TestWithParam<DType> {};
TEST_P(StoredWeightsOf, AdaptersAreTrained) {
  for (const char* config : {kSmallGpt2, kSmallLlama, kWiderLlama, kSmallMixtral})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}, Mesh{1, 4}})
      for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters}) {
        ShardedRun run{
            .config = config, .mesh = mesh, .options = {.optimizer = AdamWSettings{}}, .lora = true};
        run.options.optimizer = SgdSettings{};
        run.rounded = GetParam();
        const Trained wide = train_sharded(run, sharding);
        run.rounded = DType::f32;
        run.weights = GetParam();
        const Trained stored = train_sharded(run, sharding);
        for (const auto& [name, values] : wide.values)
          EXPECT_LT(redco::testing::distance(stored.values.at(name), values), 1e-6)
              << name << ", dp " << mesh.dp() << " x mp " << mesh.mp() << ", " << config;
      }
}
// Weights are rounded when they are loaded, to the same values on any mesh, and saved in fp32.
TEST_P(StoredWeightsOf, AreLoadedAndSavedOnAnyMesh) {
  const DType type = GetParam();
  for (const char* config : {kSmallGpt2, kWiderLlama, kSmallMixtral}) {
    const auto model = model_of({.config = config, .mesh = {}});
    TempDir original{TempDir::in_memory}, again{TempDir::in_memory};
    const auto on = [&](const Mesh& mesh, const ParamStorage& storage, const auto& f) {
      const auto layouts = shard_specs(model->params().specs, mesh.mp(), {}, storage.weights).layouts;
      redco::testing::on_mesh(mesh, [&](Context&) {
        ParamTree params = make_params(model->params(), layouts, storage);
        f(params);
      });
    };
    const auto save = [](const ParamTree& params, const TempDir& to) {
      const std::vector<ckpt::SavedTree> trees = {{"", &params}};
      ckpt::save_params(trees, ckpt::plan_params(trees, ckpt::StoredType::f32, "model"), to.path());
    };
    const auto load = [&](ParamTree& params, const TempDir& from) {
      const auto canonical = [](const std::string& n) { return n; };
      ckpt::load_params(params, ckpt::ModelFiles::open(from.path()), canonical, model->params().aliases);
    };
    std::vector<std::vector<double>> kept;
    on({1, 1}, {}, [&](ParamTree& params) {
      initialize(params, 7);
      save(params, original);
      const ParamTree stored =
          make_params(model->params(), shard_specs(params.specs(), 1, {}, type).layouts, {.weights = type});
      for (size_t i = 0; i < params.size(); ++i) {
        const bool rounds = stored.values()[i].dtype() == type;
        const Tensor& t = params.values()[i];
        kept.push_back(to_values(rounds ? redco::testing::kept_values(t, type) : t));
      }
    });
    const auto expect_kept = [&](const ParamTree& params) {
      for (size_t i = 0; i < params.size(); ++i) {
        const auto values = to_values(widened(params.values()[i]));
        EXPECT_EQ(values, kept[i]) << params.specs()[i].name;
      }
    };
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 3}, Mesh{4, 1}})
      for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters})
        on(mesh, {.sharding = sharding, .weights = type}, [&](ParamTree& params) {
          load(params, original);
          expect_kept(params);
        });
    on({2, 2}, {.weights = type}, [&](ParamTree& params) {
      load(params, original);
      save(params, again);
    });
    on({1, 2}, {}, [&](ParamTree& params) {
      load(params, again);
      expect_kept(params);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StoredWeightsOf, ::testing::Values(DType::bf16, DType::q8, DType::q4),
                         [](const auto& type) { return std::string(name_of(type.param)); });

// Trained weights in bf16 have gradients at the rounded values. AdamW updates their masters, which are
// rounded again.
TEST(WeightsInBf16, HaveMastersThatAreUpdated) {
  for (const char* config : {kSmallGpt2, kSmallLlama})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}, Mesh{1, 4}})
      redco::testing::on_mesh(mesh, [&](Context& c) {
        const auto model = make_model(ModelConfig(config, "test"));
        const auto layouts = shard_specs(model->params().specs, mesh.mp()).layouts;
        const auto pipeline = make_lm_pipeline();
        pipeline->model = model.get();
        const auto rounded = [&](const ParamTree& masters) {
          ParamTree out = make_params(model->params(), layouts);
          const ParamStorage storage{.weights = DType::bf16};
          for (size_t i = 0; i < out.size(); ++i)
            if (storage.type_of(out.specs()[i]) == DType::bf16) {
              const Tensor stored = cast(masters.values()[i], DType::bf16);
              c.run(&Kernels::cast, stored, out.values()[i]);
            } else {
              c.run(&Kernels::copy, masters.values()[i], out.values()[i]);
            }
          return out;
        };
        ParamTree masters = make_params(model->params(), layouts),
                  params = make_params(model->params(), layouts);
        for (ParamTree* tree : {&masters, &params}) initialize(*tree, 1);
        AdamW adamw({.weight_decay = 0.1}, masters);
        TrainStep train(*pipeline, params,
                        {.optimizer = AdamWSettings{.weight_decay = 0.1}, .weights = DType::bf16});
        bool stored = false;
        for (i64 step = 0; step < 3; ++step) {
          c.random.step = step;
          const Batch batch = batch_of(*pipeline, *model, {.first = 0, .rows = 6}, step);
          StepContext ctx;
          ctx.apply.train = true;
          const ParamTree watched = rounded(masters).watched();
          const LossTerms terms = pipeline->loss(watched, batch, ctx);
          std::map<std::string, double> weights = batch.weights;
          for (auto& [name, w] : weights) c.group(Axis::dp).all_reduce<double>(&w, 1);
          const Tensor mean = scale(terms[0].sum, 1 / weights.at(terms[0].name));
          adamw.update(masters, reduced_gradients(mean, watched, watched), 1e-2, 1);
          train.run({batch}, {0}, step, 0, 1e-2);
          const ParamTree of_step = train.masters();
          for (size_t i = 0; i < params.size(); ++i) {
            const std::string& name = params.specs()[i].name;
            stored |= params.values()[i].dtype() == DType::bf16;
            // The products sum in another order; AdamW divides by the size of gradients as small as 1e-4.
            EXPECT_LT(
                redco::testing::distance(to_values(of_step.values()[i]), to_values(masters.values()[i])),
                2e-5)
                << name;
            if (params.values()[i].dtype() == DType::f32) continue;
            const Tensor again = cast(of_step.values()[i], DType::bf16);
            EXPECT_EQ(to_values(widened(params.values()[i])), to_values(widened(again))) << name;
          }
        }
        EXPECT_TRUE(stored);
      });
}

// Parameters and moments that were saved on one mesh are read on another, with another sharding.
TEST(ShardedState, IsSavedAndReadOnAnyMesh) {
  const ShardedRun run{.config = kSmallLlama, .mesh = {3, 1}};
  const auto model = model_of(run);
  TempDir dir{TempDir::in_memory};
  const auto canonical = [](const std::string& n) { return n; };
  std::vector<double> saved;
  const auto on = [&](const Mesh& mesh, StateSharding sharding, const auto& f) {
    redco::testing::on_mesh(mesh, [&](Context& c) {
      ParamTree params = make_params(model->params(), shard_specs(model->params().specs, mesh.mp()).layouts,
                                     {.sharding = sharding});
      f(c, params);
      std::vector<double> all;
      for (const Tensor& t : params.values()) {
        const auto v = to_values(t);
        all.insert(all.end(), v.begin(), v.end());
      }
      if (c.rank() != 0) return;
      if (saved.empty()) saved = all;
      EXPECT_EQ(all, saved) << name_of(sharding);
    });
  };
  on({3, 1}, StateSharding::parameters, [&](Context&, ParamTree& params) {
    initialize(params, 7);
    const std::vector<ckpt::SavedTree> trees = {{"", &params}};
    ckpt::save_params(trees, ckpt::plan_params(trees, ckpt::StoredType::f32, "model"), dir.path());
  });
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}, Mesh{1, 2}, Mesh{4, 1}})
    for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters})
      on(mesh, sharding, [&](Context&, ParamTree& params) {
        ckpt::load_params(params, ckpt::ModelFiles::open(dir.path()), canonical, model->params().aliases);
      });
}

}  // namespace
}  // namespace redco
