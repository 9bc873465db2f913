// Encoder-decoder models: collectives, caches that keep the memory, buckets of distances, dropout, initial
// values, folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ckpt/params_io.h"
#include "ckpt/params_save.h"
#include "models/model_testing.h"
#include "models/relative_bias.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/ranks.h"
#include "train/folder_model.h"

namespace redco::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFamilies[] = {"t5", "t5-v1_1", "t5-variants", "bart", "bart-variants", "bart-untied"};

// --- collectives -----------------------------------------------------------------------------------------

// The all-reduces over mp of a forward and backward pass, by part.
std::map<std::string, i64> all_reduces(const std::string& name) {
  const auto model = load_model(fixture(name));
  const auto context = Context::meta({1, 2}, 0);
  const Context::Use use(*context);
  const auto sharded = shard_specs(model->params().specs, 2);
  const ParamTree params = make_params(model->params(), sharded.layouts).watched();
  const Tensor ids = from_ids({2, 8}, {}), decoder_ids = from_ids({2, 5}, {});
  context->phase = "forward";
  context->keep_ledger();
  const Tensor memory = model->encode(params, {.input_ids = ids, .key_mask = ids}, {});
  const Tensor logits = model->apply(params,
                                     {.input_ids = decoder_ids,
                                      .positions = decoder_ids,
                                      .key_mask = {},
                                      .memory = memory,
                                      .memory_mask = ids},
                                     {});
  Tensor loss;
  {
    Scope s("cross-entropy");
    loss = sum_all(cross_entropy(logits, decoder_ids));
  }
  grad(loss, params.values());
  std::map<std::string, i64> out;
  for (const LedgerLine& l : context->ledger()->collectives()) {
    EXPECT_EQ(l.what, "all_reduce mp") << l.where;
    out[l.where] += l.count;
  }
  return out;
}

// One all-reduce after each attention and each MLP, in each direction; one for a stack's embedding (at the
// first norm that uses it); one for the memory's cotangent, for any number of layers; one for the head's
// input; two small ones in cross-entropy.
TEST(TwoStacks, HaveTheFewestCollectives) {
  for (const char* name : {"t5", "t5-v1_1", "bart", "bart-variants"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(fixture(name));
    i64 encoder = 0;
    for (const ParamSpec& s : model->params().specs)
      encoder += s.name.find("encoder") != std::string::npos &&
                 (s.name.ends_with("SelfAttention.q.weight") || s.name.ends_with("self_attn.q_proj.weight"));
    const i64 decoder = model->n_layers();
    auto counts = all_reduces(name);
    SCOPED_TRACE(::testing::PrintToString(counts));
    i64 total = 0;
    for (const auto& [where, n] : counts) total += n;
    EXPECT_EQ(total, 2 * (2 * encoder + 3 * decoder) + 2 + 1 + 1 + 2);
    EXPECT_EQ(counts["forward/cross_attention"], decoder);
    EXPECT_EQ(counts["backward/cross_attention"], decoder);
    EXPECT_EQ(counts["forward/cross-entropy"], 2);
  }
}

// --- caches ----------------------------------------------------------------------------------------------

// A decoder that gets its tokens in pieces gives the logits of one pass, and computes the memory's keys and
// values once.
TEST(TwoStacks, TheCacheKeepsTheMemory) {
  for (const char* name : kFamilies)
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}}) {
      SCOPED_TRACE(fmt::format("{} on {}x{}", name, mesh.dp(), mesh.mp()));
      const auto model = load_model(fixture(name));
      const auto files = ckpt::ModelFiles::open(fixture(name));
      const Expected expected = Expected::open(fixture(name), "");
      const auto sharded = shard_specs(model->params().specs, mesh.mp());
      on_mesh(mesh, [&](Context& c) {
        NoGrad off;
        const ParamTree params = detail::load_tree(*model, sharded, files);
        const TaskInputs in = read_task_inputs(*model, expected);
        const Tensor &ids = in.decoder.input_ids, &positions = in.decoder.positions,
                     &mask = in.decoder.memory_mask;
        const Tensor memory = model->encode(params, in.encoder, {});
        const auto whole = to_values(task_logits(*model, params, in));
        const i64 B = ids.size(0), T = ids.size(1), V = model->vocab_size();
        ModelCache cache = model->make_cache({.capacity = T});
        ApplyOptions o;
        o.cache = &cache;
        Tensor kept;
        double worst = 0;
        for (i64 at = 0, n; at < T; at += n) {
          n = at == 0 ? 3 : 1;
          DecoderInputs part = {narrow(ids, 1, at, n), narrow(positions, 1, at, n), {}, {}, mask};
          if (at == 0) part.memory = memory;
          const auto got = to_values(model->apply(params, part, o));
          for (i64 b = 0; b < B; ++b)
            for (i64 t = 0; t < n; ++t)
              for (i64 v = 0; v < V; ++v)
                worst = std::max(worst, std::abs(got[(b * n + t) * V + v] - whole[(b * T + at + t) * V + v]));
          const Tensor keys = cache.memory(0).read().entries[0];
          if (at == 0) kept = keys;
          EXPECT_EQ(keys.storage(), kept.storage());
        }
        EXPECT_EQ(cache.length(), T);
        // The same sums in another order: fp32 rounding of logits below 10.
        EXPECT_LT(worst, 2e-5) << "rank " << c.rank();
      });
    }
}

