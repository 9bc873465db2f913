#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/model.h"

namespace redco {
namespace {

i64 count_parameters(const Model& model) {
  i64 n = 0;
  for (const ParamSpec& s : model.params().specs) n += s.buffer ? 0 : numel(s.shape);
  return n;
}

TEST(Presets, HaveThePublishedNumberOfParameters) {
  // Counted by transformers for these configs, tied matrices once.
  const std::map<std::string, i64> counts = {{"qwen3-0.6b", 596049920},
                                             {"qwen3-1.7b", 1720574976},
                                             {"qwen3-4b", 4022468096},
                                             {"qwen3-8b", 8190735360},
                                             {"qwen3-14b", 14768307200},
                                             {"qwen3-32b", 32762123264},
                                             {"gemma-2b", 2506172416},
                                             {"gemma-7b", 8537680896},
                                             {"gemma2-2b", 2614341888},
                                             {"gemma2-9b", 9241705984},
                                             {"gemma2-27b", 27227128320},
                                             {"gemma3-1b", 999885952},
                                             {"mixtral-8x7b", 46702792704},
                                             {"mixtral-8x22b", 140620634112},
                                             {"mamba2-130m", 128989632},
                                             {"mamba2-370m", 368346624},
                                             {"mamba2-780m", 780161280},
                                             {"mamba2-1.3b", 1343757312},
                                             {"mamba2-2.7b", 2702599680},
                                             {"mamba-codestral-7b", 7285403648},
                                             {"gpt2", 124439808},
                                             {"gpt2-medium", 354823168},
                                             {"gpt2-large", 774030080},
                                             {"gpt2-xl", 1557611200},
                                             {"gpt-j-6b", 6050882784},
                                             {"llama-7b", 6738415616},
                                             {"llama-13b", 13015864320},
                                             {"llama-30b", 32528943616},
                                             {"llama-65b", 65285660672},
                                             {"llama2-7b", 6738415616},
                                             {"llama2-13b", 13015864320},
                                             {"llama2-70b", 68976648192},
                                             {"llama3-8b", 8030261248},
                                             {"llama3.2-1b", 1235814400},
                                             {"mistral-7b", 7241732096},
                                             {"qwen2-0.5b", 494032768},
                                             {"qwen2-7b", 7615616512},
                                             {"opt-125m", 125239296},
                                             {"opt-350m", 331196416},
                                             {"opt-1.3b", 1315758080},
                                             {"opt-2.7b", 2651596800},
                                             {"opt-6.7b", 6658473984},
                                             {"opt-13b", 12853473280},
                                             {"opt-30b", 29974540288},
                                             {"opt-66b", 65719701504},
                                             {"opt-175b", 174604468224},
                                             {"t5-small", 60506624},
                                             {"t5-base", 222903552},
                                             {"t5-large", 737668096},
                                             {"t5-3b", 2851598336},
                                             {"t5-11b", 11307321344},
                                             {"t5-v1_1-small", 76961152},
                                             {"t5-v1_1-base", 247577856},
                                             {"t5-v1_1-large", 783150080},
                                             {"t5-v1_1-xl", 2849757184},
                                             {"t5-v1_1-xxl", 11135332352},
                                             {"flan-t5-small", 76961152},
                                             {"flan-t5-base", 247577856},
                                             {"flan-t5-large", 783150080},
                                             {"flan-t5-xl", 2849757184},
                                             {"flan-t5-xxl", 11135332352},
                                             {"bart-base", 139420416},
                                             {"bart-large", 406291456},
                                             // without the table of the encoder's positions
                                             {"whisper-tiny", 37184640},
                                             {"whisper-base", 71825920},
                                             {"whisper-small", 240582912},
                                             {"whisper-medium", 762321920},
                                             {"whisper-large-v3", 1541570560},
                                             {"whisper-large-v3-turbo", 806958080},
                                             {"bert-base-uncased", 109514298},
                                             {"bert-large-uncased", 335174458},
                                             {"roberta-base", 124697433},
                                             {"roberta-large", 355412057},
                                             {"vit-base-patch16-224", 86567656},
                                             {"vit-large-patch16-224", 304326632},
                                             {"vit-gpt2", 238605312},
                                             {"mixer-s-32", 19104624},
                                             {"mixer-s-16", 18528264},
                                             {"mixer-b-32", 60293428},
                                             {"mixer-b-16", 59880472},
                                             {"mixer-l-16", 208196168}};
  for (const std::string& name : preset_names()) {
    const auto model = make_model(ModelConfig(preset_config(name), name));
    const auto it = counts.find(name);
    ASSERT_NE(it, counts.end()) << name;
    EXPECT_EQ(count_parameters(*model), it->second) << name;
  }
  EXPECT_EQ(preset_names().size(), counts.size());
}

TEST(Presets, AnUnknownNameIsAnErrorWithTheNearestName) {
  try {
    preset_config("gpt-j6b");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("gpt-j6b"),
                                           ::testing::HasSubstr("did you mean gpt-j-6b?"),
                                           ::testing::HasSubstr("opt-175b")));
  }
}

}  // namespace
}  // namespace redco
