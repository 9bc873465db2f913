#include <algorithm>
#include <map>

#include "gguf/folder_tokenizer.h"

namespace redco::gguf {

namespace {

// What many of the expressions share.
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define ENDS R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ENDS;
constexpr const char* kQwen2 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ENDS;
constexpr const char* kQwen35 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" ENDS;
constexpr const char* kWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)";
constexpr const char* kCapitals =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)";
constexpr const char* kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*)" ENDS;
// Letters with a case, as DeepSeek LLM lists them.
constexpr const char* kDeepseekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
    R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC})"
    R"(\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})"
    R"(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183})"
    R"(\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";

constexpr const char* kDeepseekHan = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

std::map<std::string, PreTokenizer> all_pre_tokenizers() {
  std::map<std::string, PreTokenizer> out;
  const auto add = [&](const std::vector<const char*>& names, const PreTokenizer& p) {
    for (const char* n : names) out[n] = p;
  };
  const std::string words = kWords, capitals = kCapitals, tail = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" ENDS;
  add({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
       "jina-v5-nano"},
      {{kLlama3}, true, true});
  add({"dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"}, {{kLlama3}});
  out["glm4"].ignore_merges = out["glm5"].ignore_merges = true;
  add({"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
       "modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "jina-v1-en", "jina-v2-code",
       "roberta-bpe"},
      {{kGpt2}});
  add({"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
      {{"\\p{N}", kGpt2}});
  add({"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "megrez", "solar-open",
       "grok-2"},
      {{kQwen2}});
  add({"qwen35"}, {{kQwen35}});
  add({"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}});
  add({"deepseek-llm"}, {{"[\\r\\n]", kDeepseekLetters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
                          "[一-龥ࠀ-一가-퟿]+", "\\p{N}+"}});
  add({"deepseek-coder"}, {{"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekHan, "\\p{N}"}});
  add({"deepseek-v3", "hunyuan-dense", "joyai-llm"},
      {{"\\p{N}{1,3}", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)", kDeepseek3}});
  add({"tekken"}, {{words + "|" + capitals + "|\\p{N}|" + tail}, true, true});
  add({"gpt-4o", "llama4", "kanana2", "minimax-m2"},
      {{words + CONTRACTIONS "?|" + capitals + CONTRACTIONS "?|\\p{N}{1,3}|" + tail}});
  add({"seed-coder"}, {{CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" ENDS}});
  add({"bailingmoe", "bailingmoe2", "llada-moe"},
      {{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}});
  add({"bloom", "poro-chat", "gpt3-finnish"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+"}});
  add({"viking"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+", "\\p{N}"}});
  return out;
}

#undef CONTRACTIONS
#undef ENDS

}  // namespace

namespace {

const std::map<std::string, PreTokenizer>& known_pre_tokenizers() {
  static const auto& all = *new std::map<std::string, PreTokenizer>(all_pre_tokenizers());
  return all;
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer(const std::string& name) {
  const auto& all = known_pre_tokenizers();
  const auto it = all.find(name);
  return it == all.end() ? std::nullopt : std::optional(it->second);
}

std::string pre_tokenizer_name(const std::vector<std::string>& splits, bool ignore_merges) {
  const auto& all = known_pre_tokenizers();
  const auto same = [&](const PreTokenizer& p) {
    return p.splits == splits && p.ignore_merges == ignore_merges;
  };
  for (const char* name : {"llama-bpe", "gpt-2", "qwen2", "smollm", "deepseek-v3", "tekken", "gpt-4o"})
    if (same(all.at(name))) return name;
  for (const auto& [name, p] : all)
    if (same(p)) return name;
  return "";
}

}  // namespace redco::gguf
