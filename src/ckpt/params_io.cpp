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
#include "comm/group.h"
#include "tensor/context.h"
#include "tensor/transfer.h"

namespace redco::ckpt {

namespace {

constexpr i64 kBlockBytes = 4 << 20;  // that a rank sends at a time
constexpr i64 kReadBytes = 4 << 20;   // on their way from a file to a tensor, for each thread

// A rank's part of a parameter as rows: of dim 0, or of dims 0 and 1 if dim 0 is a stack of stored tensors.
i64 rows_of(const ParamSpec& s, const Shape& local) {
  return s.stored.stacked > 0 ? local[0] * local[1] : local[0];
}
i64 row_elements(const ParamSpec& s, const Shape& local) {
  i64 n = 1;
  for (size_t d = s.stored.stacked > 0 ? 2 : 1; d < local.size(); ++d) n *= local[d];
  return n;
}

// The place of some of those rows in a stored tensor, with the strides in memory.
struct Place {
  std::string tensor;
  Box box;
  Strides strides;
  i64 elements;
};
// Rows [r0, r1) of a rank's part, whose ranges in the whole parameter are `at`; in the order of memory.
std::vector<Place> places_of(const ParamSpec& s, const std::vector<redco::Range>& at, i64 r0, i64 r1) {
  const int own = s.stored.stacked > 0 ? 1 : 0;  // the first dim of the stored tensors
  const int rank = static_cast<int>(at.size());
  std::vector<i64> steps(rank);
  i64 n = 1;
  for (int d = rank - 1; d >= 0; --d) {
    steps[d] = n;
    n *= at[d].size();
  }
  const i64 rows = at[own].size();  // of one stored tensor
  std::vector<Place> out;
  for (i64 r = r0; r < r1;) {
    const i64 k = own ? r / rows : 0, first = own ? r % rows : r,
              last = own ? std::min(rows, r1 - k * rows) : r1;
    Place p;
    p.tensor = s.stored.tensor(own ? at[0].begin + k : 0);
    p.elements = (last - first) * steps[own];
    for (int d = own; d < rank; ++d) {
      const i64 begin = at[d].begin + (d == own ? s.stored.row : 0);
      p.box.push_back(d == own ? Range{begin + first, begin + last} : Range{begin, at[d].end});
      p.strides.push_back(steps[d]);
    }
    if (s.stored.transposed) {
      std::swap(p.box[0], p.box[1]);
      std::swap(p.strides[0], p.strides[1]);
    }
    out.push_back(std::move(p));
    r += last - first;
  }
  return out;
}

std::vector<redco::Range> ranges_of(const Tensor& t) {
  std::vector<redco::Range> out;
  for (int d = 0; d < t.rank(); ++d) out.push_back(t.range(d));
  return out;
}

// Local rows [r, r + n) of a tensor; a row has `row` elements.
View rows_in(const Tensor& t, i64 r, i64 n, i64 row) {
  const i64 stored = stored_numel(t.dtype(), {row});
  return t.view().flat(r * stored, n * stored).reshaped({n, row});
}

// Writes local rows from r on, in the tensor's type. Rows are whole, so the groups of a grouped type are too.
void write_rows(std::span<const float> values, const Tensor& to, i64 r, i64 row) {
  if (to.dtype() == DType::f32) return copy_from_host<float>(values, to, r * row);
  const i64 n = static_cast<i64>(values.size()) / row;
  const Tensor block({n, row}, DType::f32, {});
  copy_from_host<float>(values, block);
  Context::current().run(&Kernels::cast, block, rows_in(to, r, n, row));
}
// The same rows in fp32.
void read_rows(const Tensor& from, i64 r, i64 row, std::span<float> values) {
  if (from.dtype() == DType::f32) return copy_to_host<float>(from, r * row, values);
  if (values.empty()) return;
  const i64 n = static_cast<i64>(values.size()) / row;
  const Tensor block({n, row}, DType::f32, {});
  Context::current().run(&Kernels::cast, rows_in(from, r, n, row), block);
  copy_to_host<float>(block, 0, values);
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

ModelPlan plan_params(const std::vector<SavedTree>& trees, StoredType type, const std::string& stem,
                      i64 max_file_bytes) {
  std::vector<TensorPlan> tensors;
  for (const SavedTree& t : trees) {
    std::set<std::string> seen;
    for (const ParamSpec& s : t.tree->specs())
      for (i64 k = 0; k < s.stored.tensors(); ++k)
        if (const std::string name = s.stored.tensor(k); seen.insert(name).second)
          tensors.push_back({t.prefix + name, type, s.stored.shape});
  }
  return plan_model(tensors, max_file_bytes, stem);
}

int writer_of(i64 file, int ranks) { return static_cast<int>(file % ranks); }

namespace {

// Rank r's ranges in the whole parameter; empty: it sends nothing.
using Parts = std::vector<std::vector<redco::Range>>;

// Every rank's part of a tensor, computed from the mesh. Of the ranks with the same part, the writer sends
// it, or the one whose place on the other axes is the writer's.
Parts parts_of(const Tensor& t, int writer) {
  Context& c = Context::current();
  const Mesh& mesh = c.mesh();
  Parts parts(c.world().size());
  const Coord to = coord_of(mesh, writer);
  for (int r = 0; r < c.world().size(); ++r) {
    const Coord at = coord_of(mesh, r);
    bool sends = true;
    for (Axis a : mesh.axes()) sends = sends && (t.layout()[a].is_sharded() || at.at(a) == to.at(a));
    if (!sends) continue;
    if (redco::numel(local_shape(t.shape(), t.layout(), mesh, at)) == 0) continue;
    for (int d = 0; d < t.rank(); ++d) parts[r].push_back(local_range(t.shape(), t.layout(), mesh, at, d));
  }
  return parts;
}

// The rows of a stored tensor that a rank has, as indices into its part.
struct Sent {
  i64 begin = 0, end = 0, row = 0, per_block = 1;  // row: elements
  redco::Range block(i64 round) const {
    return {std::min(begin + round * per_block, end), std::min(begin + (round + 1) * per_block, end)};
  }
};
// Of the k-th stored tensor.
Sent rows_sent(const ParamSpec& s, const std::vector<redco::Range>& part, i64 k) {
  Sent x;
  if (part.empty()) return x;
  Shape local;
  for (const redco::Range& d : part) local.push_back(d.size());
  x.end = rows_of(s, local);
  x.row = row_elements(s, local);
  if (s.stored.stacked > 0) {
    const i64 at = k - part[0].begin;
    const bool mine = at >= 0 && at < local[0];
    x.begin = mine ? at * local[1] : 0;
    x.end = mine ? (at + 1) * local[1] : 0;
  }
  x.per_block = std::max<i64>(1, kBlockBytes / std::max<i64>(4, x.row * 4));
  return x;
}

// A stored tensor: the k-th of parameter i.
struct Stored {
  i64 file, offset;
  const SavedTree* saved;
  size_t i;
  i64 k;
  const ParamSpec& spec() const { return saved->tree->specs()[i]; }
  const Tensor& value() const { return saved->tree->values()[i]; }
};

// All stored tensors in the order of the files.
std::vector<Stored> in_file_order(const std::vector<SavedTree>& trees, const ModelPlan& plan) {
  std::vector<Stored> out;
  for (const SavedTree& saved : trees)
    for (size_t i = 0; i < saved.tree->size(); ++i)
      for (i64 k = 0; k < saved.tree->specs()[i].stored.tensors(); ++k) {
        const std::string name = saved.prefix + saved.tree->specs()[i].stored.tensor(k);
        const i64 file = plan.file_of(name);
        out.push_back({file, plan.files[file].entry(name).offset, &saved, i, k});
      }
  std::ranges::stable_sort(out, {}, [](const Stored& s) { return std::pair(s.file, s.offset); });
  return out;
}

// Moves the bytes of tensors from all ranks to the writers of their files. An error of a rank is kept until
// the ranks meet.
class HandOver {
 public:
  // The tensor, to the writer `to`, which has `writer`.
  void move(const Stored& t, int to, SafetensorsWriter* writer) {
    Group& world = Context::current().world();
    const int n = world.size(), me = world.rank();
    const std::string name = t.saved->prefix + t.spec().stored.tensor(t.k);
    const Parts parts = parts_of(t.value(), to);
    std::vector<Sent> sent(n);
    i64 rounds = 0;
    bool exchange = false;  // a rank has rows for another one
    for (int r = 0; r < n; ++r) {
      sent[r] = rows_sent(t.spec(), parts[r], t.k);
      rounds = std::max(rounds, ceil_div(sent[r].end - sent[r].begin, sent[r].per_block));
      exchange = exchange || (r != to && sent[r].end > sent[r].begin);
    }
    if (!exchange && me != to) return;
    for (i64 round = 0; round < rounds; ++round) {
      const redco::Range b = sent[me].block(round);
      const std::span own(sent_.of(b.size() * sent[me].row), static_cast<size_t>(b.size() * sent[me].row));
      guarded([&] { read_rows(t.value(), b.begin, sent[me].row, own); });
      const auto write = [&](int r, const float* from) {
        const redco::Range rows = sent[r].block(round);
        if (rows.size() == 0) return;
        for (const Place& p : places_of(t.spec(), parts[r], rows.begin, rows.end)) {
          writer->write(name, p.box, from, p.strides);
          from += p.elements;
        }
      };
      if (!exchange) {
        guarded([&] { write(me, own.data()); });
        continue;
      }
      std::vector<i64> send(n, 0), recv(n, 0);
      send[to] = b.size() * sent[me].row;
      i64 total = 0;
      if (me == to)
        for (int r = 0; r < n; ++r) total += recv[r] = sent[r].block(round).size() * sent[r].row;
      float* const received = received_.of(total);
      world.all_to_all<float>(own.data(), send, received, recv);
      world.together([&] {
        rethrow();
        if (me != to) return;
        const float* from = received;
        for (int r = 0; r < n; ++r) {
          write(r, from);
          from += recv[r];
        }
      });
    }
  }
  template <class F>
  void guarded(const F& f) {
    if (failed_) return;
    try {
      f();
    } catch (...) {
      failed_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  Scratch<float> sent_, received_;
  std::exception_ptr failed_;
};

}  // namespace

std::vector<FileRecord> HandedFiles::finish() {
  std::vector<FileRecord> out;
  for (SafetensorsWriter& w : writers_) out.push_back(w.commit());
  writers_.clear();
  if (index_name_.empty()) return out;
  write_file_durable(join_path(folder_, index_name_), index_json_);
  out.push_back(record_file(folder_, index_name_));
  return out;
}

HandedFiles hand_over_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                             const std::string& folder, WriteQueue& queue, i64 first_writer) {
  Group& world = Context::current().world();
  const int me = world.rank();
  HandedFiles out;
  out.folder_ = folder;
  HandOver moved;
  const std::vector<Stored> all = in_file_order(trees, plan);
  auto next = all.begin();
  for (i64 f = 0; f < static_cast<i64>(plan.files.size()); ++f) {
    const int to = writer_of(first_writer + f, world.size());
    SafetensorsWriter* writer = nullptr;
    moved.guarded([&] {
      if (to == me)
        writer = &out.writers_.emplace_back(SafetensorsWriter::create(folder, plan.files[f], queue));
    });
    for (; next != all.end() && next->file == f; ++next) moved.move(*next, to, writer);
  }
  world.together([&] { moved.rethrow(); });
  if (me == writer_of(first_writer, world.size())) {
    out.index_name_ = plan.index_name;
    out.index_json_ = plan.index_json;
  }
  return out;
}

std::vector<FileRecord> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                    const std::string& folder) {
  WriteQueue queue;
  HandedFiles handed = hand_over_params(trees, plan, folder, queue);
  std::vector<FileRecord> mine;
  Context::current().world().together([&] { mine = handed.finish(); });
  return mine;
}

}  // namespace redco::ckpt
