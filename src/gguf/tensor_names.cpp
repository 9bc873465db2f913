#include "gguf/tensor_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/error.h"
#include "base/words.h"

namespace redco::gguf {

namespace {

enum class Change { none, transposed, rotary_q, rotary_k, norm_plus_one, experts, stack, even, odd };

// {a name of the file, the folder's}. "blk." in front of a name and a layer's number are left out: the
// folder's name then follows the prefix of its layer. No ending: .weight and .bias are both possible. Stacks
// of gpt-oss (stack, even and odd columns) and its sinks have no .weight in the folder, and _bias in place of
// .bias.
struct NameRow {
  const char* stored;
  const char* folder;
  Change change = Change::none;
};

struct Naming {
  const char* architecture;
  const char* layer;  // prefix of the folder's names in layer {}
  std::vector<NameRow> outside, inside;
  std::vector<const char*> in_config;  // tensors that the config describes
};

std::vector<NameRow> join(std::vector<NameRow> a, const std::vector<NameRow>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<Naming>& namings() {
  static const std::vector<Naming> all = [] {
    const std::vector<NameRow> decoder = {
        {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
    const std::vector<NameRow> attention = {
        {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
        {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
        {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
        {"attn_k_norm", "self_attn.k_norm"}};
    const std::vector<NameRow> mlp = {{"ffn_norm", "post_attention_layernorm"},
                                      {"ffn_gate", "mlp.gate_proj"},
                                      {"ffn_up", "mlp.up_proj"},
                                      {"ffn_down", "mlp.down_proj"}};
    const std::vector<NameRow> qwen_experts = {{"ffn_gate_inp", "mlp.gate"},
                                               {"ffn_gate_exps", "mlp.experts.{}.gate_proj", Change::experts},
                                               {"ffn_up_exps", "mlp.experts.{}.up_proj", Change::experts},
                                               {"ffn_down_exps", "mlp.experts.{}.down_proj", Change::experts},
                                               {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                               {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                               {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                                               {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"}};
    const std::vector<NameRow> mixtral = {
        {"ffn_gate_inp", "block_sparse_moe.gate"},
        {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1", Change::experts},
        {"ffn_up_exps", "block_sparse_moe.experts.{}.w3", Change::experts},
        {"ffn_down_exps", "block_sparse_moe.experts.{}.w2", Change::experts}};
    std::vector<NameRow> llama = join(join(attention, mlp), mixtral);
    llama[1].change = Change::rotary_q;
    llama[2].change = Change::rotary_k;
    std::vector<NameRow> gemma = join(attention, mlp), gemma2 = join(attention, mlp), norms = decoder;
    gemma2[7].folder = "pre_feedforward_layernorm";
    gemma2 = join(gemma2, {{"post_attention_norm", "post_attention_layernorm"},
                           {"post_ffw_norm", "post_feedforward_layernorm"}});
    for (auto* rows : {&gemma, &gemma2, &norms})
      for (NameRow& r : *rows)
        if (std::string_view(r.stored).ends_with("norm")) r.change = Change::norm_plus_one;
    const std::vector<NameRow> gpt2_outside = {{"token_embd", "transformer.wte"},
                                               {"position_embd", "transformer.wpe"},
                                               {"output_norm", "transformer.ln_f"},
                                               {"output", "lm_head"}};
    const std::vector<NameRow> gpt2 = {{"attn_norm", "ln_1"},
                                       {"ffn_norm", "ln_2"},
                                       {"attn_qkv", "attn.c_attn", Change::transposed},
                                       {"attn_output", "attn.c_proj", Change::transposed},
                                       {"ffn_up", "mlp.c_fc", Change::transposed},
                                       {"ffn_down", "mlp.c_proj", Change::transposed}};
    const std::vector<NameRow> phi3 = {
        {"attn_norm", "input_layernorm"},    {"attn_qkv", "self_attn.qkv_proj"},
        {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
        {"ffn_up", "mlp.gate_up_proj"},      {"ffn_down", "mlp.down_proj"}};
    const std::vector<NameRow> bert_outside = {{"token_embd", "bert.embeddings.word_embeddings"},
                                               {"position_embd", "bert.embeddings.position_embeddings"},
                                               {"token_types", "bert.embeddings.token_type_embeddings"},
                                               {"token_embd_norm", "bert.embeddings.LayerNorm"}};
    const std::vector<NameRow> bert = {{"attn_q", "attention.self.query"},
                                       {"attn_k", "attention.self.key"},
                                       {"attn_v", "attention.self.value"},
                                       {"attn_output", "attention.output.dense"},
                                       {"attn_output_norm", "attention.output.LayerNorm"},
                                       {"ffn_up", "intermediate.dense"},
                                       {"ffn_down", "output.dense"},
                                       {"layer_output_norm", "output.LayerNorm"}};
    std::vector<NameRow> gpt_oss =
        join(attention, {{"attn_sinks", "self_attn.sinks", Change::stack},
                         {"post_attention_norm", "post_attention_layernorm"},
                         {"ffn_gate_inp", "mlp.router"},
                         {"ffn_gate_exps", "mlp.experts.gate_up_proj", Change::even},
                         {"ffn_up_exps", "mlp.experts.gate_up_proj", Change::odd},
                         {"ffn_down_exps", "mlp.experts.down_proj", Change::stack}});
    const char* layers = "model.layers.{}.";
    return std::vector<Naming>{
        {"bert", "bert.encoder.layer.{}.", bert_outside, bert, {}},
        {"gemma", layers, norms, gemma, {}},
        {"gemma2", layers, norms, gemma2, {}},
        {"gemma3", layers, norms, gemma2, {}},
        {"gpt-oss", layers, decoder, gpt_oss, {}},
        {"gpt2", "transformer.h.{}.", gpt2_outside, gpt2, {}},
        {"llama", layers, decoder, llama, {"rope_freqs"}},
        {"phi3", layers, decoder, phi3, {"rope_factors_long", "rope_factors_short"}},
        {"qwen2", layers, decoder, join(attention, mlp), {}},
        {"qwen2moe", layers, decoder, join(join(attention, mlp), qwen_experts), {}},
        {"qwen3", layers, decoder, join(attention, mlp), {}},
        {"qwen3moe", layers, decoder, join(join(attention, mlp), qwen_experts), {}},
    };
  }();
  return all;
}

// NAME.weight -> {NAME, .weight}
std::pair<std::string_view, std::string_view> split_ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::pair(name, std::string_view())
                          : std::pair(name.substr(0, dot), name.substr(dot));
}

bool is_stack(Change c) { return c == Change::stack || c == Change::even || c == Change::odd; }

[[noreturn]] void refuse(const Header& h, const Tensor& t, const std::string& why) {
  throw ContentsError("{}: the tensor {} {}", h.path, excerpt(t.name), why);
}

class Namer {
 public:
  Namer(const Header& h, const Naming& naming, const std::string& architecture) : h_(h), n_(naming) {
    const auto of = [&](const char* key) { return h.integer(architecture + key); };
    layers_ = h.at_integer(architecture + ".block_count");
    heads_ = of(".attention.head_count").value_or(0);
    kv_heads_ = of(".attention.head_count_kv").value_or(heads_);
    experts_ = of(".expert_count").value_or(0);
  }

  void add(const Tensor& t, std::vector<FolderTensor>& out) const {
    std::string_view name = t.name;
    std::string prefix;
    const std::vector<NameRow>* rows = &n_.outside;
    if (name.starts_with("blk.")) {
      name.remove_prefix(4);
      const std::size_t dot = name.find('.');
      const std::string number(name.substr(0, dot));
      i64 layer = -1;
      if (dot != name.npos && !number.empty() && number.size() < 6 &&
          std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
        layer = std::stoll(number);
      if (layer < 0 || layer >= layers_)
        refuse(h_, t, fmt::format("is of no layer from 0 to {}", layers_ - 1));
      prefix = fmt::format(fmt::runtime(n_.layer), layer);
      name.remove_prefix(dot + 1);
      rows = &n_.inside;
    }
    const auto [stem, ending] = split_ending(name);
    if (std::ranges::any_of(n_.in_config, [&](const char* c) { return stem == c; })) return;
    const auto row = std::ranges::find_if(*rows, [&](const NameRow& r) { return stem == r.stored; });
    if (row == rows->end() || (ending != ".weight" && ending != ".bias"))
      refuse(h_, t, fmt::format("has no counterpart in a Hugging Face folder of {}", n_.architecture));
    FolderTensor f{.name = prefix + row->folder + std::string(ending),
                   .stored = &t,
                   .shape = t.shape,
                   .offset = t.offset};
    if (is_stack(row->change)) return add_stack(t, prefix, *row, ending == ".bias", out);
    change(row->change, ending == ".weight", f);
    if (row->change != Change::experts) return out.push_back(std::move(f));
    add_experts(t, prefix, *row, std::string(ending), out);
  }

 private:
  void add_stack(const Tensor& t, const std::string& prefix, const NameRow& row, bool bias,
                 std::vector<FolderTensor>& out) const {
    FolderTensor f{.name = prefix + row.folder + (bias ? "_bias" : ""),
                   .stored = &t,
                   .shape = t.shape,
                   .offset = t.offset,
                   .stack = t.shape.size() > 1};
    if (t.shape.size() == 3) std::swap(f.shape[1], f.shape[2]);
    if (row.change == Change::stack) return out.push_back(std::move(f));
    const std::string_view own = row.stored,
                           other = row.change == Change::even ? "ffn_up_exps" : "ffn_gate_exps";
    std::string name = t.name;
    name.replace(name.find(own), own.size(), other);
    const Tensor* pair = h_.find(name);
    if (!pair || pair->shape != t.shape || pair->part != t.part)
      refuse(h_, t, fmt::format("needs a tensor {} of the same shape in the same file", excerpt(name)));
    if (row.change == Change::odd) return;  // comes with the even one
    if (t.shape.size() < 2) refuse(h_, t, "is no stack of experts");
    f.odd = pair;
    f.shape.back() *= 2;
    out.push_back(std::move(f));
  }

  void change(Change c, bool weight, FolderTensor& f) const {
    const Tensor& t = *f.stored;
    if (c == Change::transposed && weight) {
      if (f.shape.size() != 2) refuse(h_, t, "is no matrix");
      f.shape = {t.shape[1], t.shape[0]};
      f.transposed = true;
    }
    if (c == Change::norm_plus_one) f.add = -1;
    if (c == Change::rotary_q || c == Change::rotary_k) {
      f.rotary_heads = c == Change::rotary_q ? heads_ : kv_heads_;
      if (f.rotary_heads < 1 || t.shape.empty() || t.shape[0] % (2 * f.rotary_heads) != 0)
        refuse(h_, t,
               fmt::format("has {} rows for {} heads, expected an even number of rows for each head",
                           t.shape.empty() ? 0 : t.shape[0], f.rotary_heads));
    }
  }

  void add_experts(const Tensor& t, const std::string& prefix, const NameRow& row, const std::string& ending,
                   std::vector<FolderTensor>& out) const {
    if (t.shape.empty() || t.shape[0] != experts_ || experts_ < 1)
      refuse(h_, t,
             fmt::format("has {} matrices, but the model has {} experts", t.shape.empty() ? 0 : t.shape[0],
                         experts_));
    Shape one;
    for (std::size_t d = 1; d < t.shape.size(); ++d) one.push_back(t.shape[d]);
    for (i64 e = 0; e < experts_; ++e)
      out.push_back({.name = prefix + fmt::format(fmt::runtime(row.folder), e) + ending,
                     .stored = &t,
                     .shape = one,
                     .offset = t.offset + t.bytes / experts_ * e});
  }

  const Header& h_;
  const Naming& n_;
  i64 layers_ = 0, heads_ = 0, kv_heads_ = 0, experts_ = 0;
};

// REQUIRES: one of known_architectures().
const Naming& naming_of(const std::string& architecture) {
  return *std::ranges::find_if(namings(), [&](const Naming& n) { return architecture == n.architecture; });
}

}  // namespace

std::vector<std::string> known_architectures() {
  std::vector<std::string> out;
  for (const Naming& n : namings()) out.emplace_back(n.architecture);
  return out;
}

std::vector<FolderTensor> folder_tensors(const Header& h) {
  const std::string architecture = h.at_text("general.architecture");
  if (!std::ranges::any_of(namings(), [&](const Naming& n) { return architecture == n.architecture; }))
    throw ContentsError("{}: the architecture is {}; redco reads GGUF files of {}", h.path,
                        excerpt(architecture), fmt::join(known_architectures(), ", "));
  const Namer namer(h, naming_of(architecture), architecture);
  std::vector<FolderTensor> out;
  for (const Tensor& t : h.tensors) namer.add(t, out);
  return out;
}

i64 rotary_row(i64 heads, i64 rows, i64 r) {
  if (heads == 0) return r;
  const i64 head = rows / heads, half = head / 2, inside = r % head;
  return r / head * head + inside % half * 2 + inside / half;
}

std::vector<FileTensor> file_tensors(const std::string& architecture, const FileShape& s,
                                     const std::vector<FolderName>& folder,
                                     std::vector<std::string>& unknown) {
  const Naming& n = naming_of(architecture);
  const std::string_view layer = n.layer, before = layer.substr(0, layer.find("{}"));
  std::vector<FileTensor> out;
  std::map<std::string, std::size_t> stacks;  // of experts, by the name in the file: their index in `out`
  for (const FolderName& f : folder) {
    std::string_view name = f.name;
    std::string prefix;
    const std::vector<NameRow>* rows = &n.outside;
    if (name.starts_with(before)) {
      name.remove_prefix(before.size());
      const auto dot = name.find('.');
      prefix = fmt::format("blk.{}.", name.substr(0, dot));
      name.remove_prefix(std::min(name.size(), dot + 1));
      rows = &n.inside;
    }
    const auto [stem, ending] = split_ending(name);
    const auto stack = std::ranges::find_if(*rows, [&](const NameRow& r) {
      return is_stack(r.change) && (name == r.folder || name == std::string(r.folder) + "_bias");
    });
    if (stack != rows->end()) {
      const bool bias = name != stack->folder;
      FileTensor t{.name = prefix + stack->stored + (bias ? ".bias" : ".weight"),
                   .shape = f.shape,
                   .sources = {f.name}};
      if (f.shape.size() > 1) t.stack_layers = stack->change == Change::even ? 2 : 1;
      if (f.shape.size() == 3) std::swap(t.shape[1], t.shape[2]);
      if (t.stack_layers == 2) t.shape[1] /= 2;
      out.push_back(t);
      if (t.stack_layers < 2) continue;
      t.stack_layer = 1;
      t.name = prefix + (stack + 1)->stored + (bias ? ".bias" : ".weight");
      out.push_back(std::move(t));
      continue;
    }
    i64 expert = -1;
    const auto row = std::ranges::find_if(*rows, [&, stem = stem](const NameRow& r) {
      const std::string_view own = r.folder;
      const auto at = own.find("{}");
      if (at == own.npos) return stem == own;
      const std::string_view head = own.substr(0, at), tail = own.substr(at + 2);
      if (stem.size() <= head.size() + tail.size() || !stem.starts_with(head) || !stem.ends_with(tail))
        return false;
      const std::string number(stem.substr(head.size(), stem.size() - head.size() - tail.size()));
      if (number.size() > 5 || !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
        return false;
      expert = std::stoll(number);
      return true;
    });
    if (row == rows->end() || (ending != ".weight" && ending != ".bias")) {
      unknown.push_back(f.name);
      continue;
    }
    FileTensor t{.name = prefix + row->stored + std::string(ending), .shape = f.shape, .sources = {f.name}};
    if (row->change == Change::experts) {
      if (expert >= s.experts) throw ContentsError("{} is of no expert from 0 to {}", f.name, s.experts - 1);
      const auto [at, first] = stacks.emplace(t.name, out.size());
      if (first) {
        t.shape.insert(t.shape.begin(), s.experts);
        t.sources.assign(static_cast<std::size_t>(s.experts), "");
        out.push_back(std::move(t));
      }
      out[at->second].sources[static_cast<std::size_t>(expert)] = f.name;
      continue;
    }
    const bool weight = ending == ".weight";
    if (row->change == Change::transposed && weight && f.shape.size() == 2) {
      t.shape = {f.shape[1], f.shape[0]};
      t.transposed = true;
    }
    if (row->change == Change::norm_plus_one) t.add = 1;
    if (row->change == Change::rotary_q || row->change == Change::rotary_k) {
      t.rotary_heads = row->change == Change::rotary_q ? s.heads : s.kv_heads;
      if (t.rotary_heads < 1 || f.shape.empty() || f.shape[0] % (2 * t.rotary_heads) != 0)
        throw ContentsError("{} has {} rows, which {} heads of even size do not divide", f.name,
                            f.shape.empty() ? 0 : f.shape[0], t.rotary_heads);
    }
    out.push_back(std::move(t));
  }
  for (const FileTensor& t : out)
    for (const std::string& source : t.sources)
      if (source.empty()) throw ContentsError("{}: an expert's matrix is missing in the folder", t.name);
  return out;
}

}  // namespace redco::gguf
