#include "generate/generate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/error.h"
#include "generate/logits.h"
#include "generate/row_cache.h"
#include "kernels/nn.h"
#include "ops/create.h"
#include "ops/redistribute.h"

namespace redco {

namespace {

// Prompts padded on the left to one length: [rows * length] ids and where each row begins.
struct Padded {
  i64 length = 0;
  std::vector<i32> ids;
  std::vector<i64> begin;
};
Padded pad_left(const std::vector<std::span<const i32>>& rows, i32 pad) {
  Padded p;
  for (const auto& r : rows) p.length = std::max<i64>(p.length, static_cast<i64>(r.size()));
  p.ids.assign(rows.size() * p.length, pad);
  for (size_t i = 0; i < rows.size(); ++i) {
    p.begin.push_back(p.length - static_cast<i64>(rows[i].size()));
    std::copy(rows[i].begin(), rows[i].end(), p.ids.begin() + i * p.length + p.begin[i]);
  }
  return p;
}

// What a pass sees beside the cache.
struct PassMemory {
  Tensor states;              // only at the cache's first pass
  std::span<const i32> mask;  // [rows, S]; empty: no padding
  i64 length = 0;
};

// One pass over `length` new tokens of each row, ids [rows, length]; begin: the column at which each row's
// tokens begin, of all that the cache will hold. -> logits of the last position, [rows, 1, V].
Tensor forward(const Model& model, const ParamTree& params, KvCache& cache, i64 rows, i64 length,
               std::span<const i32> ids, std::span<const i64> begin, const PassMemory& memory) {
  ApplyOptions o;
  o.cache = &cache;
  o.last_position_only = true;
  const bool padded = std::any_of(begin.begin(), begin.end(), [](i64 b) { return b > 0; });
  const i64 piece = std::clamp<i64>(kTokensOfPass / std::max<i64>(1, rows), 1, length);
  Tensor logits;
  for (i64 at = 0; at < length; at += piece) {
    const i64 n = std::min(piece, length - at), held = cache.length + n;
    std::vector<i32> mask(rows * held, 1), positions, fed;
    for (i64 r = 0; r < rows; ++r) {
      std::fill_n(mask.begin() + r * held, std::min(begin[r], held), 0);
      const auto row = model.positions(std::span<const i32>(mask).subspan(r * held, held), true);
      positions.insert(positions.end(), row.end() - n, row.end());
      fed.insert(fed.end(), ids.begin() + r * length + at, ids.begin() + r * length + at + n);
    }
    DecoderInputs in;
    in.input_ids = from_ids({rows, n}, fed);
    in.positions = from_ids({rows, n}, positions);
    if (padded) in.key_mask = from_ids({rows, held}, mask);
    if (at == 0) in.memory = memory.states;
    if (!memory.mask.empty()) in.memory_mask = from_ids({rows, memory.length}, memory.mask);
    logits = model.apply(params, in, o);
  }
  return logits;
}

// This rank's part of the vocabulary: rows of logits as they lie in memory.
class Scores {
 public:
  // whole: every rank gets all of it.
  Scores(const Tensor& logits, bool whole) : t_(logits) {
    const Placement p = t_.layout()[Axis::mp];
    if (!p.is_replicated() && (whole || !p.is_sharded(2)))
      t_ = redistribute(t_, Axis::mp, Placement::replicated());
    const Range r = t_.range(2);
    first_ = r.begin;
    width_ = r.end - r.begin;
  }
  i64 first() const { return first_; }
  bool cut() const { return !t_.layout()[Axis::mp].is_replicated(); }
  template <class F>
  void row(i64 r, F&& f) const {
    visit_float(t_.dtype(), [&](auto zero) {
      using T = decltype(zero);
      f(std::span<const T>(t_.data<T>() + r * width_, width_));
    });
  }
  std::vector<double> copy(i64 r) const {
    std::vector<double> out;
    row(r, [&](auto values) { out.assign(values.begin(), values.end()); });
    return out;
  }

