// Names that other libraries have for redco's settings: those of Hugging Face's TrainingArguments,
// GenerationConfig, PEFT and TRL, and usual short forms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

struct OtherName {
  std::string_view name;   // "num_train_epochs"
  std::string_view key;    // redco's key, "train.n_epochs"; "": no key has this meaning
  std::string_view value;  // what to write after the key; "": only the key is named
  std::string_view note;   // how the two differ; ""
};
const std::vector<OtherName>& other_names();

// The remedy for an unknown key: "; write train.n_epochs", "" if the key is in no list. Only the last part of
// a dotted key counts. `section`: the section that the key is in; a counterpart there is preferred.
std::string counterpart(std::string_view key, std::string_view section);

// Whether a key of the section `model` is another library's name for one of redco's keys there, although the
// section takes the keys of config.json.
bool is_other_name_of_model(std::string_view key);

}  // namespace redco
