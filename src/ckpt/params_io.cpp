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
#include "base/log_once.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "ckpt/grown_rows.h"
#include "ckpt/stored_blocks.h"
#include "ckpt/stored_rows.h"
#include "comm/group.h"
#include "gguf/quantize.h"
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

// How a row is quantized.
struct Weighting {
  const float* importance = nullptr;  // of each column that is read; null: rows become groups elsewhere
  const gguf::ErrorFeedback* feedback = nullptr;
  redco::Range kept = {0, 0};  // of the columns that are read: with feedback, all of the matrix
  i64 columns = 0;             // that are read
};
// Rows of a parameter that are read at a time.
struct Block {
  size_t param;
  i64 begin, rows, row;  // row: elements
  bool shared;           // by replicas, which read each a part
  bool blocks;           // the files have the quantized blocks of the parameter's type, which are copied
  Weighting weighting = {};
};
// The blocks of parameter i, whose value is t, on this many replicas.
void add_blocks(const ParamSpec& s, size_t i, const Tensor& t, int replicas, bool blocks,
                const Weighting& weighting, std::vector<Block>& to) {
  const i64 row = row_elements(s, t.local()), rows = rows_of(s, t.local());
  if (row == 0) return;
  const bool shared = t.layout()[Axis::dp].is_replicated() && replicas > 1;
  const i64 read = weighting.importance ? weighting.columns : row;
  const i64 block = std::max<i64>(shared ? replicas : 1, kReadBytes / (read * 4));
  for (i64 r = 0; r < rows; r += block)
    to.push_back({i, r, std::min(block, rows - r), row, shared, blocks, weighting});
}

// The files' tensors by the specs' names. A tied copy replaces a missing original.
using Held = std::map<std::string, const ModelFiles::Located*>;
Held tensors_by_name(const ModelFiles& files, const std::function<std::string(const std::string&)>& canonical,
                     const std::map<std::string, std::string>& aliases, const std::string& prefix) {
  Held held, tied;
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
  for (const auto& [name, l] : tied) held.emplace(name, l);
  return held;
}

// What torch.compile, DDP, or a wrapper with a member `model` put in front of every name; "": nothing. A name
// may have several.
std::string wrapper_of(const ModelFiles& files) {
  const auto all = [&](const std::string& prefix) {
    return std::ranges::all_of(
        files.tensors(), [&](const ModelFiles::Located& l) { return l.entry->name.starts_with(prefix); });
  };
  std::string prefix;
  for (bool longer = !files.tensors().empty(); longer;) {
    longer = false;
    for (const char* part : {"_orig_mod.", "module.", "model."})
      if (!longer && prefix.size() < 100 && all(prefix + part)) {
        prefix += part;
        longer = true;
      }
  }
  return prefix;
}

using Canonical = std::function<std::string(const std::string&)>;

// `canonical`, after a wrapper's prefix if no name of the files is one of the model's without that.
Canonical unwrapping(const ModelFiles& files, const Canonical& canonical,
                     const std::function<bool(const std::string&)>& is_known) {
  const auto any = [&](const std::string& prefix) {
    return std::ranges::any_of(files.tensors(), [&](const ModelFiles::Located& l) {
      return l.entry->name.starts_with(prefix) && is_known(canonical(l.entry->name.substr(prefix.size())));
    });
  };
  // Shorter prefixes first: "model." may be the model's own.
  const std::string whole = wrapper_of(files);
  for (size_t end = 0; end != whole.npos;
       end = end + 1 < whole.size() ? whole.find('.', end + 1) : whole.npos) {
    const std::string prefix = end == 0 ? "" : whole.substr(0, end + 1);
    if (!any(prefix)) continue;
    if (prefix.empty()) return canonical;
    log_once(LogLevel::info,
             fmt::format("{}: all names of tensors begin with {}, which the model's names don't; "
                         "reading them without it",
                         files.folder(), prefix));
    return [canonical, prefix](const std::string& stored) {
      return canonical(stored.starts_with(prefix) ? stored.substr(prefix.size()) : stored);
    };
  }
  return canonical;
}

// Leaves parameters of the head that the files lack, or have in another shape, unchanged. Returns their
// names.
std::set<std::string> leave_head(const ParamTree& tree, HeadLoad& head, Held& held) {
  for (const ParamSpec& s : tree.specs()) {
    if (!head.is_head(s.stored.name)) continue;
    const auto it = held.find(s.stored.name);
    if (it != held.end() && it->second->entry->shape == s.stored.file_shape()) continue;
    head.made.push_back(s.name);
    if (it != held.end()) head.unused.push_back(it->second->entry->name);
    held.erase(s.stored.name);
  }
  return {head.made.begin(), head.made.end()};
}

