#include "generate/agree.h"

#include "base/error.h"

namespace redco {

void agree_on_decisions(Group& mp, AnswerBatch& batch, std::vector<Decision>& decisions, bool finite) {
  std::vector<i32> plan = {finite, batch.interrupted};
  for (Decision& d : decisions) {
    d.tokens.resize(batch.width);
    d.sources.resize(batch.width);
    plan.push_back(d.done);
    plan.insert(plan.end(), d.tokens.begin(), d.tokens.end());
    plan.insert(plan.end(), d.sources.begin(), d.sources.end());
  }
  mp.broadcast_bytes(plan.data(), static_cast<i64>(plan.size() * sizeof(i32)));
  if (!plan[0])
    throw Error(ExitCode::non_finite,
                "[generate] no token can be chosen: the model's scores are not finite, or every token is "
                "forbidden. Check the weights, and the generation settings that forbid tokens");
  batch.interrupted = plan[1];
  const i32* p = plan.data() + 2;
  for (Decision& d : decisions) {
    d.done = *p++ != 0;
    d.tokens.assign(p, p + batch.width);
    d.sources.assign(p + batch.width, p + 2 * batch.width);
    p += 2 * batch.width;
  }
}

void agree_on_answers(Group& mp, AnswerBatch& batch) {
  std::vector<double> scores;
  std::vector<i32> words;
  for (const auto& list : batch.answers)
    for (const Answer& a : list) {
      scores.push_back(a.score);
      words.push_back(static_cast<i32>(a.finish));
      words.push_back(static_cast<i32>(a.ids.size()));
      words.insert(words.end(), a.ids.begin(), a.ids.end());
    }
  const i64 n = mp.agree(static_cast<i64>(words.size()));
  words.resize(n);
  mp.broadcast_bytes(words.data(), n * static_cast<i64>(sizeof(i32)));
  mp.broadcast_bytes(scores.data(), static_cast<i64>(scores.size() * sizeof(double)));
  const i32* p = words.data();
  std::size_t k = 0;
  for (auto& list : batch.answers)
    for (Answer& a : list) {
      a.score = scores[k++];
      a.finish = static_cast<FinishReason>(p[0]);
      a.ids.assign(p + 2, p + 2 + p[1]);
      p += 2 + p[1];
    }
}

}  // namespace redco
