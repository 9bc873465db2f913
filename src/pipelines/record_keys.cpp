#include "pipelines/record_keys.h"

namespace redco {

std::string key_of(const Record& r, const std::optional<std::string>& named,
                   std::initializer_list<const char*> known) {
  if (named) return r.has(*named) ? *named : "";
  for (const char* key : known)
    if (r.has(key)) return key;
  return "";
}

}  // namespace redco
