// What the first rank of an mp group decides, on all of its ranks. Rounding may differ between CPU types, so
// no rank decides alone.
#pragma once

#include <vector>

#include "comm/group.h"
#include "generate/answer_slots.h"

namespace redco {

// Sends the first rank's decisions and batch.interrupted to all ranks. finite: on the first rank, whether
// every slot had a finite score; otherwise Error(non_finite).
void agree_on_decisions(Group& mp, AnswerBatch& batch, std::vector<Decision>& decisions, bool finite);

// Copies the answers from the first rank to all ranks.
void agree_on_answers(Group& mp, AnswerBatch& batch);

}  // namespace redco
