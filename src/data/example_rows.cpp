#include "data/example_rows.h"

#include <cstring>
#include <deque>

#include "base/error.h"
#include "base/file.h"
#include "data/block_table.h"
#include "data/cached_index.h"

namespace redco {

namespace {

constexpr char kRowsMagic[8] = {'r', 'e', 'd', 'c', 'o', 'R', 'O', 'W'};
constexpr std::size_t kOpenRows = 64;

struct RowsHeader {
  char magic[8];
  u32 version, unused;
  RowCounts counts;
  u64 rows_directory, pieces_directory;
  u64 key[2];
  u64 body_hash;
  u64 header_hash;
};
static_assert(sizeof(RowsHeader) == 136);

struct RowEntry {
  u64 first_piece;
  u32 pieces, tokens;
};

u64 hash_of(const RowsHeader& h) {
  return hash64({reinterpret_cast<const char*>(&h), offsetof(RowsHeader, header_hash)});
}

// Rows that are being filled, first-fit.
class Packer {
 public:
  Packer(HashedFile& file, const RowSettings& s, RowCounts& counts)
      : max_(static_cast<u64>(s.max_length)),
        packing_(s.packing),
        counts_(counts),
        rows_(file),
        pieces_(file) {}

  void add(const RowPiece& piece) {
    auto row = open_.begin();
    while (row != open_.end() && row->tokens + piece.length > max_) ++row;
    if (row == open_.end()) {
      if (open_.size() == kOpenRows) close(open_.begin());
      row = open_.insert(open_.end(), Row{});
    }
    row->tokens += piece.length;
    row->pieces.push_back(piece);
    if (!packing_ || row->tokens + 2 > max_) close(row);
  }
  void finish(RowsHeader& h) {
    while (!open_.empty()) close(open_.begin());
    counts_.rows = rows_.size();
    counts_.pieces = pieces_.size();
    h.rows_directory = rows_.finish();
    h.pieces_directory = pieces_.finish();
  }

 private:
  struct Row {
    u64 tokens = 0;
    std::vector<RowPiece> pieces;
  };
  void close(std::deque<Row>::iterator row) {
    rows_.add({pieces_.size(), static_cast<u32>(row->pieces.size()), static_cast<u32>(row->tokens)});
    for (const RowPiece& p : row->pieces) pieces_.add(p);
    counts_.tokens += row->tokens;
    counts_.longest = std::max(counts_.longest, row->tokens);
    open_.erase(row);
  }

