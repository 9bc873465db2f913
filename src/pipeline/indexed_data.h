// Data that the first rank reads and indexes, and that all ranks open: the order of work in the open() of a
// pipeline. A pipeline gives the steps; this is the only place that knows of ranks.
//
//   std::shared_ptr<const Dataset> open(const DataRequest& request) override {
//     return open_indexed({.build = [&] { return build_my_index(request.files, request.cache); },
//                          .open = [&](const std::string& path) { return std::make_shared<MyData>(path); }});
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/example.h"

namespace redco {

// The steps, in this order. An error in one of them is thrown on all ranks. None may contain a collective.
struct IndexedData {
  std::function<void()> prepare;  // on every rank: reads settings and checks them; may be empty
  // On the first rank: reads the files, builds the index unless the cache has it, and returns its path.
  std::function<std::string()> build;
  std::function<std::shared_ptr<const Dataset>(const std::string& index)> open;  // on every rank
  std::function<void(const Dataset& data)> report;  // on the first rank: warnings; may be empty
};

// Collective.
std::shared_ptr<const Dataset> open_indexed(const IndexedData& steps);

}  // namespace redco
