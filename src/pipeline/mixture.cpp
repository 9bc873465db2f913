#include "pipeline/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace redco {

namespace {

// Whole numbers with the sum `total`, in proportion to the weights: largest remainders, the first one of
// equal remainders.
std::vector<i64> apportion(const std::vector<double>& weights, i64 total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<i64> out;
  std::vector<std::pair<double, std::size_t>> remainders;
  i64 given = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double share = weights[k] / sum * static_cast<double>(total);
    out.push_back(static_cast<i64>(share));
    given += out.back();
    remainders.emplace_back(static_cast<double>(out.back()) - share, k);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t r = 0; given < total; ++r, ++given) ++out[remainders[r % remainders.size()].second];
  return out;
}

}  // namespace

Mixture::Mixture(std::vector<Source> sources, u64 seed) : sources_(std::move(sources)) {
  std::vector<double> weights;
  for (const Source& s : sources_) {
    if (s.data->size() == 0)
      throw ContentsError("[data] data.mixture: the source {} has no examples", s.name);
    weights.push_back(s.weight);
    parts_.push_back({.first_ordinal = size_});
    size_ += s.data->size();
  }
  const std::vector<i64> shares = apportion(weights, size_);
  i64 begin = 0;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    if (shares[k] == 0)
      throw UsageError(
          "[data] data.mixture: the weight {} of {} gives none of the {} examples of an epoch. Increase it "
          "or remove the source",
          sources_[k].weight, sources_[k].name, size_);
    parts_[k].n = shares[k];
    parts_[k].begin = begin;
    begin += shares[k];
  }
  begin_epoch(seed, 0);
}

void Mixture::begin_epoch(u64 seed, i64 epoch) {
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const auto& data = sources_[k].data;
    Part& part = parts_[k];
    const u64 own = seed + 0x632BE59BD9B4E019u * (k + 1);  // the orders of sources are independent
    part.first_draw = epoch * part.n;
    part.passes.clear();
    const i64 size = data->size(), last = (part.first_draw + part.n - 1) / size;
    for (i64 pass = part.first_draw / size; pass <= last; ++pass)
      part.passes.push_back({EpochOrder(size, own, static_cast<u64>(pass)), data->of_epoch(data, own, pass)});
  }
}

Mixture::Place Mixture::place(i64 i) const {
  REDCO_CHECK(i >= 0 && i < size_, "example {} of {}", i, size_);
  std::size_t k = 0;
  while (k + 1 < parts_.size() && i >= parts_[k + 1].begin) ++k;
  const Part& part = parts_[k];
  const i64 size = sources_[k].data->size(), draw = part.first_draw + i - part.begin;
  const Pass& pass = part.passes[static_cast<std::size_t>(draw / size - part.first_draw / size)];
  return {k, pass.data.get(), pass.order.at(draw % size)};
}

i64 Mixture::length(i64 i) const {
  const Place p = place(i);
  return p.data->length(p.index);
}

i64 Mixture::target_length(i64 i) const {
  const Place p = place(i);
  return p.data->target_length(p.index);
}

Example Mixture::get(i64 i) const {
  const Place p = place(i);
  Example e = p.data->get(p.index);
  e.ordinal = parts_[p.source].first_ordinal + p.index;
  return e;
}

std::string Mixture::fingerprint() const {
  std::string s = fmt::format("mixture {}", kMixtureVersion);
  for (std::size_t k = 0; k < sources_.size(); ++k)
    s += fmt::format("/{} of {}", parts_[k].n, sources_[k].data->fingerprint());
  return s;
}

Reading Mixture::reading() const {
  const auto any = [&](Reading r) {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const Source& s) { return s.data->reading() == r; });
  };
  return any(Reading::rank_only) ? Reading::rank_only
         : any(Reading::costly)  ? Reading::costly
                                 : Reading::threads;
}

std::shared_ptr<const Dataset> Mixture::of_epoch(std::shared_ptr<const Dataset>, u64 seed, i64 epoch) const {
  auto m = std::make_shared<Mixture>(*this);
  m->begin_epoch(seed, epoch);
  return m;
}

std::string Mixture::describe() const {
  std::string s = fmt::format("mixture of {} sources, {} examples per epoch:", sources_.size(), size_);
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const auto n = static_cast<double>(parts_[k].n);
    s += fmt::format("{} {} {:.1f}% ({:.2f} passes)", k == 0 ? "" : ",", sources_[k].name,
                     100 * n / static_cast<double>(size_), n / static_cast<double>(sources_[k].data->size()));
  }
  return s;
}

}  // namespace redco
