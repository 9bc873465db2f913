#include "data/parquet/schema.h"

#include <cstring>

#include "base/error.h"
#include "data/parquet/class_names.h"
#include "data/parquet/thrift.h"

namespace redco {

namespace {

constexpr i64 kMaxFooter = i64{64} << 20;
constexpr int kMaxSchemaDepth = 32;

struct SchemaElement {
  std::string name;
  i64 type = -1, type_length = 0, repetition = 0, n_children = 0, converted = -1, scale = 0;
  i64 logical = -1;  // number of the field in the union
  bool is_signed = true;
};

SchemaElement read_element(ThriftReader& in) {
  SchemaElement e;
  in.fields([&](i64 id, ThriftReader::Type type) {
    if (id == 4 && type == ThriftReader::binary) {
      e.name = in.text();
    } else if (id == 10 && type == ThriftReader::structure) {
      in.fields([&](i64 kind, ThriftReader::Type t) {
        e.logical = kind;
        if (t != ThriftReader::structure) return false;
        in.fields([&](i64 field, ThriftReader::Type flag) {
          if (kind == 10 && field == 2 && flag == ThriftReader::no) e.is_signed = false;
          if (kind != 5 || field != 1 || flag != ThriftReader::i32) return false;
          e.scale = in.integer();
          return true;
        });
        return true;
      });
    } else if (type == ThriftReader::i32 && id <= 7) {
      const i64 v = in.integer();
      i64* const to[] = {nullptr, &e.type,       &e.type_length, &e.repetition,
                         nullptr, &e.n_children, &e.converted,   &e.scale};
      if (id > 0 && to[id]) *to[id] = v;
    } else {
      return false;
    }
    return true;
  });
  return e;
}

ParquetMeaning meaning_of(const SchemaElement& e) {
  if (e.logical == 1 || e.logical == 4 || e.logical == 12 || e.converted == 0 || e.converted == 4 ||
      e.converted == 19)
    return ParquetMeaning::text;
  if (e.logical == 5 || e.converted == 5) return ParquetMeaning::decimal;
  if (!e.is_signed || (e.converted >= 11 && e.converted <= 14)) return ParquetMeaning::unsigned_integer;
  if (e.logical == 15) return ParquetMeaning::float16;
  return ParquetMeaning::none;
}

class SchemaBuilder {
 public:
  explicit SchemaBuilder(const std::vector<SchemaElement>& elements) : elements_(elements) {}

  ParquetNode build() {
    ParquetNode root = node(0, 0, 0, true);
    if (at_ != elements_.size() || root.children.empty()) throw ContentsError("its schema is damaged");
    return root;
  }

 private:
  ParquetNode node(int depth, int definition, int repetition, bool is_root = false) {
    if (at_ >= elements_.size() || depth > kMaxSchemaDepth) throw ContentsError("its schema is damaged");
    const SchemaElement& e = elements_[at_++];
    ParquetNode n;
    n.name = e.name;
    n.optional = !is_root && e.repetition == 1;
    n.repeated = !is_root && e.repetition == 2;
    n.definition = definition + (n.optional || n.repeated);
    n.repetition = repetition + n.repeated;
    n.is_list = e.logical == 3 || e.converted == 3;
    n.is_map = e.logical == 2 || e.converted == 1 || e.converted == 2;
    n.meaning = meaning_of(e);
    n.type_length = e.type_length;
    n.scale = static_cast<int>(e.scale);
    for (i64 i = 0; i < e.n_children; ++i) n.children.push_back(node(depth + 1, n.definition, n.repetition));
    if (!n.children.empty()) return n;
    if (e.type < 0 || e.type > 7 || (e.type == 7 && (e.type_length < 1 || e.type_length > 1 << 20)))
      throw ContentsError("its schema is damaged: column {}", e.name);
    n.type = static_cast<ParquetType>(e.type);
    n.column = n_leaves_++;
    return n;
  }