 private:
  Tensor t_;
  i64 first_ = 0, width_ = 0;
};

// The ranks' lists one after the other where each has its own part; else what every rank has anyway.
template <class T>
std::vector<T> gathered(Group& g, bool cut, const std::vector<T>& mine) {
  if (!cut) return mine;
  const std::vector<i64> counts(g.size(), static_cast<i64>(mine.size()));
  std::vector<T> all(g.size() * mine.size());
  g.all_gather<T>(mine.data(), all.data(), counts);
  return all;
}

// 53 random bits for one draw.
double uniform(u64 seed, i64 ordinal, i64 sample, i64 position) {
  const u64 high = kernels::philox_word(seed, ordinal, position, sample, 0),
            low = kernels::philox_word(seed, ordinal, position, sample, 1);
  return static_cast<double>((high << 21) | (low >> 11)) * 0x1p-53;
}

class Engine {
 public:
  Engine(const Model& model, const ParamTree& params, std::span<const GenerationPrompt> prompts,
         const GenerationSettings& s, const GenerationTokens& t, const GenerateOptions& o)
      : model_(model),
        params_(params),
        prompts_(prompts),
        s_(s),
        t_(t),
        o_(o),
        mp_(Context::current().group(Axis::mp)),
        first_(mp_.rank() == 0),
        width_(s.num_beams),
        processors_(has_processors(s, t)) {
    const i64 samples = s.num_beams > 1 ? 1 : s.num_return_sequences;
    for (i64 p = 0; p < static_cast<i64>(prompts.size()); ++p) {
      const i64 have = static_cast<i64>(prompts[p].ids.size());
      REDCO_CHECK(have > 0 && have < model.length_limit(), "a prompt of {} tokens", have);
      for (i64 k = 0; k < samples; ++k) jobs_.push_back({p, k});
    }
    REDCO_CHECK(!model.is_encoder_decoder() || o.encode, "{} needs an encoder's memory", model.family());
    answers_.resize(prompts.size());
    for (auto& a : answers_) a.resize(s.num_return_sequences, {{}, FinishReason::interrupted, 0});
    slots_.resize(std::min<i64>(o.batch_size, static_cast<i64>(jobs_.size())));
  }

  std::vector<std::vector<Answer>> run() {
    while (true) {
      if (interrupted_) break;
      if (next_job_ < static_cast<i64>(jobs_.size()) && running() < static_cast<i64>(slots_.size())) {
        start();
        continue;  // some may have ended with their first token
      }
      if (running() == 0) break;
      if (next_job_ == static_cast<i64>(jobs_.size())) shrink();
      step();
    }
    if (o_.prefix) hand_back();
    share_answers();
    return std::move(answers_);
  }

 private:
  struct Job {
    i64 prompt, sample;
  };
  // What works on a job: width_ rows.
  struct Slot {
    i64 job = -1;  // none
    i64 limit = 0, n_new = 0;
    std::vector<std::vector<i32>> ids;  // of each row: prompt and new tokens
    std::unique_ptr<BeamSearch> beams;  // on the first rank
    bool runs() const { return job >= 0; }
  };
  // A slot whose next token is to be chosen; rows[b]: the row of the logits that beam b is scored by.
  struct Chooser {
    i64 slot;
    std::vector<i64> rows;
  };

  i64 running() const {
    return std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.runs(); });
  }

