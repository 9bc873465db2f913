// What the algorithms of pipeline rl share: the networks, tables of what was seen, normalization, and the
// interface by which rl.cpp asks PPO (ppo.cpp) and DDPG (ddpg.cpp).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/env_rows.h"
#include "models/spec_builder.h"
#include "train/pipeline.h"

namespace redco {

// O: numbers of an observation, A: of an action, N: environments side by side.
struct RlJob {
  RlSettings rl;
  i64 seed = 0;
  i64 batch_size = 0;  // train.global_batch_size; 0: not given
  std::shared_ptr<const Environment> env;

  i64 observations() const { return env->observation_size(); }
  i64 actions() const { return env->action_size(); }
  bool discrete() const { return env->n_actions() > 0; }
  // Random draws of an epoch, f32 values [...] that are the same on every rank and mesh: functions of the
  // seed, the epoch, the site's name and the element's place.
  std::vector<float> uniforms(const std::string& site, i64 epoch, const Shape& shape) const;
  std::vector<float> normals(const std::string& site, i64 epoch, const Shape& shape) const;
  // From [-1, 1], where policies live, to the environment's bounds; what is beyond is clipped.
  float to_bounds(float action) const;
};

// Linear layers NAME.fc1, NAME.fc2, ... with activations between them.
struct Mlp {
  std::string name;
  std::vector<i64> sizes;  // in, hidden ..., out
  std::string activation;

  static Mlp of(const RlJob& job, const std::string& name, i64 in, i64 out);
  // Weights are normal: deviation gain / sqrt(larger side), the size of an orthogonal matrix's entries.
  void declare_orthogonal_size(ModelParams& out, double hidden_gain, double last_gain) const;
  // Weights and biases are uniform in 1 / sqrt(in); the last layer's in last_bound (Lillicrap et al. 2016).
  void declare_uniform(ModelParams& out, double last_bound) const;
  Tensor operator()(const ParamTree& p, const Tensor& x) const;  // [B, in] -> [B, out]
  // The same of rows of numbers [N * in] -> [N * out], off the tape; on all ranks together, the same on each.
  std::vector<float> outputs(const ParamTree& p, std::span<const float> rows) const;
};

// Named columns of numbers, a row for each step of an environment.
struct RlTable {
  struct Column {
    std::string name;
    i64 width = 1;
    std::vector<float> values;
  };
  std::vector<Column> columns;
  i64 rows() const;
  Column& operator[](const std::string& name);
  // {name: base64 of the floats}, exactly. from_text: ContentsError unless of `rows` rows of these columns;
  // -1: any number.
  std::string text() const;
  void from_text(const std::string& json, i64 rows);
};

// Rows of a table as examples, in an order of its own and any row any number of times.
class RlRows : public Dataset {
 public:
  RlRows(std::shared_ptr<const RlTable> table, std::vector<i32> order, std::string fingerprint)
      : table_(std::move(table)), order_(std::move(order)), fingerprint_(std::move(fingerprint)) {}
  i64 size() const override { return static_cast<i64>(order_.size()); }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override;
  std::string fingerprint() const override { return fingerprint_; }
  bool concurrent() const override { return true; }
  bool ordered() const override { return true; }

 private:
  std::shared_ptr<const RlTable> table_;
  std::vector<i32> order_;
  std::string fingerprint_;
};

// Generalized advantage estimation (Schulman et al. 2016) over [steps, n]: next_values are those of the
// states that followed, an ended episode's last one too; nothing follows where an episode is terminated, and
// no advantage passes where one ended.
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
  // The examples of an epoch: environments are stepped, unless that was done before the run was interrupted.
  virtual std::shared_ptr<const Dataset> source(const ParamTree& params, i64 epoch) = 0;
  // What the policy does without exploration [N, A], the environment's own actions, where it sees [N, O].
  virtual std::vector<float> best_actions(const ParamTree& params,
                                          std::span<const float> observations) const = 0;

  const RlJob& job() const { return job_; }
  const EnvRows& envs() const { return envs_; }
  virtual std::string state() const = 0;
  virtual void restore(const std::string& json) = 0;

 protected:
  RlJob job_;
  EnvRows envs_;
  i64 epoch_ = -1;  // whose steps were made
};

std::unique_ptr<RlAlgorithm> make_ppo(RlJob job);
std::unique_ptr<RlAlgorithm> make_ddpg(RlJob job);

}  // namespace redco
