// GGUF files: header, blocks, and the folder made from a file (units header, block_types, tensor_names,
// folder_config, folder_tokenizer, pre_tokenizers, folder; and ckpt/gguf_file). The files of fixtures/gguf
// are by llama.cpp's converter and by gguf's quantizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/gguf_file.h"
#include "ckpt/model_files.h"
#include "ckpt/safetensors.h"
#include "gguf/folder.h"
#include "gguf/folder_config.h"
#include "gguf/folder_tokenizer.h"
#include "support/temp_dir.h"
#include "tokenizers/tokenizer.h"

namespace redco {
namespace {

using nlohmann::json;
const std::string kFolder = REDCO_FIXTURES "/gguf/";

// A GGUF file in memory: keys and tensors.
class Writer {
 public:
  void text(const std::string& key, const std::string& value) {
    keys_ += string(key) + number<std::uint32_t>(8) + string(value);
    ++n_keys_;
  }
  void integer(const std::string& key, std::uint32_t value) {
    keys_ += string(key) + number<std::uint32_t>(4) + number(value);
    ++n_keys_;
  }
  void real(const std::string& key, float value) {
    keys_ += string(key) + number<std::uint32_t>(6) + number(value);
    ++n_keys_;
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    keys_ += string(key) + number<std::uint32_t>(9) + number<std::uint32_t>(8) + number<u64>(values.size());
    for (const std::string& v : values) keys_ += string(v);
    ++n_keys_;
  }
  void floats(const std::string& key, const std::vector<float>& values) {
    keys_ += string(key) + number<std::uint32_t>(9) + number<std::uint32_t>(6) + number<u64>(values.size());
    for (const float v : values) keys_ += number(v);
    ++n_keys_;
  }
  void integers(const std::string& key, const std::vector<std::int32_t>& values) {
    keys_ += string(key) + number<std::uint32_t>(9) + number<std::uint32_t>(5) + number<u64>(values.size());
    for (const auto v : values) keys_ += number(v);
    ++n_keys_;
  }
  void tensor(const std::string& name, const std::vector<u64>& dims, std::uint32_t type, u64 offset) {
    tensors_ += string(name) + number(static_cast<std::uint32_t>(dims.size()));
    for (const u64 d : dims) tensors_ += number(d);
    tensors_ += number(type) + number(offset);
    ++n_tensors_;
  }
  std::string bytes(std::size_t data) const {
    std::string out =
        "GGUF" + number<std::uint32_t>(3) + number<u64>(n_tensors_) + number<u64>(n_keys_) + keys_ + tensors_;
    out.resize((out.size() + 31) / 32 * 32 + data);
    return out;
  }
  template <class T>
  static std::string number(T x) {
    std::string out(sizeof x, '\0');
    std::memcpy(out.data(), &x, sizeof x);
    return out;
  }
  static std::string string(const std::string& s) { return number<u64>(s.size()) + s; }

 private:
  std::string keys_, tensors_;
  u64 n_keys_ = 0, n_tensors_ = 0;
};

std::string refusal(const std::string& bytes) {
  test::TempDir dir;
  const std::string path = dir.path() + "/x.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    gguf::folder_tensors(gguf::open_model(path).header);
  } catch (const ContentsError& e) {
    return e.what();
  }
  return "";
}

// Each type decodes to the floats of gguf's own code, to the bit.
TEST(Gguf, BlocksDecodeAsInGgml) {
  const auto expected = ckpt::SafetensorsFile::open(kFolder + "blocks.safetensors");
  const gguf::Model m = gguf::open_model(kFolder + "blocks.gguf");
  ASSERT_EQ(m.header.tensors.size(), expected.entries().size());
  for (const gguf::Tensor& t : m.header.tensors) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes));
    m.parts[0].pread_exact(t.offset, bytes.data(), t.bytes);
    const gguf::BlockSize size = gguf::size_of(t.type);
    std::vector<float> got(static_cast<std::size_t>(t.bytes / size.bytes * size.elements));
    gguf::dequantize(t.type, bytes.data(), t.bytes / size.bytes, got.data());
    EXPECT_EQ(got, expected.read<float>(expected.at(t.name))) << t.name;
  }
}

