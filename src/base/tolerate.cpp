#include "base/tolerate.h"

#include <mutex>
#include <set>

#include "base/error.h"
#include "base/log.h"

namespace redco {

bool tolerate(const std::string& what, const std::function<void()>& f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    if (e.code() == ExitCode::bug) throw;
    static std::mutex mutex;
    static std::set<std::string> warned;
    const std::lock_guard lock(mutex);
    if (warned.insert(what).second) {
      warn("{}: {}; the run continues, further failures of this kind are not shown", what, e.what());
    } else {
      debug("{}: {}", what, e.what());
    }
    return false;
  }
}

}  // namespace redco
