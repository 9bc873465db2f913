#include "train/step_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "comm/group.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

// A rank's part of a sum over all ranks that is 0 if n ranks have the same bits: the first of them adds n - 1
// times their hash, each of the n - 1 others subtracts its own hash.
double part_of_difference(u64 bits, i64 n, bool first) {
  const auto hash = static_cast<double>((bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15u >> 32);
  return first ? static_cast<double>(n - 1) * hash : -hash;
}

// This rank's value of one element.
double item_here(const Tensor& t) {
  return visit_float(t.dtype() == DType::f64 ? DType::f64 : DType::f32, [&](auto value) {
    copy_to_host(t, 0, std::span(&value, 1));
    return static_cast<double>(value);
  });
}

}  // namespace

std::map<std::string, double> global_weights(const Pipeline& pipeline, const std::vector<Batch>& batches) {
  std::map<std::string, double> sums;
  for (const Batch& b : batches)
    for (const auto& [name, w] : b.weights) {
      in_pipeline(pipeline, "collate()", [&] {
        REDCO_CHECK(std::isfinite(w) && w >= 0,
                    "the weight of the term '{}' is {}; expected 0 or a positive number", name, w);
      });
      sums[name] += w;
    }
  Context& c = Context::current();
  if (c.mesh().dp() > 1) {
    std::string names;
    std::vector<double> flat = {0};
    for (const auto& [name, w] : sums) {
      names += " " + name;
      flat.push_back(w);
    }
    if (!c.is_meta()) flat[0] = part_of_difference(hash64(names), c.mesh().dp(), c.coord().dp() == 0);
    const Restore<const char*> phase(c.phase, "step");
    const Scope scope("weights");
    c.account(Collective::all_reduce, Axis::dp, static_cast<i64>(flat.size() * sizeof(double)));
    c.group(Axis::dp).all_reduce<double>(flat.data(), static_cast<i64>(flat.size()));
    if (flat[0] != 0)
      in_pipeline(pipeline, "collate()", [&] {
        REDCO_CHECK(false, "it returned weights of other terms on other replicas:{}",
                    fmt::join(c.group(Axis::dp).gather(names), " and"));
      });
    size_t i = 1;
    for (auto& [name, w] : sums) w = flat[i++];
  }
  return sums;
}

u64 local_hash(const Tensor& t) {
  std::string bytes(t.is_meta() ? 0 : static_cast<size_t>(t.local_bytes()), '\0');
  if (!bytes.empty())
    Context::current().queue().read(t.view().data, bytes.data(), static_cast<i64>(bytes.size()));
  return hash64(bytes, hash64(describe(t)));
}

std::string field_difference(const Batch& a, const Batch& b) {
  std::set<std::string> names;
  for (const Batch* batch : {&a, &b})
    for (const auto& [name, t] : batch->fields) names.insert(name);
  for (const std::string& name : names) {
    const auto x = a.fields.find(name), y = b.fields.find(name);
    if (x == a.fields.end() || y == b.fields.end() || local_hash(x->second) != local_hash(y->second))
      return fmt::format("another field '{}'", name);
  }
  return a.weights == b.weights ? "" : "other weights";
}

void check_fields(const Pipeline& pipeline, const std::vector<Batch>& batches, i64 step) {
  Context& c = Context::current();
  const i64 ranks = c.mesh().ranks() / c.mesh().dp();
  if (c.is_meta() || ranks == 1) return;
  // A field that the pipeline cuts over the model axes differs by purpose.
  const auto is_whole = [&](const Tensor& t) {
    for (Axis a : c.mesh().axes())
      if (a != Axis::dp && c.mesh().size(a) > 1 && !t.layout()[a].is_replicated()) return false;
    return true;
  };
  std::vector<std::pair<std::string, u64>> mine;
  for (const Batch& b : batches)
    for (const auto& [name, t] : b.fields)
      if (t.defined() && is_whole(t)) mine.emplace_back(name, local_hash(t));
  std::string all;
  for (const auto& [name, hash] : mine) all += fmt::format("{} {} ", name, hex64(hash));
  const std::vector<std::string> ranks_have = c.world().gather(all);
  // The first rank of this rank's replica: index 0 on every axis but dp.
  Coord first;
  first.index[Axis::dp.index()] = c.coord().dp();
  i64 first_rank = 0;
  for (Axis a : c.mesh().axes()) first_rank += i64{first.at(a)} * c.mesh().stride(a);
  const std::string& expected = ranks_have[static_cast<size_t>(first_rank)];
  std::string found;
  if (expected != all) {
    found = "other fields";
    std::istringstream a(all), b(expected);
    std::string name, hash, other_name, other_hash;
    while (a >> name >> hash && b >> other_name >> other_hash)
      if (name == other_name && hash != other_hash) {
        found = fmt::format("another field '{}'", name);
        break;
      }
    found = fmt::format("{} on rank {} than on rank {}", found, c.rank(), first_rank);
  }
  const std::vector<std::string> founds = c.world().gather(found);
  c.world().together([&] {
    for (const std::string& what : founds)
      if (!what.empty())
        throw UsageError(
            "[pipeline] step {}: collate() made {}, and both hold the same replica's rows. The ranks of a replica "
            "must make equal batches: random numbers must depend on Example::ordinal or Context::key(), not on "
            "a generator of the process{}",
            step + 1, what, pipeline.origin.empty() ? "" : ". The pipeline is " + pipeline.origin);
  });
}

