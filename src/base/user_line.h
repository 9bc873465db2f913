// The line of a user's C++ code that called redco, for errors.
#pragma once

#include <string>

namespace redco {

// A shared object with a user's code, as the loader names it.
void add_user_object(const std::string& path);

// " (my_loss.cpp:31)": the innermost line on this thread's stack that is in a user's shared object and not
// in a header. " (in my_loss.so)": the object has no line table, or binutils' addr2line is not installed. "":
// no user's code runs (base/user_code.h), or none from a shared object. Takes about 0.1 s, for errors only.
// GCC gives some calls in a `return {{...}}` the line of the function's end.
std::string at_user_line();

}  // namespace redco
