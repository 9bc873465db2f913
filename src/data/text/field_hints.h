// What an error about a missing key suggests: the settings that read records of a usual form.
#pragma once

#include <string>
#include <vector>

namespace redco {

// "its keys are premise, hypothesis, label. data.fields={text: premise, text_pair: hypothesis} reads records
// of this form" for the pipelines classification and regression; without a usual form "its keys are a, b
// (data.fields renames them)".
std::string labelled_fields_hint(const std::vector<std::string>& keys, const std::string& text,
                                 const std::vector<std::string>& label);
// The same for pipeline lm. chat: the model has a chat template, so an instruction and its answer are a chat.
std::string lm_fields_hint(const std::vector<std::string>& keys, bool chat);
// "its keys are a, b (data.fields renames them)", and the same without the setting.
std::string keys_hint(const std::vector<std::string>& keys);
std::string listed_keys(const std::vector<std::string>& keys);

}  // namespace redco