std::string first_five(std::vector<std::string> v) {
  const size_t n = v.size();
  if (n > 5) v.resize(5);
  return fmt::format("{}{}", fmt::join(v, ", "), n > 5 ? fmt::format(" and {} more", n - 5) : "");
}

// Stored tensors that are missing, and those without a parameter.
void check_names(const ParamTree& tree, const ModelFiles& files, const Held& held,
                 const std::set<std::string>& made, const std::string& prefix, HeadLoad* head,
                 std::vector<std::string>& problems) {
  std::set<std::string> needed;
  std::vector<std::string> missing, unknown;
  bool head_alone = true;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k)
      if (const std::string name = s.stored.tensor(k);
          needed.insert(name).second && !held.count(name) && !s.buffer && !made.count(s.name)) {
        missing.push_back(prefix + name);
        head_alone = head_alone && name.ends_with("lm_head.weight");
      }
  for (const auto& [name, l] : held)
    if (!needed.count(name)) (head && head->is_head(name) ? head->unused : unknown).push_back(l->entry->name);
  if (!missing.empty()) {
    problems.push_back(fmt::format(
        "[checkpoint] {}: {} of the model's tensors are missing: {}{}", files.folder(), missing.size(),
        first_five(missing),
        (unknown.empty() ? "" : fmt::format("; the files have unknown tensors: {}", first_five(unknown))) +
            (head_alone ? ". If the head is the embedding, set model.tie_word_embeddings: true (or "
                          "tie_word_embeddings in config.json). Else get the file that has the head"
                        : "")));
  } else if (!unknown.empty()) {
    problems.push_back(fmt::format("[checkpoint] {}: the model of config.json has no such parameters: {}",
                                   files.folder(), first_five(unknown)));
  }
}

// Stored tensors of another shape, or of a type that is no floating type.
void check_shapes_and_types(const ParamTree& tree, const ModelFiles& files, const Held& held,
                            const MoreRows& more, std::vector<std::string>& problems) {
  constexpr size_t kNamed = 5;
  std::set<std::string> seen;
  std::vector<std::string> wrong;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k) {
      const std::string name = s.stored.tensor(k);
      if (!held.count(name)) continue;  // missing, a buffer, or a parameter of the new head
      const ModelFiles::Located& l = *held.at(name);
      const Shape shape = s.stored.file_shape();
      if (l.entry->shape != shape && !more.fits(l.entry->shape, shape) && seen.insert(name).second)
        wrong.push_back(
            fmt::format("[checkpoint] {}: {} has shape {}, but the model's config (config.json and the "
                        "job's model.* keys) gives {}",
                        l.file->path(), l.entry->name, to_string(l.entry->shape), to_string(shape)));
      if (!is_float(l.entry->type) && seen.insert(name).second)
        wrong.push_back(fmt::format("[checkpoint] {}: {} is {}, expected a floating type", l.file->path(),
                                    l.entry->name, name_of(l.entry->type)));
    }
  const size_t n = wrong.size();
  if (n > kNamed) {
    wrong.resize(kNamed);
    wrong.push_back(fmt::format("[checkpoint] {}: {} more tensors have another shape or type", files.folder(),
                                n - kNamed));
  }
  problems.insert(problems.end(), wrong.begin(), wrong.end());
}

// The tables that lack rows.
GrownRows grown_rows(const ParamTree& tree, const Held& held, const MoreRows& more) {
  GrownRows grown;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k)
      if (const auto it = held.find(s.stored.tensor(k));
          it != held.end() && !grown.has(it->first) &&
          more.fits(it->second->entry->shape, s.stored.file_shape()))
        grown.add(it->first, *it->second);
  return grown;
}

// Reads blocks from files to tensors. The threads of the kernels read a block each; the rank's thread then
// moves them to the tensors, and gathers the shared ones.
class BlockReader {
 public:
  BlockReader(ParamTree& tree, const Held& held, const GrownRows& grown, const Importances* importances)
      : tree_(tree),
        held_(held),
        grown_(grown),
        importances_(importances),
        dp_(Context::current().group(Axis::dp)),
        ranges_(tree.size()) {}

  void add(size_t i) {
    const Tensor& t = tree_.values()[i];
    ranges_[i] = ranges_of(t);
    const ParamSpec& s = tree_.specs()[i];
    const bool blocks = in_blocks(s, t.dtype());
    const Weighting weighting = blocks ? Weighting{} : weighting_of(i);
    if (weighting.feedback) ranges_[i][1] = {0, weighting.columns};
    add_blocks(s, i, t, dp_.size(), blocks, weighting, blocks_);
  }

