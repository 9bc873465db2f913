// Disentangled attention (DeBERTa, He et al. 2021): the scores also have terms of content and relative
// position: a query times the position's key, and a key times the position's query.
#pragma once

#include <string>

#include "models/attention_block.h"
#include "models/spec_builder.h"

namespace redco {

struct DisentangledSettings {
  i64 span = 0;  // distances, or buckets of them, on each side; the table of positions has twice as many rows
  i64 buckets = 0;       // > 0: distances of more than half of this number are in logarithmic buckets
  i64 max_distance = 0;  // of the last bucket
  bool by_query = true, by_key = true;  // the two terms (c2p and p2c)
  // Projections of the positions within a layer; empty: those of the content.
  std::string key{}, query{};
  double dropout = 0;  // of the table
  bool positions() const { return by_query || by_key; }
};

// The row of the table for a key `distance` tokens before the query. In fp32 like transformers, so that the
// borders are equal.
i64 disentangled_row(const DisentangledSettings& s, i64 distance);

void declare_disentangled(SpecBuilder& b, const std::string& layer, const DisentangledSettings& s, i64 width,
                          double std, const HeadsOf& queries, const HeadsOf& keys);
// x [B, T, C], table [2 span, C] of the positions (undefined without positions()), mask [B, T] i32 or
// undefined. A padded query attends to all keys evenly, as in transformers.
Tensor disentangled_attention(const ParamTree& p, const std::string& layer, const AttentionBlock& a,
                              const DisentangledSettings& s, const ApplyOptions& o, const Tensor& x,
                              const Tensor& table, const Tensor& mask);

}  // namespace redco
