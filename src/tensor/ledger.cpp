#include "tensor/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace redco {

void Ledger::add(std::string what, const std::string& where, i64 flops, i64 bytes, bool is_collective) {
  auto [it, fresh] = index_.try_emplace({what, where}, entries_.size());
  if (fresh) entries_.push_back({{.what = std::move(what), .where = where}, is_collective});
  LedgerLine& line = entries_[it->second].line;
  ++line.count;
  line.flops += flops;
  line.bytes += bytes;
  line.most = std::max(line.most, bytes);
}

void Ledger::op(const char* name, const std::string& where, i64 flops, i64 bytes) {
  add(name, where, flops, bytes, false);
}

void Ledger::collective(Collective kind, const char* axis, const std::string& where, i64 bytes) {
  add(fmt::format("{} {}", name_of(kind), axis), where, 0, bytes, true);
}

std::vector<LedgerLine> Ledger::lines() const {
  std::vector<LedgerLine> out;
  for (const auto& e : entries_) out.push_back(e.line);
  return out;
}

i64 Ledger::ops() const {
  i64 n = 0;
  for (const Entry& e : entries_) n += e.is_collective ? 0 : e.line.count;
  return n;
}

std::vector<LedgerLine> Ledger::collectives() const {
  std::vector<LedgerLine> out;
  for (const auto& e : entries_)
    if (e.is_collective) out.push_back(e.line);
  return out;
}

void Ledger::reset() { *this = Ledger(); }

}  // namespace redco
