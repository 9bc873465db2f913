// `reads = ...` of a class: the job's files as a built-in reader opens them.
#pragma once

#include "pipeline/pipeline.h"
#include "python/bindings.h"

namespace redco::python {

class Reads {
 public:
  // None, the name of a built-in pipeline, or redco.Images. UsageError for anything else. REQUIRES: Python's
  // lock.
  explicit Reads(const py::object& given);
  bool any() const { return pipeline_ || shape_; }

  // As Pipeline::open() and Pipeline::request(), with the parts of the user's pipeline.
  std::shared_ptr<const Dataset> open(const Pipeline& user, const DataRequest& request) const;
  std::optional<Example> request(const Pipeline& user, const std::string& json,
                                 const std::string& where) const;
  // An example with the fields that open()'s have, of this length; its values are zero. nullopt: as pipeline
  // lm.
  std::optional<Example> sample(const Pipeline& user, i64 length) const;

 private:
  Pipeline& like(const Pipeline& user) const;

  std::string name_;  // of the built-in pipeline
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<ImageShape> shape_;
  i64 n_classes_ = 0;
};

}  // namespace redco::python
