// Registry: what shared objects add by name (pipeline/plugin.h), for the rest of the process: model families,
// optimizers, environments, metrics. Ranks may be threads of one process, so all functions may be called at
// once.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace redco {

// Entry has the members `name` and `origin`, the path of its shared object.
template <class Entry>
class Registry {
 public:
  // kind: "optimizer". Registries live as long as the process: `static auto& r = *new Registry<...>(...)`.
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  // macro: how the shared object exports it, as REDCO_OPTIMIZER("lion"). built_in: redco has this name.
  // UsageError: the name is empty or taken.
  void add(Entry entry, const std::string& macro, bool built_in) {
    const std::lock_guard lock(mutex_);
    const Entry* other = of(entry.name);
    if (entry.name.empty()) refuse(entry, macro, "the name is empty");
    if (built_in) refuse(entry, macro, "this " + kind_ + " is built in");
    if (other) refuse(entry, macro, other->origin + " has this " + kind_);
    all_.push_back(std::move(entry));
  }
  // Null: there is none. Valid for the rest of the process.
  const Entry* find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return of(name);
  }
  // In the order in which they were added.
  std::vector<Entry> all() const {
    const std::lock_guard lock(mutex_);
    return {all_.begin(), all_.end()};
  }

 private:
  const Entry* of(std::string_view name) const {
    for (const Entry& e : all_)
      if (e.name == name) return &e;
    return nullptr;
  }
  [[noreturn]] static void refuse(const Entry& entry, const std::string& macro, const std::string& why) {
    throw UsageError("[plugins] {}: {}: {}. Use another name", entry.origin, macro, why);
  }

  std::string kind_;
  mutable std::mutex mutex_;
  std::deque<Entry> all_;  // entries stay where they are
};

}  // namespace redco
