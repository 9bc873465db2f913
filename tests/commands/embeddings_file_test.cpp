#include "commands/embeddings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/safetensors.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

TEST(EmbeddingsFile, HasARowForEachLine) {
  test::TempDir dir(test::TempDir::in_memory);
  const std::string lines = dir / "p.jsonl";
  write_file_durable(lines, "{\"id\":0,\"embedding\":[0.5,-1,3]}\n{\"id\":1,\"embedding\":[1,2,1e-3]}\n");
  const std::vector<float> wanted = {0.5, -1, 3, 1, 2, 1e-3F};

  write_matrix_file(lines, dir / "x.npy");
  const std::string npy = read_file(dir / "x.npy", 1 << 20);
  EXPECT_TRUE(npy.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  const std::size_t header = static_cast<unsigned char>(npy[8]) + 256 * static_cast<unsigned char>(npy[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_THAT(npy.substr(10, header),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  ASSERT_EQ(npy.size(), 10 + header + wanted.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(npy.data() + 10 + header, wanted.data(), wanted.size() * sizeof(float)), 0);

  write_matrix_file(lines, dir / "x.safetensors");
  const auto file = ckpt::SafetensorsFile::open(dir / "x.safetensors");
  const ckpt::TensorEntry* e = file.find("embeddings");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->shape, (Shape{2, 3}));
  EXPECT_EQ(file.read<float>(*e), wanted);

  const auto problem = [&](const std::string& text) {
    write_file_durable(lines, text);
    return error_text<ContentsError>([&] { write_matrix_file(lines, dir / "y.npy"); });
  };
  EXPECT_THAT(problem("{\"embedding\":[1]}\n{\"embedding\":[1,2]}\n"),
              HasSubstr("p.jsonl:2: the embedding has 2 numbers, the first one 1"));
  EXPECT_THAT(problem("{\"prediction\":\"a\"}\n"), HasSubstr("has no \"embedding\""));
  EXPECT_FALSE(exists(dir / "y.npy"));
}

}  // namespace
}  // namespace redco