  const std::vector<SchemaElement>& elements_;
  std::size_t at_ = 0, n_leaves_ = 0;
};

void add_leaves(const ParquetNode& n, std::vector<const ParquetNode*>& out) {
  if (n.children.empty()) out.push_back(&n);
  for (const ParquetNode& c : n.children) add_leaves(c, out);
}

ParquetChunk read_chunk(ThriftReader& in, bool& elsewhere) {
  ParquetChunk chunk;
  i64 data = 0, dictionary = 0;
  in.fields([&](i64 id, ThriftReader::Type type) {
    if (id == 1 && type == ThriftReader::binary) {
      elsewhere = true;
      return false;
    }
    if (id != 3 || type != ThriftReader::structure) return false;
    in.fields([&](i64 field, ThriftReader::Type t) {
      if (t != ThriftReader::i32 && t != ThriftReader::i64_) return false;
      i64* const to[] = {nullptr, nullptr,     nullptr, nullptr, &chunk.codec, &chunk.n_values,
                         nullptr, &chunk.size, nullptr, &data,   nullptr,      &dictionary};
      if (field < 1 || field > 11 || !to[field]) return false;
      *to[field] = in.integer();
      return true;
    });
    return true;
  });
  chunk.begin = dictionary > 0 && dictionary < data ? dictionary : data;
  return chunk;
}

}  // namespace

ParquetFooter read_parquet_footer(const ReadFile& file) {
  const auto broken = [&](const std::string& why) {
    return ContentsError("{}: not a whole Parquet file: {}. Was the file cut, or is it of another format?",
                         file.path(), why);
  };
  char end[8];
  if (file.size() < 12) throw broken(fmt::format("it has {} bytes", file.size()));
  file.pread_exact(file.size() - 8, end, 8);
  if (std::memcmp(end + 4, "PARE", 4) == 0)
    throw ContentsError("{}: the Parquet file is encrypted. Write it without encryption", file.path());
  if (std::memcmp(end + 4, "PAR1", 4) != 0) throw broken("it does not end with PAR1");
  u32 size = 0;
  std::memcpy(&size, end, 4);
  if (size > kMaxFooter || size > file.size() - 12) throw broken("the size of its footer is wrong");
  std::string bytes(size, '\0');
  file.pread_exact(file.size() - 8 - static_cast<i64>(size), bytes.data(), size);
  try {
    ThriftReader in(bytes);
    std::vector<SchemaElement> elements;
    ParquetFooter footer;
    bool elsewhere = false;
    std::string_view datasets_info;
    in.fields([&](i64 id, ThriftReader::Type type) {
      if (type != ThriftReader::list || (id != 2 && id != 4 && id != 5)) return false;
      if (id == 5) {
        in.elements([&] {
          std::string_view key, value;
          in.fields([&](i64 field, ThriftReader::Type t) {
            if (t != ThriftReader::binary || (field != 1 && field != 2)) return false;
            (field == 1 ? key : value) = in.text();
            return true;
          });
          if (key == "huggingface") datasets_info = value;
        });
        return true;
      }
      if (id == 2) {
        in.elements([&] { elements.push_back(read_element(in)); });
        return true;
      }
      in.elements([&] {
        ParquetRowGroup& g = footer.groups.emplace_back();
        in.fields([&](i64 field, ThriftReader::Type t) {
          if (field == 3 && t == ThriftReader::i64_) {
            g.n_rows = in.integer();
            return true;
          }
          if (field != 1 || t != ThriftReader::list) return false;
          in.elements([&] { g.chunks.push_back(read_chunk(in, elsewhere)); });
          return true;
        });
      });
      return true;
    });
    if (elsewhere) throw ContentsError("its columns are in other files");
    footer.root = SchemaBuilder(elements).build();
    name_classes(footer.root, datasets_info);
    add_leaves(footer.root, footer.leaves);
    for (const ParquetRowGroup& g : footer.groups) {
      if (g.chunks.size() != footer.leaves.size() || g.n_rows < 0)
        throw ContentsError("a row group has {} columns, the schema has {}", g.chunks.size(),
                            footer.leaves.size());
      for (const ParquetChunk& c : g.chunks)
        if (c.begin < 4 || c.size < 0 || c.begin > file.size() || c.size > file.size() - c.begin ||
            c.n_values < 0)
          throw ContentsError("a column chunk lies outside of the file");
    }
    return footer;
  } catch (const ContentsError& e) {
    throw broken(e.what());
  }
}

}  // namespace redco
