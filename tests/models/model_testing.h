// Runs a fixture's model on a mesh of threads and compares its results with PyTorch's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/grad.h"
#include "base/error.h"
#include "ckpt/model_files.h"
#include "ckpt/stored_rows.h"
#include "models/model.h"
#include "ops/create.h"
#include "support/device.h"
#include "support/storage.h"
#include "verify/task.h"

namespace redco::testing {

// Whole values by the names of expected.safetensors: hidden.<i> (encoder_hidden.<i>, decoder_hidden.<i> of
// two stacks), logits, loss, grad.<stored name>.
using Results = std::map<std::string, std::vector<double>>;

struct ModelRun {
  std::string config = "config.json";  // in the fixture's folder
  std::vector<CustomRule> rules{};
  std::map<std::string, std::string> overrides{};
  bool gradients = true;
  bool recompute = false;
  ParamStorage storage{};
  DType rounded = DType::f32;  // fp32 matrices have the values that this storage type keeps
  bool sequence_parallel = false;
  ComputeDType compute = ComputeDType::fp32;
};

inline std::string fixture(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }

inline std::string read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw UsageError("no file {}", path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::unique_ptr<Model> load_model(const std::string& folder, const ModelRun& run = {}) {
  const std::string path = folder + "/" + run.config;
  return make_model(ModelConfig(read_text(path), path, run.overrides));
}

namespace detail {

// The index of an element of spec `s` in its stored tensor.
inline i64 stored_index(const ParamSpec& s, i64 element) {
  const i64 width = numel(s.shape) / s.shape[0];  // of a row
  const i64 row = s.stored.row_of(element / width), column = element % width;
  return s.stored.transposed ? column * s.stored.shape[1] + row : row * width + column;
}

inline ParamTree load_tree(const Model& model, const ShardedSpecs& sharded, const ckpt::ModelFiles& files,
                           const ParamStorage& storage = {}, DType rounded = DType::f32) {
  std::map<std::string, std::vector<float>> files_values;
  for (const auto& [file, entry] : files.tensors()) {
    std::string name = model.canonical_name(entry->name);
    if (name.empty()) continue;
    const auto alias = model.params().aliases.find(name);
    if (alias != model.params().aliases.end()) name = alias->second;
    files_values.emplace(name, file->read<float>(*entry));
  }
  ParamTree tree = make_params(model.params(), sharded.layouts, storage);
  const ParamTree stored = make_params(model.params(), sharded.layouts, {.weights = DType::bf16});
  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    std::vector<float> values(numel(s.shape));
    const i64 size = numel(s.stored.shape);
    for (i64 k = 0; k < s.stored.tensors(); ++k) {
      const auto it = files_values.find(s.stored.tensor(k));
      if (it == files_values.end()) throw ContentsError("{} has no {}", files.folder(), s.stored.tensor(k));
      if (ckpt::in_one_tensor(s.stored)) {
        const i64 of_one = numel(s.shape) / s.shape[0], all = size / s.shape[0], row = s.shape[2];
        std::copy_n(it->second.begin() + k * all + s.stored.row * row, of_one, values.begin() + k * of_one);
        continue;
      }
      if (static_cast<i64>(it->second.size()) != size)
        throw ContentsError("{}: {} elements, expected {}", s.stored.name, it->second.size(), size);
      if (s.stored.stacked > 0) {
        std::copy(it->second.begin(), it->second.end(), values.begin() + k * size);
      } else {
        for (size_t e = 0; e < values.size(); ++e)
          values[e] = it->second[stored_index(s, static_cast<i64>(e))];
      }
    }
    const Tensor& t = tree.values()[i];
    const Tensor whole = from_values(s.shape, std::span<const float>(values), t.layout());
    Context& c = Context::current();
    const bool rounds = rounded != DType::f32 && is_storage_type(stored.values()[i].dtype());
    c.run(is_storage_type(t.dtype()) ? &Kernels::cast : &Kernels::copy,
          rounds ? kept_values(whole, rounded) : whole, t);
  }
  return tree;
}

}  // namespace detail

// Runs forward (and backward) on mesh.ranks() threads.
inline Results run_model(const std::string& folder, Mesh mesh, const ModelRun& run = {}) {
  const std::unique_ptr<Model> model = load_model(folder, run);
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(folder);
  const Expected expected = Expected::open(folder, "");
  const ShardedSpecs sharded = shard_specs(model->params().specs, mesh.mp(), run.rules, run.storage.weights);
  Results results;
  run_threads(mesh.ranks(), [&](Group& world) {
    Context context(mesh, world.split(0), testing::test_queue());
    Context::Use use(context);
    context.compute_dtype = run.compute;
    ParamTree params = detail::load_tree(*model, sharded, files, run.storage, run.rounded);
    if (run.gradients) params = params.watched();
    const TaskInputs in = read_task_inputs(*model, expected);
    std::map<std::string, Tensor> hidden;
    // The tree of the forward pass is changed before the backward, as a temporary of fast weights is gone.
    ParamTree given = params;
    const Tensor logits =
        task_logits(*model, given, in,
                    {.recompute_blocks = run.recompute, .sequence_parallel = run.sequence_parallel}, &hidden);
    for (Tensor& t : given.values()) t = zeros_like(t);
    const Tensor loss = task_loss(*model, in, logits);
    const auto keep = [&](const std::string& name, std::vector<double> values) {
      if (world.rank() == 0) results[name] = std::move(values);
    };
    for (const auto& [name, states] : hidden) keep(name, to_values(states));
    keep("logits", to_values(logits));
    keep("loss", {item(loss)});
    if (!run.gradients) return;
    const std::vector<Tensor> grads = grad(loss, params.values());
    for (size_t i = 0; i < grads.size(); ++i) {
      const ParamSpec& s = params.specs()[i];
      if (s.buffer) continue;
      const std::vector<double> g = to_values(grads[i]);
      if (world.rank() != 0) continue;
      if (ckpt::in_one_tensor(s.stored)) {
        std::vector<double>& whole = results["grad." + s.stored.name];
        whole.resize(numel(s.stored.shape));
        const i64 size = numel(s.shape) / s.shape[0], all = numel(s.stored.shape) / s.shape[0];
        for (i64 k = 0; k < s.shape[0]; ++k)
          std::copy_n(g.begin() + k * size, size, whole.begin() + k * all + s.stored.row * s.shape[2]);
        continue;
      }
      for (i64 k = 0; k < s.stored.stacked; ++k) {
        const i64 size = numel(s.stored.shape);
        results["grad." + s.stored.tensor(k)].assign(g.begin() + k * size, g.begin() + (k + 1) * size);
      }
      if (s.stored.stacked > 0) continue;
      std::vector<double>& whole = results["grad." + s.stored.name];
      whole.resize(numel(s.stored.shape));
      for (size_t e = 0; e < g.size(); ++e) whole[detail::stored_index(s, static_cast<i64>(e))] = g[e];
    }
  });
  return results;
}

// Every tensor of expected.safetensors that run_model computes is compared; tolerances are
// max(10 x max_abs_diff of tolerances.json, 1e-6 x max_abs): ten times what fp32 differs from fp64 for
// PyTorch itself; 1e-5 x max_abs where the folder has none.
inline void expect_matches(const std::string& folder, const Results& results, bool gradients = true) {
  const auto file = ckpt::SafetensorsFile::open(folder + "/expected.safetensors");
  nlohmann::json tolerances = nlohmann::json::object();
  if (std::ifstream in(folder + "/tolerances.json"); in)
    tolerances = nlohmann::json::parse(in)["float32_vs_float64"];
  size_t compared = 0;
  for (const auto& entry : file.entries()) {
    const bool gradient = entry.name.starts_with("grad.");
    if (!(entry.name.find("hidden.") != std::string::npos || entry.name == "logits" || entry.name == "loss" ||
          gradient) ||
        (gradient && !gradients))
      continue;
    SCOPED_TRACE(entry.name);
    const auto it = results.find(entry.name);
    if (it == results.end()) {
      ADD_FAILURE() << "the model has no such tensor";
      continue;
    }
    const std::vector<double> expected = file.read<double>(entry), &got = it->second;
    ASSERT_EQ(got.size(), expected.size());
    double worst = 0, largest = 0;
    size_t at = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      const double d = std::abs(got[i] - expected[i]);
      if (!(d <= worst)) worst = d, at = i;
    }
    double tolerance = 1e-5 * largest;
    if (tolerances.contains(entry.name)) {
      const auto& t = tolerances[entry.name];
      tolerance = std::max(10 * t["max_abs_diff"].get<double>(), 1e-6 * t["max_abs"].get<double>());
    }
    EXPECT_LE(worst, tolerance) << "at element " << at << ": " << got[at] << ", expected " << expected[at];
    ++compared;
  }
  EXPECT_GE(compared, 2u);
}

}  // namespace redco::testing
