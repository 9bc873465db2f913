// KernelCall: a submitted kernel with its operands, for code that looks at the calls of a step without
// running them (plan/timeline.h).
#pragma once

#include <optional>

#include "kernels/arguments.h"
#include "kernels/view.h"

namespace redco {

// Valid during CallVisitor::kernel() only.
struct KernelCall {
  const char* kernel = "";         // its name in the table
  SmallVector<Views, 8> operands;  // in the order of the table; a single view is a list of one
  std::optional<kernels::Unary> unary;
  SmallVector<bool, 2> flags;  // in the order of the table
  const kernels::Attention* attention = nullptr;
  const kernels::ConvShape* convolution = nullptr;
  const kernels::MixtureOfExperts* experts = nullptr;

  template <class... A>
  static KernelCall of(const char* kernel, const A&... arguments) {
    KernelCall c;
    c.kernel = kernel;
    (c.add(arguments), ...);
    return c;
  }

 private:
  void add(const View& v) { operands.push_back(Views(1, v)); }
  void add(const Views& list) { operands.push_back(list); }
  void add(kernels::Unary f) { unary = f; }
  void add(bool b) { flags.push_back(b); }
  void add(const kernels::Attention& a) { attention = &a; }
  void add(const kernels::ConvShape& s) { convolution = &s; }
  void add(const kernels::MixtureOfExperts& m) { experts = &m; }
  template <class T>
  void add(const T&) {}  // settings that do not change the cost
};

// Sees the calls of a queue in their order.
class CallVisitor {
 public:
  virtual ~CallVisitor() = default;
  virtual void kernel(const KernelCall& call) = 0;
  // The next collective only starts; waits(id) is its wait. Others are waited for immediately. Which
  // collective it is, the group says (Group::on_call).
  virtual void starts(const void* id) = 0;
  virtual void waits(const void* id) = 0;
};

}  // namespace redco
