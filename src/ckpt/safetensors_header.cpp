// The header's parser: events of nlohmann's SAX parser (which isn't recursive) drive a small state machine
// that stores only valid entries, so memory is bounded by the header's size and nesting has no cost.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/strict_json.h"
#include "ckpt/safetensors.h"

namespace redco::ckpt {
namespace {

using json = nlohmann::json;
constexpr size_t kMaxDims = 32;
constexpr i64 kMaxInt = std::numeric_limits<i64>::max();

class Handler : public nlohmann::json_sax<json> {
 public:
  Handler(const std::string& path, Header* out) : path_(path), out_(out) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t v) override { return unexpected(fmt::format("{}", v)); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected(shown(text)); }
  bool binary(binary_t&) override { return unexpected("binary"); }

  bool number_unsigned(number_unsigned_t v) override {
    if (state_ != State::shape_items && state_ != State::offset_items)
      return unexpected(fmt::format("{}", v));
    if (v > static_cast<u64>(kMaxInt)) return fail(fmt::format("{} is too large a number", v));
    if (state_ == State::shape_items) {
      if (entry_.shape.size() >= kMaxDims)
        return fail(fmt::format("its shape has more than {} dims", kMaxDims));
      entry_.shape.push_back(static_cast<i64>(v));
    } else {
      if (n_offsets_ >= 2) return fail("data_offsets has more than two numbers");
      offsets_[n_offsets_++] = static_cast<i64>(v);
    }
    return true;
  }

