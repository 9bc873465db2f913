// Messages that nobody reads: stderr of a job whose reader has gone away (`2>&1 | head`).
#pragma once

namespace redco {

// Nobody reads the messages of this job on stderr any more: the log file gets one line about it, now or when
// it is opened. Logging calls it if stderr of this process is lost; a launcher passes it on to its ranks.
void note_unread_messages();

}  // namespace redco