// Names, permutations, stacked experts, transposed matrices and shifted norms are undone: the weights of a
// converted model are those of its folder. Boxes of any part are equal too.
TEST(Gguf, WeightsAreThoseOfTheFolder) {
  for (const std::string model : {"llama-rope-llama3", "qwen3", "gemma2", "gpt2", "mixtral"}) {
    const auto folder = ckpt::ModelFiles::open(REDCO_FIXTURES "/" + model);
    const auto files = ckpt::open_gguf(kFolder + model + ".gguf");
    ASSERT_EQ(files.size(), 1U);
    std::size_t found = 0;
    for (const auto& l : folder.tensors()) {
      std::string name = l.entry->name;
      const ckpt::TensorEntry* e = files[0]->find(name);
      if (!e) e = files[0]->find("transformer." + name);
      if (!e && (name == "lm_head.weight" || name.ends_with(".attn.bias"))) continue;  // tied; a mask
      ASSERT_NE(e, nullptr) << model << " " << name;
      ASSERT_EQ(e->shape, l.entry->shape) << model << " " << name;
      ++found;
      std::vector<float> want = l.file->read<float>(*l.entry), got = files[0]->read<float>(*e);
      if (e->gguf->add != 0)
        for (float& w : want) w = w + 1 - 1;  // 1 + w was rounded
      EXPECT_EQ(got, want) << model << " " << name;
      if (e->shape.size() != 2) continue;
      const ckpt::Box box = {{1, e->shape[0] - 1}, {e->shape[1] / 3, e->shape[1]}};
      std::vector<float> part(static_cast<std::size_t>(ckpt::numel(box))), same = part;
      files[0]->read(*e, box, part.data(), ckpt::transposed(box));
      l.file->read(*l.entry, box, same.data(), ckpt::transposed(box));
      EXPECT_EQ(part, same) << model << " " << name;
    }
    EXPECT_EQ(found, files[0]->entries().size()) << model;
  }
}

TEST(Gguf, ConfigIsThatOfTheFolder) {
  for (const std::string model : {"llama-rope-llama3", "qwen3", "gemma2", "gpt2", "mixtral"}) {
    const json made = json::parse(gguf::folder_config(gguf::open_model(kFolder + model + ".gguf")));
    const json own = json::parse(read_file(REDCO_FIXTURES "/" + model + "/config.json", 1 << 20));
    for (const char* key :
         {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
          "num_key_value_heads", "intermediate_size", "n_embd", "n_layer", "n_head", "n_positions",
          "layer_types", "sliding_window", "final_logit_softcapping", "num_local_experts",
          "num_experts_per_tok", "tie_word_embeddings"})
      if (own.contains(key) && made.contains(key)) EXPECT_EQ(made[key], own[key]) << model << " " << key;
    const double eps = own.contains("rms_norm_eps") ? own["rms_norm_eps"].get<double>()
                                                    : own["layer_norm_epsilon"].get<double>();
    EXPECT_EQ(made.contains("rms_norm_eps") ? made["rms_norm_eps"] : made["layer_norm_epsilon"], eps)
        << model;
  }
}

Writer tokenizer(const std::string& model) {
  Writer w;
  w.text("general.architecture", "llama");
  w.text("tokenizer.ggml.model", model);
  return w;
}
std::unique_ptr<Tokenizer> loaded(const Writer& w) {
  test::TempDir dir;
  const std::string path = dir.path() + "/t.gguf";
  std::ofstream(path, std::ios::binary) << w.bytes(0);
  const auto files = gguf::folder_tokenizer(gguf::open_model(path).header);
  std::ofstream(dir.path() + "/tokenizer.json") << files->tokenizer_json;
  std::ofstream(dir.path() + "/tokenizer_config.json") << files->tokenizer_config_json;
  return load_tokenizer(dir.path());
}

TEST(Gguf, SentencePieceTokenizer) {
  Writer w = tokenizer("llama");
  w.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x41>", "\xE2\x96\x81", "a", "b", "ab",
                                    "\xE2\x96\x81"
                                    "ab"});
  w.floats("tokenizer.ggml.scores", {0, 0, 0, 0, -4, -5, -6, -1, -2});
  w.integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1, 1, 1});
  w.integer("tokenizer.ggml.bos_token_id", 1);
  w.integer("tokenizer.ggml.eos_token_id", 2);
  w.integer("tokenizer.ggml.unknown_token_id", 0);
  const auto t = loaded(w);
  EXPECT_EQ(t->encode("ab"), (std::vector<i32>{1, 8}));
  EXPECT_EQ(t->encode("ab A", false), (std::vector<i32>{8, 4, 3}));
  EXPECT_EQ(t->decode(std::vector<i32>{1, 8, 5}, true), "aba");
  EXPECT_EQ(t->special().bos, 1);
  EXPECT_EQ(t->special().eos, 2);
}

