// Messages of sums in large groups, counted without data: a transport that only counts, with the steps of
// each rank as comm/calls.h makes them.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/calls.h"

namespace redco {
namespace {

// Every message is complete when it is posted.
class CountingTransport : public Transport {
 public:
  explicit CountingTransport(i64& messages, i64& bytes) : messages_(messages), bytes_(bytes) {}
  void post(Exchange& x) override {
    for (const Message& m : x.sends) {
      if (m.bytes == 0) continue;
      ++messages_;
      bytes_ += m.bytes;
    }
    x.left = 0;
  }
  bool progress() override { return false; }
  void pause(Waiter&, Collective) override { FAIL() << "a message is not complete"; }
  void withdraw(Exchange&) noexcept override {}
  std::unique_ptr<Transport> split(std::span<const i32>) override { return nullptr; }
  bool is_process() const override { return false; }

 private:
  i64 &messages_, &bytes_;
};

struct LargeGroupCount {
  i64 messages = 0, bytes = 0;     // that the rank sends
  HostTraffic between_hosts = {};  // of these
  double seconds(double latency, double bytes_per_s) const {
    return latency * static_cast<double>(messages) + static_cast<double>(bytes) / bytes_per_s;
  }
};

// What one rank of an all-reduce in slices sends. Its data are addresses that nothing reads.
LargeGroupCount count_all_reduce(int rank, int ranks, int per_host, i64 bytes) {
  std::vector<int> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(r / per_host);
  LargeGroupCount out;
  Calls calls(rank, host_of, std::make_unique<CountingTransport>(out.messages, out.bytes),
              std::make_shared<InFlight>());
  Call& c = calls.make(Collective::all_reduce, Pattern::sum_slices, bytes);
  std::byte nothing{};
  c.data = &nothing;
  c.elem = 4;
  c.n = bytes / c.elem;
  c.sum = [](const Term*, int, std::byte*, i64, i64) {};
  calls.start(c).wait();
  for (const HostTraffic& t : calls.traffic) {
    out.between_hosts.messages += t.messages;
    out.between_hosts.bytes += t.bytes;
  }
  return out;
}

// 1 GB over 1,024 ranks: as 16 GB, with fewer pieces. Slices of 2 MiB / 1,024 would be 500 pieces with up to
// 2,046 messages of a rank.
TEST(LargeGroups, MessagesAreNotSmall) {
  constexpr i64 kBytes = 1'000'000'000;
  for (const int per_host : {1, 8, 32})
    for (const int rank : {0, 517, 1023}) {
      const LargeGroupCount n = count_all_reduce(rank, 1024, per_host, kBytes);
      SCOPED_TRACE(testing::Message()
                   << per_host << " ranks of a host, rank " << rank << ": " << n.messages << " messages, "
                   << n.bytes << " bytes, " << n.between_hosts.messages << " between hosts");
      EXPECT_LT(n.messages, 70'000);
      EXPECT_GE(n.between_hosts.bytes / n.between_hosts.messages, i64{31} << 10);
      // Messages of 2 us at 12.5 GB/s cost less than the bytes.
      EXPECT_LT(n.seconds(2e-6, 12.5e9), 2 * n.seconds(0, 12.5e9));
    }
}

// Between two hosts, each slice passes once as a sum and once as a result, whatever ranks a host has: the
// first ranks of a group of p ranks on h hosts send 2 (h - 1) times the data together.
TEST(LargeGroups, HostsExchangeEachByteOnce) {
  for (const int ranks : {64, 128, 256})
    for (const int per_host : {1, 8, 16}) {
      constexpr i64 kBytes = i64{48} << 20;
      i64 bytes = 0;
      for (int r = 0; r < ranks; ++r)
        bytes += count_all_reduce(r, ranks, per_host, kBytes).between_hosts.bytes;
      EXPECT_EQ(bytes, 2 * (ranks / per_host - 1) * kBytes) << ranks << " " << per_host;
    }
}

TEST(LargeGroups, StagingIsLimited) {
  for (const i64 staged : {1, 16, 64})
    EXPECT_EQ(piece_bytes(staged) * pieces_in_flight(staged), i64{16} << 20);
  EXPECT_EQ(piece_bytes(1024), i64{32} << 20);
  EXPECT_EQ(pieces_in_flight(1024), 2);
  EXPECT_EQ(pieces_in_flight(128), 4);
}

}  // namespace
}  // namespace redco
