// The command chat: a conversation with a model that has a chat template.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

// The first rank reads one message per line from standard input and prints each answer as it grows. The
// history is kept, and so are the keys and values of the common prefix. /reset clears the history, /help
// lists the commands, /exit ends. From a pipe each answer is one line. interactive: a user is at a terminal.
// Then there is a prompt, SIGINT ends an answer instead of the program, and a message that can't be used is
// reported and skipped.
int run_chat(const RunRequest& request, bool interactive);

}  // namespace redco
