// Plugins and pipelines in C++ sources: `pipeline: ./mine.cpp`. They are compiled with the compiler and the
// flags of this redco, once for each content: the result is in the user's cache folder. Internal: users' code
// does not see it.
#pragma once

#include <string>

namespace redco {

bool is_cpp_file(const std::string& path);  // .cpp, .cc or .cxx

struct CompiledPlugin {
  std::string path;         // of the shared object
  std::string fingerprint;  // of the source and of the user's headers that it includes
};
// The shared object of the source `path`, which is compiled unless the cache has it. Processes of one host
// wait for the first one. setting: "pipeline" or "plugins", for messages. UsageError: it does not compile
// (with the compiler's messages), or redco's headers or the compiler are missing. IoError: the cache cannot
// be written.
CompiledPlugin compiled_plugin(const std::string& path, const std::string& setting);

}  // namespace redco