  // --- passes ---------------------------------------------------------------------------------------------
  // The next jobs take the free slots: their prompts are prefilled, each once.
  void start() {
    std::vector<i64> fresh;   // slots
    std::vector<i64> unique;  // prompts
    std::vector<Chooser> choosers;
    const bool empty = running() == 0;
    for (i64 i = 0; i < static_cast<i64>(slots_.size()) && next_job_ < static_cast<i64>(jobs_.size()); ++i) {
      if (slots_[i].runs()) continue;
      const Job& job = jobs_[next_job_];
      const auto& prompt = prompts_[job.prompt].ids;
      Slot& s = slots_[i];
      s.job = next_job_++;
      s.limit = std::min(s_.max_new_tokens, model_.length_limit() - static_cast<i64>(prompt.size()));
      s.n_new = 0;
      s.ids.assign(width_, prompt);
      if (first_ && width_ > 1) s.beams = std::make_unique<BeamSearch>(s_, t_, s.limit);
      if (unique.empty() || unique.back() != job.prompt) unique.push_back(job.prompt);
      fresh.push_back(i);
      choosers.push_back({i, std::vector<i64>(width_, static_cast<i64>(unique.size()) - 1)});
    }
    const Tensor logits = prefill(unique, fresh, choosers, empty);
    choose(logits, choosers);
  }

  Tensor prefill(const std::vector<i64>& unique, const std::vector<i64>& fresh,
                 const std::vector<Chooser>& choosers, bool empty) {
    std::vector<std::span<const i32>> rows;
    i64 most = 0;
    for (const i64 p : unique) rows.emplace_back(prompts_[p].ids);
    for (const i64 i : fresh) most = std::max(most, slots_[i].limit);
    if (empty && o_.prefix) return prefill_rest(rows[0], most);
    const Padded padded = pad_left(rows, t_.pad);
    const i64 n = static_cast<i64>(rows.size());
    PassMemory memory;
    Memory encoded;
    if (o_.encode) {
      encoded = o_.encode(unique);
      memory = {encoded.states, encoded.mask, encoded.states.shape()[1]};
    }
    // All rows are new: this cache becomes the running one, so it gets room for a while.
    const bool all = empty && width_ == 1 && n == static_cast<i64>(slots_.size());
    KvCache cache;
    cache.max_length = padded.length + (empty ? std::min<i64>(most, 256) : 0);
    const Tensor logits = forward(model_, params_, cache, n, padded.length, padded.ids, padded.begin, memory);
    RowCache prefilled;
    prefilled.adopt(std::move(cache), padded.begin, std::move(encoded.mask));
    if (all) {
      rows_ = std::move(prefilled);
      return logits;
    }
    if (empty) rows_ = {};
    std::vector<i64> from, to;
    for (size_t i = 0; i < fresh.size(); ++i)
      for (i64 b = 0; b < width_; ++b) {
        from.push_back(choosers[i].rows[b]);
        to.push_back(fresh[i] * width_ + b);
      }
    rows_.insert(prefilled, from, to, static_cast<i64>(slots_.size()) * width_);
    return logits;
  }

  // One prompt whose beginning is in the cache already.
  Tensor prefill_rest(std::span<const i32> ids, i64 most) {
    REDCO_CHECK(jobs_.size() == 1 && width_ == 1 && !o_.encode, "a kept cache is for one answer");
    PrefixCache& prefix = *o_.prefix;
    i64 same = 0;
    while (same + 1 < static_cast<i64>(ids.size()) && same < static_cast<i64>(prefix.ids.size()) &&
           ids[same] == prefix.ids[same])
      ++same;
    const i64 rest = static_cast<i64>(ids.size()) - same;
    KvCache cache = std::move(prefix.cache);
    if (cache.layers.empty()) cache.max_length = rest + std::min<i64>(most, 256);
    cache.length = same;
    prefix = {};
    rows_.adopt(std::move(cache), {0}, {});
    rows_.make_room(rest, {true});
    return forward(model_, params_, rows_.kv(), 1, rest, ids.last(rest), rows_.begins(), {});
  }
  void hand_back() {
    o_.prefix->ids = last_ids_;
    o_.prefix->cache = rows_.release();
    o_.prefix->ids.resize(o_.prefix->cache.length);  // the last token was not fed any more
  }

