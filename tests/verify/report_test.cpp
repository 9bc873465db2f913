// The positions that verify compares, and its report about tensors that it does not check.
#include "verify_testing.h"

namespace redco::test {
namespace {

using ::testing::HasSubstr;

// The first position where the mask has this value.
size_t position_with(const EditedTensors& t, const std::string& mask, i64 value) {
  const auto values = t.values<i64>(mask);
  return std::find(values.begin(), values.end(), value) - values.begin();
}

void shift_position(EditedTensors& t, const std::string& name, size_t position) {
  t.shift(name, position * t.shape(name).back() + 1, 0.5F);
}

TEST(Positions, PaddingIsNotCompared) {
  struct Case {
    const char* fixture;
    std::vector<std::string> tensors;
  };
  for (const Case& c : {Case{"gpt2", {"hidden.1", "logits"}},
                        {"bert-mlm", {"hidden.1", "logits"}},
                        {"bert-seqcls", {"hidden.1"}},
                        {"bart", {"encoder_hidden.1"}}})
    for (const std::string& tensor : c.tensors) {
      SCOPED_TRACE(fmt::format("{} {}", c.fixture, tensor));
      EditedFixture f(c.fixture);
      const auto mask = f.tensors.values<i64>("attention_mask");
      shift_position(f.tensors, tensor, position_with(f.tensors, "attention_mask", 0));
      const VerifyReport padding = f.report();
      EXPECT_TRUE(line_of(padding, tensor).passed);
      EXPECT_EQ(line_of(padding, tensor).left_out, std::count(mask.begin(), mask.end(), 0));
      EXPECT_EQ(line_of(padding, tensor).positions, static_cast<i64>(mask.size()));
      shift_position(f.tensors, tensor, position_with(f.tensors, "attention_mask", 1));
      EXPECT_FALSE(line_of(f.report(), tensor).passed);
    }
}

TEST(Positions, LogitsOfRowsAndOfADecoderWithoutAMaskAreAllCompared) {
  for (const auto& [fixture, tensor] : {std::pair("bert-seqcls", "logits"),
                                        {"bart", "logits"},
                                        {"bart", "decoder_hidden.1"},
                                        {"vit", "hidden.1"}}) {
    SCOPED_TRACE(fmt::format("{} {}", fixture, tensor));
    EditedFixture f(fixture);
    EXPECT_EQ(line_of(f.report(), tensor).left_out, 0);
    const size_t rows = f.tensors.values<float>(tensor).size() / f.tensors.shape(tensor).back();
    shift_position(f.tensors, tensor, rows - 1);
    EXPECT_FALSE(line_of(f.report(), tensor).passed);
  }
}

TEST(Sentences, TheFixturePassesOnEveryMesh) {
  EditedFixture f("bert-sentence");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{3, 1}}) {
    const VerifyReport r = f.report(mesh, true);
    EXPECT_TRUE(r.passed) << to_text(r);
    EXPECT_TRUE(line_of(r, "positive_embeddings").checked);
  }
  f.tensors.shift("positive_embeddings", 1, 1e-3F);
  EXPECT_FALSE(line_of(f.report(), "positive_embeddings").passed);
}

TEST(Positions, ADecoderHasItsOwnMask) {
  for (const char* fixture : {"bart", "t5", "vit-gpt2"}) {
    SCOPED_TRACE(fixture);
    EditedFixture f(fixture);
    const auto labels = f.tensors.values<i64>("labels");
    const i64 T = f.tensors.shape("labels")[1];
    std::vector<i64> mask(labels.size(), 1);
    for (size_t i = mask.size(); i-- > 0;)  // padding on the right
      if (labels[i] < 0 && (static_cast<i64>(i + 1) % T == 0 || mask[i + 1] == 0)) mask[i] = 0;
    const i64 padding = std::count(mask.begin(), mask.end(), 0);
    ASSERT_GT(padding, 0);
    f.tensors.add("decoder_attention_mask", f.tensors.shape("labels"), mask);
    for (const std::string tensor : {"decoder_hidden.1", "logits"})
      shift_position(f.tensors, tensor, position_with(f.tensors, "decoder_attention_mask", 0));
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}}) {
      const VerifyReport r = f.report(mesh, true);
      EXPECT_EQ(r.not_checked(), 0);
      for (const std::string tensor : {"decoder_hidden.1", "logits"}) {
        EXPECT_TRUE(line_of(r, tensor).passed) << to_text(r);
        EXPECT_EQ(line_of(r, tensor).left_out, padding);
        EXPECT_EQ(line_of(r, tensor).mask, "decoder_attention_mask");
      }
    }
    // The model uses the mask: values after a masked token differ.
    EditedFixture hole(fixture);
    mask.assign(mask.size(), 1);
    mask[1] = 0;
    hole.tensors.add("decoder_attention_mask", hole.tensors.shape("labels"), mask);
    EXPECT_FALSE(line_of(hole.report(), "logits").passed);
  }
}

TEST(Positions, NothingIsCheckedWhereTheMaskIsZeroEverywhere) {
  EditedFixture f("gpt2-legacy-names");
  const auto shape = f.tensors.shape("attention_mask");
  f.tensors.rename("attention_mask", "unused");
  f.tensors.add("attention_mask", shape, std::vector<i64>(shape[0] * shape[1], 0));
  const VerifyReport r = f.report();
  EXPECT_FALSE(line_of(r, "logits").checked);
  EXPECT_THAT(line_of(r, "logits").note, HasSubstr("attention_mask is 0 at every position"));
}

TEST(Strict, EveryExpectedTensorIsChecked) {
  for (const char* fixture : {"bert-seqcls", "maml-cnn"})
    for (const bool known : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", fixture, known));
      EditedFixture f(fixture);
      if (!known) f.tensors.add("surplus", {2}, {1, 2});
      EXPECT_TRUE(f.report({1, 1}, false).passed);
      const VerifyReport strict = f.report({1, 1}, true);
      EXPECT_EQ(strict.passed, known);
      EXPECT_EQ(strict.not_checked(), known ? 0 : 1);
    }
}

}  // namespace
}  // namespace redco::test
