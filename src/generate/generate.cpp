#include "generate/generate.h"

#include <algorithm>

#include "base/error.h"
#include "generate/answer_slots.h"
#include "generate/forward_pass.h"
#include "generate/row_cache.h"
#include "generate/token_chooser.h"
#include "ops/create.h"

namespace redco {

namespace {

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
        chooser_(prompts, s, t, o, mp_, batch_) {
    batch_.width = s.num_beams;
    const i64 samples = s.num_beams > 1 ? 1 : s.num_return_sequences;
    for (i64 p = 0; p < static_cast<i64>(prompts.size()); ++p) {
      const i64 have = static_cast<i64>(prompts[p].ids.size());
      REDCO_CHECK(have > 0 && have < model.length_limit(), "a prompt of {} tokens", have);
      for (i64 k = 0; k < samples; ++k) batch_.jobs.push_back({p, k});
    }
    REDCO_CHECK(!model.is_encoder_decoder() || o.encode, "{} needs an encoder's memory", model.family());
    batch_.answers.resize(prompts.size());
    for (auto& a : batch_.answers) a.resize(s.num_return_sequences, {{}, FinishReason::interrupted, 0});
    batch_.slots.resize(std::min<i64>(o.batch_size, static_cast<i64>(batch_.jobs.size())));
  }

  std::vector<std::vector<Answer>> run() {
    while (true) {
      if (batch_.interrupted) break;
      if (next_job_ < static_cast<i64>(batch_.jobs.size()) &&
          running() < static_cast<i64>(batch_.slots.size())) {
        start();
        continue;  // an answer may have ended with its first token
      }
      if (running() == 0) break;
      if (next_job_ == static_cast<i64>(batch_.jobs.size())) shrink();
      step();
    }
    if (o_.prefix) hand_back();
    share_answers();
    return std::move(batch_.answers);
  }

 private:
  i64 running() const {
    return std::count_if(batch_.slots.begin(), batch_.slots.end(),
                         [](const AnswerSlot& s) { return s.runs(); });
  }

  // Starts the next jobs in the free slots: prefills each of their prompts once.
  void start() {
    std::vector<i64> fresh;   // slots
    std::vector<i64> unique;  // prompts
    std::vector<PendingSlot> pending;
    const bool empty = running() == 0;
    for (i64 i = 0;
         i < static_cast<i64>(batch_.slots.size()) && next_job_ < static_cast<i64>(batch_.jobs.size()); ++i) {
      if (batch_.slots[i].runs()) continue;
      const AnswerJob& job = batch_.jobs[next_job_];
      const auto& prompt = prompts_[job.prompt].ids;
      AnswerSlot& s = batch_.slots[i];
      s.job = next_job_++;
      s.limit = std::min(s_.max_new_tokens, model_.length_limit() - static_cast<i64>(prompt.size()));
      s.n_new = 0;
      s.ids.assign(batch_.width, prompt);
      if (first_ && batch_.width > 1) s.beams = std::make_unique<BeamSearch>(s_, t_, s.limit);
      if (unique.empty() || unique.back() != job.prompt) unique.push_back(job.prompt);
      fresh.push_back(i);
      pending.push_back({i, std::vector<i64>(batch_.width, static_cast<i64>(unique.size()) - 1)});
    }
    const Tensor logits = prefill(unique, fresh, pending, empty);
    choose(logits, pending);
  }

  Tensor prefill(const std::vector<i64>& unique, const std::vector<i64>& fresh,
                 const std::vector<PendingSlot>& pending, bool empty) {
    std::vector<std::span<const i32>> rows;
    i64 most = 0;
    for (const i64 p : unique) rows.emplace_back(prompts_[p].ids);
    for (const i64 i : fresh) most = std::max(most, batch_.slots[i].limit);
    if (empty && o_.prefix) return prefill_rest(rows[0], most);
    const Padded padded = pad_left(rows, t_.pad);
    const i64 n = static_cast<i64>(rows.size());
    PassMemory memory;
    Memory encoded;
    if (o_.encode) {
      encoded = o_.encode(unique);
      memory = {encoded.states, encoded.mask, encoded.states.shape()[1]};
    }
    // If all rows are new, this cache becomes the batch's cache, so it gets room for new tokens.
    const bool all = empty && batch_.width == 1 && n == static_cast<i64>(batch_.slots.size());
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
      for (i64 b = 0; b < batch_.width; ++b) {
        from.push_back(pending[i].rows[b]);
        to.push_back(fresh[i] * batch_.width + b);
      }
    rows_.insert(prefilled, from, to, static_cast<i64>(batch_.slots.size()) * batch_.width);
    return logits;
  }

  // Prefills the part of one prompt that is not in the kept cache yet.
  Tensor prefill_rest(std::span<const i32> ids, i64 most) {
    REDCO_CHECK(batch_.jobs.size() == 1 && batch_.width == 1 && !o_.encode,
                "a kept cache works for one answer only");
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
    o_.prefix->ids.resize(o_.prefix->cache.length);  // the last token is not in the cache
  }