  bool string(string_t& v) override {
    if (state_ == State::metadata_value) {
      out_->metadata[key_] = std::move(v);
      state_ = State::metadata;
      return true;
    }
    if (state_ != State::dtype) return unexpected("a string");
    auto type = stored_type(v);
    if (!type)
      return fail(fmt::format(
          "its dtype is {}; redco reads F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL", shown(v)));
    entry_.type = *type;
    state_ = State::tensor;
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::begin) {
      state_ = State::top;
    } else if (state_ == State::metadata_begin) {
      state_ = State::metadata;
    } else if (state_ == State::tensor_begin) {
      state_ = State::tensor;
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(string_t& v) override {
    if (state_ == State::top) {
      tensor_ = v;
      if (v == "__metadata__") {
        if (seen_metadata_) return fail("the name appears twice");
        seen_metadata_ = true;
        state_ = State::metadata_begin;
        return true;
      }
      if (!names_.insert(v).second) return fail("the name appears twice");
      entry_ = {};
      entry_.name = std::move(v);
      has_ = 0;
      n_offsets_ = 0;
      state_ = State::tensor_begin;
      return true;
    }
    if (state_ == State::metadata) {
      if (out_->metadata.count(v)) return fail(fmt::format("the key {} appears twice", shown(v)));
      key_ = std::move(v);
      state_ = State::metadata_value;
      return true;
    }
    unsigned bit = v == "dtype" ? 1 : v == "shape" ? 2 : v == "data_offsets" ? 4 : 0;
    if (bit == 0)
      return fail(fmt::format("unknown field {}; expected dtype, shape and data_offsets", shown(v)));
    if (has_ & bit) return fail(fmt::format("the field {} appears twice", v));
    has_ |= bit;
    state_ = bit == 1 ? State::dtype : bit == 2 ? State::shape : State::offsets;
    return true;
  }

  bool end_object() override {
    if (state_ == State::metadata) {
      state_ = State::top;
    } else if (state_ == State::tensor) {
      if (has_ != 7) return fail("it lacks one of dtype, shape and data_offsets");
      state_ = State::top;
      return add();
    } else {
      state_ = State::end;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape) {
      state_ = State::shape_items;
    } else if (state_ == State::offsets) {
      state_ = State::offset_items;
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (state_ == State::offset_items && n_offsets_ != 2) return fail("data_offsets needs two numbers");
    state_ = State::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 9: ..."
    size_t colon = what.find(": ");
    message_ = fmt::format("{}: its header is not valid JSON at byte {}: {}", path_, position,
                           shown(colon == std::string::npos ? what : what.substr(colon + 2)));
    return false;
  }

  bool done() const { return state_ == State::end; }
  std::string message_;

 private:
  enum class State : std::uint8_t {
    begin,
    top,
    metadata_begin,
    metadata,
    metadata_value,
    tensor_begin,
    tensor,
    dtype,
    shape,
    shape_items,
    offsets,
    offset_items,
    end
  };

  bool fail(const std::string& what) {
    message_ = tensor_.empty() && names_.empty() ? fmt::format("{}: {}", path_, what)
                                                 : fmt::format("{}: {}: {}", path_, shown(tensor_), what);
    return false;
  }
  bool unexpected(const std::string& what) {
    const char* expected = "a field of the header";
    switch (state_) {
      case State::begin:
        expected = "the header to be an object";
        break;
      case State::metadata_begin:
        expected = "an object of strings";
        break;
      case State::metadata_value:
        expected = "a string";
        break;
      case State::tensor_begin:
        expected = "an object with dtype, shape and data_offsets";
        break;
      case State::dtype:
        expected = "the type's name";
        break;
      case State::shape:
        expected = "a list of sizes as its shape";
        break;
      case State::shape_items:
        expected = "sizes >= 0 in its shape";
        break;
      case State::offsets:
        expected = "two numbers as data_offsets";
        break;
      case State::offset_items:
        expected = "data_offsets >= 0";
        break;
      default:
        break;
    }
    return fail(fmt::format("got {}, expected {}", what, expected));
  }

  // Checks one complete entry. Its offsets are still relative to the data.
  bool add() {
    i64 n = size_of(entry_.type);
    bool empty = false;
    for (i64 d : entry_.shape) {
      if (d == 0) {
        empty =
            true;  // the other dims still must not overflow, because other code multiplies them in some order
      } else if (__builtin_mul_overflow(n, d, &n)) {
        return fail(fmt::format("its shape {} overflows", redco::to_string(entry_.shape)));
      }
    }
    if (empty) n = 0;
    auto [begin, end] = offsets_;
    if (begin > end) return fail(fmt::format("its data_offsets [{}, {}] run backwards", begin, end));
    if (end - begin != n)
      return fail(fmt::format("its data_offsets [{}, {}] span {} bytes, but {} of shape {} has {}", begin,
                              end, end - begin, name_of(entry_.type), redco::to_string(entry_.shape), n));
    entry_.offset = begin;
    entry_.bytes = n;
    out_->entries.push_back(std::move(entry_));
    return true;
  }

  const std::string& path_;
  Header* out_;
  State state_ = State::begin;
  std::unordered_set<std::string> names_;
  std::string tensor_, key_;
  TensorEntry entry_{};
  std::array<i64, 2> offsets_{};
  size_t n_offsets_ = 0;
  unsigned has_ = 0;
  bool seen_metadata_ = false;
};

// The tensors tile the data: sorted by offset, each begins at the end of the previous one, and the last ends
// with the file.
void check_tiling(const Header& h, i64 data_bytes, const std::string& path) {
  std::vector<const TensorEntry*> order;
  order.reserve(h.entries.size());
  for (const TensorEntry& e : h.entries) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return std::tuple(a->offset, a->bytes) < std::tuple(b->offset, b->bytes);
  });
  i64 at = 0;
  const TensorEntry* before = nullptr;
  for (const TensorEntry* e : order) {
    if (e->offset + e->bytes >
        data_bytes)  // no overflow: both come from data_offsets, at most kMaxInt in sum
      throw ContentsError(
          "{}: {}: its data end at byte {} of the data, but the file has only {}. It may be truncated; get "
          "it again",
          path, shown(e->name), e->offset + e->bytes, data_bytes);
    if (e->offset < at)
      throw ContentsError("{}: {} and {} overlap", path, shown(before->name), shown(e->name));
    if (e->offset > at)
      throw ContentsError("{}: {} bytes before {} belong to no tensor", path, e->offset - at, shown(e->name));
    at = e->offset + e->bytes;
    before = e;
  }
  if (at != data_bytes)
    throw ContentsError("{}: {} bytes after the last tensor belong to no tensor", path, data_bytes - at);
}

}  // namespace

Header parse_header(std::string_view text, i64 data_offset, i64 file_bytes, const std::string& path) {
  if (text.empty() || text.front() != '{')
    throw ContentsError("{}: its header doesn't begin with {{, so it is not a safetensors file", path);
  if (text.find('\0') != text.npos)  // the parser below would take it for the end
    throw ContentsError("{}: its header has a zero byte, which JSON does not allow", path);
  Header header;
  Handler handler(path, &header);
  bool ok = json::sax_parse(text.begin(), text.end(), &handler, json::input_format_t::json, /*strict=*/true);
  if (!ok || !handler.done())
    throw ContentsError("{}",
                        handler.message_.empty() ? path + ": its header is not readable" : handler.message_);
  check_tiling(header, file_bytes - data_offset, path);
  for (TensorEntry& e : header.entries) e.offset += data_offset;
  std::sort(header.entries.begin(), header.entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  return header;
}

}  // namespace redco::ckpt
