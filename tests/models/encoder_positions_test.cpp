// Positions that the caller gives to an encoder.
#include <gmock/gmock.h>

#include <numeric>

#include "models/model_testing.h"
#include "models/positions.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "tensor/transfer.h"

namespace redco::testing {
namespace {

// The row of the table of positions of the first token, as each family counts without padding.
TEST(EncoderPositions, GivenOnesReplaceThoseOfTheFamily) {
  for (const auto& [name, first] : std::map<std::string, i32>{
           {"bert-mlm", 0}, {"roberta-mlm", 5}, {"bart", 2}, {"performer", 0}, {"dit", 0}}) {
    on_one_rank([&, n = name, begin = first](Context&) {
      const auto model = load_model(fixture(n));
      const ParamTree params = detail::load_tree(*model, shard_specs(model->params().specs, 1),
                                                 ckpt::ModelFiles::open(fixture(n)));
      const bool memory = model->is_encoder_decoder() || model->task() == ModelTask::text_to_image;
      const auto outputs = [&](const std::vector<i32>& positions) {
        EncoderInputs in{.input_ids = from_ids({1, 4}, std::vector<i32>{5, 6, 7, 8}),
                         .key_mask = from_ids({1, 4}, std::vector<i32>(4, 1))};
        if (!positions.empty()) in.positions = from_ids({1, 4}, positions);
        return to_values(memory ? model->encode(params, in, {}) : model->apply_encoder(params, in, {}));
      };
      std::vector<i32> rows(4);
      std::iota(rows.begin(), rows.end(), begin);
      EXPECT_EQ(outputs(rows), outputs({})) << n;
      std::swap(rows[0], rows[3]);
      EXPECT_NE(outputs(rows), outputs({})) << n;
    });
  }
}

// Chunks of 3 positions.
TEST(ChunkNumbers, AreEqualForTokensOfOneChunk) {
  on_one_rank([](Context&) {
    const auto numbers = [](const std::vector<i32>& positions, const std::vector<i32>& mask, i64 keys) {
      const auto n = static_cast<i64>(positions.size());
      const Tensor of_keys = mask.empty() ? Tensor() : from_ids({1, std::ssize(mask)}, mask);
      return host_copy<i32>(chunk_numbers(from_ids({1, n}, positions), of_keys, 3, keys));
    };
    using Numbers = std::vector<i32>;
    EXPECT_EQ(numbers({0, 1, 2, 3, 4}, {}, 5), (Numbers{1, 1, 1, 3, 3}));
    // Padding on the left is not counted, and the keys of a cache come before the queries.
    EXPECT_EQ(numbers({0, 0, 0, 1, 2, 3}, {0, 0, 1, 1, 1, 1}, 6), (Numbers{0, 0, 1, 1, 1, 3}));
    EXPECT_EQ(numbers({3}, {0, 0, 1, 1, 1, 1}, 6), (Numbers{0, 0, 1, 1, 1, 3}));
    EXPECT_EQ(numbers({2, 3}, {0, 0, 1, 1, 1, 1, 0}, 6), (Numbers{0, 0, 1, 1, 1, 3}));
    // The chunks of samples in one row differ.
    EXPECT_EQ(numbers({0, 1, 2, 3, 0, 1}, {1, 1, 1, 1, 2, 2}, 6), (Numbers{1, 1, 1, 4, 2, 2}));
  });
}

TEST(DecoderMemory, AModelWithoutEncoderRefusesIt) {
  on_one_rank([](Context&) {
    const auto model = load_model(fixture("gpt2"));
    const ParamTree params = make_params(model->params(), shard_specs(model->params().specs, 1).layouts);
    const Tensor ids = from_ids({1, 2}, std::vector<i32>{1, 2});
    EXPECT_THAT(
        error_text<BugError>([&] {
          model->apply(params,
                       {.input_ids = ids, .positions = ids, .key_mask = {}, .memory = zeros({1, 2, 8})}, {});
        }),
        ::testing::HasSubstr("apply() got DecoderInputs::memory, and the family 'gpt2' has no encoder"));
  });
}

}  // namespace
}  // namespace redco::testing
