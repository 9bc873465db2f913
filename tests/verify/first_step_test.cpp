// AdamW's first step for gradients whose sign depends on rounding.
#include "verify_testing.h"

namespace redco::test {
namespace {

// Its gradient is 2.9e-8 in float64, 2.2e-7 in the file; the tensor's tolerance is 3.7e-6. A step of the
// other sign changes loss_step2 by 1.6e-5; 7.5e-6 are allowed.
constexpr const char* kTensor = "grad.encoder.encoder.layer.0.output.dense.weight";
constexpr size_t kElement = 29 * 64 + 38;

TEST(FirstStep, LossesAgreeOnEveryMesh) {
  const std::string folder = EditedFixture::folder("vit-gpt2");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}, Mesh{1, 4}})
    on_mesh(mesh, [&](Context& c) {
      const VerifyReport r = verify({.folder = folder, .strict = true});
      if (c.rank() != 0) return;
      EXPECT_TRUE(r.passed) << to_text(r);
      EXPECT_GT(r.undetermined, 0);
      EXPECT_LT(r.undetermined, 68608 / 20);  // of the model's parameters
    });
}

// PyTorch's AdamW decays every parameter; training leaves out some by default.
TEST(FirstStep, EveryParameterDecays) {
  EditedFixture f("mamba2");
  const VerifyReport r = f.report();
  EXPECT_TRUE(r.passed) << to_text(r);
  EXPECT_TRUE(line_of(r, "adamw.backbone.layers.0.mixer.A_log").passed);
}

TEST(FirstStep, ANoisyElementFollowsTheFilesGradient) {
  EditedFixture f("vit-gpt2");
  ASSERT_LT(std::fabs(f.tensors.values<float>(kTensor)[kElement]), 3e-7);
  f.tensors.shift(kTensor, kElement, -4.4e-7F);
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}}) {
    const VerifyReport r = f.report(mesh);
    EXPECT_TRUE(line_of(r, kTensor).passed);
    EXPECT_FALSE(line_of(r, "loss_step2").passed);
    EXPECT_NEAR(line_of(r, "loss_step2").difference, 1.6e-5, 4e-6);
  }
}

TEST(FirstStep, WrongGradientsAndLossesStillFail) {
  EditedFixture f("vit-gpt2");
  const i64 before = f.report().undetermined;
  f.tensors.shift("loss_step2", 0, 1.5e-5F);
  EXPECT_FALSE(line_of(f.report(), "loss_step2").passed);
  f.tensors.shift(kTensor, kElement, 5e-6F);  // over the tolerance: our own gradient steps
  const VerifyReport r = f.report();
  EXPECT_FALSE(line_of(r, kTensor).passed);
  EXPECT_EQ(r.undetermined, before - 1);
}

}  // namespace
}  // namespace redco::test
