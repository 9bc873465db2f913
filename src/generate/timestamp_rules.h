// Whisper's rules for tokens of time (Radford et al. 2022), as transformers' WhisperTimeStampLogitsProcessor:
// a window begins with a time, times come in pairs (the end of a segment and the beginning of the next) and
// do not decrease, and a time is chosen if all times together are more likely than any other token.
#pragma once

#include <span>

#include "comm/group.h"
#include "generate/local_scores.h"
#include "generate/sampling.h"

namespace redco {

// Excludes tokens that would break the first three rules, among tokens [first, first + scores.size()).
template <class T>
void keep_timestamp_order(std::span<T> scores, i64 first, const AnswerState& at, const TimestampTokens& t);

// The last rule, for these rows of the scores: excludes all tokens that are not times. Collective if the
// vocabulary is cut.
void prefer_timestamps(LocalScores& scores, const std::vector<i64>& rows, Group& mp,
                       const TimestampTokens& t);

}  // namespace redco
