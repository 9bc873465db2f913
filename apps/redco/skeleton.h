// Skeletons that `redco new` writes: users' code that builds against the installed redco and trains
// unchanged.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace redco::cli {

// A kind of skeleton. In names and texts, @NAME@ is the name that the user gives, @CLASS@ the same in the
// spelling of a class, @VERSION@ redco's version.
struct Skeleton {
  std::string kind;                                        // "pipeline"
  std::string example;                                     // a legal name
  std::vector<std::pair<std::string, std::string>> files;  // file name -> text
  // The commands that train it.
  std::string begin = "cmake -S . -B build -G Ninja && cmake --build build && redco train job.yaml";
};

Skeleton pipeline_skeleton();
Skeleton python_pipeline_skeleton();
Skeleton model_skeleton();
// A CMakeLists.txt for one source file that becomes build/@NAME@.so.
std::string skeleton_cmake(const std::string& kind);

}  // namespace redco::cli
