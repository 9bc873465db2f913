// Ledger: ops with FLOPs and collectives with bytes that a rank ran or, on a meta context, would run. Plan
// and run use the same calls, so the two ledgers can be compared line by line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/group.h"

namespace redco {

struct LedgerLine {
  std::string what;   // "linear" or "all_reduce mp"
  std::string where;  // the scope: "forward/attention", "backward/mlp", "step/gradients"
  i64 count = 0;
  i64 flops = 0;  // of this rank
  i64 bytes = 0;  // ops: bytes written; collectives: bytes of the tensors passed in
  i64 most = 0;   // bytes of the largest call
  bool operator==(const LedgerLine&) const = default;
};

class Ledger {
 public:
  void op(const char* name, const std::string& where, i64 flops, i64 bytes);
  // axis: a name of the mesh's, or "all".
  void collective(Collective kind, const char* axis, const std::string& where, i64 bytes);

  std::vector<LedgerLine> lines() const;        // in order of first occurrence
  std::vector<LedgerLine> collectives() const;  // only lines of collectives
  i64 ops() const;                              // how many were run
  void reset();

 private:
  void add(std::string what, const std::string& where, i64 flops, i64 bytes, bool is_collective);
  struct Entry {
    LedgerLine line;
    bool is_collective;
  };
  std::map<std::pair<std::string, std::string>, size_t> index_;
  std::vector<Entry> entries_;
};

}  // namespace redco
