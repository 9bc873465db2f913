#include "ckpt/torch_pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/strict_json.h"
#include "base/utf8.h"

namespace redco::ckpt {
namespace {

// Ten objects and thirty items per tensor: enough for 100 000 tensors.
constexpr size_t kMaxObjects = 1'000'000;
constexpr size_t kMaxItems = 8'000'000;
constexpr size_t kMostDims = 32;
constexpr size_t kMaxText = 1 << 16;

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  dict,
  global,
  storage,
  tensor
};

// A value: small ones inline, the others by their index among the objects. Objects live until the end, so
// cycles and deep nesting are harmless.
struct Item {
  Kind kind = Kind::none;
  i64 n = 0;  // the integer, or the object's index
};

struct Object {
  std::string text;         // of a text or a global ("module.name"), or a storage's entry
  std::vector<Item> items;  // of a tuple or list; of a dict: key, value, ...
  StoredType type{};        // of a storage or tensor
  i64 numel = 0, offset = 0;
  Shape shape;
  Strides steps;
};

// Names of opcodes outside state dicts, for messages.
const char* opcode_name(unsigned char op) {
  static const std::map<unsigned char, const char*> names = {{'0', "POP"},
                                                             {'1', "POP_MARK"},
                                                             {'2', "DUP"},
                                                             {'F', "FLOAT"},
                                                             {'I', "INT"},
                                                             {'L', "LONG"},
                                                             {'P', "PERSID"},
                                                             {'S', "STRING"},
                                                             {'T', "BINSTRING"},
                                                             {'U', "SHORT_BINSTRING"},
                                                             {'V', "UNICODE"},
                                                             {'d', "DICT"},
                                                             {'g', "GET"},
                                                             {'i', "INST"},
                                                             {'l', "LIST"},
                                                             {'o', "OBJ"},
                                                             {'p', "PUT"},
                                                             {'B', "BINBYTES"},
                                                             {'C', "SHORT_BINBYTES"},
                                                             {0x81, "NEWOBJ"},
                                                             {0x82, "EXT1"},
                                                             {0x83, "EXT2"},
                                                             {0x84, "EXT4"},
                                                             {0x8b, "LONG4"},
                                                             {0x8c, "SHORT_BINUNICODE"},
                                                             {0x8d, "BINUNICODE8"},
                                                             {0x8e, "BINBYTES8"},
                                                             {0x8f, "EMPTY_SET"},
                                                             {0x90, "ADDITEMS"},
                                                             {0x91, "FROZENSET"},
                                                             {0x92, "NEWOBJ_EX"},
                                                             {0x93, "STACK_GLOBAL"},
                                                             {0x94, "MEMOIZE"},
                                                             {0x95, "FRAME"},
                                                             {0x96, "BYTEARRAY8"},
                                                             {0x97, "NEXT_BUFFER"},
                                                             {0x98, "READONLY_BUFFER"}};
  const auto it = names.find(op);
  return it == names.end() ? "unknown" : it->second;
}

std::optional<StoredType> storage_type(std::string_view global) {
  static const std::map<std::string_view, StoredType> types = {
      {"torch.DoubleStorage", StoredType::f64}, {"torch.FloatStorage", StoredType::f32},
      {"torch.HalfStorage", StoredType::f16},   {"torch.BFloat16Storage", StoredType::bf16},
      {"torch.LongStorage", StoredType::i64},   {"torch.IntStorage", StoredType::i32},
      {"torch.ShortStorage", StoredType::i16},  {"torch.CharStorage", StoredType::i8},
      {"torch.ByteStorage", StoredType::u8},    {"torch.BoolStorage", StoredType::boolean}};
  const auto it = types.find(global);
  return it == types.end() ? std::nullopt : std::optional(it->second);
}

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kOrderedDict = "collections.OrderedDict";

class Reader {
 public:
  Reader(std::string_view p, const std::string& where) : p_(p), where_(where) {}

  std::vector<PickledTensor> run() {
    while (true) {
      op_at_ = at_;
      const auto op = byte();
      if (op == '.') break;
      step(op);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends with more than one value");
    return state_dict(stack_[0]);
  }

 private:
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> f, A&&... a) const {
    throw ContentsError("{}: data.pkl, byte {}: {}", where_, op_at_, fmt::format(f, std::forward<A>(a)...));
  }

  // --- Bytes ---
  std::string_view take(size_t n) {
    if (n > p_.size() - at_) fail("the pickle is truncated");
    at_ += n;
    return p_.substr(at_ - n, n);
  }
  unsigned char byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view line() {
    const size_t end = p_.find('\n', at_);
    if (end == p_.npos || end - at_ > kMaxText) fail("a name without an end");
    const std::string_view s = take(end - at_);
    take(1);
    return s;
  }

