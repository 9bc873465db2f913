// Errors in the code of users: pipelines and models from shared objects.
#pragma once

#include <functional>
#include <string>

namespace redco {

// In a catch block around the code of a user's pipeline or model: an exception that isn't redco's becomes an
// Error, and a failed check of redco is the user's mistake, a UsageError. message(why): the text, where `why`
// follows "... failed". redco's other errors and std::bad_alloc are thrown again.
[[noreturn]] void rethrow_from_user(const std::function<std::string(const std::string& why)>& message);

}  // namespace redco
