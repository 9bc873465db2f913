#include "ckpt/params_io.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "ckpt/stored_rows.h"
#include "comm/group.h"
#include "tensor/context.h"
#include "tensor/transfer.h"

namespace redco::ckpt {

namespace {

constexpr i64 kReadBytes = 4 << 20;  // on their way from a file to a tensor, for each thread

std::vector<redco::Range> ranges_of(const Tensor& t) {
  std::vector<redco::Range> out;
  for (int d = 0; d < t.rank(); ++d) out.push_back(t.range(d));
  return out;
}

// Writes local rows from r on, in the tensor's type. Rows are whole, so the groups of a grouped type are too.
void write_rows(std::span<const float> values, const Tensor& to, i64 r, i64 row) {
  if (to.dtype() == DType::f32) return copy_from_host<float>(values, to, r * row);
  const i64 n = static_cast<i64>(values.size()) / row;
  const Tensor block({n, row}, DType::f32, {});
  copy_from_host<float>(values, block);
  Context::current().run(&Kernels::cast, block, rows_in(to, r, n, row));
}

// Rows of a parameter that are read at a time.
struct Block {
  size_t param;
  i64 begin, rows, row;  // row: elements
  bool shared;           // by replicas, which read each a part
};
// The blocks of parameter i, whose value is t, on this many replicas.
void add_blocks(const ParamSpec& s, size_t i, const Tensor& t, int replicas, std::vector<Block>& to) {
  const i64 row = row_elements(s, t.local()), rows = rows_of(s, t.local());
  if (row == 0) return;
  const bool shared = t.layout()[Axis::dp].is_replicated() && replicas > 1;
  const i64 block = std::max<i64>(shared ? replicas : 1, kReadBytes / (row * 4));
  for (i64 r = 0; r < rows; r += block) to.push_back({i, r, std::min(block, rows - r), row, shared});
}

}  // namespace

void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix,
                 HeadLoad* head) {
  Context& c = Context::current();
  // The files' tensors, by the specs' names.
  std::map<std::string, const ModelFiles::Located*> held, tied;
  for (const ModelFiles::Located& l : files.tensors()) {
    const std::string& stored = l.entry->name;
    if (!stored.starts_with(prefix)) continue;
    const std::string name = canonical(stored.substr(prefix.size()));
    if (name.empty()) continue;
    auto& into = aliases.count(name) ? tied : held;
    const std::string key = aliases.count(name) ? aliases.at(name) : name;
    if (!into.emplace(key, &l).second && &into == &held)
      throw ContentsError("[checkpoint] {}: '{}' and '{}' are both the parameter {}", l.file->path(), stored,
                          held.at(key)->entry->name, name);
  }
  for (const auto& [name, l] : tied) held.emplace(name, l);  // a tied copy replaces a missing original

  const auto is_head = [&](const std::string& name) { return head && head->is_head(name); };
  for (const ParamSpec& s : tree.specs())
    if (const auto it = held.find(s.stored.name); is_head(s.stored.name)) {
      if (it != held.end() && it->second->entry->shape == s.stored.shape) continue;
      head->made.push_back(s.name);
      if (it != held.end()) head->unused.push_back(it->second->entry->name);
      held.erase(s.stored.name);
    }
  std::set<std::string> made;
  if (head) made.insert(head->made.begin(), head->made.end());

  std::set<std::string> needed;
  std::vector<std::string> missing, unknown;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k)
      if (const std::string name = s.stored.tensor(k);
          needed.insert(name).second && !held.count(name) && !s.buffer && !made.count(s.name))
        missing.push_back(prefix + name);
  for (const auto& [name, l] : held)
    if (!needed.count(name)) (is_head(name) ? head->unused : unknown).push_back(l->entry->name);
  auto list = [](std::vector<std::string> v) {
    const size_t n = v.size();
    if (n > 5) v.resize(5);
    return fmt::format("{}{}", fmt::join(v, ", "), n > 5 ? fmt::format(" and {} more", n - 5) : "");
  };
  if (!missing.empty())
    throw ContentsError(
        "[checkpoint] {}: {} of the model's tensors are missing: {}{}", files.folder(), missing.size(),
        list(missing),
        unknown.empty() ? "" : fmt::format("; the files have unknown tensors: {}", list(unknown)));
  if (!unknown.empty())
    throw ContentsError("[checkpoint] {}: the model of config.json has no such parameters: {}",
                        files.folder(), list(unknown));

  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    for (i64 k = 0; k < s.stored.tensors(); ++k) {
      if (!held.count(s.stored.tensor(k))) continue;  // a buffer, or a parameter of the new head
      const ModelFiles::Located& l = *held.at(s.stored.tensor(k));
      if (l.entry->shape != s.stored.shape)
        throw ContentsError("[checkpoint] {}: {} has shape {}, but config.json gives {}", l.file->path(),
                            l.entry->name, to_string(l.entry->shape), to_string(s.stored.shape));
      if (!is_float(l.entry->type))
        throw ContentsError("[checkpoint] {}: {} is {}, expected a floating type", l.file->path(),
                            l.entry->name, name_of(l.entry->type));
    }
  }

  // A rank that can't read still takes part in the gathers of all blocks, because the other ranks wait in
  // them. Then all ranks throw its error.
  std::exception_ptr failed;
  std::vector<std::vector<redco::Range>> ranges(tree.size());
  const auto read = [&](size_t i, i64 r0, i64 r1, float* to, Scratch<unsigned char>& buffer) {
    for (const Place& p : places_of(tree.specs()[i], ranges[i], r0, r1)) {
      const ModelFiles::Located& l = *held.at(p.tensor);
      l.file->read(*l.entry, p.box, to, p.strides, buffer);
      to += p.elements;
    }
  };
  Group& dp = c.group(Axis::dp);
  std::vector<Block> blocks;
  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    if (made.count(s.name)) continue;
    if (!held.count(s.stored.tensor(0))) {
      initialize(s, tree.values()[i]);
      continue;
    }
    ranges[i] = ranges_of(tree.values()[i]);
    add_blocks(s, i, tree.values()[i], dp.size(), blocks);
  }
  // The threads of the kernels read a block each. The rank's thread then moves them to the tensors.
  struct Slot {
    Scratch<float> values;
    Scratch<unsigned char> buffer;
    std::exception_ptr failed;
  };
  std::vector<Slot> slots(static_cast<size_t>(parallel::threads()));
  Scratch<float> gathered;
  for (size_t first = 0; first < blocks.size(); first += slots.size()) {
    const auto n = static_cast<i64>(std::min(slots.size(), blocks.size() - first));
    const auto own = [&](const Block& b) {
      return b.shared ? shard_range(b.rows, 1, dp.size(), dp.rank()) : redco::Range{0, b.rows};
    };
    parallel::for_each(failed ? 0 : n, [&](i64 k) {
      const Block& b = blocks[first + k];
      Slot& slot = slots[k];
      try {
        const redco::Range r = own(b);
        if (r.size() > 0)
          read(b.param, b.begin + r.begin, b.begin + r.end, slot.values.of(r.size() * b.row), slot.buffer);
      } catch (...) {
        slot.failed = std::current_exception();
      }
    });
    for (i64 k = 0; k < n; ++k) {
      const Block& b = blocks[first + k];
      Slot& slot = slots[k];
      if (slot.failed && !failed) failed = slot.failed;
      const auto values = [&](Scratch<float>& of) {
        return std::span(of.of(b.rows * b.row), static_cast<size_t>(b.rows * b.row));
      };
      if (!b.shared) {
        if (!failed) write_rows(values(slot.values), tree.values()[b.param], b.begin, b.row);
        continue;
      }
      std::vector<i64> counts(dp.size());
      for (int d = 0; d < dp.size(); ++d) counts[d] = shard_range(b.rows, 1, dp.size(), d).size() * b.row;
      dp.all_gather<float>(slot.values.of(counts[dp.rank()]), values(gathered).data(), counts);
      if (!failed) write_rows(values(gathered), tree.values()[b.param], b.begin, b.row);
    }
  }
  c.world().together([&] {
    if (failed) std::rethrow_exception(failed);
  });
}

