#include "plan/probes.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/timing.h"
#include "ops/create.h"

namespace redco {

namespace {
constexpr i64 kAlign = 64;
}

Probes::Probes(Context& context, const MeasureOptions& options, i64 bytes)
    : context_(context), options_(options) {
  const i64 elements = bytes / kAlign * kAlign / size_of(DType::f32);
  // 0.5 in fp32: as bf16 or as scales of groups, every element is 0 or a number of ordinary size too.
  in_.memory = full({elements}, 0.5);
  out_.memory = full({elements}, 0);
}
Probes::~Probes() {
  context_.queue().visit(nullptr);
  context_.queue().watch(nullptr);
}

View Probes::take(Room& room, const Shape& shape, DType type) {
  const i64 bytes = ceil_div(bytes_of(type, stored_numel(type, shape)), kAlign) * kAlign;
  REDCO_CHECK(bytes <= room.memory.local_bytes(), "an operand of {} bytes", bytes);
  if (room.at + bytes > room.memory.local_bytes()) room.at = 0;
  View v = room.memory.view().flat(room.at / size_of(DType::f32), 1);
  v.dtype = type;
  v.shape = shape;
  room.at += bytes;
  return v;
}

View Probes::workspace(i64 elements, DType type) {
  kept_.push_back(Tensor({std::max<i64>(1, elements)}, type, {}));
  View v = kept_.back();
  v.shape = {elements};
  return v;
}

View Probes::ids(const Shape& shape, i64 n) {
  std::vector<i32> values(static_cast<std::size_t>(numel(shape)));
  u32 state = 1;
  for (i32& id : values) {  // spread over the rows
    state = state * 1664525 + 1013904223;
    id = static_cast<i32>(state % static_cast<u64>(n));
  }
  kept_.push_back(from_ids(shape, values));
  return kept_.back();
}

void Probes::kernel(const KernelCall& call) { seen_ = work_of(call); }

double Probes::seconds_of(const Call& f, Group& group) {
  double begin = seconds();
  f();
  context_.queue().wait();
  const double once = std::max(1e-9, seconds() - begin);
  // Calls in a batch: the same on all ranks.
  const i64 calls = group.agree(std::clamp<i64>(static_cast<i64>(options_.seconds_each / once), 1, 100000));
  std::vector<double> sums;  // of each batch, over the ranks
  for (int b = 0; b < options_.batches; ++b) {
    group.barrier();
    begin = seconds();
    for (i64 i = 0; i < calls; ++i) f();
    context_.queue().wait();
    sums.push_back((seconds() - begin) / static_cast<double>(calls));
  }
  group.all_reduce<double>(sums.data(), std::ssize(sums));
  return *std::ranges::min_element(sums) / group.size();
}

void Probes::measure(const Call& call, const std::vector<double>& distances, bool keep) {
  // The first call tells what it is and how much memory it needs.
  const i64 in = in_.at, out = out_.at;
  context_.queue().visit(this);
  context_.queue().watch([](const char*, Queue::Clock::time_point) {});
  call();
  context_.queue().wait();
  context_.queue().watch(nullptr);
  context_.queue().visit(nullptr);
  const CallWork work = seen_;
  REDCO_CHECK(work.units > 0, "a probe of '{}' does no work", work.kind);
  const auto used = [](const Room& room, i64 before) {
    return room.at >= before ? room.at - before : room.at;  // it may have started again
  };
  const i64 in_bytes = used(in_, in), out_bytes = used(out_, out);
  for (const double distance : distances) {
    // The calls that go through `distance` bytes, then begin again. A call whose operands do not move has
    // one.
    const i64 moves = in_bytes + out_bytes;
    const i64 fits = moves > 0 ? static_cast<i64>(distance) / moves : 1;
    const i64 room_in = in_.memory.local_bytes() / std::max<i64>(1, in_bytes);
    const i64 room_out = out_.memory.local_bytes() / std::max<i64>(1, out_bytes);
    const i64 slots = std::clamp<i64>(fits, 1, std::min(room_in, room_out));
    // Small working sets are brought into the cache. Of a large one nothing is there: it begins where the
    // last one has ended.
    const bool cold = distance * 2 > static_cast<double>(in_.memory.local_bytes());
    i64 slot = cold ? cold_ / std::max<i64>(1, std::max(in_bytes, out_bytes)) % slots : 0;
    const auto next = [&] {
      in_.at = slot * in_bytes;
      out_.at = slot * out_bytes;
      slot = slot + 1 == slots ? 0 : slot + 1;
      if (cold) cold_ += std::max(in_bytes, out_bytes);
      call();
    };
    if (!cold)
      for (i64 i = 0; i < slots; ++i) next();
    const double time = seconds_of(next);
    std::vector<double> at = work.at;
    at.push_back(distance);
    points_[work.kind][at] = time / work.units;
  }
  in_.at = out_.at = 0;
  if (!keep) forget();
}

std::map<std::string, SpeedTable> Probes::tables() const {
  std::map<std::string, SpeedTable> out;
  for (const auto& [kind, points] : points_) {
    SpeedTable t;
    const std::size_t n = points.begin()->first.size();
    for (std::size_t d = 0; d < n; ++d) {
      std::set<double> sizes;
      for (const auto& [at, seconds] : points) sizes.insert(at[d]);
      t.axes.emplace_back(sizes.begin(), sizes.end());
    }
    for (const auto& [at, seconds] : points) t.values.push_back(seconds);  // ascending, the last axis fastest
    if (const std::string problem = t.problem(); !problem.empty())
      throw BugError(fmt::format("measured '{}': {}", kind, problem));
    out[kind] = std::move(t);
  }
  return out;
}

}  // namespace redco
