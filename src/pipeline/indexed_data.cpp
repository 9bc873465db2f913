#include "pipeline/indexed_data.h"

#include "comm/group.h"
#include "tensor/context.h"

namespace redco {

std::shared_ptr<const Dataset> open_indexed(const IndexedData& steps) {
  Group& world = Context::current().world();
  if (steps.prepare) world.together(steps.prepare);
  std::string index;
  world.on_first([&] { index = steps.build(); });
  index = world.agree(index);
  std::shared_ptr<const Dataset> data;
  world.together([&] { data = steps.open(index); });
  if (steps.report) world.on_first([&] { steps.report(*data); });
  return data;
}

}  // namespace redco
