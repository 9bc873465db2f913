// Settings as documentation: JSON Schema, Markdown, help texts.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// The settings as JSON Schema (draft 2020-12) for editors; the bound values are the defaults. of_files: with
// the key include:.
std::string json_schema(const std::vector<Setting>& settings, const std::string& title,
                        bool of_files = false);

// The settings as Markdown tables: one heading per section, one row per key; the bound values are the
// defaults.
std::string markdown_reference(const std::vector<Setting>& settings);

// Help text of one section ("train"), one key ("train.seed") or all settings (""). Throws UsageError with the
// nearest name if the name is unknown.
std::string settings_help(const std::vector<Setting>& settings, const std::string& key);

}  // namespace redco
