#include "train/replica_check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/process.h"
#include "comm/group.h"
#include "tensor/context.h"

namespace redco {

namespace {

// The group members whose text differs from the most frequent one: "rank 1 (node2)"; "" if all are equal.
// texts: "CHECKSUM RANK (HOST)".
std::string odd_ones(const std::vector<std::string>& texts) {
  const auto checksum = [](const std::string& t) { return t.substr(0, t.find(' ')); };
  std::map<std::string, int> votes;
  for (const std::string& t : texts) ++votes[checksum(t)];
  if (votes.size() < 2) return "";
  // On a tie, the first rank's checksum counts as right; the message names this as a guess.
  std::string right = checksum(texts[0]);
  for (const auto& [value, n] : votes)
    if (n > votes[right]) right = value;
  std::string out;
  for (const std::string& t : texts)
    if (checksum(t) != right) out += (out.empty() ? "" : ", ") + t.substr(t.find(' ') + 1);
  return out;
}

// Calls f with the bytes of the local block, one piece after the other.
template <class F>
void in_pieces(const Tensor& t, const F& f) {
  constexpr i64 kPiece = i64{1} << 20;
  const i64 bytes = t.local_bytes();
  std::vector<std::byte> piece(std::min(bytes, kPiece));
  for (i64 at = 0; at < bytes; at += kPiece) {
    const i64 n = std::min(kPiece, bytes - at);
    Context::current().queue().read(t.view().data.plus(at), piece.data(), n);
    f(std::span<const std::byte>(piece).first(n));
  }
}

}  // namespace

void check_replicas(const ParamTree& params, i64 step) {
  Context& c = Context::current();
  Hasher of_replica, replicated;
  for (const Tensor& t : params.values()) {
    // What is sharded over the replicas has no copies.
    if (t.local_bytes() == 0 || t.layout()[Axis::dp].is_sharded()) continue;
    in_pieces(t, [&](std::span<const std::byte> bytes) {
      of_replica.update(bytes.data(), bytes.size());
      if (t.layout()[Axis::mp].is_replicated()) replicated.update(bytes.data(), bytes.size());
    });
  }
  const std::string me = fmt::format(" rank {} ({})", c.rank(), host_name());
  // Every rank compares both axes, because only some ranks may see the first difference.
  std::string odd = odd_ones(c.group(Axis::dp).gather(hex64(of_replica.digest64()) + me));
  const std::string over_mp = odd_ones(c.group(Axis::mp).gather(hex64(replicated.digest64()) + me));
  if (odd.empty()) odd = over_mp;
  c.world().together([&] {
    if (!odd.empty())
      throw Error(
          ExitCode::rank_failed,
          fmt::format("[train] step {}: the replicas no longer hold the same parameters; {} differ{} from "
                      "the others. Check that host's memory and libraries (`redco env`), and resume from a "
                      "checkpoint before this step with checkpoint.resume=PATH",
                      step, odd, odd.find(',') == odd.npos ? "s" : ""));
  });
}

}  // namespace redco
