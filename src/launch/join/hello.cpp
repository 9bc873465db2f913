#include "launch/join/hello.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace redco {

std::string to_text(const JoinHello& h) {
  const nlohmann::ordered_json j{{"process_id", h.process_id},
                                 {"n_processes", h.n_processes},
                                 {"host", h.host},
                                 {"instance", h.instance},
                                 {"job", h.job}};
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<JoinHello> parse_hello(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  try {
    return JoinHello{j.at("process_id"), j.at("n_processes"), j.at("host"), j.at("instance"), j.at("job")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string why_refused(const std::optional<JoinHello>& h, const JoinPlace& place) {
  if (!h || h->host.empty())
    return "a process of another version of redco wants to join. Install the same redco on all hosts";
  if (h->n_processes != place.n_processes)
    return fmt::format(
        "process {} on {} has --n-processes {}, but process 0 has --n-processes {}. Start all of them with the "
        "same number",
        h->process_id, h->host, h->n_processes, place.n_processes);
  if (h->process_id < 1 || h->process_id >= place.n_processes)
    return fmt::format("a process on {} has --process-id {}, expected 1 to {}", h->host, h->process_id,
                       place.n_processes - 1);
  return "";
}

std::string why_twice(const JoinHello& h, const JoinHello& other) {
  return fmt::format(
      "two processes have --process-id {}: one on {}, one on {}. Give each host its own number, and start one "
      "process on it",
      h.process_id, other.host, h.host);
}

}  // namespace redco