  // Runs the last token of each row through the model and chooses the next one.
  void step() {
    const i64 rows = static_cast<i64>(batch_.slots.size()) * batch_.width;
    std::vector<i32> fed(rows, t_.pad);
    std::vector<bool> live(rows, false);
    std::vector<PendingSlot> pending;
    for (i64 i = 0; i < static_cast<i64>(batch_.slots.size()); ++i) {
      if (!batch_.slots[i].runs()) continue;
      pending.push_back({i, {}});
      for (i64 b = 0; b < batch_.width; ++b) {
        const i64 r = i * batch_.width + b;
        fed[r] = batch_.slots[i].ids[b].back();
        live[r] = true;
        pending.back().rows.push_back(r);
      }
    }
    rows_.make_room(1, live);
    const Tensor logits = forward(model_, params_, rows_.kv(), rows, 1, fed, rows_.begins(),
                                  {{}, rows_.memory_mask(), rows_.memory_length()});
    choose(logits, pending);
  }

  // When no job is left to start and at least half of the slots are free, removes the free slots' rows.
  void shrink() {
    const i64 live = running();
    if (2 * live > static_cast<i64>(batch_.slots.size())) return;
    std::vector<AnswerSlot> slots;
    std::vector<i64> rows;
    for (i64 i = 0; i < static_cast<i64>(batch_.slots.size()); ++i) {
      if (!batch_.slots[i].runs()) continue;
      for (i64 b = 0; b < batch_.width; ++b) rows.push_back(i * batch_.width + b);
      slots.push_back(std::move(batch_.slots[i]));
    }
    rows_.keep(rows);
    batch_.slots = std::move(slots);
  }

  void choose(const Tensor& logits, const std::vector<PendingSlot>& pending) {
    std::vector<Decision> decisions(pending.size());
    if (first_ && o_.interrupted) batch_.interrupted = o_.interrupted();
    const bool finite = chooser_.choose(logits, pending, decisions);
    follow(pending, decisions, finite);
    if (o_.on_step) o_.on_step();
  }

  // Sends the first rank's decisions to all ranks, and applies them.
  void follow(const std::vector<PendingSlot>& pending, std::vector<Decision>& decisions, bool finite) {
    std::vector<i32> plan = {finite, batch_.interrupted};
    for (Decision& d : decisions) {
      d.tokens.resize(batch_.width);
      d.sources.resize(batch_.width);
      plan.push_back(d.done);
      plan.insert(plan.end(), d.tokens.begin(), d.tokens.end());
      plan.insert(plan.end(), d.sources.begin(), d.sources.end());
    }
    mp_.broadcast_bytes(plan.data(), static_cast<i64>(plan.size() * sizeof(i32)));
    if (!plan[0])
      throw Error(ExitCode::non_finite,
                  "[generate] no token can be chosen: the model's scores are not finite, or every token is "
                  "forbidden. Check the weights, and the generation settings that forbid tokens");
    batch_.interrupted = plan[1];
    const i32* p = plan.data() + 2;
    std::vector<i64> source(batch_.slots.size() * batch_.width);
    for (size_t r = 0; r < source.size(); ++r) source[r] = static_cast<i64>(r);
    i64 columns = 0;  // the columns in which the beams of one search may differ
    for (const PendingSlot& c : pending) {
      AnswerSlot& slot = batch_.slots[c.slot];
      const bool done = *p != 0;
      const i32 *tokens = p + 1, *sources = p + 1 + batch_.width;
      p += 1 + 2 * batch_.width;
      columns = std::max(columns, slot.n_new);
      std::vector<std::vector<i32>> ids(batch_.width);
      for (i64 b = 0; b < batch_.width; ++b) {
        source[c.slot * batch_.width + b] = c.slot * batch_.width + sources[b];
        if (batch_.width == 1) {
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
    if (batch_.width > 1) rows_.reorder(source, columns);
  }

  // Copies the answers from the first rank to all ranks.
  void share_answers() {
    std::vector<double> scores;
    std::vector<i32> words;
    for (const auto& list : batch_.answers)
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
    for (auto& list : batch_.answers)
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

  AnswerBatch batch_;
  TokenChooser chooser_;
  i64 next_job_ = 0;
  RowCache rows_;
  std::vector<i32> last_ids_;
};

}  // namespace

std::vector<std::vector<Answer>> generate(const Model& model, const ParamTree& params,
                                          std::span<const GenerationPrompt> prompts,
                                          const GenerationSettings& settings, const GenerationTokens& tokens,
                                          const GenerateOptions& options) {
  NoGrad off;
  return Engine(model, params, prompts, settings, tokens, options).run();
}

}  // namespace redco