  u64 max_;
  bool packing_;
  RowCounts& counts_;
  TableWriter<RowEntry> rows_;
  TableWriter<RowPiece> pieces_;
  std::deque<Row> open_;
};

// Splits or truncates long examples and passes the pieces on.
void lay(const ExampleIndex& index, const ExampleEntry& e, u64 example, const RowSettings& s,
         RowCounts& counts, Packer& packer) {
  const u32 max = static_cast<u32>(s.max_length);
  if (e.tokens <= max) return packer.add({example, 0, e.tokens});
  const bool text = e.kind == static_cast<u32>(ExampleKind::text);
  const std::string_view how = !s.too_long.empty() ? s.too_long : text ? "split" : "truncate";
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

}  // namespace

std::string build_rows(const ExampleIndex& index, const RowSettings& s) {
  if (s.max_length < 2)
    throw UsageError("[data] data.max_length={}, but an example needs at least 2 tokens", s.max_length);
  Hasher h;
  put(h, kPackingVersion);
  put(h, index.data_hash());
  put(h, static_cast<u64>(index.size()));
  put(h, static_cast<u64>(s.max_length));
  put(h, s.packing);
  put(h, s.too_long);
  const Hash128 key = h.digest128();
  const std::string path = index.path() + "-" + key.hex().substr(0, 16) + ".rows";
  if (is_whole<ExampleRows>(path)) return path;
  RowsHeader header{};
  std::memcpy(header.magic, kRowsMagic, sizeof kRowsMagic);
  header.version = kPackingVersion;
  header.key[0] = key.high;
  header.key[1] = key.low;
  HashedFile file(path, sizeof header);
  Packer packer(file, s, header.counts);
  std::vector<ExampleEntry> some;
  for (i64 begin = 0; begin < index.size(); begin += static_cast<i64>(kTableBlock)) {
    some.resize(static_cast<std::size_t>(std::min<i64>(kTableBlock, index.size() - begin)));
    index.entries(begin, some);
    for (std::size_t k = 0; k < some.size(); ++k)
      lay(index, some[k], static_cast<u64>(begin) + k, s, header.counts, packer);
  }
  packer.finish(header);
  if (header.counts.rows == 0)
    throw ContentsError(
        "{}: no example remains: {} are longer than data.max_length={}, and {} have no target in that many "
        "many "
        "tokens. Increase data.max_length or change data.too_long",
        index.path(), header.counts.skipped, s.max_length, header.counts.without_target);
  header.body_hash = file.body_hash();
  header.header_hash = hash_of(header);
  file.commit(&header, sizeof header);
  return path;
}

struct ExampleRows::State {
  ReadFile file;
  RowsHeader header;
  BlockTableReader<RowEntry> rows;
  BlockTableReader<RowPiece> pieces;
};

ExampleRows::ExampleRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExampleRows::ExampleRows(ExampleRows&&) noexcept = default;
ExampleRows& ExampleRows::operator=(ExampleRows&&) noexcept = default;
ExampleRows::~ExampleRows() = default;

ExampleRows ExampleRows::open(const std::string& path) {
  ReadFile file = ReadFile::open(path);
  RowsHeader h{};
  auto broken = [&](const std::string& why) -> ContentsError {
    return ContentsError("{}: not a complete file of rows: {}. Remove the file; redco rebuilds it", path,
                         why);
  };
  if (file.size() < static_cast<i64>(sizeof h)) throw broken(fmt::format("{} bytes", file.size()));
  file.pread_exact(0, &h, sizeof h);
  if (std::memcmp(h.magic, kRowsMagic, sizeof kRowsMagic) != 0) throw broken("its first bytes are wrong");
  if (h.version != kPackingVersion)
    throw broken(fmt::format("it has version {}, not {}", h.version, kPackingVersion));
  if (h.header_hash != hash_of(h)) throw broken("its header is damaged");
  BlockTableReader<RowEntry> rows(file, h.counts.rows, h.rows_directory);
  BlockTableReader<RowPiece> pieces(file, h.counts.pieces, h.pieces_directory);
  auto state = std::make_unique<State>(State{std::move(file), h, std::move(rows), std::move(pieces)});
  state->rows.refer_to(state->file);
  state->pieces.refer_to(state->file);
  return ExampleRows(std::move(state));
}

const RowCounts& ExampleRows::counts() const { return state_->header.counts; }

i64 ExampleRows::tokens(i64 row) const { return state_->rows.at(static_cast<u64>(row)).tokens; }

std::vector<RowPiece> ExampleRows::pieces(i64 row) const {
  const RowEntry e = state_->rows.at(static_cast<u64>(row));
  if (e.first_piece > state_->pieces.size() || e.pieces > state_->pieces.size() - e.first_piece)
    throw ContentsError("{}: row {} is damaged. Remove the file; redco rebuilds it", state_->file.path(),
                        row);
  std::vector<RowPiece> out(e.pieces);
  state_->pieces.read(e.first_piece, e.pieces, out.data());
  return out;
}

void ExampleRows::verify() const {
  if (!body_has_hash(state_->file, sizeof(RowsHeader), state_->header.body_hash))
    throw ContentsError(
        "{}: the contents differ from the hash in the header. Remove the file; redco rebuilds it",
        state_->file.path());
}

}  // namespace redco