  // The last token of each row goes through the model; the next ones are chosen.
  void step() {
    const i64 rows = static_cast<i64>(slots_.size()) * width_;
    std::vector<i32> fed(rows, t_.pad);
    std::vector<bool> live(rows, false);
    std::vector<Chooser> choosers;
    for (i64 i = 0; i < static_cast<i64>(slots_.size()); ++i) {
      if (!slots_[i].runs()) continue;
      choosers.push_back({i, {}});
      for (i64 b = 0; b < width_; ++b) {
        const i64 r = i * width_ + b;
        fed[r] = slots_[i].ids[b].back();
        live[r] = true;
        choosers.back().rows.push_back(r);
      }
    }
    rows_.make_room(1, live);
    const Tensor logits = forward(model_, params_, rows_.kv(), rows, 1, fed, rows_.begins(),
                                  {{}, rows_.memory_mask(), rows_.memory_length()});
    choose(logits, choosers);
  }

  // No job waits: where half of the slots are idle, the others' rows close ranks.
  void shrink() {
    const i64 live = running();
    if (2 * live > static_cast<i64>(slots_.size())) return;
    std::vector<Slot> slots;
    std::vector<i64> rows;
    for (i64 i = 0; i < static_cast<i64>(slots_.size()); ++i) {
      if (!slots_[i].runs()) continue;
      for (i64 b = 0; b < width_; ++b) rows.push_back(i * width_ + b);
      slots.push_back(std::move(slots_[i]));
    }
    rows_.keep(rows);
    slots_ = std::move(slots);
  }

  // --- choosing -------------------------------------------------------------------------------------------
  // What the first rank decided on a slot; the others follow it.
  struct Decision {
    std::vector<i32> tokens, sources;  // of each row
    bool done = false;
  };

  void choose(const Tensor& logits, const std::vector<Chooser>& choosers) {
    std::vector<Decision> decisions(choosers.size());
    bool finite = true;
    if (first_ && o_.interrupted) interrupted_ = o_.interrupted();
    if (width_ > 1) {
      finite = search(logits, choosers, decisions);
    } else {
      finite = s_.draws() ? sample(logits, choosers, decisions) : greedy(logits, choosers, decisions);
    }
    follow(choosers, decisions, finite);
    if (o_.on_step) o_.on_step();
  }

  AnswerState state(const Slot& s, i64 beam) const { return {s.ids[beam], s.n_new, s.limit}; }

  // The likeliest token of each row, of all parts of the vocabulary.
  bool greedy(const Tensor& logits, const std::vector<Chooser>& choosers, std::vector<Decision>& out) {
    const Scores scores(logits, false);
    std::vector<double> value;
    std::vector<i32> id;
    for (const Chooser& c : choosers) {
      ScoredToken best{};
      if (processors_) {
        std::vector<double> row = scores.copy(c.rows[0]);
        process(row, scores.first(), state(slots_[c.slot], 0), s_, t_);
        best = best_tokens<double>(row, scores.first(), 1)[0];
      } else {
        scores.row(c.rows[0], [&](auto row) { best = best_tokens(row, scores.first(), 1)[0]; });
      }
      value.push_back(best.score);
      id.push_back(best.id);
    }
    const auto values = gathered(mp_, scores.cut(), value);
    const auto ids = gathered(mp_, scores.cut(), id);
    bool finite = true;
    for (size_t i = 0; first_ && i < choosers.size(); ++i) {
      size_t best = i;
      for (size_t k = i; k < ids.size();
           k += choosers.size())  // parts in order: the lowest id of equals stays
        if (ids[k] >= 0 && (ids[best] < 0 || values[k] > values[best])) best = k;
      finite &= ids[best] >= 0;
      take(choosers[i], std::max(0, ids[best]), out[i]);
    }
    return finite;
  }

