// Parameters that SpecBuilder declares for common layers.
#include "models/spec_builder.h"

#include <gtest/gtest.h>

#include "ops/conv.h"
#include "ops/create.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

TEST(SpecBuilder, ConvDeclaresTheWeightAndBiasOfConv2d) {
  ModelParams out;
  SpecBuilder b(out);
  b.conv("stem", 6, 3, 5, 2, true, 0.1).cut = 0;
  b.conv("plain", 4, 6, 1, 1, false, 0.1);
  ASSERT_EQ(out.specs.size(), 3u);
  EXPECT_EQ(out.specs[0].name, "stem.weight");
  EXPECT_EQ(out.specs[0].shape, (Shape{6, 3, 5, 2}));
  EXPECT_EQ(out.specs[0].kind, ParamKind::conv);
  EXPECT_EQ(out.specs[0].cut, 0);
  EXPECT_EQ(out.specs[1].name, "stem.bias");
  EXPECT_EQ(out.specs[1].shape, (Shape{6}));
  EXPECT_EQ(out.specs[2].name, "plain.weight");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context& c) {
      ParamTree p = make_params(out, shard_specs(out.specs, c.mesh().mp()).layouts);
      initialize(p, 1);
      const Tensor x = conv2d(zeros({2, 3, 7, 8}), p["stem.weight"], p["stem.bias"]);
      EXPECT_EQ(conv2d(x, p["plain.weight"]).shape(), (Shape{2, 4, 3, 7}));
    });
}

}  // namespace
}  // namespace redco::testing