// --- buckets of distances --------------------------------------------------------------------------------

// tests/fixtures/t5-buckets.json: transformers' buckets of all distances from -700 to 700, as (first
// distance, bucket) where they change.
TEST(RelativeBuckets, EqualTransformers) {
  const auto cases = nlohmann::json::parse(read_text(fixture("t5-buckets.json")));
  ASSERT_GE(cases.size(), 6u);
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} buckets to {}, bidirectional {}", c["count"].get<i64>(),
                             c["max_distance"].get<i64>(), c["bidirectional"].get<bool>()));
    const RelativeBuckets b = {c["count"], c["max_distance"], c["bidirectional"]};
    const auto& changes = c["changes"];
    size_t k = 0;
    for (i64 d = -700; d <= 700; ++d) {
      while (k + 1 < changes.size() && changes[k + 1][0].get<i64>() <= d) ++k;
      ASSERT_EQ(relative_bucket(b, d), changes[k][1].get<i64>()) << "distance " << d;
    }
  }
}

// --- dropout ---------------------------------------------------------------------------------------------

// Dropout draws depend on names and coordinates, not on the mesh; each dropout layer has different ones.
TEST(TwoStacks, DropoutIsTheSameOnEveryMesh) {
  const std::map<std::string, std::map<std::string, std::string>> rates = {
      {"t5", {{"dropout_rate", "0.3"}}},
      {"bart", {{"dropout", "0.3"}, {"attention_dropout", "0.2"}, {"activation_dropout", "0.4"}}}};
  for (const auto& [name, overrides] : rates) {
    SCOPED_TRACE(name);
    const auto model = load_model(fixture(name), {.overrides = overrides});
    const auto files = ckpt::ModelFiles::open(fixture(name));
    const Expected expected = Expected::open(fixture(name), "");
    std::vector<std::vector<double>> results;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}}) {
      const auto sharded = shard_specs(model->params().specs, mesh.mp());
      std::vector<double> logits;
      on_mesh(mesh, [&](Context& c) {
        c.random = {.seed = 7, .step = 3, .row_offset = 0};
        const ParamTree params = detail::load_tree(*model, sharded, files);
        const TaskInputs in = read_task_inputs(*model, expected);
        const auto values = to_values(task_logits(*model, params, in, {.train = true}));
        if (c.rank() == 0) logits = values;
      });
      results.push_back(logits);
    }
    const auto eval = run_model(fixture(name), {1, 1}, {.gradients = false}).at("logits");
    double moved = 0;
    // Each run may have the error that the fixture's tolerance allows without dropout.
    const double tolerance = 2 * expected.tolerance("logits");
    for (size_t i = 0; i < eval.size(); ++i) {
      moved = std::max(moved, std::abs(eval[i] - results[0][i]));
      for (size_t m = 1; m < results.size(); ++m) ASSERT_NEAR(results[m][i], results[0][i], tolerance);
    }
    EXPECT_GT(moved, 0.5);
  }
}