  bool sample(const Tensor& logits, const std::vector<Chooser>& choosers, std::vector<Decision>& out) {
    const Scores scores(logits, true);
    bool finite = true;
    for (size_t i = 0; first_ && i < choosers.size(); ++i) {
      const Slot& slot = slots_[choosers[i].slot];
      const Job& job = jobs_[slot.job];
      std::vector<double> row = scores.copy(choosers[i].rows[0]);
      if (processors_) process(row, 0, state(slot, 0), s_, t_);
      const Choices c = warp(row, s_);
      finite &= !c.ids.empty();
      const double u =
          uniform(static_cast<u64>(s_.seed), prompts_[job.prompt].ordinal, job.sample, slot.n_new);
      take(choosers[i], c.ids.empty() ? 0 : draw(c, u), out[i]);
    }
    return finite;
  }

  // First rank: this token for a slot of one row.
  void take(const Chooser& c, i32 token, Decision& d) {
    const Slot& slot = slots_[c.slot];
    const Job& job = jobs_[slot.job];
    d.tokens = {token};
    d.sources = {0};
    std::vector<i32> fresh(slot.ids[0].end() - slot.n_new, slot.ids[0].end());
    fresh.push_back(token);
    Answer a{{}, FinishReason::length, 0};
    if (std::find(t_.eos.begin(), t_.eos.end(), token) != t_.eos.end()) {
      a.finish = FinishReason::eos;
      d.done = true;
    } else if (o_.stops && o_.stops(fresh)) {
      a.finish = FinishReason::stop;
      d.done = true;
    } else if (slot.n_new + 1 >= slot.limit) {
      d.done = true;
    } else if (interrupted_) {
      a.finish = FinishReason::interrupted;
      d.done = true;
    }
    if (o_.on_token) o_.on_token(job.prompt, job.sample, fresh, d.done);
    a.ids = std::move(fresh);
    if (d.done) answers_[job.prompt][job.sample] = std::move(a);
  }

  // Beams: log-probabilities need the sum over the whole vocabulary; then each part offers its best.
  bool search(const Tensor& logits, const std::vector<Chooser>& choosers, std::vector<Decision>& out) {
    const Scores scores(logits, false);
    std::vector<double> peak, sum;  // of each row, this part's maximum and sum of exp(x - maximum)
    for (const Chooser& c : choosers)
      for (const i64 r : distinct(c))
        scores.row(r, [&](auto row) {
          double top = -std::numeric_limits<double>::infinity(), total = 0;
          for (const auto x : row) top = std::max<double>(top, x);
          for (const auto x : row) total += std::exp(static_cast<double>(x) - top);
          peak.push_back(top);
          sum.push_back(row.empty() ? 0 : total);
        });
    const auto peaks = gathered(mp_, scores.cut(), peak), sums = gathered(mp_, scores.cut(), sum);
    const i64 keep = std::max<i64>(2, 1 + static_cast<i64>(t_.eos.size())) * width_;
    std::vector<double> value;
    std::vector<i32> id;
    size_t at = 0;
    for (const Chooser& c : choosers) {
      const auto rows = distinct(c);
      for (size_t b = 0; b < rows.size(); ++b, ++at) {
        double top = peak[at], total = 0;
        for (size_t k = at; k < peaks.size(); k += peak.size()) top = std::max(top, peaks[k]);
        for (size_t k = at; k < peaks.size(); k += peak.size())
          if (sums[k] != 0) total += sums[k] * std::exp(peaks[k] - top);
        const double log_sum = top + std::log(total);
        std::vector<double> row = scores.copy(rows[b]);
        for (double& x : row) x -= log_sum;
        if (processors_) process(row, scores.first(), state(slots_[c.slot], static_cast<i64>(b)), s_, t_);
        for (const ScoredToken& best : best_tokens<double>(row, scores.first(), keep)) {
          value.push_back(best.score);
          id.push_back(best.id);
        }
      }
    }
    const auto values = gathered(mp_, scores.cut(), value);
    const auto ids = gathered(mp_, scores.cut(), id);
    bool finite = true;
    size_t offset = 0;
    for (size_t i = 0; i < choosers.size(); ++i) {
      const size_t n = distinct(choosers[i]).size();
      if (first_) finite &= advance(choosers[i], values, ids, offset, n, keep, value.size(), out[i]);
      offset += n * static_cast<size_t>(keep);
    }
    return finite;
  }
  // After a prefill all beams are scored by one row.
  static std::vector<i64> distinct(const Chooser& c) {
    if (c.rows.size() > 1 && c.rows[0] == c.rows[1]) return {c.rows[0]};
    return c.rows;
  }

