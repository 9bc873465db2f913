// The attention layers of a block, by name and by shape; declared in shard/block_roles.h.
#include <algorithm>
#include <map>
#include <set>

#include "shard/block_roles.h"

namespace redco {
namespace {

// Layers named q, k, v, alone or fused.
void find_named_inputs(std::vector<BlockLayer>& layers) {
  std::map<std::string, std::set<int>> named;  // group -> which of q, k, v its layers name
  for (const BlockLayer& l : layers)
    if (l.qkv) named[l.group].insert(l.qkv);
  for (BlockLayer& l : layers) {
    if (!l.qkv) continue;
    const std::set<int>& all = named[l.group];
    if (l.context == LayerContext::attention || l.qkv >= 4 || all.size() >= 2) l.set(Role::attention_in);
  }
}

// A q without its name, where k and v have theirs: the layer right before them, or the first of two layers
// after them.
void find_unnamed_query(std::vector<BlockLayer>& layers) {
  for (std::size_t i = 0, end; i < layers.size(); i = end) {
    end = i + 1;
    if (!layers[i].done) continue;
    const std::string& group = layers[i].group;
    bool q = layers[i].qkv == 1 || layers[i].qkv == 4;
    for (; end < layers.size() && layers[end].done && layers[end].group == group; ++end)
      q |= layers[end].qkv == 1 || layers[end].qkv == 4;
    const auto open = [&](std::size_t j) {
      return j < layers.size() && !layers[j].done && layers[j].group == group && !layers[j].out_name;
    };
    if (q) continue;
    if (i > 0 && open(i - 1))
      layers[i - 1].set(Role::attention_in);
    else if (open(end) && end + 1 < layers.size() && layers[end + 1].group == group &&
             !layers[end + 1].done && layers[end + 1].out == layers[end].in &&
             layers[end + 1].in == layers[end].out &&
             (layers[end].square() || layers[end].out == layers[i].out))
      layers[end].set(Role::attention_in);
  }
}

// The output projection of each group with known q, k, v: the layer of an attention that is named as output,
// or the next layer that maps back to the input width.
void find_outputs(std::vector<BlockLayer>& layers) {
  std::map<std::string, i64> input;             // group -> input width of its q, k, v
  std::map<std::string, std::set<i64>> widths;  // group -> output widths of its q, k, v
  for (const BlockLayer& l : layers) {
    if (!l.done) continue;
    input.emplace(l.group, l.in);
    widths[l.group].insert(l.out);
  }
  std::set<std::string> waiting;  // groups whose q, k, v were found, but not yet their output
  for (BlockLayer& l : layers) {
    if (l.done) {
      waiting.insert(l.group);
      continue;
    }
    const bool attention = l.context == LayerContext::attention;
    if (attention && l.out_name) {
      l.set(Role::attention_out);
      waiting.erase(l.group);
    } else if (waiting.contains(l.group) && l.out == input[l.group] && (attention || !l.fc_name) &&
               (attention || l.in == l.out || widths[l.group].contains(l.in))) {
      l.set(Role::attention_out);
      waiting.erase(l.group);
    } else if (attention && input.contains(l.group)) {
      const i64 width = input[l.group];
      const std::set<i64>& heads = widths[l.group];
      const bool touches = l.in == width || l.out == width || heads.contains(l.in) || heads.contains(l.out);
      l.set(touches ? Role::attention_in : Role::shared);
    }
  }
}

// How many layers from i on form one attention: the number of inputs plus one for the output; 0 if they are
// not an attention. `free(j)`: layer j exists and its role is unknown.
template <class Free>
std::size_t attention_length(const std::vector<BlockLayer>& l, std::size_t i, const Free& free) {
  const i64 w = l[i].in;
  std::size_t run = 0;  // number of consecutive layers in i's module
  while (free(i + run) && l[i + run].group == l[i].group) ++run;
  const auto reads = [&](std::size_t a, std::size_t b) {
    return std::all_of(l.begin() + a, l.begin() + b, [&](const BlockLayer& x) { return x.in == w; });
  };
  // A module with q, k, v, a gate and the output.
  if (run == 5 && l[i + 4].out == w && reads(i, i + 4) && l[i].out == l[i + 4].in &&
      l[i + 3].out == l[i + 4].in)
    return 5;
  // Three inputs and the output. k and v may read another width (cross-attention) or be narrower (grouped
  // heads).
  if (free(i + 1) && free(i + 2) && free(i + 3) && l[i + 3].out == w) {
    const i64 back = l[i + 3].in;
    const bool same_input = reads(i, i + 3);
    const bool cross = l[i + 1].in == l[i + 2].in && l[i].out == l[i + 1].out && l[i].out == l[i + 2].out;
    // q is as wide as the output's input; k and v have equal widths.
    const auto is_q = [&](std::size_t q, std::size_t k, std::size_t v) {
      return l[q].out == back && l[k].out == l[v].out;
    };
    const bool leads_back = is_q(i, i + 1, i + 2) || is_q(i + 1, i, i + 2) || is_q(i + 2, i, i + 1);
    // Two modules with two square layers each are not an attention.
    const bool two_pairs =
        run == 2 && l[i].square() && l[i + 2].group != l[i].group && l[i + 3].group == l[i + 2].group;
    if ((same_input || cross) && leads_back && !two_pairs) return 4;
  }
  // q, then k and v fused, which have another width.
  if (free(i + 1) && free(i + 2) && reads(i, i + 2) && l[i].out != l[i + 1].out && l[i + 2].out == w &&
      (l[i + 2].in == l[i].out || l[i + 2].in == l[i + 1].out) && l[i + 1].out != w)
    return 3;
  // k and v fused, then q, in a module of three layers.
  if (run == 3 && reads(i, i + 2) && l[i].out == 2 * l[i + 1].out && l[i + 2].out == w &&
      l[i + 2].in == l[i + 1].out)
    return 3;
  // q, k and v fused: the output reads less than the fused layer writes.
  if (free(i + 1) && l[i + 1].out == w && l[i].out > l[i + 1].in && l[i].out <= 3 * l[i + 1].in &&
      2 * l[i + 1].in >= w && l[i].out != w && l[i + 1].group == l[i].group)
    return 2;
  // A module named as attention, with any shapes.
  if (l[i].context == LayerContext::attention && run >= 2 && l[i + run - 1].out == w) return run;
  return 0;
}

}  // namespace

void find_attention_by_name(const ParamIndex& index, std::vector<BlockLayer>& layers) {
  find_named_inputs(layers);
  find_unnamed_query(layers);
  // in_proj of PyTorch's MultiheadAttention; GPT-2's c_attn as one tensor.
  for (BlockLayer& l : layers)
    if (!l.done && l.context == LayerContext::attention && !l.out_name &&
        (has_word(index.words(l.index), {"in"}) || has_word_part(index.last_words(l.index), "attn")))
      l.set(Role::attention_in);
  find_outputs(layers);
}

void find_attention_by_shape(std::vector<BlockLayer>& layers) {
  const auto free = [&](std::size_t i) { return i < layers.size() && !layers[i].done && !layers[i].fc; };
  for (std::size_t i = 0; i < layers.size();) {
    if (!free(i)) {
      ++i;
      continue;
    }
    const i64 w = layers[i].in;
    const std::size_t taken = attention_length(layers, i, free);
    if (taken == 0) {
      // If its neighbour is fully connected by name and maps back, the two are a pair.
      const auto partner = [&](std::size_t j) {
        return j < layers.size() && layers[j].fc && layers[j].in == layers[i].out && layers[j].out == w;
      };
      if ((i > 0 && partner(i - 1)) || partner(i + 1)) layers[i].fc = true;
      ++i;
      continue;
    }
    for (std::size_t j = 0; j < taken; ++j)
      layers[i + j].set(j + 1 < taken ? Role::attention_in : Role::attention_out);
    i += taken;
  }
}

}  // namespace redco
