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
};

struct VerifyLine {
  std::string tensor;
  double difference = 0, tolerance = 0;
  bool checked = false, passed = false;
  std::string note;  // why it isn't checked; "exact" for ids
};

struct VerifyReport {
  std::vector<VerifyLine> lines;
  bool passed = false;  // nothing over its tolerance, and something was checked
  std::string model, mesh;
};

// Collective on the current context. The report is the same on every rank.
VerifyReport verify(const VerifyRequest& request);

std::string to_text(const VerifyReport& r);
std::string to_json(const VerifyReport& r);

}  // namespace redco
