// Models of the Hugging Face hub that are on this machine: ids and cache folders become the folder with the
// files. Nothing goes to the network.
#pragma once

#include <string>
#include <vector>

namespace redco::ckpt {

// The file or folder that `source` means:
//   a path that exists        itself; a cache folder (models--ORG--NAME, with refs and snapshots) gives the
//                             snapshot that refs/main names, else the only one
//   ORG/NAME or NAME, which may end in @REVISION (a branch, a tag, or the beginning of a commit's hash)
//                             its snapshot in the first cache folder of hub_caches() that has one
//   anything else             itself, whoever opens it says that it isn't there
// UsageError: a cache folder without the revision asked for, or with several snapshots and no refs/main.
std::string local_source(const std::string& source);

// Where downloads are: HF_HUB_CACHE, HF_HOME/hub, ~/.cache/huggingface/hub (or below XDG_CACHE_HOME), those
// that are set.
std::vector<std::string> hub_caches();

// For the message that `source` doesn't exist: "; nor is it in the hub's cache (...): get it with `hf
// download ORG/NAME`". "" where it can't be a model's id.
std::string hub_hint(const std::string& source);

}  // namespace redco::ckpt
