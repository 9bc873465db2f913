// The pieces of calls: how calls are cut into them, and the messages and sums of each step of a piece.
#include <algorithm>

#include "base/parallel.h"
#include "comm/calls.h"

namespace redco {

namespace {

// Border i of n elements split into `parts`, larger parts first.
i64 border(i64 n, i64 parts, i64 i) { return n / parts * i + std::min(i, n % parts); }

void add_message(std::vector<Message>& list, Exchange& x, int peer, Part part) {
  const int first = static_cast<int>(x.parts.size());
  if (part.bytes > 0) x.parts.push_back(part);
  list.push_back({peer, part.bytes, first, part.bytes > 0 ? 1 : 0});
}

void add_message(std::vector<Message>& list, Exchange& x, int peer, const Blocks& blocks, int block, i64 from,
                 i64 bytes) {
  const int first = static_cast<int>(x.parts.size());
  blocks.cut(block, from, bytes, x.parts);
  list.push_back({peer, bytes, first, static_cast<int>(x.parts.size()) - first});
}

}  // namespace

void Blocks::cut(int block, i64 from, i64 n, std::vector<Part>& out) const {
  for (std::size_t i = block == 0 ? 0 : ends_[block - 1].part; i < ends_[block].part && n > 0; ++i) {
    const Part& p = parts_[i];
    if (from >= p.bytes) {
      from -= p.bytes;
      continue;
    }
    const i64 m = std::min(n, p.bytes - from);
    out.push_back({p.data + from, m});
    n -= m;
    from = 0;
  }
}

// The sum of an element does not depend on the pieces.
i64 Calls::elements_per_piece(const Call& c) const {
  const i64 staged = std::max(size_, hosts_.most_staged());
  const i64 of_sum = piece_bytes(staged) / c.elem, unstaged = piece_bytes(size_) / c.elem;
  switch (c.pattern) {
    case Pattern::sum_blocks:
      return std::max<i64>(1, of_sum / staged);
    case Pattern::sum_slices:
      return of_sum * size_ / staged;
    case Pattern::gather:
      return std::max<i64>(1, unstaged / size_);
    default:
      return unstaged;
  }
}

i64 Calls::pieces_of(const Call& c) const {
  i64 n = c.n;
  switch (c.pattern) {
    case Pattern::sum_blocks:
      n = 0;
      for (int r = 0; r < size_; ++r) n = std::max(n, c.out.bytes(r) / c.elem);
      return ceil_div(n, elements_per_piece(c));
    case Pattern::gather:
      n = 0;
      for (int r = 0; r < size_; ++r) n = std::max(n, c.in.bytes(r) / c.elem);
      [[fallthrough]];
    case Pattern::sum_slices:
    case Pattern::copy_slices:
      return ceil_div(n, elements_per_piece(c));
    default:
      return 1;
  }
}

std::pair<i64, i64> Calls::piece_of(const Slot& s) const {
  const i64 piece = elements_per_piece(*s.call), first = s.index * piece;
  return {first, std::min(piece, s.call->n - first)};
}

i64 Calls::slice_bytes(const Slot& s, int r) const {
  const Call& c = *s.call;
  if (c.pattern == Pattern::sum_whole) return c.n * c.elem;
  if (c.pattern == Pattern::sum_blocks || c.pattern == Pattern::gather) {
    const i64 piece = elements_per_piece(c) * c.elem;
    const Blocks& blocks = c.pattern == Pattern::gather ? c.in : c.out;
    return std::clamp<i64>(blocks.bytes(r) - s.index * piece, 0, piece);
  }
  const i64 n = piece_of(s).second;
  return (border(n, size_, r + 1) - border(n, size_, r)) * c.elem;
}

void Calls::cut_slice(const Slot& s, int r, std::vector<Part>& out) const {
  const Call& c = *s.call;
  const i64 bytes = slice_bytes(s, r);
  if (c.pattern == Pattern::sum_blocks || c.pattern == Pattern::gather) {
    const Blocks& blocks = c.pattern == Pattern::gather ? c.in : c.out;
    blocks.cut(r, s.index * elements_per_piece(c) * c.elem, bytes, out);
  } else if (bytes > 0) {
    const auto [first, n] = piece_of(s);
    const i64 from = c.pattern == Pattern::sum_whole ? 0 : first + border(n, size_, r);
    out.push_back({c.data + from * c.elem, bytes});
  }
}

std::span<const int> Calls::slices_of(const Slot& s, int r) const {
  const auto all = hosts_.served_by(r);
  return s.call->pattern == Pattern::sum_whole ? all.first(1) : all;
}

// ---- Staging: the terms of each other rank of this host, all slices of slices_of() together; then the sums
// of each other host for this rank's slice. A sum of this host's terms replaces one of them. ----

i64 Calls::term_bytes(const Slot& s) const {
  i64 n = 0;
  for (const int r : slices_of(s, rank_)) n += slice_bytes(s, r);
  return n;
}

std::byte* Calls::term_at(const Slot& s, int r) const {
  const int at = hosts_.position(r);
  return s.staging.get() + (at - (at > hosts_.position(rank_))) * term_bytes(s);
}

// Of more than one rank, or another one than this.
std::byte* Calls::subtree_at(const Slot& s, const Subtree& t) const {
  return term_at(s, t.first == rank_ ? t.first + 1 : t.first);
}

std::byte* Calls::sums_at(const Slot& s, int host) const {
  i64 before = 0;
  for (int h = 0; h < host; ++h)
    if (h != hosts_.mine()) before += std::ssize(hosts_.subtrees(h));
  return s.staging.get() + (std::ssize(hosts_.ranks(hosts_.mine())) - 1) * term_bytes(s) +
         before * slice_bytes(s, rank_);
}

// ---- Messages ----

void Calls::add_messages(Slot& s) {
  const Pattern pattern = s.call->pattern;
  const bool sums =
      pattern == Pattern::sum_whole || pattern == Pattern::sum_slices || pattern == Pattern::sum_blocks;
  const bool to_all =
      pattern == Pattern::sum_slices || pattern == Pattern::copy_slices || pattern == Pattern::gather;
  switch (s.exchange.label.step) {
    case on_host:
      if (sums)
        send_terms(s);
      else if (!to_all && pattern != Pattern::copy_whole)
        exchange_blocks(s);
      break;
    case to_owner:
      if (sums)
        send_subtrees(s);
      else if (pattern == Pattern::copy_slices)
        exchange_blocks(s);
      break;
    case from_owner:
      if (to_all) send_result(s);
      if (pattern == Pattern::copy_whole) copy_to_hosts(s);
      break;
    default:
      if (to_all || pattern == Pattern::sum_whole || pattern == Pattern::copy_whole) pass_on_results(s);
  }
}

// Between all ranks, in one step. The order of partners differs between ranks, so that they do not all send
// to rank 0 first.
void Calls::exchange_blocks(Slot& s) {
  const Call& c = *s.call;
  Exchange& x = s.exchange;
  const auto each = [&](const auto& f) {
    for (int k = 1; k < size_; ++k) f((rank_ + k) % size_, (rank_ - k + size_) % size_);
  };
  switch (c.pattern) {
    case Pattern::blocks:
      each([&](int to, int from) {
        add_message(x.sends, x, to, c.out, to, 0, c.out.bytes(to));
        add_message(x.receives, x, from, c.in, from, 0, c.in.bytes(from));
      });
      break;
    case Pattern::copy_slices:
      each([&](int to, int from) {
        std::vector<Part>& parts = x.parts;
        const std::size_t first = parts.size();
        if (rank_ == c.root) cut_slice(s, to, parts);
        send_parts(s, first, rank_ == c.root ? slice_bytes(s, to) : 0, to);
        const std::size_t mine = parts.size();
        if (from == c.root) cut_slice(s, rank_, parts);
        receive_parts(s, mine, from == c.root ? slice_bytes(s, rank_) : 0, from);
      });
      break;
    case Pattern::token: {
      std::byte* const at = s.stage(size_);
      each([&](int to, int from) {
        add_message(x.sends, x, to, {&s.token, 1});
        add_message(x.receives, x, from, {at + from, 1});
      });
      break;
    }
    default:  // one_way
      if (c.what == Collective::send)
        add_message(x.sends, x, c.root, c.out, 0, 0, c.out.bytes(0));
      else
        add_message(x.receives, x, c.root, c.in, 0, 0, c.in.bytes(0));
  }
}

// To and from the message's parts [first, end).
void Calls::send_parts(Slot& s, std::size_t first, i64 bytes, int to) {
  Exchange& x = s.exchange;
  x.sends.push_back(
      {to, bytes, static_cast<int>(first), bytes ? static_cast<int>(x.parts.size() - first) : 0});
}
void Calls::receive_parts(Slot& s, std::size_t first, i64 bytes, int from) {
  Exchange& x = s.exchange;
  x.receives.push_back(
      {from, bytes, static_cast<int>(first), bytes ? static_cast<int>(x.parts.size() - first) : 0});
}

// A term that is a subtree alone is sent on from the staging memory. Others are read once.
void Calls::send_terms(Slot& s) {
  Exchange& x = s.exchange;
  const int host = hosts_.mine();
  const auto ranks = hosts_.ranks(host);
  const auto subtrees = hosts_.subtrees(host);
  const i64 term = term_bytes(s);
  const int at = hosts_.position(rank_), n = static_cast<int>(ranks.size());
  s.stage((n - 1) * term +
          (std::ssize(hosts_.all_subtrees()) - std::ssize(subtrees)) * slice_bytes(s, rank_));
  for (int k = 1; k < n; ++k) {
    const int to = ranks[(at + k) % n], from = ranks[(at - k + n) % n];
    const std::size_t first = x.parts.size();
    i64 bytes = 0;
    for (const int r : slices_of(s, to)) {
      cut_slice(s, r, x.parts);
      bytes += slice_bytes(s, r);
    }
    send_parts(s, first, bytes, to);
    add_message(x.receives, x, from, {term_at(s, from), term});
    const bool alone = std::any_of(subtrees.begin(), subtrees.end(),
                                   [&](const Subtree& t) { return t.first == from && t.n == 1; });
    if (!alone) x.receives.back().at = term_at(s, from);
  }
}

void Calls::send_subtrees(Slot& s) {
  Exchange& x = s.exchange;
  const int host = hosts_.mine(), n_hosts = hosts_.size();
  const bool whole = s.call->pattern == Pattern::sum_whole;
  if (n_hosts == 1 || (whole && rank_ != hosts_.first(host))) return;
  const auto add = [&](int slice, i64 offset) {
    for (const Subtree& t : hosts_.subtrees(host)) {
      if (t.n == 1 && t.first == rank_)
        cut_slice(s, slice, x.parts);
      else if (const i64 n = slice_bytes(s, slice); n > 0)
        x.parts.push_back({subtree_at(s, t) + offset, n});
    }
    return std::ssize(hosts_.subtrees(host)) * slice_bytes(s, slice);
  };
  if (whole) {
    const i64 bytes = add(rank_, 0);
    const std::size_t end = x.parts.size();
    for (int k = 1; k < n_hosts; ++k)
      x.sends.push_back({hosts_.first((host + k) % n_hosts), bytes, 0, static_cast<int>(end)});
  } else {
    i64 offset = 0;
    for (const int r : slices_of(s, rank_)) {
      const std::size_t first = x.parts.size();
      if (r != rank_) send_parts(s, first, add(r, offset), r);
      offset += slice_bytes(s, r);
    }
  }
  for (int k = 1; k < n_hosts; ++k) {
    const int from = (host - k + n_hosts) % n_hosts;
    add_message(x.receives, x, whole ? hosts_.first(from) : hosts_.proxy(from, rank_),
                {sums_at(s, from), std::ssize(hosts_.subtrees(from)) * slice_bytes(s, rank_)});
  }
}

// The root of a copy has every slice.
void Calls::send_result(Slot& s) {
  const Call& c = *s.call;
  Exchange& x = s.exchange;
  const auto has = [&](int r) { return c.pattern == Pattern::copy_slices && r == c.root; };
  const int host = hosts_.mine(), n_hosts = hosts_.size();
  const auto ranks = hosts_.ranks(host);
  const int at = hosts_.position(rank_), n = static_cast<int>(ranks.size());
  cut_slice(s, rank_, x.parts);
  const std::size_t n_parts = x.parts.size();
  const auto send = [&](int to) {
    x.sends.push_back({to, has(to) ? 0 : slice_bytes(s, rank_), 0, has(to) ? 0 : static_cast<int>(n_parts)});
  };
  const auto receive = [&](int r) {
    const std::size_t first = x.parts.size();
    if (!has(rank_)) cut_slice(s, r, x.parts);
    receive_parts(s, first, has(rank_) ? 0 : slice_bytes(s, r), r);
  };
  for (int k = 1; k < n_hosts; ++k) send(hosts_.proxy((host + k) % n_hosts, rank_));
  for (int k = 1; k < n; ++k) send(ranks[(at + k) % n]);
  for (const int r : hosts_.served_by(rank_).subspan(1)) receive(r);
  for (int k = 1; k < n; ++k) receive(ranks[(at - k + n) % n]);
}

// To the first rank of each other host, and to the ranks of the root's.
void Calls::copy_to_hosts(Slot& s) {
  const Call& c = *s.call;
  Exchange& x = s.exchange;
  const auto gets = [&](int r) {
    const int host = hosts_.host_of(r);
    return r != c.root && (host == hosts_.host_of(c.root) || r == hosts_.first(host));
  };
  for (int k = 1; rank_ == c.root && k < size_; ++k)
    if (const int to = (rank_ + k) % size_; gets(to)) add_message(x.sends, x, to, {c.data, c.n});
  if (gets(rank_)) add_message(x.receives, x, c.root, {c.data, c.n});
}

// What came from other hosts, to the other ranks of this host.
void Calls::pass_on_results(Slot& s) {
  const Call& c = *s.call;
  Exchange& x = s.exchange;
  const int host = hosts_.mine(), first_rank = hosts_.first(host);
  const auto ranks = hosts_.ranks(host);
  if (hosts_.size() == 1 || ranks.size() == 1) return;
  if (c.pattern == Pattern::copy_whole && host == hosts_.host_of(c.root)) return;
  const int at = hosts_.position(rank_), n = static_cast<int>(ranks.size());
  const bool whole = c.pattern == Pattern::sum_whole || c.pattern == Pattern::copy_whole;
  const auto has = [&](int r) { return c.pattern == Pattern::copy_slices && r == c.root; };
  // Appends what a rank passes on to the parts; returns its bytes.
  const auto add = [&](int from) {
    i64 bytes = 0;
    if (c.pattern == Pattern::copy_whole) {
      x.parts.push_back({c.data, c.n});
      bytes = c.n;
    } else if (whole) {
      const i64 sums = std::ssize(hosts_.all_subtrees()) - std::ssize(hosts_.subtrees(host));
      bytes = sums * slice_bytes(s, rank_);
      x.parts.push_back({sums_at(s, 0), bytes});
    } else {
      for (const int r : hosts_.served_by(from).subspan(1)) {
        cut_slice(s, r, x.parts);
        bytes += slice_bytes(s, r);
      }
    }
    return bytes;
  };
  const auto passes = [&](int r) { return whole ? r == first_rank : hosts_.served_by(r).size() > 1; };
  if (passes(rank_)) {
    const i64 bytes = add(rank_);
    const int n_parts = static_cast<int>(x.parts.size());
    for (int k = 1; k < n; ++k) {
      const int to = ranks[(at + k) % n];
      x.sends.push_back({to, has(to) ? 0 : bytes, 0, has(to) || bytes == 0 ? 0 : n_parts});
    }
  }
  for (int k = 1; k < n; ++k) {
    const int from = ranks[(at - k + n) % n];
    if (!passes(from)) continue;
    const std::size_t first = x.parts.size();
    receive_parts(s, first, has(rank_) ? 0 : add(from), from);
  }
}

// ---- Sums ----

// Adds what a step has brought.
void Calls::add_sums(Slot& s) {
  const Pattern pattern = s.call->pattern;
  const int step = s.exchange.label.step;
  const bool whole = pattern == Pattern::sum_whole;
  if (!whole && pattern != Pattern::sum_slices && pattern != Pattern::sum_blocks) return;
  if (step == on_host) add_subtrees_of_host(s);
  if (step == (whole ? pass_on : to_owner) && hosts_.size() > 1) add_all_subtrees(s);
}

void Calls::add_subtrees_of_host(Slot& s) {
  const Call& c = *s.call;
  i64 offset = 0;
  for (const int slice : slices_of(s, rank_)) {
    const i64 bytes = slice_bytes(s, slice);
    for (const Subtree& t : hosts_.subtrees(hosts_.mine())) {
      if (t.n == 1 || bytes == 0) continue;
      const int own = rank_ - t.first;
      terms_.assign(static_cast<std::size_t>(t.n), {nullptr, 1});
      for (const Message& m : s.exchange.receives)
        if (m.peer >= t.first && m.peer < t.first + t.n) terms_[m.peer - t.first].data = m.at + offset;
      own_.clear();
      if (own >= 0 && own < t.n) cut_slice(s, slice, own_);
      if (t.n == size_)
        cut_result(s);
      else
        target_.assign(1, {subtree_at(s, t) + offset, bytes});
      add_terms(c, own, bytes);
    }
    offset += bytes;
  }
}

void Calls::add_all_subtrees(Slot& s) {
  const i64 bytes = slice_bytes(s, rank_);
  if (bytes == 0) return;
  used_.assign(static_cast<std::size_t>(hosts_.size()), 0);
  terms_.clear();
  own_.clear();
  int own = -1;
  for (const Subtree& t : hosts_.all_subtrees()) {
    const int host = hosts_.host_of(t.first);
    if (host != hosts_.mine()) {
      terms_.push_back({sums_at(s, host) + used_[host]++ * bytes, t.n});
    } else if (t.first == rank_ && t.n == 1) {
      own = static_cast<int>(terms_.size());
      terms_.push_back({nullptr, 1});
      cut_slice(s, rank_, own_);
    } else {
      terms_.push_back({subtree_at(s, t), t.n});
    }
  }
  cut_result(s);
  add_terms(*s.call, own, bytes);
}

// target_ = the place of the sum of this rank's slice.
void Calls::cut_result(const Slot& s) {
  target_.clear();
  if (s.call->pattern == Pattern::sum_blocks)
    s.call->in.cut(0, s.index * elements_per_piece(*s.call) * s.call->elem, slice_bytes(s, rank_), target_);
  else
    cut_slice(s, rank_, target_);
}

// The terms are contiguous; the one of this rank, if own_ is not empty, and the sum may be in parts.
void Calls::add_terms(const Call& c, int own, i64 bytes) {
  int n_ranks = 0;
  for (const Term& t : terms_) n_ranks += t.ranks;
  for (std::size_t i = 0, j = 0; bytes > 0;) {
    Part& to = target_[j];
    i64 m = std::min(bytes, to.bytes);
    if (!own_.empty()) {
      Part& from = own_[i];
      m = std::min(m, from.bytes);
      terms_[own].data = from.data;
      from = {from.data + m, from.bytes - m};
      i += from.bytes == 0;
    }
    parallel::for_blocks(m / c.elem, c.elem,
                         [&](i64 begin, i64 end) { c.sum(terms_.data(), n_ranks, to.data, begin, end); });
    for (Term& t : terms_) t.data += m;
    to = {to.data + m, to.bytes - m};
    j += to.bytes == 0;
    bytes -= m;
  }
}

}  // namespace redco
