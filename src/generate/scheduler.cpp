#include "generate/scheduler.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace redco {

Scheduler::Scheduler(std::span<const GenerationPrompt> prompts, const GenerationSettings& settings,
                     const GenerationTokens& tokens, i64 length_limit, i64 batch_size, bool first_rank)
    : prompts_(prompts), s_(settings), t_(tokens), length_limit_(length_limit), first_rank_(first_rank) {
  batch_.width = s_.num_beams;
  const i64 samples = s_.num_beams > 1 ? 1 : s_.num_return_sequences;
  for (i64 p = 0; p < static_cast<i64>(prompts.size()); ++p) {
    const i64 have = static_cast<i64>(prompts[p].ids.size());
    REDCO_CHECK(have > 0 && have < length_limit, "a prompt of {} tokens", have);
    for (i64 k = 0; k < samples; ++k) batch_.jobs.push_back({p, k});
  }
  batch_.answers.resize(prompts.size());
  for (auto& a : batch_.answers) a.resize(s_.num_return_sequences, {{}, FinishReason::interrupted, 0});
  batch_.slots.resize(std::min<i64>(batch_size, static_cast<i64>(batch_.jobs.size())));
}

i64 Scheduler::n_running() const {
  return std::count_if(batch_.slots.begin(), batch_.slots.end(),
                       [](const AnswerSlot& s) { return s.runs(); });
}

Start Scheduler::start() {
  Start out;
  out.alone = !running();
  for (i64 i = 0; i < static_cast<i64>(batch_.slots.size()) && jobs_left(); ++i) {
    AnswerSlot& s = batch_.slots[i];
    if (s.runs()) continue;
    const AnswerJob& job = batch_.jobs[next_job_];
    const auto& prompt = prompts_[job.prompt].ids;
    s.job = next_job_++;
    s.limit = std::min(s_.max_new_tokens, length_limit_ - static_cast<i64>(prompt.size()));
    s.n_new = 0;
    s.ids.assign(batch_.width, prompt);
    if (first_rank_ && batch_.width > 1) s.beams = std::make_unique<BeamSearch>(s_, t_, s.limit);
    if (out.prompts.empty() || out.prompts.back() != job.prompt) out.prompts.push_back(job.prompt);
    const i64 from = static_cast<i64>(out.prompts.size()) - 1;
    out.most_new = std::max(out.most_new, s.limit);
    for (i64 b = 0; b < batch_.width; ++b) {
      out.from.push_back(from);
      out.to.push_back(i * batch_.width + b);
    }
    out.pending.push_back({i, std::vector<i64>(batch_.width, from)});
  }
  return out;
}

Step Scheduler::step() const {
  Step out{std::vector<i32>(rows(), t_.pad), std::vector<bool>(rows(), false), {}};
  for (i64 i = 0; i < static_cast<i64>(batch_.slots.size()); ++i) {
    if (!batch_.slots[i].runs()) continue;
    out.pending.push_back({i, {}});
    for (i64 b = 0; b < batch_.width; ++b) {
      const i64 r = i * batch_.width + b;
      out.ids[r] = batch_.slots[i].ids[b].back();
      out.live[r] = true;
      out.pending.back().rows.push_back(r);
    }
  }
  return out;
}

Forks Scheduler::apply(const std::vector<PendingSlot>& pending, const std::vector<Decision>& decisions) {
  Forks out{std::vector<i64>(rows()), 0};
  std::iota(out.source.begin(), out.source.end(), 0);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    AnswerSlot& slot = batch_.slots[pending[i].slot];
    const Decision& d = decisions[i];
    out.columns = std::max(out.columns, slot.n_new);  // beams of one search differ in their new tokens
    std::vector<std::vector<i32>> ids(batch_.width);
    for (i64 b = 0; b < batch_.width; ++b) {
      out.source[pending[i].slot * batch_.width + b] = pending[i].slot * batch_.width + d.sources[b];
      if (batch_.width == 1) {
        ids[b] = std::move(slot.ids[b]);
      } else {
        ids[b] = slot.ids[d.sources[b]];
      }
      ids[b].push_back(d.tokens[b]);
    }
    slot.ids = std::move(ids);
    ++slot.n_new;
    if (d.done) slot = {};
  }
  return out;
}

std::vector<i64> Scheduler::shrink() {
  std::vector<i64> kept;
  if (jobs_left() || 2 * n_running() > static_cast<i64>(batch_.slots.size())) return kept;
  std::vector<AnswerSlot> slots;
  for (i64 i = 0; i < static_cast<i64>(batch_.slots.size()); ++i) {
    if (!batch_.slots[i].runs()) continue;
    for (i64 b = 0; b < batch_.width; ++b) kept.push_back(i * batch_.width + b);
    slots.push_back(std::move(batch_.slots[i]));
  }
  batch_.slots = std::move(slots);
  return kept;
}

}  // namespace redco
