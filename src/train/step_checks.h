// Checks of what a pipeline's functions return in a step or an evaluation, and whether the ranks of a replica
// computed the same bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace redco {

// Sums each term's weight over the replicas, whose collate() must name the same terms. Collective.
std::map<std::string, double> global_weights(const Pipeline& pipeline, const std::vector<Batch>& batches);

// The ranks of a replica must have the same batch: the bits of their fields. UsageError: names the field.
// Collective.
void check_fields(const Pipeline& pipeline, const std::vector<Batch>& batches, i64 step);
// A hash of this rank's block of a tensor.
u64 local_hash(const Tensor& t);
// How this rank's fields of a repeated collate() differ: "another 'x'"; "": they do not.
std::string field_difference(const Batch& a, const Batch& b);

// Terms must be sums, floating and of one element.
void check_terms(const LossTerms& terms, const Pipeline& pipeline);
// Every term has a weight. (Terms of evaluations only have weights in training too.)
void check_weights(const std::map<std::string, double>& weights, const std::map<std::string, double>& terms);
// Some gradient must have a path to its parameter.
void check_reached(const Pipeline& pipeline, const std::vector<Tensor>& grads, size_t unreached);

// This rank's share of a sum: 0 on ranks that hold a copy, so that the sum over all ranks counts the value
// once.
double share(const Tensor& t);

// This rank's part of a sum over all ranks, which is 0 if ranks that hold copies of a term have the same
// bits,
double copies_differ(const LossTerm& t);
// and if the ranks of a replica used the same constants in their ops.
double constants_differ();
// Throws the error of a sum that is not 0. Collective.
[[noreturn]] void report_difference(const Pipeline& pipeline, const LossTerms& terms,
                                    const std::string& when);

}  // namespace redco
