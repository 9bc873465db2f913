// Code shared by the algorithms of pipeline rl: networks, tables of transitions, normalization, and the
// interface between rl.cpp and PPO (ppo.cpp) or DDPG (ddpg.cpp).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/env_rows.h"
#include "models/spec_builder.h"
#include "pipeline/pipeline.h"

namespace redco {

// O: size of an observation, A: size of an action, N: number of environments.
struct RlJob {
  RlSettings rl;
  i64 seed = 0;
  i64 batch_size = 0;  // train.global_batch_size; 0: not given
  std::shared_ptr<const Environment> env;

  i64 observations() const { return env->observation_size(); }
  i64 actions() const { return env->action_size(); }
  bool discrete() const { return env->n_actions() > 0; }
  // Random draws of an epoch, f32 values [...], the same on every rank and mesh: functions of the seed, the
  // epoch, the site's name and the element's index.
  std::vector<float> uniforms(const std::string& site, i64 epoch, const Shape& shape) const;
  std::vector<float> normals(const std::string& site, i64 epoch, const Shape& shape) const;
  // Scales an action from [-1, 1], the policy's range, to the environment's bounds, and clips it.
  float to_bounds(float action) const;
};

// Linear layers NAME.fc1, NAME.fc2, ... with activations between them.
struct Mlp {
  std::string name;
  std::vector<i64> sizes;  // in, hidden ..., out
  std::string activation;

  static Mlp of(const RlJob& job, const std::string& name, i64 in, i64 out);
  // Normal weights with standard deviation gain / sqrt(larger side), as in an orthogonal matrix.
  void declare_orthogonal_size(ModelParams& out, double hidden_gain, double last_gain) const;
  // Uniform weights and biases in +-1 / sqrt(in); the last layer's in +-last_bound (Lillicrap et al. 2016).
  void declare_uniform(ModelParams& out, double last_bound) const;
  Tensor operator()(const ParamTree& p, const Tensor& x) const;  // [B, in] -> [B, out]
  // Applies the MLP to rows [N * in] -> [N * out], without the tape; called on all ranks, with the same
  // result.
  std::vector<float> outputs(const ParamTree& p, std::span<const float> rows) const;
};

// Named columns of numbers, one row per environment step.
struct RlTable {
  struct Column {
    std::string name;
    i64 width = 1;
    std::vector<float> values;
  };
  std::vector<Column> columns;
  std::size_t row_width() const;  // of all columns
  i64 rows() const;
  Column& operator[](const std::string& name);
  // {name: base64 of the floats}, lossless. from_text: ContentsError unless it has `rows` rows of these
  // columns; -1: any number of rows.
  std::string text() const;
  void from_text(const std::string& json, i64 rows);
};

// Rows of a table as examples, in any order and with repetitions. An example has one field, "transition",
// with the values of all columns in their order: one allocation per example, because an epoch of PPO reads
// each row many times.
class RlRows : public Dataset {
 public:
  RlRows(std::shared_ptr<const RlTable> table, std::vector<i32> order, std::string fingerprint)
      : table_(std::move(table)),
        width_(table_->row_width()),
        order_(std::move(order)),
        fingerprint_(std::move(fingerprint)) {}
  i64 size() const override { return static_cast<i64>(order_.size()); }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override;
  std::string fingerprint() const override { return fingerprint_; }
  // A row is copied faster than it is handed over to another thread.
  Reading reading() const override { return Reading::rank_only; }
  bool ordered() const override { return true; }

 private:
  std::shared_ptr<const RlTable> table_;
  std::size_t width_;  // of a row
  std::vector<i32> order_;
  std::string fingerprint_;
};

// The columns of examples of RlRows, for collate(). REQUIRES: both arguments outlive it.
class TransitionColumns {
 public:
  TransitionColumns(const RlTable& table, std::span<const Example> rows);
  // [rows * width], row-major.
  std::vector<float> values(const std::string& column) const;
  // A field [B, width] of the batch.
  Tensor field(const std::string& column, const BatchShape& shape) const;

 private:
  struct Place {
    std::size_t begin, width;
  };
  Place place(const std::string& column) const;

  const RlTable& table_;
  std::vector<const float*> rows_;
};

// Generalized advantage estimation (Schulman et al. 2016) over [steps, n]. next_values are the values of the
// next states, including the last state of an ended episode. A terminated episode has no next value;
// advantages do not pass the end of an episode.
std::vector<float> generalized_advantages(std::span<const float> rewards, std::span<const float> values,
                                          std::span<const float> next_values,
                                          const std::vector<bool>& terminated, const std::vector<bool>& ended,
                                          i64 n, double gamma, double lambda);

class RlAlgorithm {
 public:
  explicit RlAlgorithm(RlJob job) : job_(std::move(job)), envs_(job_.env, job_.rl.n_envs) {}
  virtual ~RlAlgorithm() = default;

  virtual ModelParams params() const = 0;
  virtual std::vector<ParamGroup> groups() const = 0;
  virtual Batch collate(std::span<const Example> mine, const BatchShape& shape) const = 0;
  virtual LossTerms loss(const ParamTree& params, const Batch& batch) const = 0;
  // The examples of an epoch: steps the environments, unless the interrupted run already did.
  virtual std::shared_ptr<const Dataset> source(const ParamTree& params, i64 epoch) = 0;
  // The policy's actions without exploration [N, A], in the environment's units, for observations [N, O].
  virtual std::vector<float> best_actions(const ParamTree& params,
                                          std::span<const float> observations) const = 0;

  const RlJob& job() const { return job_; }
  const EnvRows& envs() const { return envs_; }
  virtual std::string state() const = 0;
  virtual void restore(const std::string& json) = 0;

 protected:
  RlJob job_;
  EnvRows envs_;
  i64 epoch_ = -1;  // the epoch of the rollout
};

std::unique_ptr<RlAlgorithm> make_ppo(RlJob job);
std::unique_ptr<RlAlgorithm> make_ddpg(RlJob job);

}  // namespace redco
