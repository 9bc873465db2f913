#include "data/parquet/thrift.h"

#include "base/error.h"

namespace redco {

namespace {
[[noreturn]] void broken_thrift() { throw ContentsError("its metadata are damaged"); }
}  // namespace

char ThriftReader::next() {
  if (at_ >= bytes_.size()) broken_thrift();
  return bytes_[at_++];
}

u64 ThriftReader::varint() {
  u64 out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto b = static_cast<std::uint8_t>(next());
    out |= u64{b & 127u} << shift;
    if (b < 128) return out;
  }
  broken_thrift();
}

i64 ThriftReader::integer() {
  const u64 v = varint();
  return static_cast<i64>(v >> 1) ^ -static_cast<i64>(v & 1);
}

std::string_view ThriftReader::text() {
  const u64 n = varint();
  if (n > bytes_.size() - at_) broken_thrift();
  at_ += n;
  return bytes_.substr(at_ - n, n);
}

ThriftReader::Head ThriftReader::list_head() {
  const auto head = static_cast<std::uint8_t>(next());
  const u64 n = head >> 4 == 15 ? varint() : head >> 4;
  if (n > bytes_.size() - at_) broken_thrift();  // an element has at least one byte
  return {n, static_cast<Type>(head & 15)};
}

void ThriftReader::enter() {
  if (++depth_ > 32) broken_thrift();
}

void ThriftReader::skip(Type type) {
  switch (type) {
    case yes:
    case no:
      return;
    case byte:
      next();
      return;
    case i16:
    case i32:
    case i64_:
      varint();
      return;
    case real:
      for (int i = 0; i < 8; ++i) next();
      return;
    case binary:
      text();
      return;
    case list:
    case set: {
      enter();
      const auto [n, element] = list_head();
      for (u64 i = 0; i < n; ++i)
        if (element == yes || element == no)
          next();
        else
          skip(element);
      --depth_;
      return;
    }
    case map: {
      enter();
      const u64 n = varint();
      if (n > bytes_.size()) broken_thrift();
      const auto types = static_cast<std::uint8_t>(n > 0 ? next() : 0);
      for (u64 i = 0; i < n; ++i) {
        skip(static_cast<Type>(types >> 4));
        skip(static_cast<Type>(types & 15));
      }
      --depth_;
      return;
    }
    case structure:
      fields([](i64, Type) { return false; });
      return;
    default:
      broken_thrift();
  }
}

}  // namespace redco
