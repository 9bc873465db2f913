#include "data/parquet/parquet_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "data/images/image_text.h"
#include "data/parquet/column_reader.h"
#include "data/parquet/schema.h"
#include "data/text/cell_values.h"

namespace redco {

namespace {

using RowJson = CellJson;

// Puts the values of the columns of a row group together.
class RowAssembly {
 public:
  explicit RowAssembly(std::vector<ParquetColumn>& columns) : columns_(columns) {}

  RowJson row(const ParquetNode& root) {
    RowJson out = RowJson::object();
    for (const ParquetNode& c : root.children) out[c.name] = value(c);
    return out;
  }

 private:
  static const ParquetNode& first_leaf(const ParquetNode& n) {
    return n.children.empty() ? n : first_leaf(n.children[0]);
  }
  // The levels of the next value under a node; false at the end.
  bool levels_of(const ParquetNode& n, int& definition, int& repetition) {
    return columns_[first_leaf(n).column].peek(definition, repetition);
  }
  void pass(const ParquetNode& n) {
    if (n.children.empty()) columns_[n.column].take();
    for (const ParquetNode& c : n.children) pass(c);
  }

  // A node, all elements of it if it is repeated.
  RowJson value(const ParquetNode& n) {
    if (!n.optional && !n.repeated) return content(n);
    int definition = 0, repetition = 0;
    if (!levels_of(n, definition, repetition)) throw ContentsError("column {} has too few values", n.name);
    if (definition < n.definition) {
      pass(n);
      return n.repeated ? RowJson::array() : RowJson();
    }
    if (!n.repeated) return content(n);
    RowJson list = RowJson::array();
    do {
      list.push_back(content(n));
    } while (levels_of(n, definition, repetition) && repetition >= n.repetition);
    return list;
  }

  // A node that is there.
  RowJson content(const ParquetNode& n) {
    if (n.children.empty()) return columns_[n.column].take();
    if ((n.is_list || n.is_map) && n.children.size() == 1 && n.children[0].repeated) {
      const ParquetNode& repeated = n.children[0];
      RowJson list = value(repeated);
      if (n.is_map && repeated.children.size() == 2)
        return map_cell(std::move(list), repeated.children[0].name, repeated.children[1].name);
      if (n.is_map) return list;
      // The repeated node only wraps its single child, unless it is the element itself (older writers).
      if (repeated.children.size() == 1 && repeated.name != "array" && !repeated.name.ends_with("_tuple"))
        for (RowJson& item : list) item = RowJson(std::move(item[repeated.children[0].name]));
      return list;
    }
    RowJson object = RowJson::object();
    for (const ParquetNode& c : n.children) object[c.name] = value(c);
    join_media_parts(object);
    return object;
  }

  std::vector<ParquetColumn>& columns_;
};

}  // namespace

struct ParquetRows::State {
  ReadFile file;
  ParquetFooter footer;
  std::size_t group = 0;  // the next one
  i64 left = 0;           // rows of the current one
  i64 number = 0;
  u64 done = 0;
  std::vector<ParquetColumn> columns;
};

ParquetRows::ParquetRows(const std::string& path)
    : state_(std::make_unique<State>(State{.file = ReadFile::open(path), .footer = {}, .columns = {}})) {
  state_->footer = read_parquet_footer(state_->file);
  // The footer has moved; its leaves point into its own tree, whose nodes keep their places in their vectors.
}
ParquetRows::ParquetRows(ParquetRows&&) noexcept = default;
ParquetRows::~ParquetRows() = default;

bool ParquetRows::next(std::string& json) {
  State& s = *state_;
  try {
    while (s.left == 0) {
      if (s.group > 0)
        for (const ParquetChunk& c : s.footer.groups[s.group - 1].chunks) s.done += static_cast<u64>(c.size);
      if (s.group == s.footer.groups.size()) return false;
      const ParquetRowGroup& g = s.footer.groups[s.group++];
      s.left = g.n_rows;
      s.columns.clear();
      for (std::size_t k = 0; k < g.chunks.size(); ++k)
        s.columns.emplace_back(s.file, *s.footer.leaves[k], g.chunks[k]);
    }
    --s.left;
    ++s.number;
    json = RowAssembly(s.columns).row(s.footer.root).dump(-1, ' ', false, RowJson::error_handler_t::replace);
    return true;
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where(), e.what());
  } catch (const UsageError& e) {
    throw UsageError("{}: {}", where(), e.what());
  }
}

i64 ParquetRows::line_number() const { return state_->number; }
std::string ParquetRows::where() const { return fmt::format("{}:{}", state_->file.path(), state_->number); }
u64 ParquetRows::stored_position() const { return state_->done; }

}  // namespace redco
