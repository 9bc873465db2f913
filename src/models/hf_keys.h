// What transformers knows of a config key: the attributes of its configuration classes, with defaults.
// scripts/make_hf_keys.py writes the table.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace redco {

struct HfKeyRows {
  const char* model_type;
  const char* rows;  // see hf_keys_table.cpp
};
extern const HfKeyRows kHfKeyRows[];
extern const std::size_t kHfKeyTypes;
extern const char* const kHfVersion;  // of transformers

struct HfKeys {
  // Attributes that transformers' code of this model type reads, with their defaults. The others change no
  // result and have no value here.
  std::map<std::string, std::optional<nlohmann::ordered_json>> attributes;
  std::map<std::string, std::string> aliases;  // another name -> attribute
};

// std::nullopt: transformers has no such model type, or it is of another kind than text and images.
std::optional<HfKeys> hf_keys(const std::string& model_type);

// Keys of every configuration that don't change the forward pass: names, versions, ids and settings of
// generation.
bool is_common_key(const std::string& key);

// Python writes numbers that JSON lacks: Infinity, -Infinity and NaN. They become the objects that
// transformers 5 writes: {"__float__": "Infinity"}.
std::string without_python_floats(const std::string& json);

}  // namespace redco
