// The losses of pipeline embedding, equal to sentence-transformers'. N examples, D features.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace redco {

// The sum over anchors of -log softmax(scale cos(anchor_i, c))_i over all positives and negatives c of the
// step (InfoNCE; MultipleNegativesRankingLoss). All [N, D], not scaled to length 1. symmetric: the mean with
// the same loss of each positive over all anchors.
Tensor info_nce(const Tensor& anchors, const Tensor& positives, const std::vector<Tensor>& negatives,
                double scale, bool symmetric);
// log(1 + sum of exp(scale (cos_i - cos_j)) over all i, j with score_i < score_j) (CoSENT). scores [N].
Tensor cosent(const Tensor& a, const Tensor& b, const Tensor& scores, double scale);
// The sum of (cos_i - score_i)^2.
Tensor cosine_squared_error(const Tensor& a, const Tensor& b, const Tensor& scores);

}  // namespace redco
