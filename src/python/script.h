// A user's pipeline in Python, seen from C++.
#pragma once

#include <set>

#include "pipeline/embedding_pipeline.h"
#include "pipeline/rollouts.h"
#include "python/bindings.h"

namespace redco::python {

// What a Python pipeline reads of its job: `self._cpp`. It is valid while the pipeline is.
struct JobHandle {
  Pipeline* pipeline = nullptr;
  // A built-in pipeline that the user's class is derived from; null: none. Its parts follow the job's.
  std::unique_ptr<Pipeline> base;

  // `base` with the job's parts, for a call.
  Pipeline& synced() const;
};

// The user's object. All functions but the constructor take Python's lock themselves.
class Script {
 public:
  // Runs the file and creates its pipeline. REQUIRES: Python's lock.
  explicit Script(const std::string& path);

  // Gives the object its job, and checks the job's `settings:` at the first call.
  void attach(Pipeline& pipeline);
  void prepare() const;

  bool is_embedding() const { return embedding_; }
  // Whether the user's class defines this function.
  bool defines(const char* function) const { return defined_.contains(function); }
  // The built-in pipeline that the class is derived from, ready for a call; null: none.
  Pipeline* base() const { return job_->base ? &job_->synced() : nullptr; }
  const py::object& object() const { return *object_; }
  const std::string& path() const { return path_; }
  const std::string& code_hash() const { return code_hash_; }
  // random and numpy.random begin with a seed of (name, number), the same on all ranks.
  void seed(const std::string& name, i64 number) const;

  template <class F>
  auto run(F&& f) const {
    prepare();
    return with_python([&] { return f(*object_); });
  }

 private:
  std::string path_, code_hash_;
  Held object_;
  std::shared_ptr<JobHandle> job_ = std::make_shared<JobHandle>();
  std::set<std::string> defined_;
  bool embedding_ = false;
  mutable bool checked_ = false;
};

LossTerms to_terms(const py::object& result);
std::vector<ParamGroup> to_groups(const py::object& list);
std::map<std::string, double> to_numbers(const py::object& dict);
// Of a dict of numbers, and of arrays or tensors for histograms; None: nothing.
StepLog to_step_log(const py::object& dict);

}  // namespace redco::python