StoredDifferences stored_differences(const ParamTree& tree, const ModelFiles& files) {
  StoredDifferences out;
  std::set<std::string> declared;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k) {
      const std::string name = s.stored.tensor(k);
      if (!declared.insert(name).second) continue;
      const ModelFiles::Located* l = files.find(name);
      if (!l) {
        out.missing.push_back(name);
      } else if (l->entry->shape != s.stored.shape) {
        out.reshaped.push_back(fmt::format("{}: {} in {}, {} in the job", name, to_string(l->entry->shape),
                                           l->file->path(), to_string(s.stored.shape)));
      }
    }
  for (const ModelFiles::Located& l : files.tensors())
    if (!declared.count(l.entry->name)) out.unknown.push_back(l.entry->name);
  return out;
}

std::vector<std::string> stored_apart(const ModelFiles& files,
                                      const std::function<std::string(const std::string&)>& canonical,
                                      const std::map<std::string, std::string>& aliases) {
  std::map<std::string, const ModelFiles::Located*> held;
  for (const ModelFiles::Located& l : files.tensors()) held.emplace(canonical(l.entry->name), &l);
  const auto differ = [](const ModelFiles::Located& a, const ModelFiles::Located& b) {
    const Shape& shape = a.entry->shape;
    if (shape != b.entry->shape) return true;
    if (shape.empty() || redco::numel(shape) == 0) return false;
    const i64 row = redco::numel(shape) / shape[0], block = std::max<i64>(1, (1 << 18) / row);
    std::vector<float> x, y;
    for (i64 r = 0; r < shape[0]; r += block) {
      Box box = {{r, std::min(shape[0], r + block)}};
      for (size_t d = 1; d < shape.size(); ++d) box.push_back({0, shape[d]});
      x.resize((box[0].end - r) * row);
      y.resize(x.size());
      a.file->read(*a.entry, box, x.data());
      b.file->read(*b.entry, box, y.data());
      if (x != y) return true;
    }
    return false;
  };
  std::vector<std::string> out;
  for (const auto& [alias, name] : aliases) {
    const auto a = held.find(alias), b = held.find(name);
    if (a != held.end() && b != held.end() && differ(*a->second, *b->second)) out.push_back(alias);
  }
  return out;
}

}  // namespace redco::ckpt