  // --- Values ---
  void push(Kind kind, i64 n = 0) {
    if (++items_ > kMaxItems) fail("more than {} values", kMaxItems);
    stack_.push_back({kind, n});
  }
  Object& make(Kind kind) {
    if (objects_.size() >= kMaxObjects) fail("more than {} values", kMaxObjects);
    push(kind, static_cast<i64>(objects_.size()));
    return objects_.emplace_back();
  }
  Object& object(const Item& i) { return objects_[static_cast<size_t>(i.n)]; }
  Item pop() {
    if (stack_.size() <= floor()) fail("an opcode lacks its operand");
    const Item i = stack_.back();
    stack_.pop_back();
    return i;
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<Item> pop_to_mark() {
    if (marks_.empty()) fail("an opcode lacks its mark");
    std::vector<Item> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  Item& top(Kind kind, const char* what) {
    if (stack_.size() <= floor() || stack_.back().kind != kind) fail("expected {}", what);
    return stack_.back();
  }
  void tuple(size_t n) {
    std::vector<Item> items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    make(Kind::tuple).items = std::move(items);
  }
  void remember(size_t key) {
    if (stack_.size() <= floor()) fail("no value to store in the memo");
    memo_[key] = stack_.back();
  }
  void recall(size_t key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) fail("memo entry {} does not exist", key);
    push(it->second.kind, it->second.n);
  }
  void extend(Kind kind, const char* what, const std::vector<Item>& items) {
    if (kind == Kind::dict && items.size() % 2) fail("a key without a value");
    auto& into = object(top(kind, what)).items;
    into.insert(into.end(), items.begin(), items.end());
  }

  void step(unsigned char op) {
    switch (op) {
      case 0x80: {  // PROTO
        const int version = byte();
        if (version != 2) fail("pickle protocol {}, expected 2, the default of torch.save", version);
        return;
      }
      case '(':
        if (marks_.size() == kMostDims) fail("more than {} open marks", kMostDims);
        marks_.push_back(stack_.size());
        return;
      case 'N':
        return push(Kind::none);
      case 0x88:
        return push(Kind::boolean, 1);
      case 0x89:
        return push(Kind::boolean, 0);
      case 'J':
        return push(Kind::integer, number<std::int32_t>());
      case 'K':
        return push(Kind::integer, byte());
      case 'M':
        return push(Kind::integer, number<std::uint16_t>());
      case 0x8a:
        return push(Kind::integer, long_integer());
      case 'G':
        number<u64>();
        return push(Kind::real);  // tensors don't need its value
      case 'X': {
        const size_t n = number<std::uint32_t>();
        if (n > kMaxText) fail("a text of {} bytes", n);
        const std::string_view s = take(n);
        make(Kind::text).text = s;
        return;
      }
      case ')':
        make(Kind::tuple);
        return;
      case 0x85:
        return tuple(1);
      case 0x86:
        return tuple(2);
      case 0x87:
        return tuple(3);
      case 't': {
        auto items = pop_to_mark();
        make(Kind::tuple).items = std::move(items);
        return;
      }
      case ']':
        make(Kind::list);
        return;
      case 'a': {
        const Item i = pop();
        return extend(Kind::list, "a list to append to", {i});
      }
      case 'e': {
        const auto items = pop_to_mark();
        return extend(Kind::list, "a list to append to", items);
      }
      case '}':
        make(Kind::dict);
        return;
      case 's': {
        const Item value = pop(), key = pop();
        return extend(Kind::dict, "a dict to fill", {key, value});
      }
      case 'u': {
        const auto items = pop_to_mark();
        return extend(Kind::dict, "a dict to fill", items);
      }
      case 'q':
        return remember(byte());
      case 'r':
        return remember(number<std::uint32_t>());
      case 'h':
        return recall(byte());
      case 'j':
        return recall(number<std::uint32_t>());
      case 'c':
        return global();
      case 'Q':
        return persistent();
      case 'R':
        return reduce();
      case 'b':
        return build();
      default:
        fail("the opcode 0x{:02x} ({}) is not allowed in a state dict; redco reads tensors and runs no code",
             op, opcode_name(op));
    }
  }

  i64 long_integer() {
    const size_t n = byte();
    if (n > 8) fail("an integer of {} bytes", n);
    const std::string_view s = take(n);
    u64 v = n && (static_cast<unsigned char>(s[n - 1]) & 0x80) ? ~u64{0} : 0;
    std::memcpy(&v, s.data(), n);
    return static_cast<i64>(v);
  }

  void global() {
    std::string name(line());
    name += ".";
    name += line();
    if (name != kRebuildTensor && name != kRebuildParameter && name != kOrderedDict && !storage_type(name))
      fail(
          "{} is not supported in a pickle (only dense tensors, parameters and ordered dicts); redco reads "
          "tensors and runs no code",
          shown(name));
    make(Kind::global).text = std::move(name);
  }

  // ('storage', torch.FloatStorage, '0', 'cpu', 1024)
  void persistent() {
    const Item t = pop();
    const auto* items = t.kind == Kind::tuple ? &object(t).items : nullptr;
    auto text = [&](size_t i) {
      return items && items->size() > i && (*items)[i].kind == Kind::text ? object((*items)[i]).text : "";
    };
    if (!items || items->size() != 5 || text(0) != "storage" || (*items)[1].kind != Kind::global ||
        (*items)[2].kind != Kind::text || (*items)[4].kind != Kind::integer)
      fail("expected a storage: its type, name, device and size");
    const auto type = storage_type(object((*items)[1]).text);
    if (!type) fail("{} is not a storage type", shown(object((*items)[1]).text));
    const i64 numel = (*items)[4].n;
    const std::string name = text(2);
    if (numel < 0) fail("a storage of {} elements", numel);
    Object& s = make(Kind::storage);
    s.text = name;
    s.type = *type;
    s.numel = numel;
  }

  void reduce() {
    const Item arguments = pop();
    const Item f = pop();
    if (f.kind != Kind::global || arguments.kind != Kind::tuple)
      fail("expected a function and its arguments");
    const std::string name = object(f).text;
    const std::vector<Item> a = object(arguments).items;
    if (name == kOrderedDict) {
      if (!a.empty()) fail("an OrderedDict with initial values, expected an empty one");
      make(Kind::dict);
    } else if (name == kRebuildTensor) {
      rebuild_tensor(a);
    } else if (name == kRebuildParameter) {
      if (a.size() != 3 || a[0].kind != Kind::tensor) fail("expected a parameter's tensor");
      stack_.push_back(a[0]);
    } else {
      fail("{} can't be called", name);
    }
  }

  // (storage, offset, shape, steps, requires_grad, hooks[, metadata])
  void rebuild_tensor(const std::vector<Item>& a) {
    if ((a.size() != 6 && a.size() != 7) || a[0].kind != Kind::storage || a[1].kind != Kind::integer)
      fail("expected a tensor's storage, offset, shape and strides");
    auto numbers = [&](const Item& t, const char* what) {
      Shape out;
      if (t.kind != Kind::tuple) fail("expected a tensor's {}", what);
      for (const Item& i : object(t).items) {
        if (i.kind != Kind::integer || i.n < 0) fail("a tensor's {} is not a list of sizes", what);
        out.push_back(i.n);
      }
      if (out.size() > kMostDims) fail("a tensor of {} dims, expected at most {}", out.size(), kMostDims);
      return out;
    };
    const Shape shape = numbers(a[2], "shape"), steps = numbers(a[3], "strides");
    if (shape.size() != steps.size()) fail("a tensor of {} dims with {} strides", shape.size(), steps.size());
    if (a[1].n < 0) fail("a tensor at offset {}", a[1].n);
    const Object storage = object(a[0]);
    Object& t = make(Kind::tensor);
    t.text = storage.text;
    t.type = storage.type;
    t.numel = storage.numel;
    t.offset = a[1].n;
    t.shape = shape;
    t.steps = steps;
  }

  // Ignores the state of a dict (its _metadata: versions of modules), which is not about tensors.
  void build() {
    const Item state = pop();
    top(Kind::dict, "a dict to give its state to");
    if (state.kind != Kind::dict) fail("expected a dict's state to be a dict");
  }

  std::vector<PickledTensor> state_dict(const Item& root) {
    if (root.kind != Kind::dict) fail("expected a dict from names to tensors");
    std::vector<PickledTensor> out;
    std::unordered_set<std::string> names;
    const std::vector<Item>& items = object(root).items;
    for (size_t i = 0; i < items.size(); i += 2) {
      if (items[i].kind != Kind::text) fail("a key is not a text");
      const std::string& name = object(items[i]).text;
      if (items[i + 1].kind == Kind::dict)
        fail("'{}' is a nested dict: the file is a training checkpoint, expected a model's state dict",
             shown(name));
      if (items[i + 1].kind != Kind::tensor) fail("'{}' is not a tensor", shown(name));
      if (!is_utf8(name)) fail("a tensor's name that is not UTF-8");
      if (!names.insert(name).second) fail("'{}' appears twice", shown(name));
      const Object& t = object(items[i + 1]);
      out.push_back({name, t.type, t.text, t.numel, t.offset, t.shape, t.steps});
    }
    return out;
  }

  std::string_view p_;
  const std::string& where_;
  size_t at_ = 0, op_at_ = 0, items_ = 0;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;  // the stack's sizes
  std::unordered_map<size_t, Item> memo_;
  std::vector<Object> objects_;
};

}  // namespace

std::vector<PickledTensor> read_torch_pickle(std::string_view pickle, const std::string& where) {
  return Reader(pickle, where).run();
}

}  // namespace redco::ckpt