// --- initial values --------------------------------------------------------------------------------------

TEST(TwoStacks, InitialValuesFollowTransformers) {
  const auto check = [](const std::string& config, const std::map<std::string, double>& expected) {
    auto model = make_model(ModelConfig(config, "config.json"));
    on_one_rank([&](Context&) {
      ParamTree params = make_params(model->params(), shard_specs(model->params().specs, 1).layouts);
      initialize(params, 5);
      for (const auto& [name, std] : expected) {
        const auto values = to_values(params[name]);
        double sum = 0;
        for (const double v : values) sum += v * v;
        const double measured = std::sqrt(sum / static_cast<double>(values.size()));
        // Five standard errors of a standard deviation.
        EXPECT_NEAR(measured, std, 5 * std / std::sqrt(2.0 * static_cast<double>(values.size()))) << name;
      }
    });
    return model;
  };
  // transformers' T5PreTrainedModel._init_weights with factor 2.
  const std::string b = "decoder.block.0.layer.";
  check(R"({"model_type": "t5", "vocab_size": 300, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 1,
            "num_heads": 3, "initializer_factor": 2, "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": false})",
        {{"shared.weight", 2},
         {"lm_head.weight", 2},
         {b + "0.SelfAttention.q.weight", 2 / 32.0},
         {b + "1.EncDecAttention.k.weight", 2 / 8.0},
         {b + "1.EncDecAttention.v.weight", 2 / 8.0},
         {b + "0.SelfAttention.o.weight", 2 / std::sqrt(48.0)},
         {b + "0.SelfAttention.relative_attention_bias.weight", 2 / 8.0},
         {b + "2.DenseReluDense.wi_1.weight", 2 / 8.0},
         {b + "2.DenseReluDense.wo.weight", 2 / std::sqrt(96.0)},
         {b + "2.layer_norm.weight", 2}});
  const auto bart = check(
      R"({"model_type": "bart", "vocab_size": 300, "d_model": 64, "encoder_layers": 1, "decoder_layers": 1,
          "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 96,
          "decoder_ffn_dim": 96, "init_std": 0.05, "pad_token_id": 3})",
      {{"model.decoder.embed_positions.weight", 0.05},
       {"model.decoder.layers.0.encoder_attn.k_proj.weight", 0.05},
       {"model.decoder.layers.0.encoder_attn.k_proj.bias", 0},
       {"model.decoder.layers.0.final_layer_norm.weight", 1},
       {"final_logits_bias", 0}});
  // The padding row is initialized with zeros, on any rank.
  on_mesh({1, 2}, [&](Context&) {
    ParamTree params = make_params(bart->params(), shard_specs(bart->params().specs, 2).layouts);
    initialize(params, 5);
    const auto table = to_values(params["model.shared.weight"]);
    for (i64 row = 0; row < 300; ++row) {
      const double first = table[row * 64], last = table[row * 64 + 63];
      EXPECT_EQ(first == 0 && last == 0, row == 3) << row;
    }
  });
}

// --- folders ---------------------------------------------------------------------------------------------

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("redco-stacks-{}", ::getpid())) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::map<std::string, std::vector<float>> tensors_of(const std::string& folder) {
  std::map<std::string, std::vector<float>> out;
  const auto files = ckpt::ModelFiles::open(folder);
  for (const auto& [file, entry] : files.tensors()) out[entry->name] = file->read<float>(*entry);
  return out;
}

