#include "data/text/packing.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "data/index/cached_index.h"
#include "data/index/epoch_order.h"
#include "data/index/index_file.h"

namespace redco {

namespace {

constexpr IndexFormat kRowsFormat = {
    {'r', 'e', 'd', 'c', 'o', 'R', 'O', 'W'}, kRowsFileVersion, "file of rows"};
constexpr std::size_t kOpenRows = 64;

struct RowsFacts {
  RowCounts counts;
  u64 rows_directory, slots_directory, pieces_directory;
};

struct RowEntry {
  u64 first_slot;
  u32 slots, unused;
};

// A place of a row: piece `index` of the `count` pieces of a class in the file's order, or, in an epoch, of
// the class in that epoch's order.
struct Slot {
  u64 first;  // piece of the class
  u32 count, index;
};

// Sorts pieces into classes and fills rows with them, first-fit.
class Packer {
 public:
  Packer(HashedFile& file, const RowSettings& s, RowCounts& counts)
      : max_(static_cast<u64>(s.max_length)),
        packing_(s.packing),
        counts_(counts),
        rows_(file),
        slots_(file),
        pieces_(file) {}

  void add(const RowPiece& piece) {
    pool_.push_back(piece);
    if (pool_.size() == kPool) fill_rows();
  }
  void finish(RowsFacts& h) {
    fill_rows();
    while (!open_.empty()) close(open_.begin());
    counts_.rows = rows_.size();
    counts_.pieces = pieces_.size();
    h.rows_directory = rows_.finish();
    h.slots_directory = slots_.finish();
    h.pieces_directory = pieces_.finish();
  }

 private:
  static constexpr std::size_t kPool = std::size_t{1} << 20;  // pieces
  static constexpr std::size_t kClass = 32;                   // pieces
  static constexpr u32 kMaxDifference = 16;                   // lengths of a class differ by 1/16 at most

  struct Row {
    u64 room = 0, tokens = 0;
    std::vector<Slot> slots;
  };

  // The pieces of the pool by length, then in the order of the file.
  std::vector<std::size_t> by_length() const {
    std::vector<std::size_t> order(pool_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (packing_)
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return pool_[a].length < pool_[b].length; });
    return order;
  }

  // The end of the class that begins at `begin`.
  std::size_t class_end(const std::vector<std::size_t>& order, std::size_t begin) const {
    if (!packing_) return begin + 1;  // an example per row; nothing to exchange
    const auto length = [&](std::size_t at) { return pool_[order[at]].length; };
    std::size_t end = begin;
    while (end < order.size()) {
      const u32 next = length(end);
      if (end > begin && (end - begin >= kClass || next - length(begin) > next / kMaxDifference)) break;
      while (end < order.size() && length(end) == next) ++end;
    }
    return end;
  }

  void fill_rows() {
    const std::vector<std::size_t> order = by_length();
    std::vector<Slot> slots(pool_.size());
    std::vector<u32> room(pool_.size());
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      end = class_end(order, begin);
      const u64 first = pieces_.size();
      for (std::size_t at = begin; at < end; ++at) {
        slots[order[at]] = {first, static_cast<u32>(end - begin), static_cast<u32>(at - begin)};
        room[order[at]] = pool_[order[end - 1]].length;
        pieces_.add(pool_[order[at]]);
      }
    }
    for (std::size_t k = 0; k < pool_.size(); ++k) place(slots[k], room[k], pool_[k].length);
    pool_.clear();
  }

  void place(const Slot& slot, u32 room, u32 tokens) {
    auto row = open_.begin();
    while (row != open_.end() && row->room + room > max_) ++row;
    if (row == open_.end()) {
      if (open_.size() == kOpenRows) close(open_.begin());
      row = open_.insert(open_.end(), Row{});
    }
    row->room += room;
    row->tokens += tokens;
    row->slots.push_back(slot);
    if (!packing_ || row->room + 2 > max_) close(row);
  }

  void close(std::deque<Row>::iterator row) {
    rows_.add({slots_.size(), static_cast<u32>(row->slots.size()), 0});
    for (const Slot& s : row->slots) slots_.add(s);
    counts_.tokens += row->tokens;
    counts_.longest = std::max(counts_.longest, row->tokens);
    open_.erase(row);
  }

  u64 max_;
  bool packing_;
  RowCounts& counts_;
  TableWriter<RowEntry> rows_;
  TableWriter<Slot> slots_;
  TableWriter<RowPiece> pieces_;
  std::vector<RowPiece> pool_;
  std::deque<Row> open_;
};

// Splits or truncates long examples and passes the pieces on.
void lay(const ExampleIndex& index, const ExampleEntry& e, u64 example, const RowSettings& s,
         RowCounts& counts, Packer& packer) {
  const u32 max = static_cast<u32>(s.max_length);
  if (e.tokens <= max) return packer.add({example, 0, e.tokens});
  const bool text = e.kind == static_cast<u32>(ExampleKind::text);
  const std::string how = !s.too_long.empty() ? s.too_long : text ? "split" : "truncate";
  if (how == "error")
    throw ContentsError(
        "{}: {} tokens, more than data.max_length={}. Set data.too_long to truncate, skip or split",
        index.where(e), e.tokens, max);
  if (how == "skip") {
    ++counts.skipped;
  } else if (how == "truncate") {
    counts.left_out += e.tokens - max;
    if (e.first_target >= max) {
      ++counts.without_target;
    } else {
      ++counts.truncated;
      packer.add({example, 0, max});
    }
  } else {
    ++counts.split;
    // The last token of a piece is the first of the next, as its context.
    for (u32 begin = 0; begin + 1 < e.tokens; begin += max - 1)
      packer.add({example, begin, std::min(max, e.tokens - begin)});
  }
}

