// Local models of the Hugging Face hub: resolves ids and cache folders to the folder with the files. No
// network access.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redco::ckpt {

// The file or folder of `source`:
//   a path that exists        the path; for a cache folder (models--ORG--NAME, with refs and snapshots) the
//                             snapshot of refs/main, else the only snapshot
//   ORG/NAME or NAME, optionally with @REVISION (a branch, a tag, or a prefix of a commit's hash)
//                             its snapshot in the first folder of hub_caches() that has one
//   anything else             `source`; opening it will report that it is missing
// UsageError: a cache folder without the given revision, or with several snapshots and no refs/main; a
// snapshot with a link to a file that is missing.
std::string local_source(const std::string& source);

// Folders of downloads: HF_HUB_CACHE (older names: HUGGINGFACE_HUB_CACHE, TRANSFORMERS_CACHE), HF_HOME/hub,
// ~/.cache/huggingface/hub (or below XDG_CACHE_HOME), those
// that are set.
std::vector<std::string> hub_caches();

// The model's id and the commit of a snapshot's folder in a cache; std::nullopt for another folder.
struct HubSource {
  std::string id, revision;
};
std::optional<HubSource> hub_source(const std::string& folder);

// For the error that `source` doesn't exist: "; nor is it in the hub's cache (...): get it with `hf download
// ORG/NAME`". "" if it can't be a model's id.
std::string hub_hint(const std::string& source);

}  // namespace redco::ckpt