  // Collective. A rank that can't read still takes part in the gathers of all blocks, because the other ranks
  // wait in them. Then all ranks throw its error.
  void read_all() {
    std::vector<Slot> slots(static_cast<size_t>(parallel::threads()));
    for (size_t first = 0; first < blocks_.size(); first += slots.size()) {
      const auto n = static_cast<i64>(std::min(slots.size(), blocks_.size() - first));
      parallel::for_each(failed_ ? 0 : n, [&](i64 k) { read(blocks_[first + k], slots[k]); });
      for (i64 k = 0; k < n; ++k) store(blocks_[first + k], slots[k]);
    }
    Context::current().world().together([&] {
      if (failed_) std::rethrow_exception(failed_);
    });
  }

 private:
  struct Slot {
    Scratch<float> values;
    Scratch<std::byte> blocks, whole_rows;
    Scratch<float> padded;
    Scratch<unsigned char> buffer;
    std::exception_ptr failed;
  };

  // Of a matrix that is quantized with an importance. Its later columns depend on the errors of all before
  // them, if these are known, so each rank rounds whole rows and keeps its columns.
  Weighting weighting_of(size_t i) const {
    const Tensor& t = tree_.values()[i];
    if (!importances_ || t.dtype() != DType::q4 || t.rank() != 2) return {};
    const auto at = importances_->find(tree_.specs()[i].name);
    if (at == importances_->end()) return {};
    const std::vector<float>& squares = at->second.squares;
    REDCO_CHECK(std::ssize(squares) == t.shape()[1], "{}: {} importances for {} columns", at->first,
                squares.size(), t.shape()[1]);
    const redco::Range own = ranges_[i][1];
    if (at->second.feedback) return {squares.data(), at->second.feedback.get(), own, t.shape()[1]};
    return {squares.data() + own.begin, nullptr, {0, own.size()}, own.size()};
  }

  void read(const Block& b, Slot& slot) const {
    try {
      const redco::Range r =
          b.shared ? shard_range(b.rows, 1, dp_.size(), dp_.rank()) : redco::Range{0, b.rows};
      if (r.size() == 0) return;
      if (b.blocks) return read_blocks(b, r, slot);
      const Weighting& weighting = b.weighting;
      float* to = slot.values.of(r.size() * (weighting.importance ? weighting.columns : b.row));
      for (const Place& p :
           places_of(tree_.specs()[b.param], ranges_[b.param], b.begin + r.begin, b.begin + r.end)) {
        const ModelFiles::Located& l = *held_.at(p.tensor);
        if (grown_.has(p.tensor))
          grown_.read(p, l, to, slot.buffer);
        else
          l.file->read(p.view.empty() ? *l.entry : l.entry->viewed(p.view), p.box, to, p.strides,
                       slot.buffer);
        to += p.elements;
      }
      if (weighting.importance) quantize(b, r.size(), slot);
    } catch (...) {
      slot.failed = std::current_exception();
    }
  }

  // Rows in slot.values to groups in slot.blocks. What the last group of a row lacks has no importance.
  static void quantize(const Block& b, i64 rows, Slot& slot) {
    const Weighting& w = b.weighting;
    const i64 columns = stored_numel(DType::q4, {w.columns}), bytes = bytes_of(DType::q4, columns);
    std::vector<float> importance(static_cast<size_t>(columns));
    std::copy_n(w.importance, w.columns, importance.begin());
    const float* from = slot.values.of(rows * w.columns);
    if (columns > w.columns) {
      float* to = slot.padded.of(rows * columns);
      for (i64 r = 0; r < rows; ++r)
        std::fill_n(std::copy_n(from + r * w.columns, w.columns, to + r * columns), columns - w.columns,
                    from[(r + 1) * w.columns - 1]);
      from = to;
    }
    std::byte* whole = slot.whole_rows.of(rows * bytes);
    gguf::quantize_rows(gguf::BlockType::q4_1, from, rows, columns, importance.data(), w.feedback,
                        reinterpret_cast<unsigned char*>(whole));
    const i64 begin = bytes_of(DType::q4, w.kept.begin);
    const i64 kept = bytes_of(DType::q4, stored_numel(DType::q4, {w.kept.size()}));
    std::byte* to = slot.blocks.of(rows * kept);
    for (i64 r = 0; r < rows; ++r) std::copy_n(whole + r * bytes + begin, kept, to + r * kept);
  }

