#include "tokenizers/sentencepiece/sp_model.h"

#include <array>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizers/models/vocab.h"

namespace redco {
namespace {

// Reads a protocol buffer message field by field. Every read checks the message's end.
class Message {
 public:
  Message(std::string_view bytes, const std::string& source, const char* name)
      : p_(bytes.data()), end_(p_ + bytes.size()), source_(source), name_(name) {}

  // Moves to the next field; false at the end. One call below, or skip(), then reads the value.
  bool next() {
    if (p_ == end_) return false;
    const u64 tag = varint();
    field_ = tag >> 3;
    wire_ = static_cast<int>(tag & 7);
    if (field_ == 0 || field_ > 536870911) fail("a field number out of range");
    return true;
  }
  u64 field() const { return field_; }

  i64 integer() {
    if (wire_ != 0) fail("no integer");
    return static_cast<i64>(varint());
  }
  bool boolean() { return integer() != 0; }
  std::string_view bytes() {
    if (wire_ != 2) fail("no bytes");
    const u64 n = varint();
    if (n > static_cast<u64>(end_ - p_)) fail("a length beyond the end of the file");
    const std::string_view out(p_, static_cast<std::size_t>(n));
    p_ += n;
    return out;
  }
  std::string text() {
    const std::string_view t = bytes();
    if (find_invalid_utf8(t) != std::string_view::npos) fail("a text that is not UTF-8");
    return std::string(t);
  }
  float number() {
    if (wire_ != 5) fail("no float");
    const float v = std::bit_cast<float>(fixed32());
    if (!std::isfinite(v)) fail("a number that is not finite");
    return v;
  }
  void skip() {
    if (wire_ == 0)
      varint();
    else if (wire_ == 2)
      bytes();
    else if (wire_ == 5)
      fixed32();
    else if (wire_ == 1)
      fixed32(), fixed32();
    else
      fail("a wire type that sentencepiece doesn't use");
  }
  [[noreturn]] void fail(const char* what) const {
    throw ContentsError("{}: not a valid sentencepiece model: {} in field {} of {}", source_, what, field_,
                        name_);
  }

 private:
  u64 varint() {
    u64 v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (p_ == end_) fail("unexpected end of the file");
      const auto b = static_cast<unsigned char>(*p_++);
      v |= static_cast<u64>(b & 0x7F) << shift;
      if (b < 0x80) return v;
    }
    fail("an integer of more than 64 bits");
  }
  u32 fixed32() {
    if (end_ - p_ < 4) fail("unexpected end of the file");
    u32 v = 0;
    for (int k = 3; k >= 0; --k) v = v << 8 | static_cast<unsigned char>(p_[k]);
    p_ += 4;
    return v;
  }

