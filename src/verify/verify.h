// verify: does this checkpoint compute, under this layout, what another framework computed?
//
// Reads a Hugging Face folder and a file of expected tensors (see fixture.json, tolerances.json beside it),
// computes what the file expects on the current mesh, and compares tensor by tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shard/rules.h"

namespace redco {

struct VerifyRequest {
  std::string folder;    // with config.json, model files
  std::string expected;  // "" is expected.safetensors inside folder
  std::vector<CustomRule> rules;
  std::map<std::string, std::string> config_overrides;  // model.KEY=value
  std::vector<std::string> ignore_config_keys;
  bool strict = false;  // an expected tensor that is not checked fails the report
};

// The note of an expected tensor that isn't checked because of its name.
inline constexpr const char* kUnknown = "the model computes no tensor of this name";

struct VerifyLine {
  std::string tensor;
  double difference = 0, tolerance = 0;
  bool checked = false, passed = false;
  std::string note{};  // why it isn't checked; for ids what the difference counts
  // Hidden states and logits that a mask belongs to: its name in the file, its positions, and those where it
  // is 0. They are padding, which frameworks may compute as they like: they are not compared.
  std::string mask{};
  i64 positions = 0, left_out = 0;
};

struct VerifyReport {
  std::vector<VerifyLine> lines;
  // Nothing is over its tolerance, and something was checked; if strict, every expected tensor.
  bool passed = false;
  bool strict = false;
  // Elements whose first AdamW step takes the file's gradient, because that is within its own tolerance of 0:
  // its sign, and so the direction of the step, is a matter of rounding.
  i64 undetermined = 0;
  std::string model, mesh;

  i64 not_checked() const;
};

// Sorts the lines by tensor and decides whether the report passes.
void conclude(VerifyReport& r, bool strict);

// Collective on the current context. The report is the same on every rank.
VerifyReport verify(const VerifyRequest& request);

std::string to_text(const VerifyReport& r);
std::string to_json(const VerifyReport& r);

}  // namespace redco
