#include "shard/block_roles.h"

#include <algorithm>

namespace redco {
namespace {

// Finds unnamed fully-connected pairs: a layer and the next one that maps back to its input width.
void find_pairs_by_shape(std::vector<BlockLayer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].done || layers[i].fc) continue;
    for (std::size_t j = i + 1; j < layers.size() && j <= i + 2; ++j) {
      if (layers[j].done) break;
      if (j == i + 2 && (layers[i + 1].in != layers[i].in || layers[i + 1].out != layers[i].out)) break;
      // It maps back, or reads one half of a fused gated pair.
      if (layers[j].out == layers[i].in &&
          (layers[j].in == layers[i].out || 2 * layers[j].in == layers[i].out)) {
        for (std::size_t k = i; k <= j; ++k) layers[k].fc = true;
        break;
      }
    }
  }
}

// Rule 1 for the fully-connected layers of a block: first and second alternate.
void alternate(const ParamIndex& index, const std::string& block, std::vector<BlockLayer>& layers) {
  const bool plain = block.empty() && !index.has_blocks();
  const BlockLayer* open = nullptr;  // the last 'first' whose second has not been found
  for (std::size_t i = 0; i < layers.size(); ++i) {
    BlockLayer& l = layers[i];
    if (!l.fc || l.done) continue;
    if (open && l.group != open->group &&
        (plain ? l.in != open->out : l.in != open->out && l.out != open->in))
      open = nullptr;  // another MLP
    bool second = false;
    if (!open) {
      // A second that is defined before its first: it maps to the width, and its first comes later.
      second = l.hint == 2 && (l.square() || index.is_width(l.out)) && !plain &&
               std::any_of(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, layers.end(),
                           [&](const BlockLayer& x) {
                             return x.fc && x.group == l.group && x.out == l.in && x.in == l.out &&
                                    (x.hint == 1 || !l.square());
                           }) &&
               (l.square() || !index.is_width(l.in));
    } else {
      const bool alike = l.in == open->in && l.out == open->out;
      const bool gated = alike && (!l.square() || (l.hint == 1 && open->hint == 1));
      second = !gated && !(l.hint == 1 && l.in != open->out);
    }
    l.set(second ? Role::second : Role::first);
    open = second ? nullptr : &l;
  }
}

}  // namespace

BlockLayer make_block_layer(const ParamIndex& index, int i) {
  const ParamName& p = index.name(i);
  const std::string& block = index.block(i);
  BlockLayer l;
  l.index = i;
  l.in = index.in_of(i);
  l.out = index.out_of(i);
  // The components inside the outermost numbered module decide context and group; without such a module, all
  // components do.
  const std::size_t block_depth =
      block.empty() ? 0 : static_cast<std::size_t>(std::count(block.begin(), block.end(), '.')) + 1;
  std::size_t from = 0;
  for (std::size_t d = 0; d + 1 < p.comps.size(); ++d)
    if (is_index(p.comps[d])) {
      from = d + 1;
      break;
    }
  for (std::size_t d = from; d + 1 < p.comps.size(); ++d) {
    const LayerContext c = context_of(words_of(p.comps[d]));
    if (c != LayerContext::none) l.context = c;
  }
  const std::size_t depth = p.comps.size() - 1;  // of the parent
  l.group = block_depth < depth ? p.prefix(block_depth + 1) : p.prefix(depth);
  if (block_depth == 0 && l.context == LayerContext::none) l.group = p.prefix(depth);
  for (std::size_t d = std::max(block_depth, from); d < depth; ++d)
    if (l.context != LayerContext::none && context_of(words_of(p.comps[d])) == l.context) {
      l.group = p.prefix(d + 1);
      break;
    }
  const NameWords& w = index.words(i);
  l.qkv = l.context == LayerContext::mlp ? 0 : attention_input(w);
  l.out_name = names_attention_output(w);
  l.fc_name = names_fully_connected(w) || (is_index(p.comps.back()) && is_generic(w));
  l.hint = pair_hint(w);
  return l;
}

void find_block_roles(const ParamIndex& index, const std::string& block, std::vector<BlockLayer>& layers) {
  find_attention_by_name(index, layers);
  for (BlockLayer& l : layers)
    if (!l.done && (l.context == LayerContext::mlp || (l.fc_name && l.context == LayerContext::none)))
      l.fc = true;
  if (!block.empty()) {
    find_attention_by_shape(layers);
    find_pairs_by_shape(layers);
  } else if (!index.has_blocks()) {
    // A plain network: all its linears are fully-connected layers.
    for (BlockLayer& l : layers)
      if (!l.done) l.fc = true;
  } else {
    for (BlockLayer& l : layers)  // a pooler, a classifier or a projection outside the blocks
      if (l.context != LayerContext::mlp) l.fc = false;
  }
  alternate(index, block, layers);
}

}  // namespace redco
