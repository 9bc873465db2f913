// verify: whether a checkpoint gives the same numbers on this mesh as in another framework.
//
// Reads a Hugging Face folder and a file of expected tensors (with fixture.json and tolerances.json in its
// folder), computes these tensors on the current mesh, and compares them one by one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/settings.h"
#include "shard/rules.h"
#include "shard/state_sharding.h"

namespace redco {

struct VerifyRequest {
  std::string folder;    // with config.json, model files
  std::string expected;  // "" is expected.safetensors inside folder
  std::vector<CustomRule> rules;
  StateSharding sharding = StateSharding::none;         // of parameters, gradients and AdamW's state
  std::map<std::string, std::string> config_overrides;  // model.KEY=value
  std::vector<std::string> ignore_config_keys;
  Origins origins;      // places of the overrides, for messages
  bool strict = false;  // an expected tensor that is not checked fails the report
};

// The note of an expected tensor with an unknown name.
inline constexpr const char* kUnknown = "the model computes no tensor of this name";

struct VerifyLine {
  std::string tensor;
  double difference = 0, tolerance = 0;
  bool checked = false, passed = false;
  std::string note{};  // the reason why it is not checked; for ids: the unit of the difference
  // Hidden states and logits with a mask: the mask's name in the file, the number of positions, and the
  // number where it is 0. Those are padding and not compared: frameworks compute different values there.
  std::string mask{};
  i64 positions = 0, left_out = 0;
};

struct VerifyReport {
  std::vector<VerifyLine> lines;
  // No tensor is over its tolerance, and at least one was checked; if strict, all were checked.
  bool passed = false;
  bool strict = false;
  // Elements whose first AdamW step uses the file's gradient, because that gradient is within its tolerance
  // of 0: then rounding decides its sign, and with it the direction of the step.
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
