#include "data/arrow/arrow_rows.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "data/arrow/arrow_batch.h"

namespace redco {

namespace {

constexpr i64 kMaxMetadata = i64{64} << 20;
enum MessageType : std::uint8_t { schema_message = 1, dictionary_message = 2, batch_message = 3 };

// The field with the dictionary `id`; null if no column has it.
const ArrowField* field_of_dictionary(const ArrowField& f, i64 id) {
  if (f.dictionary == id) return &f;
  for (const ArrowField& c : f.children)
    if (const ArrowField* found = field_of_dictionary(c, id)) return found;
  return nullptr;
}

}  // namespace

struct ArrowRows::State {
  ReadFile file;
  i64 at = 0;  // bytes of the file that were read
  i64 number = 0;
  ArrowField root;
  ArrowDictionaries dictionaries;
  std::unique_ptr<ArrowBatch> batch;
  i64 row = 0;  // the next one of the batch

  struct Message {
    std::string bytes;
    FlatTable table;
    int type() const { return table.number<std::uint8_t>(1, 0); }
  };

  std::string read(i64 n) {
    if (n < 0 || n > file.size() - at) throw ContentsError("the file ends inside of its data");
    std::string bytes(static_cast<std::size_t>(n), '\0');
    file.pread_exact(at, bytes.data(), n);
    at += n;
    return bytes;
  }

  // The head of the next message; false at the end of the stream.
  bool read_message(Message& m) {
    if (at == file.size()) {
      warn("[data] {}: the Arrow stream has no mark at its end; was the file cut?", file.path());
      return false;
    }
    const auto size_word = [&] {
      u32 v = 0;
      std::memcpy(&v, read(4).data(), 4);
      return v;
    };
    u32 size = size_word();
    if (size == 0xFFFFFFFF) size = size_word();  // older streams lack this word
    if (size == 0) return false;
    if (size > kMaxMetadata) throw ContentsError("the size of a message is wrong");
    m.bytes = read(size);
    m.table = FlatTable::root(m.bytes);
    return true;
  }
  std::string read_body(const Message& m) { return read(m.table.number<i64>(3, 0)); }

  void read_dictionary(const Message& m) {
    const FlatTable head = m.table.table(2);
    const i64 id = head.number<i64>(0, 0);
    const ArrowField* field = field_of_dictionary(root, id);
    if (!field) throw ContentsError("no column has the dictionary {}", id);
    ArrowField values = *field;
    values.dictionary.reset();
    auto& parts = dictionaries[id];
    if (head.number<std::uint8_t>(2, 0) == 0) parts.clear();
    parts.emplace_back(std::vector<ArrowField>{std::move(values)}, head.table(1), read_body(m));
  }

  // Moves to the next batch with rows; false at the end.
  bool next_batch() {
    for (Message m; read_message(m);) {
      if (m.type() == dictionary_message) {
        read_dictionary(m);
      } else if (m.type() == batch_message) {
        batch = std::make_unique<ArrowBatch>(root.children, m.table.table(2), read_body(m));
        row = 0;
        if (batch->n_rows > 0) return true;
      } else {
        throw ContentsError("a message is of unknown type");
      }
    }
    return false;
  }
};

ArrowRows::ArrowRows(const std::string& path)
    : state_(std::make_unique<State>(
          State{.file = ReadFile::open(path), .root = {}, .dictionaries = {}, .batch = {}})) {
  State& s = *state_;
  constexpr std::string_view file_magic{"ARROW1\0\0", 8};
  try {
    if (s.file.size() >= 8 && s.read(8) == file_magic)
      s.at = 8;  // an IPC file has a stream in it
    else
      s.at = 0;
    State::Message m;
    if (!s.read_message(m) || m.type() != schema_message)
      throw ContentsError("it does not begin with a schema");
    s.root = read_arrow_schema(m.table.table(2));
  } catch (const ContentsError& e) {
    throw ContentsError("{}: not a whole Arrow file: {}. Was the file cut, or is it of another format?", path,
                        e.what());
  } catch (const UsageError& e) {
    throw UsageError("{}: {}", path, e.what());
  }
}
ArrowRows::ArrowRows(ArrowRows&&) noexcept = default;
ArrowRows::~ArrowRows() = default;

bool ArrowRows::next(std::string& json) {
  State& s = *state_;
  try {
    if ((!s.batch || s.row == s.batch->n_rows) && !s.next_batch()) return false;
    ++s.number;
    ArrowValues values(s.dictionaries);
    nlohmann::ordered_json row = nlohmann::ordered_json::object();
    for (std::size_t k = 0; k < s.root.children.size(); ++k)
      row[s.root.children[k].name] = values.value(s.root.children[k], s.batch->columns[k], s.row);
    ++s.row;
    json = row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return true;
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where(), e.what());
  } catch (const UsageError& e) {
    throw UsageError("{}: {}", where(), e.what());
  }
}

i64 ArrowRows::line_number() const { return state_->number; }
std::string ArrowRows::where() const { return fmt::format("{}:{}", state_->file.path(), state_->number); }
u64 ArrowRows::stored_position() const { return static_cast<u64>(state_->at); }

}  // namespace redco
