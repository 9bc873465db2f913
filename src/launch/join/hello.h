// What a process says of itself when it joins, and why process 0 may refuse it.
#pragma once

#include <optional>
#include <string>

#include "launch/join/starter.h"

namespace redco {

struct JoinHello {
  i64 process_id = -1, n_processes = 0;
  std::string host;
  std::string instance;  // random: a process that joins again after a lost connection has the same
  std::string job;       // the words of its job: JoinPlace::job
};

std::string to_text(const JoinHello& hello);
// nullopt: the text is not one, as that of another version of redco.
std::optional<JoinHello> parse_hello(const std::string& text);

// Why a process with this hello (nullopt: of another redco) cannot join process 0 of `place`; "" if it can.
std::string why_refused(const std::optional<JoinHello>& hello, const JoinPlace& place);
// Why it cannot join although `other`, with the same number, is there and answers.
std::string why_twice(const JoinHello& hello, const JoinHello& other);

}  // namespace redco
