#include "gguf/write.h"

#include "base/error.h"

namespace redco::gguf {

namespace {

constexpr i64 kAlignment = 32;

class Bytes {
 public:
  std::string out;
  template <class T>
  void number(T x) {
    out.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  void text(const std::string& s) {
    number(static_cast<u64>(s.size()));
    out += s;
  }
  void value(const Metadata& m) {
    std::visit([&](const auto& v) { typed(v); }, m);
  }

 private:
  // The types' numbers are those of gguf.md.
  void typed(std::uint32_t v) { type(4), number(v); }
  void typed(float v) { type(6), number(v); }
  void typed(bool v) { type(7), number(static_cast<unsigned char>(v)); }
  void typed(const std::string& v) { type(8), text(v); }
  void typed(const std::vector<std::string>& v) {
    list(8, v.size());
    for (const std::string& s : v) text(s);
  }
  void typed(const std::vector<std::int32_t>& v) {
    list(5, v.size());
    for (const auto x : v) number(x);
  }
  void typed(const std::vector<float>& v) {
    list(6, v.size());
    for (const auto x : v) number(x);
  }
  void type(std::uint32_t t) { number(t); }
  void list(std::uint32_t t, std::size_t n) {
    type(9);
    type(t);
    number(static_cast<u64>(n));
  }
};

std::string head(const std::vector<std::pair<std::string, Metadata>>& metadata,
                 const std::vector<PlannedTensor>& tensors) {
  Bytes b;
  b.out = "GGUF";
  b.number(std::uint32_t{3});
  b.number(static_cast<u64>(tensors.size()));
  b.number(static_cast<u64>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    b.text(key);
    b.value(value);
  }
  i64 offset = 0;
  for (const PlannedTensor& t : tensors) {
    b.text(t.name);
    b.number(static_cast<std::uint32_t>(t.shape.size()));
    for (std::size_t d = t.shape.size(); d-- > 0;) b.number(static_cast<u64>(t.shape[d]));
    b.number(static_cast<std::uint32_t>(t.type));
    b.number(static_cast<u64>(offset));
    offset += (t.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  b.out.resize((b.out.size() + kAlignment - 1) / kAlignment * kAlignment);
  return b.out;
}

}  // namespace

i64 PlannedTensor::bytes() const {
  const BlockSize size = size_of(type);
  i64 n = 1;
  for (const i64 d : shape) n *= d;
  return n / size.elements * size.bytes;
}

Writer::Writer(const std::string& path, const std::vector<std::pair<std::string, Metadata>>& metadata,
               const std::vector<PlannedTensor>& tensors)
    : tensors_(tensors), file_(DurableFile::create(path)) {
  file_.append(head(metadata, tensors));
}

void Writer::append(const void* from, i64 n) {
  REDCO_CHECK(at_ < tensors_.size() && written_ + n <= tensors_[at_].bytes(), "more bytes than planned");
  file_.append(std::string_view(static_cast<const char*>(from), static_cast<std::size_t>(n)));
  written_ += n;
  if (written_ < tensors_[at_].bytes()) return;
  file_.append(
      std::string(static_cast<std::size_t>((kAlignment - written_ % kAlignment) % kAlignment), '\0'));
  ++at_;
  written_ = 0;
}

void Writer::commit() {
  REDCO_CHECK(at_ == tensors_.size(), "{} of {} tensors are written", at_, tensors_.size());
  file_.commit();
}

}  // namespace redco::gguf
