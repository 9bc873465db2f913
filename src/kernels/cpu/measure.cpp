// Peak speeds of this machine: matrix products and streaming reads.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/timing.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products/bf16_tiles.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/isa.h"
#include "kernels/native.h"
#include "kernels/peak.h"

namespace redco::kernels {
namespace {

// The shortest time is used: a peak is what the machine can do, and interruptions only add time.
template <class F>
double shortest_time(int reps, const F& f) {
  f();  // first touch, and the start of the thread pool
  double shortest = std::numeric_limits<double>::infinity();
  for (int r = 0; r < std::max(1, reps); ++r) {
    const double start = seconds();
    f();
    shortest = std::min(shortest, std::max(1e-9, seconds() - start));
  }
  return shortest;
}

}  // namespace

double measure_gemm_ceiling(i64 m, i64 n, i64 k, int reps) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  std::vector<float> a(static_cast<std::size_t>(m * k), 0.5f), b(static_cast<std::size_t>(n * k), 0.25f);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  const auto tiles = [&] { gemm(false, true, m, n, k, 1.0f, a.data(), k, b.data(), k, 0.0f, c.data(), n); };
  const auto one_call = [&] {  // with OpenBLAS's own threads
    const auto rows = static_cast<blasint>(m), cols = static_cast<blasint>(n), deep = static_cast<blasint>(k);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, cols, deep, 1.0f, a.data(), deep, b.data(),
                deep, 0.0f, c.data(), cols);
  };
  const double best = std::min(shortest_time(reps, tiles), shortest_time(reps, one_call));
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / best;
}

namespace {

template <class Pairs>
double bf16_ceiling(int reps) {
  constexpr i64 kRows = 192, kColumns = 192, kDeep = 512, kTimes = 64;
  const std::vector<float> x(static_cast<std::size_t>(kRows * kDeep), 0.5f);
  const int threads = omp_get_max_threads();
  struct Operands {
    std::vector<u32> left, right;
    std::vector<float> y;
    LeftPairs packed;
  };
  std::vector<Operands> all(static_cast<std::size_t>(threads));
  for (Operands& o : all) {
    o.left.resize(static_cast<std::size_t>(Pairs::left_size(kRows, kDeep)));
    o.right.resize(static_cast<std::size_t>(Pairs::right_size(kColumns, kDeep)));
    o.y.resize(static_cast<std::size_t>(kRows * kColumns));
    o.packed = Pairs::pack_left(x.data(), kDeep, false, kRows, kDeep, o.left.data());
    Pairs::pack_right(x.data(), kDeep, true, kColumns, kDeep, o.right.data());
  }
  const double time = shortest_time(reps, [&] {
    for_each(threads, i64{threads} * kTimes * kBlock, [&](i64 i) {
      Operands& o = all[static_cast<std::size_t>(i)];
      TileOutput out;
      out.y = o.y.data();
      out.ld = kColumns;
      for (i64 t = 0; t < kTimes; ++t) Pairs::multiply(kRows, kColumns, kDeep, o.packed, o.right.data(), out);
    });
  });
  return 2.0 * kRows * kColumns * kDeep * kTimes * threads / time;
}

}  // namespace

double measure_bf16_ceiling(int reps) {
  if (isa() < Isa::avx512_bf16) return 0;
  return isa() == Isa::amx ? bf16_ceiling<AmxTiles>(reps) : bf16_ceiling<DotTiles>(reps);
}

double measure_read_ceiling(i64 bytes, int reps) {
  const i64 n = bytes / static_cast<i64>(sizeof(float));
  if (n <= 0) return 0;
  // Memory as tensors have it, in huge pages where the system gives them.
  const Device& device = cpu_device();
  i64 reserved = std::max(bytes, i64{1} << 28);
  const DevicePtr memory = device.reserve(&reserved);
  if (!memory) return 0;
  auto* const x = reinterpret_cast<float*>(Native::address(memory));
  for_each(ceil_div(n, kBlock), n,
           [&](i64 i) { std::fill(x + i * kBlock, x + std::min(n, (i + 1) * kBlock), 1.0f); });
  const i64 pieces = ceil_div(n, kBlock);
  std::vector<float> top(static_cast<std::size_t>(pieces));
  const double time = shortest_time(reps, [&] {
    for_each(pieces, n, [&](i64 i) {
      top[static_cast<std::size_t>(i)] =
          REDCO_ISA_CALL(max(x + i * kBlock, std::min(kBlock, n - i * kBlock)));
    });
  });
  device.release(memory, reserved);
  return static_cast<double>(n) * sizeof(float) / time;
}

}  // namespace redco::kernels