  // First rank: one step of a search. Its candidates are values[part * stride + offset + row * keep + k].
  bool advance(const Chooser& c, const std::vector<double>& values, const std::vector<i32>& ids,
               size_t offset, size_t n_rows, i64 keep, size_t stride, Decision& d) {
    Slot& slot = slots_[c.slot];
    BeamSearch& search = *slot.beams;
    std::vector<BeamSearch::Candidate> all;
    for (size_t part = 0; part < values.size(); part += stride)
      for (i64 b = 0; b < width_; ++b)
        for (i64 k = 0; k < keep; ++k) {
          const size_t at = part + offset + (n_rows == 1 ? 0 : b) * static_cast<size_t>(keep) + k;
          if (ids[at] >= 0) all.push_back({search.score(b) + values[at], static_cast<i32>(b), ids[at]});
        }
    if (all.empty()) {  // nothing is allowed, or nothing is a number
      d.tokens.assign(width_, t_.pad);
      d.sources.assign(width_, 0);
      return false;
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tie(b.score, a.beam, a.token) < std::tie(a.score, b.beam, b.token);
    });
    all.resize(keep, {-std::numeric_limits<double>::infinity(), 0, t_.pad});
    std::vector<bool> stops(keep, false);
    for (i64 k = 0; o_.stops && k < keep; ++k) {
      std::vector<i32> fresh = search.ids(all[k].beam);
      fresh.push_back(all[k].token);
      stops[k] = o_.stops(fresh);
    }
    search.advance(all, stops);
    for (i64 b = 0; b < width_; ++b) {
      d.tokens.push_back(search.ids(b).back());
      d.sources.push_back(search.source(b));
    }
    d.done = search.done() || interrupted_;
    if (d.done) answers_[jobs_[slot.job].prompt] = search.best(s_.num_return_sequences);
    return true;
  }

  // All ranks do what the first one decided.
  void follow(const std::vector<Chooser>& choosers, std::vector<Decision>& decisions, bool finite) {
    std::vector<i32> plan = {finite, interrupted_};
    for (Decision& d : decisions) {
      d.tokens.resize(width_);
      d.sources.resize(width_);
      plan.push_back(d.done);
      plan.insert(plan.end(), d.tokens.begin(), d.tokens.end());
      plan.insert(plan.end(), d.sources.begin(), d.sources.end());
    }
    mp_.broadcast_bytes(plan.data(), static_cast<i64>(plan.size() * sizeof(i32)));
    if (!plan[0])
      throw Error(ExitCode::non_finite,
                  "[generate] no token can be chosen: the model's scores are no numbers, or every token is "
                  "forbidden; are the weights sound?");
    interrupted_ = plan[1];
    const i32* p = plan.data() + 2;
    std::vector<i64> source(slots_.size() * width_);
    for (size_t r = 0; r < source.size(); ++r) source[r] = static_cast<i64>(r);
    i64 columns = 0;  // those in which beams of one search may differ
    for (const Chooser& c : choosers) {
      Slot& slot = slots_[c.slot];
      const bool done = *p != 0;
      const i32 *tokens = p + 1, *sources = p + 1 + width_;
      p += 1 + 2 * width_;
      columns = std::max(columns, slot.n_new);
      std::vector<std::vector<i32>> ids(width_);
      for (i64 b = 0; b < width_; ++b) {
        source[c.slot * width_ + b] = c.slot * width_ + sources[b];
        if (width_ == 1) {
          ids[b] = std::move(slot.ids[b]);
        } else {
          ids[b] = slot.ids[sources[b]];
        }
        ids[b].push_back(tokens[b]);
      }
      slot.ids = std::move(ids);
      ++slot.n_new;
      if (!done) continue;
      if (o_.prefix) last_ids_ = slot.ids[0];
      slot = {};
    }
    if (width_ > 1) rows_.reorder(source, columns);
  }

  // The answers are on the first rank.
  void share_answers() {
    std::vector<double> scores;
    std::vector<i32> words;
    for (const auto& list : answers_)
      for (const Answer& a : list) {
        scores.push_back(a.score);
        words.push_back(static_cast<i32>(a.finish));
        words.push_back(static_cast<i32>(a.ids.size()));
        words.insert(words.end(), a.ids.begin(), a.ids.end());
      }
    const i64 n = mp_.agree(static_cast<i64>(words.size()));
    words.resize(n);
    mp_.broadcast_bytes(words.data(), n * static_cast<i64>(sizeof(i32)));
    mp_.broadcast_bytes(scores.data(), static_cast<i64>(scores.size() * sizeof(double)));
    const i32* p = words.data();
    size_t k = 0;
    for (auto& list : answers_)
      for (Answer& a : list) {
        a.score = scores[k++];
        a.finish = static_cast<FinishReason>(p[0]);
        a.ids.assign(p + 2, p + 2 + p[1]);
        p += 2 + p[1];
      }
  }

  const Model& model_;
  const ParamTree& params_;
  std::span<const GenerationPrompt> prompts_;
  const GenerationSettings& s_;
  const GenerationTokens& t_;
  const GenerateOptions& o_;
  Group& mp_;
  const bool first_;
  const i64 width_;  // rows of a slot
  const bool processors_;

  std::vector<Job> jobs_;
  i64 next_job_ = 0;
  std::vector<Slot> slots_;
  RowCache rows_;
  bool interrupted_ = false;
  std::vector<i32> last_ids_;
  std::vector<std::vector<Answer>> answers_;
};

}  // namespace

