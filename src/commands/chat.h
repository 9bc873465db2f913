// What the command chat does: a conversation with a model that has a chat template.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

// Reads a message a line from standard input, on the first rank, and prints each answer as it grows; the
// history stays, and so do the keys and values of what later prompts begin with too. /reset forgets, /exit
// ends. interactive: somebody sits at a terminal, so there is a prompt, SIGINT ends an answer and not the
// program, and a message that can't be used is said and passed over. `program`: this command again, for the
// ranks.
int run_chat(const JobConfig& job, bool interactive, const std::vector<std::string>& program);

}  // namespace redco