  // Whether each stored tensor has the blocks of this type.
  bool in_blocks(const ParamSpec& s, DType type) const {
    for (i64 k = 0; k < s.stored.tensors(); ++k)
      if (const std::string& name = s.stored.tensor(k);
          !is_grouped(type) || grown_.has(name) || blocks_of(s, *held_.at(name)->entry) != type)
        return false;
    return true;
  }

  void read_blocks(const Block& b, const redco::Range& r, Slot& slot) const {
    const DType type = tree_.values()[b.param].dtype();
    std::byte* to = slot.blocks.of(r.size() * bytes_of(type, b.row));
    for (const Place& p :
         places_of(tree_.specs()[b.param], ranges_[b.param], b.begin + r.begin, b.begin + r.end)) {
      const ModelFiles::Located& l = *held_.at(p.tensor);
      l.file->read_blocks(*l.entry, p.box, to);
      to += bytes_of(type, p.elements);
    }
  }

  void store_blocks(const Block& b, Slot& slot) {
    const Tensor& t = tree_.values()[b.param];
    const i64 row = bytes_of(t.dtype(), stored_numel(t.dtype(), {b.row})), n = b.rows * row;
    const std::byte* from = nullptr;
    if (b.shared) {
      std::vector<i64> counts(dp_.size());
      for (int d = 0; d < dp_.size(); ++d) counts[d] = shard_range(b.rows, 1, dp_.size(), d).size() * row;
      std::byte* const all = gathered_blocks_.of(n);
      dp_.all_gather<std::byte>(slot.blocks.of(counts[dp_.rank()]), all, counts);
      from = all;
    } else {
      from = slot.blocks.of(n);
    }
    if (!failed_) Context::current().queue().write(from, rows_in(t, b.begin, b.rows, b.row).data, n);
  }

  void store(const Block& b, Slot& slot) {
    if (slot.failed && !failed_) failed_ = slot.failed;
    if (b.blocks || b.weighting.importance) return store_blocks(b, slot);
    const i64 n = b.rows * b.row;
    Scratch<float>& from = b.shared ? gathered_ : slot.values;
    const std::span<float> values(from.of(n), static_cast<size_t>(n));
    if (b.shared) {
      std::vector<i64> counts(dp_.size());
      for (int d = 0; d < dp_.size(); ++d) counts[d] = shard_range(b.rows, 1, dp_.size(), d).size() * b.row;
      dp_.all_gather<float>(slot.values.of(counts[dp_.rank()]), values.data(), counts);
    }
    if (!failed_) write_rows(values, tree_.values()[b.param], b.begin, b.row);
  }

  ParamTree& tree_;
  const Held& held_;
  const GrownRows& grown_;
  const Importances* importances_;
  Group& dp_;
  std::vector<std::vector<redco::Range>> ranges_;
  std::vector<Block> blocks_;
  Scratch<float> gathered_;
  Scratch<std::byte> gathered_blocks_;
  std::exception_ptr failed_;
};

}  // namespace

void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix, HeadLoad* head,
                 const MoreRows& more, const Importances* importances) {
  std::set<std::string> names;
  for (const ParamSpec& s : tree.specs())
    for (i64 k = 0; k < s.stored.tensors(); ++k) names.insert(s.stored.tensor(k));
  const Canonical named =
      prefix.empty() ? unwrapping(files, canonical, [&](const std::string& n) { return names.count(n) > 0; })
                     : canonical;
  Held held = tensors_by_name(files, named, aliases, prefix);
  const std::set<std::string> made = head ? leave_head(tree, *head, held) : std::set<std::string>();
  std::vector<std::string> problems;
  check_names(tree, files, held, made, prefix, head, problems);
  check_shapes_and_types(tree, files, held, more, problems);
  if (!problems.empty()) throw ContentsError("{}", fmt::join(problems, "\n"));
  if (Context::current().is_meta()) return;
  const GrownRows grown = grown_rows(tree, held, more);
  BlockReader reader(tree, held, grown, importances);
  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    if (made.count(s.name)) continue;
    if (held.count(s.stored.tensor(0))) {
      reader.add(i);
    } else {
      initialize(s, tree.values()[i]);  // a buffer
    }
  }
  reader.read_all();
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
      } else if (l->entry->shape != s.stored.file_shape()) {
        out.reshaped.push_back(fmt::format("{}: {} in {}, {} in the job", name, to_string(l->entry->shape),
                                           l->file->path(), to_string(s.stored.file_shape())));
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
  const Canonical named = unwrapping(files, canonical, [&](const std::string& n) {
    return std::ranges::any_of(aliases, [&](const auto& a) { return n == a.first || n == a.second; });
  });
  for (const ModelFiles::Located& l : files.tensors()) held.emplace(named(l.entry->name), &l);
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