TEST(Gguf, ByteLevelTokenizerNeedsAKnownPreTokenizer) {
  const auto with = [](const std::string& pre) {
    Writer w = tokenizer("gpt2");
    if (!pre.empty()) w.text("tokenizer.ggml.pre", pre);
    w.texts("tokenizer.ggml.tokens", {"1", "2", "12", "<|end|>"});
    w.texts("tokenizer.ggml.merges", {"1 2"});
    w.integers("tokenizer.ggml.token_type", {1, 1, 1, 3});
    return w;
  };
  EXPECT_EQ(loaded(with("gpt-2"))->encode("12<|end|>"), (std::vector<i32>{2, 3}));
  EXPECT_EQ(loaded(with("qwen2"))->encode("12"), (std::vector<i32>{0, 1}));  // each digit is a part
  for (const auto& [pre, why] :
       {std::pair("new-one", "tokenizer.ggml.pre is new-one"), std::pair("", "pre is missing")}) {
    try {
      loaded(with(pre));
      FAIL();
    } catch (const ContentsError& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(why));
    }
  }
}

TEST(Gguf, FolderIsMadeOnce) {
  test::TempDir dir;
  setenv("XDG_CACHE_HOME", dir.path().c_str(), 1);
  const std::string folder = gguf::folder_of(kFolder + "qwen3.gguf");
  EXPECT_EQ(gguf::folder_of(kFolder + "qwen3.gguf"), folder);
  EXPECT_TRUE(exists(join_path(folder, "config.json")));
  EXPECT_EQ(ckpt::ModelFiles::open(folder).tensors().size(),
            ckpt::open_gguf(kFolder + "qwen3.gguf")[0]->entries().size());
  EXPECT_EQ(gguf::folder_of(REDCO_FIXTURES "/qwen3"), REDCO_FIXTURES "/qwen3");
  EXPECT_EQ(gguf::source_of(folder), kFolder + "qwen3.gguf");
  EXPECT_EQ(gguf::source_of(REDCO_FIXTURES "/qwen3"), "");
  unsetenv("XDG_CACHE_HOME");
}

// Files that nobody should trust: an error that names file and place, and no allocation by a length that the
// file cannot hold.
TEST(Gguf, DamagedFilesAreRefused) {
  Writer w;
  w.text("general.architecture", "llama");
  w.integer("llama.block_count", 1);
  const auto with = [&](const std::vector<u64>& dims, std::uint32_t type, u64 offset,
                        const char* name = "output.weight") {
    Writer copy = w;
    copy.tensor(name, dims, type, offset);
    return refusal(copy.bytes(64));
  };
  EXPECT_EQ(with({4, 4}, 0, 0), "");
  EXPECT_THAT(with({4, 4}, 0, 32), ::testing::HasSubstr("ends at byte"));
  EXPECT_THAT(with({4, 4}, 0, u64{1} << 63), ::testing::HasSubstr("outside of the file"));
  EXPECT_THAT(with({u64{1} << 40, u64{1} << 40}, 0, 0), ::testing::HasSubstr("has a dim of"));
  EXPECT_THAT(with({0}, 0, 0), ::testing::HasSubstr("has a dim of 0"));
  EXPECT_THAT(with({33}, 8, 0), ::testing::HasSubstr("not a multiple of the block size 32 (Q8_0)"));
  EXPECT_THAT(with({256}, 10, 0), ::testing::HasSubstr("the type Q2_K"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 0), ::testing::HasSubstr("5 dims"));
  EXPECT_THAT(with({4}, 0, 0, "blk.1.attn_q.weight"), ::testing::HasSubstr("is of no layer from 0 to 0"));
  EXPECT_THAT(with({4}, 0, 0, "blk.0.new_one.weight"), ::testing::HasSubstr("no counterpart"));
  EXPECT_THAT(refusal("GGML...."), ::testing::HasSubstr("does not begin with GGUF"));
  EXPECT_THAT(refusal(std::string("GGUF") + '\0' + '\0' + '\0' + '\3'), ::testing::HasSubstr("big-endian"));
  Writer other;
  other.text("general.architecture", "new-one");
  EXPECT_THAT(refusal(other.bytes(0)), ::testing::HasSubstr("the architecture is new-one"));
  const std::string good = w.bytes(0);
  for (std::size_t n = 0; n < good.size() - 32; ++n) EXPECT_NE(refusal(good.substr(0, n)), "") << n;
  // Every byte of the header replaced by each of a few values: an error, or a file that still makes sense.
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const char c : {'\0', '\1', '\x7F', '\xFF'}) {
      std::string bad = good;
      bad[i] = c;
      refusal(bad);
    }
}

}  // namespace
}  // namespace redco