  const char* p_;
  const char* end_;
  const std::string& source_;
  const char* name_;
  u64 field_ = 0;
  int wire_ = 0;
};

SpModel::Piece read_piece(std::string_view bytes, const std::string& source) {
  SpModel::Piece piece;
  Message m(bytes, source, "a piece");
  while (m.next()) {
    switch (m.field()) {
      case 1:
        piece.text = m.text();
        break;
      case 2:
        piece.score = m.number();
        break;
      case 3: {
        const i64 kind = m.integer();
        if (kind < 1 || kind > 6) m.fail("an unknown type");
        piece.kind = static_cast<SpModel::Kind>(kind);
        break;
      }
      default:
        m.skip();
    }
  }
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& source, SpModel& out) {
  Message m(bytes, source, "trainer_spec");
  auto id = [&] {
    const i64 v = m.integer();
    if (v < -1 || v > Vocab::kMaxId) m.fail("an id out of range");
    return static_cast<i32>(v);
  };
  auto named = [&](const char* otherwise) {
    std::string t = m.text();
    return t.empty() ? std::string(otherwise) : t;
  };
  while (m.next()) {
    switch (m.field()) {
      case 3: {
        const i64 v = m.integer();
        if (v != 1 && v != 2)
          throw ContentsError(
              "{}: trainer_spec.model_type {} is not supported; supported are unigram (1) and bpe (2)",
              source, v);
        out.algorithm = static_cast<SpModel::Algorithm>(v);
        break;
      }
      case 24:
        out.treat_whitespace_as_suffix = m.boolean();
        break;
      case 35:
        out.byte_fallback = m.boolean();
        break;
      case 40:
        out.unk_id = id();
        break;
      case 41:
        out.bos_id = id();
        break;
      case 42:
        out.eos_id = id();
        break;
      case 43:
        out.pad_id = id();
        break;
      case 44:
        out.unk_surface = m.text();
        break;
      case 45:
        out.unk_piece = named("<unk>");
        break;
      case 46:
        out.bos_piece = named("<s>");
        break;
      case 47:
        out.eos_piece = named("</s>");
        break;
      default:
        m.skip();
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& source, SpModel& out) {
  Message m(bytes, source, "normalizer_spec");
  while (m.next()) {
    switch (m.field()) {
      case 2:
        out.charsmap = m.bytes();
        break;
      case 3:
        out.add_dummy_prefix = m.boolean();
        break;
      case 4:
        out.remove_extra_whitespaces = m.boolean();
        break;
      case 5:
        out.escape_whitespaces = m.boolean();
        break;
      default:
        m.skip();
    }
  }
}

// The checks of sentencepiece when it loads a model.
void check_pieces(const SpModel& model, const std::string& source) {
  if (model.pieces.empty()) throw ContentsError("{}: the model has no pieces", source);
  std::unordered_set<std::string_view> seen[2];
  std::array<bool, 256> bytes{};
  int unknown = 0;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SpModel::Piece& p = model.pieces[id];
    if (p.text.empty()) throw ContentsError("{}: pieces[{}] is empty", source, id);
    if (!seen[SpModel::is_normal(p.kind)].insert(p.text).second)
      throw ContentsError("{}: pieces[{}]: '{}' is repeated", source, id, p.text.substr(0, 100));
    unknown += p.kind == SpModel::Kind::unknown;
    if (p.kind != SpModel::Kind::byte) continue;
    int byte = -1;
    for (int b = 0; b < 256 && byte < 0; ++b)
      if (p.text == fmt::format("<0x{:02X}>", b)) byte = b;
    if (byte < 0 || !model.byte_fallback)
      throw ContentsError("{}: pieces[{}]: '{}' is marked as a byte{}", source, id, p.text.substr(0, 100),
                          byte < 0 ? ", but is not <0x00> to <0xFF>" : ", but byte_fallback is off");
    bytes[static_cast<std::size_t>(byte)] = true;
  }
  if (unknown != 1) throw ContentsError("{}: the model has {} unknown pieces; expected one", source, unknown);
  if (model.byte_fallback)
    for (bool b : bytes)
      if (!b) throw ContentsError("{}: byte_fallback is on, but some of the 256 bytes have no piece", source);
}

}  // namespace

SpModel parse_sp_model(std::string_view bytes, const std::string& source) {
  SpModel model;
  Message m(bytes, source, "the model");
  while (m.next()) {
    switch (m.field()) {
      case 1:
        if (static_cast<i64>(model.pieces.size()) > Vocab::kMaxId) m.fail("too many pieces");
        model.pieces.push_back(read_piece(m.bytes(), source));
        break;
      case 2:
        read_trainer(m.bytes(), source, model);
        break;
      case 3:
        read_normalizer(m.bytes(), source, model);
        break;
      case 5: {
        SpModel denormalizer;
        read_normalizer(m.bytes(), source, denormalizer);
        if (!denormalizer.charsmap.empty())
          throw ContentsError("{}: denormalizer_spec is not supported", source);
        break;
      }
      default:
        m.skip();
    }
  }
  check_pieces(model, source);
  return model;
}

}  // namespace redco
