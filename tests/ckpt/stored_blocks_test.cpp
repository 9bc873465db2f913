// Quantized blocks of a GGUF file in memory.
#include "ckpt/stored_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ckpt/gguf_file.h"
#include "ckpt/params_io.h"
#include "comm/group.h"
#include "gguf/write.h"
#include "kernels/cpu/groups.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "ops/redistribute.h"
#include "support/device.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using gguf::BlockType;

// n blocks of random codes and scales of the parts, with finite scales of a superblock.
std::string random_blocks(BlockType t, i64 n, unsigned seed) {
  const i64 bytes = gguf::size_of(t).bytes;
  std::mt19937 draw(seed);
  std::string out(static_cast<size_t>(n * bytes), '\0');
  for (char& c : out) c = static_cast<char>(draw() & 255);
  const auto set = [&](i64 at) { out[static_cast<size_t>(at)] = static_cast<char>(0x0c + (draw() & 3)); };
  for (i64 i = 0; i < n; ++i) {  // upper bytes of halves
    const i64 at = i * bytes;
    set(t == BlockType::q6_k ? at + 209 : at + 1);
    if (t == BlockType::q4_1 || t == BlockType::q5_1 || t == BlockType::q4_k || t == BlockType::q5_k)
      set(at + 3);
  }
  return out;
}

const std::vector<BlockType> kTypes = {BlockType::q8_0, BlockType::q4_1, BlockType::q4_0, BlockType::q5_0,
                                       BlockType::q5_1, BlockType::q4_k, BlockType::q5_k, BlockType::q6_k};

// The kernels' weights are those of the file, bit by bit, from any part on.
TEST(StoredBlocks, HaveTheWeightsOfTheFile) {
  for (const BlockType t : kTypes) {
    const i64 size = gguf::size_of(t).elements, n = 3 * size;
    const std::string blocks = random_blocks(t, 2 * 3, 5);
    std::vector<float> want(static_cast<size_t>(2 * n)), got(want.size());
    gguf::dequantize(t, reinterpret_cast<const unsigned char*>(blocks.data()), 6, want.data());
    kernels::visit_groups(*ckpt::memory_type(t), [&](auto zero) {
      using G = decltype(zero);
      std::vector<G> aligned(blocks.size() / sizeof(G));
      std::memcpy(static_cast<void*>(aligned.data()), blocks.data(), blocks.size());
      kernels::from_groups(aligned.data(), got.data(), 2, n);
    });
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << gguf::name_of(t);
  }
}

struct Stored {
  const char *file, *name;
  BlockType type;
  Shape shape;
  ParamKind kind = ParamKind::linear;
  HeadsOf heads{};
};
// Two heads of 256. The rows of q and k are permuted in files of this architecture.
const std::vector<Stored> kTensors = {
    {"token_embd.weight", "model.embed_tokens.weight", BlockType::q6_k, {5, 256}, ParamKind::embedding},
    {"blk.0.attn_q.weight",
     "model.layers.0.self_attn.q_proj.weight",
     BlockType::q4_k,
     {512, 256},
     ParamKind::linear,
     {0, 2, 2, 256}},
    {"blk.0.attn_k.weight",
     "model.layers.0.self_attn.k_proj.weight",
     BlockType::q5_1,
     {512, 256},
     ParamKind::linear,
     {0, 2, 2, 256, true}},
    {"blk.0.attn_v.weight",
     "model.layers.0.self_attn.v_proj.weight",
     BlockType::q5_0,
     {512, 256},
     ParamKind::linear,
     {0, 2, 2, 256, true}},
    {"blk.0.attn_output.weight",
     "model.layers.0.self_attn.o_proj.weight",
     BlockType::q4_0,
     {256, 512},
     ParamKind::linear,
     {1, 2, 2, 256}},
    {"blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight", BlockType::q8_0, {768, 256}},
    {"blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight", BlockType::q5_k, {768, 256}},
    {"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", BlockType::q6_k, {256, 768}},
    {"output.weight", "lm_head.weight", BlockType::f32, {5, 256}}};

// Every mesh holds the blocks of its part; the sum of the parts is what the file dequantizes to. Other types
// stay fp32.
TEST(StoredBlocks, KeepTheirBytesOnEveryMesh) {
  test::TempDir dir;
  std::vector<gguf::PlannedTensor> plan;
  for (const Stored& s : kTensors) plan.push_back({s.file, s.type, s.shape});
  gguf::Writer writer(dir.path() + "/m.gguf",
                      {{"general.architecture", std::string("llama")},
                       {"llama.block_count", 1U},
                       {"llama.attention.head_count", 2U},
                       {"llama.attention.head_count_kv", 2U}},
                      plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    const i64 n = numel(plan[i].shape) / gguf::size_of(plan[i].type).elements;
    const std::string blocks = plan[i].type == BlockType::f32
                                   ? std::string(static_cast<size_t>(4 * n), '\0')
                                   : random_blocks(plan[i].type, n, static_cast<unsigned>(i));
    writer.append(blocks.data(), static_cast<i64>(blocks.size()));
  }
  writer.commit();
  const auto same_name = [](const std::string& n) { return n; };
  ModelParams params;
  for (const Stored& s : kTensors)
    params.specs.push_back(
        {.name = s.name, .shape = s.shape, .kind = s.kind, .stored = {s.name, s.shape}, .heads = s.heads});
  const auto files = ckpt::ModelFiles::open(dir.path());
  ckpt::keep_blocks(params, files, same_name);
  for (const Mesh& mesh : std::vector<Mesh>{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}})
    run_threads(mesh.ranks(), [&](Group& g) {
      kernels::set_threads(1);
      Context c(mesh, g.split(0), redco::testing::test_queue());
      const Context::Use use(c);
      ParamTree tree = make_params(params, shard_specs(params.specs, mesh.mp()).layouts);
      ckpt::load_params(tree, files, same_name, {});
      for (size_t i = 0; i < kTensors.size(); ++i) {
        const Stored& s = kTensors[i];
        const Tensor& t = tree.values()[i];
        const DType type = ckpt::memory_type(s.type).value_or(DType::f32);
        EXPECT_EQ(t.dtype(), type) << s.name;
        const auto& l = files.at(s.name);
        const std::vector<float> want = l.file->read<float>(*l.entry);
        const std::vector<double> got = to_values(redistribute(widened(t), Layout{}));
        ASSERT_EQ(got.size(), want.size());
        for (size_t k = 0; k < got.size(); ++k)
          ASSERT_EQ(static_cast<float>(got[k]), want[k]) << s.name << " " << k;
        if (mesh.mp() == 2 && s.kind == ParamKind::linear && s.type != BlockType::f32) {
          EXPECT_LT(t.local_bytes(), bytes_of(type, numel(s.shape))) << s.name << " is not cut";
        }
      }
    });
}

}  // namespace
}  // namespace redco