// A folder loaded on a mesh and saved has transformers' names and bits.
TEST(TwoStacks, SavingRestoresTheFolderThatWasRead) {
  for (const char* name : {"t5", "t5-v1_1", "bart", "bart-untied"}) {
    SCOPED_TRACE(name);
    const Folder out;
    const auto model = load_model(fixture(name));
    on_mesh({1, 2}, [&](Context&) {
      ParamTree params = make_params(model->params(), shard_specs(model->params().specs, 2).layouts);
      ckpt::load_params(
          params, ckpt::ModelFiles::open(fixture(name)),
          [&](const std::string& n) { return model->canonical_name(n); }, model->params().aliases);
      const std::vector<ckpt::SavedTree> trees = {{"", &params}};
      ckpt::save_params(trees, ckpt::plan_params(trees, ckpt::StoredType::f32, "model"), out.path());
    });
    EXPECT_EQ(tensors_of(out.path()), tensors_of(fixture(name)));
  }
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// A safetensors file of `folder`'s tensors, changed by `edit`.
void copy_tensors(
    const std::string& folder, const std::string& to,
    const std::function<void(std::map<std::string, std::pair<Shape, std::vector<float>>>&)>& edit) {
  std::map<std::string, std::pair<Shape, std::vector<float>>> tensors;
  const auto files = ckpt::ModelFiles::open(folder);
  for (const auto& [file, entry] : files.tensors())
    tensors[entry->name] = {entry->shape, file->read<float>(*entry)};
  edit(tensors);
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [name, t] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(t.second.data()), t.second.size() * 4);
    header[name] = {{"dtype", "F32"}, {"shape", t.first}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(text.size() >> (8 * i));
  write_file(to + "/model.safetensors", file + text + data);
}

// BartModel without head is saved without the buffer, which is then zero.
TEST(TwoStacks, ABufferMayBeAbsent) {
  const Folder folder;
  copy_tensors(fixture("bart"), folder.path(), [](auto& t) { t.erase("final_logits_bias"); });
  const auto model = load_model(fixture("bart"));
  on_one_rank([&](Context&) {
    ParamTree params = make_params(model->params(), shard_specs(model->params().specs, 1).layouts);
    for (const Tensor& t : params.values()) Context::current().run(&Kernels::fill, t, 9);
    ckpt::load_params(
        params, ckpt::ModelFiles::open(folder.path()),
        [&](const std::string& n) { return model->canonical_name(n); }, model->params().aliases);
    EXPECT_THAT(to_values(params["final_logits_bias"]), ::testing::Each(0.0));
  });
}

// transformers 5 writes T5 1.1 with tie_word_embeddings: true, but the files have a head with other values.
TEST(TwoStacks, AHeadThatDiffersFromTheEmbeddingIsUntied) {
  const std::string v1_1 = fixture("t5-v1_1"), tied = fixture("t5-duplicated-names");
  const auto open = [](const std::string& folder, const std::string& config,
                       const std::map<std::string, std::string>& overrides = {}) {
    return make_folder_model(folder, {ConfigJson::of_file(config), overrides, {}});
  };
  const auto v5 = open(v1_1, v1_1 + "/config.v5.json");
  EXPECT_FALSE(v5->params().aliases.count("lm_head.weight"));
  EXPECT_TRUE(v5->params().aliases.count("encoder.embed_tokens.weight"));
  // The saved config unties the head for every version of transformers.
  const auto saved = nlohmann::json::parse(v5->config_json());
  EXPECT_EQ(saved["tie_word_embeddings"], false);
  EXPECT_EQ(saved["scale_decoder_outputs"], false);
  expect_matches(v1_1,
                 run_model(v1_1, {1, 2}, {.config = "config.v5.json", .overrides = v5->untied_config()}));
  // A user's override takes precedence; equal copies stay tied; without weights the config decides.
  EXPECT_TRUE(open(v1_1, v1_1 + "/config.v5.json", {{"tie_word_embeddings", "true"}})
                  ->params()
                  .aliases.count("lm_head.weight"));
  EXPECT_TRUE(open(tied, tied + "/config.json")->params().aliases.count("lm_head.weight"));
  EXPECT_TRUE(open("", v1_1 + "/config.v5.json")->params().aliases.count("lm_head.weight"));
  // Another tied tensor with different values is an error.
  const Folder folder;
  copy_tensors(tied, folder.path(), [](auto& t) { t.at("encoder.embed_tokens.weight").second[7] += 1; });
  try {
    open(folder.path(), tied + "/config.json");
    FAIL();
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("encoder.embed_tokens.weight differs"));
  }
}

}  // namespace
}  // namespace redco::testing