std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts) {
  NoGrad off;
  const Padded p = pad_left({prompts.begin(), prompts.end()}, 0);
  KvCache cache;
  cache.max_length = p.length;
  const auto v = to_values(
      forward(model, params, cache, static_cast<i64>(prompts.size()), p.length, p.ids, p.begin, {}));
  return {v.begin(), v.end()};
}

i64 trace_generation(const Model& model, const ParamTree& params, i64 rows, i64 encoded, i64 prompt,
                     i64 length, const std::function<void()>& between) {
  NoGrad off;
  KvCache cache;
  cache.max_length = length;
  PassMemory memory;
  const std::vector<i32> mask(rows * encoded, 1);
  if (encoded > 0) {
    EncoderInputs in;
    in.input_ids = from_ids({rows, encoded}, {});
    in.key_mask = from_ids({rows, encoded}, {});
    memory = {model.encode(params, in, {}), mask, encoded};
  }
  const std::vector<i32> ids(rows * prompt, 0);
  std::vector<i64> begin(rows, 0);
  begin[0] = 1;  // some row is padded
  forward(model, params, cache, rows, prompt, ids, begin, memory);
  memory.states = {};
  between();
  i64 bytes = 0;
  for (const KvCache::Layer& l : cache.layers)
    for (const Tensor& t : {l.k, l.v, l.cross_k, l.cross_v})
      if (t.defined()) bytes += t.local_bytes();
  cache.length = length - 1;
  forward(model, params, cache, rows, 1, std::span<const i32>(ids).first(rows), begin, memory);
  return bytes;
}

std::vector<std::vector<Answer>> generate(const Model& model, const ParamTree& params,
                                          std::span<const GenerationPrompt> prompts,
                                          const GenerationSettings& settings, const GenerationTokens& tokens,
                                          const GenerateOptions& options) {
  NoGrad off;
  return Engine(model, params, prompts, settings, tokens, options).run();
}

}  // namespace redco
