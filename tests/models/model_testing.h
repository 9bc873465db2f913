// Runs a fixture's model on a mesh of threads and compares what comes out with what PyTorch computed.
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
#include "models/model.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

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

// Where spec `s` lies in its stored tensor: element (r, c) of memory <-> index in the file.
inline i64 stored_index(const ParamSpec& s, i64 element) {
  if (s.shape.size() == 1) return s.stored.row + element;
  const i64 row = s.stored.row + element / s.shape[1], column = element % s.shape[1];
  return s.stored.transposed ? column * s.stored.shape[1] + row : row * s.shape[1] + column;
}

inline ParamTree load_tree(const Model& model, const ShardedSpecs& sharded, const ckpt::ModelFiles& files) {
  std::map<std::string, std::vector<float>> stored;
  for (const auto& [file, entry] : files.tensors()) {
    std::string name = model.canonical_name(entry->name);
    if (name.empty()) continue;
    const auto alias = model.params().aliases.find(name);
    if (alias != model.params().aliases.end()) name = alias->second;
    stored.emplace(name, file->read<float>(*entry));
  }
  ParamTree tree(model.params().specs, model.params().aliases);
  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    const auto it = stored.find(s.stored.name);
    if (it == stored.end()) throw ContentsError("{} has no {}", files.folder(), s.stored.name);
    if (static_cast<i64>(it->second.size()) != numel(s.stored.shape))
      throw ContentsError("{}: {} elements, expected {}", s.stored.name, it->second.size(),
                          numel(s.stored.shape));
    std::vector<float> values(numel(s.shape));
    for (size_t e = 0; e < values.size(); ++e) values[e] = it->second[stored_index(s, static_cast<i64>(e))];
    tree.values()[i] = from_values(s.shape, std::span<const float>(values), sharded.layouts[i]);
  }
  return tree;
}

struct Ids {
  Shape shape;
  std::vector<i32> values;
};
struct Inputs {
  Ids ids, mask, targets;       // targets: the labels that the logits' positions are for
  Ids decoder_ids;              // of two stacks
  std::vector<i32> positions;   // of the decoder
  i64 n_targets = 0, n_logits;  // logits' positions that have a target
};
inline Inputs read_inputs(const Model& model, const std::string& folder) {
  const auto file = ckpt::SafetensorsFile::open(folder + "/expected.safetensors");
  const auto read = [&](const char* name) { return Ids{file.at(name).shape, file.read<i32>(file.at(name))}; };
  Inputs in{read("input_ids"), read("attention_mask"), read("labels"), {}, {}, 0, 0};
  if (model.is_encoder_decoder()) in.decoder_ids = read("decoder_input_ids");
  const Shape shape = model.is_encoder_decoder() ? in.decoder_ids.shape : in.ids.shape;
  const i64 B = shape[0], T = shape[1], shift = model.is_encoder_decoder() ? 0 : 1;
  std::vector<i32> targets;
  for (i64 b = 0; b < B; ++b) {
    const std::vector<i32> whole(T, 1);
    const auto mask =
        model.is_encoder_decoder() ? std::span(whole) : std::span(in.mask.values).subspan(b * T, T);
    const auto row = model.positions(mask, false);
    in.positions.insert(in.positions.end(), row.begin(), row.end());
    const auto labels = in.targets.values.begin() + b * T;
    targets.insert(targets.end(), labels + shift, labels + T);
    if (model.is_encoder_decoder())  // what transformers makes of the labels
      EXPECT_EQ(
          model.decoder_input_ids(std::span(in.targets.values).subspan(b * T, T)),
          std::vector(in.decoder_ids.values.begin() + b * T, in.decoder_ids.values.begin() + (b + 1) * T));
  }
  in.n_logits = T - shift;
  in.targets = {{B, T - shift}, targets};
  for (const i32 t : targets) in.n_targets += t >= 0;
  return in;
}

// Logits of every position. hidden: by the names of expected.safetensors.
inline Tensor forward(const Model& model, const ParamTree& params, const Inputs& in, ApplyOptions options,
                      std::map<std::string, Tensor>* hidden) {
  const Layout batch = batch_layout();
  const auto tensor = [&](const Ids& ids) { return from_ids(ids.shape, ids.values, batch); };
  std::vector<Tensor> states;
  options.hidden_states = &states;
  const auto keep = [&](const std::string& prefix) {
    for (size_t i = 0; i < states.size(); ++i) (*hidden)[fmt::format("{}.{}", prefix, i)] = states[i];
    states.clear();
  };
  DecoderInputs decoder = {.input_ids = tensor(in.ids), .positions = {}, .key_mask = tensor(in.mask)};
  if (model.is_encoder_decoder()) {
    decoder.memory_mask = decoder.key_mask;
    decoder.memory =
        model.encode(params, {.input_ids = decoder.input_ids, .key_mask = decoder.key_mask}, options);
    decoder.input_ids = tensor(in.decoder_ids);
    decoder.key_mask = {};
    keep("encoder_hidden");
  }
  decoder.positions = from_ids(decoder.input_ids.shape(), in.positions, batch);
  const Tensor logits = model.apply(params, decoder, options);
  keep(model.is_encoder_decoder() ? "decoder_hidden" : "hidden");
  return logits;
}

}  // namespace detail

// Runs forward (and backward) on mesh.ranks() threads.
inline Results run_model(const std::string& folder, Mesh mesh, const ModelRun& run = {}) {
  const std::unique_ptr<Model> model = load_model(folder, run);
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(folder);
  const detail::Inputs in = detail::read_inputs(*model, folder);
  const ShardedSpecs sharded = shard_specs(model->params().specs, mesh.mp, run.rules);
  Results results;
  run_threads(mesh.ranks(), [&](Group& world) {
    Context context(mesh, world.split(0));
    Context::Use use(context);
    ParamTree params = detail::load_tree(*model, sharded, files);
    if (run.gradients) params = params.watched();
    std::map<std::string, Tensor> hidden;
    const Tensor logits = detail::forward(*model, params, in, {.recompute_blocks = run.recompute}, &hidden);
    const Tensor targets = from_ids(in.targets.shape, in.targets.values, batch_layout());
    const Tensor loss = scale(sum_all(cross_entropy(narrow(logits, 1, 0, in.n_logits), targets)),
                              1.0 / static_cast<double>(in.n_targets));
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
