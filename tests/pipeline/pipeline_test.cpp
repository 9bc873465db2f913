// Sums over the micro-batches of a step.
#include "pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/create.h"
#include "ops/reduce.h"
#include "support/ranks.h"
#include "tensor/transfer.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using ::testing::HasSubstr;

// Sums over the rows of a micro-batch are added. Rows themselves are those of one micro-batch: other rows in
// their place would be a silent mistake.
TEST(StepContext, AddsSumsOverRowsButNoRows) {
  for (const Mesh& mesh : {Mesh(1, 1), Mesh(2, 1), Mesh(1, 2), Mesh(2, 2)})
    on_mesh(mesh, [&](Context&) {
      StepContext ctx;
      ctx.sums = std::make_shared<std::map<std::string, Tensor>>();
      const std::vector<float> values = {1, 2, 3, 4};
      const Tensor rows = from_values({4}, values, batch_layout());
      for (int micro_batch = 0; micro_batch < 3; ++micro_batch) ctx.add_sum("total", sum_all(rows));
      EXPECT_EQ(item(ctx.sums->at("total")), 30);
      ctx.add_sum("rows", rows);  // a step of one micro-batch
      try {
        ctx.add_sum("rows", rows);
        ADD_FAILURE() << "no error";
      } catch (const std::exception& e) {
        EXPECT_THAT(e.what(), HasSubstr("add a sum or a mean over the rows"));
      }
    });
}

}  // namespace
}  // namespace redco
