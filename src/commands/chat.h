// What the command chat does: a conversation with a model that has a chat template.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

// Reads a message a line from standard input, on the first rank, and prints each answer as it grows; the
// history stays, and so do the keys and values of what later prompts begin with too. /reset forgets, /exit
// ends. interactive: somebody sits at a terminal, so there is a prompt, SIGINT ends an answer and not the
// program, and a message that can't be used is said and passed over.
int run_chat(const RunRequest& request, bool interactive);

}  // namespace redco
