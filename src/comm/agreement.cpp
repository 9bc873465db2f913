// Agreement of the ranks of a group: values, texts and errors.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "comm/calls.h"
#include "comm/group.h"

namespace redco {

namespace {
thread_local std::string t_agreed;  // the message that agree_on_errors threw last
}  // namespace

bool was_agreed(const std::string& message) { return !t_agreed.empty() && t_agreed == message; }

namespace {

[[noreturn]] void throw_error(int code, const std::string& message) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::usage:
      throw UsageError("{}", message);
    case ExitCode::contents:
      throw ContentsError("{}", message);
    case ExitCode::io:
      throw IoError("{}", message);
    case ExitCode::bug:
      throw BugError(message);
    default:
      throw Error(static_cast<ExitCode>(code), message);
  }
}

// Runs f. Returns its exception, if any, with its code and message (0 and "" if none).
std::exception_ptr run_caught(const std::function<void()>& f, int& code, std::string& message) {
  code = 0;
  try {
    f();
    return nullptr;
  } catch (...) {
    std::exception_ptr own = std::current_exception();
    try {
      throw;
    } catch (const Error& e) {
      code = static_cast<int>(e.code());
      message = e.what();
    } catch (const std::bad_alloc&) {
      code = static_cast<int>(ExitCode::doesnt_fit);
      message = "out of memory";
    } catch (const std::exception& e) {
      code = static_cast<int>(ExitCode::bug);
      message = e.what();
    } catch (...) {
      code = static_cast<int>(ExitCode::bug);
      message = "an exception of unknown type";
    }
    return own;
  }
}

}  // namespace

std::string Group::agree(std::string value) {
  if (size_ == 1) return value;
  if (!meta_) {
    i64 length = static_cast<i64>(value.size());
    copy_from(0, &length, sizeof length);
    value.resize(static_cast<std::size_t>(length));
    if (length) copy_from(0, value.data(), length);
  }
  count(Collective::broadcast, static_cast<i64>(value.size()));
  return value;
}

bool Group::any(bool mine) {
  i32 most = mine ? 1 : 0;
  all_reduce_max<i32>(&most, 1);
  return most != 0;
}

std::vector<std::string> Group::gather(const std::string& mine) {
  const std::vector<i64> one_each(size_, sizeof(i64));
  std::vector<i64> sizes(size_);
  const i64 size = static_cast<i64>(mine.size());
  all_gather<std::byte>(reinterpret_cast<const std::byte*>(&size), reinterpret_cast<std::byte*>(sizes.data()),
                        one_each);
  std::vector<std::byte> all(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), i64{0})));
  all_gather<std::byte>(reinterpret_cast<const std::byte*>(mine.data()), all.data(), sizes);
  std::vector<std::string> out;
  const char* p = reinterpret_cast<const char*>(all.data());
  for (const i64 n : sizes) {
    out.emplace_back(p, static_cast<std::size_t>(n));
    p += n;
  }
  return out;
}

// Each rank sends the code and message length of its error (0: none). All ranks get the message of the lowest
// failing rank.
void Group::agree_on_errors(const std::string& message, int code, std::exception_ptr own, bool first_only) {
  struct Status {
    i64 code, length;
  };
  count(Collective::broadcast, sizeof(Status));
  std::vector<Status> all(static_cast<std::size_t>(size_));
  all[rank_] = {code, static_cast<i64>(message.size())};
  if (first_only) {
    copy_from(0, all.data(), sizeof(Status));
  } else {
    Call& c = calls_->make(Collective::broadcast, Pattern::blocks, sizeof(Status));
    for (int r = 0; r < size_; r++) {
      c.out.add_block(reinterpret_cast<std::byte*>(&all[rank_]), sizeof(Status));
      c.in.add_block(reinterpret_cast<std::byte*>(&all[r]), sizeof(Status));
    }
    calls_->start(c).wait();
  }
  const auto bad = std::find_if(all.begin(), all.end(), [](const Status& s) { return s.code != 0; });
  if (bad == all.end()) return;
  const int root = static_cast<int>(bad - all.begin());
  std::string text = root == rank_ ? message : std::string(static_cast<std::size_t>(bad->length), ' ');
  if (!text.empty()) copy_from(root, text.data(), bad->length);
  t_agreed = text;
  if (root == rank_) std::rethrow_exception(own);
  throw_error(static_cast<int>(bad->code), text);
}

void Group::on_first(const std::function<void()>& f) {
  if (size_ == 1 || meta_) {
    if (size_ > 1) count(Collective::broadcast, 16);
    if (rank_ == 0) f();
    return;
  }
  int code = 0;
  std::string message;
  std::exception_ptr own;
  if (rank_ == 0) own = run_caught(f, code, message);
  agree_on_errors(message, code, own, true);
}

void Group::together(const std::function<void()>& f) {
  if (size_ == 1 || meta_) {
    if (size_ > 1) count(Collective::broadcast, 16);
    f();
    return;
  }
  int code = 0;
  std::string message;
  std::exception_ptr own = run_caught(f, code, message);
  agree_on_errors(message, code, own, false);
}

}  // namespace redco