double share(const Tensor& t) {
  if (t.is_meta() || !t.is_first_copy()) return 0;
  return t.local_numel() == 0 ? 0 : item_here(t);
}

void check_terms(const LossTerms& terms, const Pipeline& pipeline) {
  in_pipeline(pipeline, "loss()", [&] {
    std::set<std::string> names;
    for (const LossTerm& t : terms) {
      REDCO_CHECK(names.insert(t.name).second, "it returned two terms of the name '{}'", t.name);
      REDCO_CHECK(t.sum.defined(), "the term '{}' has no value", t.name);
      REDCO_CHECK(t.sum.numel() == 1 && t.sum.is_float(),
                  "the term '{}' is {}; expected a number of one element. sum_all() adds up a tensor", t.name,
                  describe(t.sum));
    }
  });
}

void check_weights(const std::map<std::string, double>& weights, const std::map<std::string, double>& terms) {
  for (const auto& [name, sum] : terms)
    if (!weights.contains(name))
      throw UsageError("[pipeline] collate() returned no weight for the term '{}'", name);
}

void check_reached(const Pipeline& pipeline, const std::vector<Tensor>& grads, size_t unreached) {
  const auto wanted = static_cast<size_t>(std::ranges::count_if(grads, &Tensor::defined));
  in_pipeline(pipeline, "loss()", [&] {
    REDCO_CHECK(wanted == 0 || unreached < wanted,
                "no term depends on a trained parameter, so all gradients would be 0. stop_gradient(), "
                "detached(), to_values() and from_values() end the path to the parameters; ops without "
                "derivative do too");
  });
}

double copies_differ(const LossTerm& t) {
  const Context& c = Context::current();
  i64 copies = 1;
  for (Axis a : c.mesh().axes())
    if (t.sum.layout()[a].is_replicated()) copies *= c.mesh().size(a);
  if (copies == 1 || t.sum.is_meta() || t.sum.local_numel() == 0) return 0;
  return part_of_difference(std::bit_cast<u64>(item_here(t.sum)), copies, t.sum.is_first_copy());
}

double constants_differ() {
  const Context& c = Context::current();
  if (c.is_meta()) return 0;
  const i64 ranks = c.mesh().ranks() / c.mesh().dp();
  bool first = true;
  for (Axis a : c.mesh().axes())
    if (a != Axis::dp && c.coord().at(a) > 0) first = false;
  return part_of_difference(c.constants(), ranks, first);
}

void report_difference(const Pipeline& pipeline, const LossTerms& terms, const std::string& when) {
  Context& c = Context::current();
  std::string mine;
  for (const LossTerm& t : terms) mine += fmt::format(" {} {:.9g}", t.name, item_here(t.sum));
  const std::vector<std::string> all = c.world().gather(mine);
  std::string values;
  for (size_t r = 0; r < all.size() && r < 8; ++r)
    values += fmt::format("{}rank {}:{}", r == 0 ? "" : "; ", r, all[r]);
  c.world().together([&] {
    if (pipeline.origin.empty())
      throw Error(
          ExitCode::rank_failed,
          fmt::format("[train] {}: ranks of one replica computed differently (values of the loss: {}). "
                      "Check the hosts' memory and libraries (`redco env`)",
                      when, values));
    throw UsageError(
        "[pipeline] {}: loss() computed differently on ranks of one replica: another value of a term ({}), or "
        "another constant in an op such as scale(). It must not depend on the rank, nor on what only one rank "
        "knows: use StepContext::agree() for values of one rank. The pipeline is {}",
        when, values, pipeline.origin);
  });
  throw BugError("not reached");
}

}  // namespace redco