void write_rows(const std::string& path, const Hash128& key, const ExampleIndex& index,
                const RowSettings& s) {
  RowsFacts facts{};
  IndexWriter file(path, kRowsFormat, sizeof facts);
  Packer packer(file.file(), s, facts.counts);
  std::vector<ExampleEntry> some;
  for (i64 begin = 0; begin < index.size(); begin += static_cast<i64>(kTableBlock)) {
    some.resize(static_cast<std::size_t>(std::min<i64>(kTableBlock, index.size() - begin)));
    index.entries(begin, some);
    for (std::size_t k = 0; k < some.size(); ++k)
      lay(index, some[k], static_cast<u64>(begin) + k, s, facts.counts, packer);
  }
  packer.finish(facts);
  if (facts.counts.rows == 0)
    throw ContentsError(
        "{}: no example remains: {} are longer than data.max_length={}, and {} have no target in that many "
        "tokens. Increase data.max_length or change data.too_long",
        words_of_files(index.files()), facts.counts.skipped, s.max_length, facts.counts.without_target);
  file.finish(key, facts);
}

}  // namespace

std::string build_rows(const ExampleIndex& index, const RowSettings& s) {
  const double begin = seconds();
  if (s.max_length < 2)
    throw UsageError("[data] data.max_length={}, but an example needs at least 2 tokens", s.max_length);
  Hasher h;
  put(h, kRowsVersion);
  put(h, kRowsFileVersion);
  put(h, index.data_hash());
  put(h, static_cast<u64>(index.size()));
  put(h, static_cast<u64>(s.max_length));
  put(h, s.packing);
  put(h, s.too_long);
  const Hash128 key = h.digest128();
  const std::string path = index.path() + "-" + key.hex().substr(0, 16) + ".rows";
  return find_or_build<ExampleRows>(
      path, begin, [&] { write_rows(path, key, index, s); },
      [](const ExampleRows& r) {
        return CachedIndex{
            .unit = "row", .examples = r.size(), .tokens = static_cast<i64>(r.counts().tokens)};
      });
}

struct ExampleRows::State {
  IndexFile file;
  RowsFacts facts;
  BlockTableReader<RowEntry> rows;
  BlockTableReader<Slot> slots;
  BlockTableReader<RowPiece> pieces;
};

ExampleRows::ExampleRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExampleRows::ExampleRows(ExampleRows&&) noexcept = default;
ExampleRows& ExampleRows::operator=(ExampleRows&&) noexcept = default;
ExampleRows::~ExampleRows() = default;

ExampleRows ExampleRows::open(const std::string& path) {
  RowsFacts f{};
  IndexFile file = IndexFile::open(path, kRowsFormat, f);
  BlockTableReader<RowEntry> rows(file.file(), f.counts.rows, f.rows_directory);
  BlockTableReader<Slot> slots(file.file(), f.counts.pieces, f.slots_directory);
  BlockTableReader<RowPiece> pieces(file.file(), f.counts.pieces, f.pieces_directory);
  return ExampleRows(std::make_unique<State>(
      State{std::move(file), f, std::move(rows), std::move(slots), std::move(pieces)}));
}

const RowCounts& ExampleRows::counts() const { return state_->facts.counts; }

i64 ExampleRows::tokens(i64 row, const PackingOrder& order) const {
  i64 n = 0;
  for (const RowPiece& p : pieces(row, order)) n += p.length;
  return n;
}

std::vector<RowPiece> ExampleRows::pieces(i64 row, const PackingOrder& order) const {
  const auto damaged = [&] { return state_->file.damaged(fmt::format("row {}", row)); };
  const RowEntry e = state_->rows.at(static_cast<u64>(row));
  if (e.first_slot > state_->slots.size() || e.slots > state_->slots.size() - e.first_slot) throw damaged();
  std::vector<Slot> slots(e.slots);
  state_->slots.read(e.first_slot, e.slots, slots.data());
  std::vector<RowPiece> out;
  for (const Slot& s : slots) {
    const u64 all = state_->pieces.size();
    if (s.first > all || s.count > all - s.first || s.index >= s.count) throw damaged();
    u64 index = s.index;
    if (order.epoch >= 0 && s.count > 1)
      index = static_cast<u64>(
          EpochOrder(s.count, order.seed + 0xD1342543DE82EF95u * (s.first + 1), static_cast<u64>(order.epoch))
              .at(s.index));
    out.push_back(state_->pieces.at(s.first + index));
  }
  return out;
}

void ExampleRows::verify() const { state_->file.verify(); }

}  // namespace redco
