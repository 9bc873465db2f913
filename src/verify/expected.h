// Results of another framework: expected.safetensors, with fixture.json and tolerances.json in the same
// folder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/safetensors.h"
#include "generate/generation_settings.h"

namespace redco {

class Expected {
 public:
  // `file`: "" is expected.safetensors in `folder`. ContentsErrors name the file.
  static Expected open(const std::string& folder, const std::string& file);

  // Gradients and parameters get the names that the model gives to what the file names, for folders of a bare
  // stack ("encoder.layer.0..." for "bert.encoder.layer.0...").
  using CanonicalName = std::function<std::string(const std::string& stored)>;
  void rename_parameters(const CanonicalName& canonical);

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;
  bool any_with(const std::string& prefix) const;
  Shape shape(const std::string& name) const;
  std::vector<double> values(const std::string& name) const;
  std::vector<i32> ids(const std::string& name) const;      // [rows, tokens]
  std::vector<i32> row_ids(const std::string& name) const;  // [rows]: classes
  // ContentsError if an id is outside the vocabulary.
  void check_ids(const std::string& name, i64 vocab_size) const;

  // Whether a tensor is an input, which is not compared.
  bool is_input(const std::string& name) const;
  // ContentsError if fixture.json names a task that a model with the task `supported` doesn't have.
  void check_task(const std::string& supported) const;

  // max(10 x max_abs_diff, 1e-6 x max_abs) from tolerances.json (of the fixture that has the same inputs),
  // else 1e-5 x max_abs.
  double tolerance(const std::string& name) const;
  // Ten times the difference of the bucket for a first gradient of this size.
  double adamw_tolerance(double first_gradient) const;

  struct Optimizer {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    i64 steps = 3;
    std::optional<double> clip;
  };
  Optimizer optimizer() const { return optimizer_; }
  // A tensor of generated ids and its settings.
  struct Generation {
    std::string name;  // "beam4_ids"
    GenerationSettings settings;
  };
  // The generations that fixture.json describes; without it the default ones (greedy_ids, beam4_ids, ...).
  const std::vector<Generation>& generations() const { return generations_; }

 private:
  const std::string& stored(const std::string& name) const;  // the name in the file

  std::string path_, task_;
  std::map<std::string, std::string> stored_;  // names in the file by the model's, where they differ
  std::shared_ptr<ckpt::SafetensorsFile> file_;
  struct Tolerance {
    double max_abs_diff, max_abs;
  };
  std::map<std::string, Tolerance> tolerances_;
  bool has_tolerances_ = false;
  std::optional<double> adamw_large_, adamw_small_;  // first gradient >= 1e-3; >= 1e-5
  Optimizer optimizer_;
  std::vector<Generation> generations_;
};

std::string read_text(const std::string& path);

}  // namespace redco
