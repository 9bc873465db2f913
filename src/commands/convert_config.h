// The config.json of a model that becomes a GGUF file, compared with what the file's keys say.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace redco {

// The config with transformers' defaults for what it leaves out, and the older names of the rotary settings.
nlohmann::ordered_json full_config(const nlohmann::ordered_json& given);

// ContentsError, beginning with `where`: settings of `given` that the written file doesn't have. full:
// full_config(given); written: the config that redco reads from the file.
void check_config(const nlohmann::ordered_json& given, const nlohmann::ordered_json& full,
                  const nlohmann::ordered_json& written, const std::string& where);

}  // namespace redco
