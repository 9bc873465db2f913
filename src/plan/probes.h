// Probes: runs kernels on operands in separate memory, and records their speeds in tables.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "plan/call_work.h"
#include "plan/measure.h"
#include "tensor/tensor.h"

namespace redco {

class Probes final : private CallVisitor {
 public:
  // bytes: of the memory for inputs, and of that for outputs.
  Probes(Context& context, const MeasureOptions& options, i64 bytes);
  ~Probes() override;

  // Operands of one call: inputs hold ordinary numbers, outputs anything. Both move through the memory from
  // call to call, so that a call finds its operands as far back as the measurement wants.
  View input(const Shape& shape, DType type = DType::f32) { return take(in_, shape, type); }
  View output(const Shape& shape, DType type = DType::f32) { return take(out_, shape, type); }
  // Scratch memory, the same for all calls.
  View workspace(i64 elements, DType type);
  // Ids in [0, n).
  View ids(const Shape& shape, i64 n);

  // Measures `call`, which submits one kernel, at each reuse distance, and adds the points to the kernel's
  // table. keep: workspaces and ids stay until forget().
  using Call = std::function<void()>;
  void measure(const Call& call, const std::vector<double>& distances, bool keep = false);
  void forget() { kept_.clear(); }
  // Seconds of one call of f, which is collective over the group, or over all ranks: the mean over the ranks,
  // in the batch in which that is the shortest, because other programs only add time. (The shortest batch of
  // each rank would be one in which the others leave it more of the memory.)
  double seconds_of(const Call& f) { return seconds_of(f, context_.world()); }
  double seconds_of(const Call& f, Group& group);

  // The tables of what was measured. A kind that was not measured on a whole grid is a bug.
  std::map<std::string, SpeedTable> tables() const;

 private:
  struct Room {
    Tensor memory;
    i64 at = 0, begin = 0, end = 0;  // bytes: the next operand; the part that is used
  };
  View take(Room& room, const Shape& shape, DType type);
  void kernel(const KernelCall& call) override;
  void starts(const void*) override {}
  void waits(const void*) override {}

  Context& context_;
  const MeasureOptions options_;
  Room in_, out_;
  std::vector<Tensor> kept_;  // workspaces and ids
  CallWork seen_;             // of the last call that was looked at
  i64 cold_ = 0;              // bytes that probes of large working sets have gone through
  std::map<std::string, std::map<std::vector<double>, double>> points_;
};

}  // namespace redco
