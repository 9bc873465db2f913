// Roles of the linear layers in one block: attention inputs and output, fully-connected pairs. Part of
// shard/roles.cpp.
#pragma once

#include <string>
#include <vector>

#include "shard/param_index.h"
#include "shard/roles.h"

namespace redco {

// A linear layer of a block.
struct BlockLayer {
  int index = 0;  // of the parameter
  i64 in = 0, out = 0;
  LayerContext context = LayerContext::none;
  int qkv = 0;            // attention_input() of its words
  bool out_name = false;  // names_attention_output()
  bool fc_name = false;   // named as fully connected
  int hint = 0;           // pair_hint()
  std::string group;      // the module that it shares with the other layers of its attention or MLP
  bool fc = false;        // fully connected; whether first or second may be unknown
  bool done = false;      // `role` is known
  Role role = Role::rest;

  bool square() const { return in == out; }
  void set(Role r) {
    role = r;
    done = true;
  }
};

BlockLayer make_block_layer(const ParamIndex& index, int i);

// Finds the roles of the layers of `block` ("": those outside all blocks), given in order of definition.
void find_block_roles(const ParamIndex& index, const std::string& block, std::vector<BlockLayer>& layers);

// The steps of find_block_roles() that find attention layers (shard/attention_roles.cpp): by names, then by
// shape and order what names left unknown.
void find_attention_by_name(const ParamIndex& index, std::vector<BlockLayer>& layers);
void find_attention_by_shape(std::vector<BlockLayer>& layers);

}  // namespace redco
