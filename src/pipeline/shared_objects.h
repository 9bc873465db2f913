// The files of users' code that a process has loaded: shared objects (pipeline/plugin.h) and Python files
// with optimizers and model families (pipeline/load_python.h). Internal: users' code does not see it.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct PluginExport;

struct SharedObject {
  std::string path;         // as it was given first
  std::string fingerprint;  // of its bytes; of a Python file: with the modules of its folder that it imports
  std::vector<const PluginExport*> exports;       // of a shared object
  std::vector<std::string> families, optimizers;  // their names
};

// Loads the shared object or Python file `path`, once a process, and makes what it exports known. setting:
// "pipeline" or "plugins", for messages. UsageError: no such file, not a shared object of redco, built
// against other headers (pipeline/abi.h), a name that is taken. Nothing of a file with another interface is
// run.
const SharedObject& load_shared_object(const std::string& path, const std::string& setting);

}  // namespace redco
