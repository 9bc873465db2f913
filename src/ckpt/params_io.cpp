#include "ckpt/params_io.h"

#include <fmt/ranges.h>

#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "comm/group.h"
#include "tensor/context.h"

namespace redco::ckpt {

namespace {

constexpr i64 kBlockBytes = 16 << 20;

// Where rows [r0, r1) of this rank's part of a parameter lie in the stored tensor, and how memory strides run
// there.
struct Place {
  Box box;
  Strides strides;
};
Place place_of(const ParamSpec& s, const Tensor& t, i64 r0, i64 r1) {
  Place p;
  const Shape& local = t.local();
  std::vector<i64> steps(local.size());
  i64 n = 1;
  for (int d = static_cast<int>(local.size()) - 1; d >= 0; --d) {
    steps[d] = n;
    n *= local[d];
  }
  for (int d = 0; d < t.rank(); ++d) {
    const redco::Range r = t.range(d);
    if (d == 0) {
      p.box.push_back({s.stored.row + r.begin + r0, s.stored.row + r.begin + r1});
    } else {
      p.box.push_back({r.begin, r.end});
    }
    p.strides.push_back(steps[d]);
  }
  if (s.stored.transposed) {
    std::swap(p.box[0], p.box[1]);
    std::swap(p.strides[0], p.strides[1]);
  }
  return p;
}

i64 row_elements(const Tensor& t) {
  i64 n = 1;
  for (int d = 1; d < t.rank(); ++d) n *= t.local()[d];
  return n;
}

}  // namespace

void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix,
                 HeadLoad* head) {
  Context& c = Context::current();
  // What the files hold, by the specs' names.
  std::map<std::string, const ModelFiles::Located*> held, tied;
  for (const ModelFiles::Located& l : files.tensors()) {
    const std::string& stored = l.entry->name;
    if (!stored.starts_with(prefix)) continue;
    const std::string name = canonical(stored.substr(prefix.size()));
    if (name.empty()) continue;
    auto& into = aliases.count(name) ? tied : held;
    const std::string key = aliases.count(name) ? aliases.at(name) : name;
    if (!into.emplace(key, &l).second && &into == &held)
      throw ContentsError("[checkpoint] {}: '{}' and '{}' are the same parameter {}", l.file->path(), stored,
                          held.at(key)->entry->name, name);
  }
  for (const auto& [name, l] : tied)
    held.emplace(name, l);  // a tied copy serves where the original is absent

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
    if (needed.insert(s.stored.name).second && !held.count(s.stored.name) && !s.buffer && !made.count(s.name))
      missing.push_back(prefix + s.stored.name);
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
        unknown.empty() ? "" : fmt::format("; the files hold unknown ones: {}", list(unknown)));
  if (!unknown.empty())
    throw ContentsError("[checkpoint] {}: the model that config.json describes has no place for: {}",
                        files.folder(), list(unknown));

  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    if (!held.count(s.stored.name)) continue;  // a buffer, or made
    const ModelFiles::Located& l = *held.at(s.stored.name);
    if (l.entry->shape != s.stored.shape)
      throw ContentsError("[checkpoint] {}: {} has shape {}, config.json says {}", l.file->path(),
                          l.entry->name, to_string(l.entry->shape), to_string(s.stored.shape));
    if (!is_float(l.entry->type))
      throw ContentsError("[checkpoint] {}: {} is {}, expected a floating type", l.file->path(),
                          l.entry->name, name_of(l.entry->type));
  }

  c.world().together([&] {
    for (size_t i = 0; i < tree.size(); ++i) {
      const ParamSpec& s = tree.specs()[i];
      const Tensor& t = tree.values()[i];
      if (made.count(s.name)) continue;
      if (!held.count(s.stored.name)) {
        initialize(s, t);
        continue;
      }
      const ModelFiles::Located& l = *held.at(s.stored.name);
      Group& dp = c.group(Axis::dp);
      const i64 row = row_elements(t), rows = t.local()[0];
      float* const data = t.mutable_data<float>();
      const bool shared = t.layout()[Axis::dp].is_replicated() && dp.size() > 1;
      if (!shared) {
        if (t.local_numel() > 0) {
          const Place p = place_of(s, t, 0, rows);
          l.file->read(*l.entry, p.box, data, p.strides);
        }
        continue;
      }
      if (row == 0) continue;
      const i64 block = std::max<i64>(dp.size(), kBlockBytes / (row * 4));
      std::vector<float> mine;
      for (i64 r = 0; r < rows; r += block) {
        const i64 n = std::min(block, rows - r);
        std::vector<i64> counts(dp.size());
        for (int d = 0; d < dp.size(); ++d) counts[d] = shard_range(n, 1, dp.size(), d).size() * row;
        const redco::Range own = shard_range(n, 1, dp.size(), dp.rank());
        mine.resize(own.size() * row);
        if (own.size() > 0) {
          const Place p = place_of(s, t, r + own.begin, r + own.end);
          l.file->read(*l.entry, p.box, mine.data(), p.strides);
        }
        dp.all_gather<float>(mine.data(), data + r * row, counts);
      }
    }
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
      if (seen.insert(s.stored.name).second)
        tensors.push_back({t.prefix + s.stored.name, type, s.stored.shape});
  }
  return plan_model(tensors, max_file_bytes, stem);
}

std::vector<std::string> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                     const std::string& folder) {
  Context& c = Context::current();
  Group& world = c.world();
  const int n = world.size(), me = world.rank();
  // Files go to ranks in turn, so that hosts share the work.
  auto writer_of = [&](i64 file) { return static_cast<int>(file % n); };

  std::vector<std::optional<SafetensorsWriter>> writers(plan.files.size());
  std::vector<std::string> mine;
  world.together([&] {
    for (size_t f = 0; f < plan.files.size(); ++f)
      if (writer_of(static_cast<i64>(f)) == me) {
        writers[f].emplace(SafetensorsWriter::create(folder, plan.files[f]));
        mine.push_back(plan.files[f].file);
      }
  });

  // A parameter's slices are sent by the replica dp = 0: by every mp rank where it is cut, else by the first.
  std::vector<float> received;
  for (const SavedTree& saved : trees)
    for (size_t i = 0; i < saved.tree->size(); ++i) {
      const ParamSpec& s = saved.tree->specs()[i];
      const Tensor& t = saved.tree->values()[i];
      const std::string name = saved.prefix + s.stored.name;
      const i64 file = plan.file_of(name);
      const int to = writer_of(file);
      const bool cut = t.layout()[Axis::mp].is_sharded();
      // Every rank's part, from the mesh alone.
      const Mesh& mesh = c.mesh();
      auto local_of = [&](int rank) {
        const Coord at = coord_of(mesh, rank);
        if (at.dp != 0 || (!cut && at.mp != 0)) return Shape();
        return local_shape(t.shape(), t.layout(), mesh, at);
      };
      std::vector<Shape> locals(n);
      i64 rounds = 0;
      auto rows_per_block = [&](const Shape& l) {
        i64 row = 1;
        for (size_t d = 1; d < l.size(); ++d) row *= l[d];
        return std::max<i64>(1, kBlockBytes / std::max<i64>(4, row * 4));
      };
      for (int r = 0; r < n; ++r) {
        locals[r] = local_of(r);
        if (locals[r].empty() || redco::numel(locals[r]) == 0) {
          locals[r].clear();
          continue;
        }
        const i64 per = rows_per_block(locals[r]);
        rounds = std::max(rounds, (locals[r][0] + per - 1) / per);
      }
      for (i64 k = 0; k < rounds; ++k) {
        auto block = [&](int r) -> redco::Range {
          if (locals[r].empty()) return {0, 0};
          const i64 per = rows_per_block(locals[r]);
          return {std::min(k * per, locals[r][0]), std::min((k + 1) * per, locals[r][0])};
        };
        auto row_of = [&](int r) {
          return locals[r].empty() || locals[r][0] == 0 ? 0 : redco::numel(locals[r]) / locals[r][0];
        };
        const redco::Range b = block(me);
        const float* from = t.data<float>() + b.begin * row_of(me);
        std::vector<i64> send(n, 0), recv(n, 0);
        if (b.size() > 0) send[to] = b.size() * row_of(me);
        i64 total = 0;
        if (me == to)
          for (int r = 0; r < n; ++r) total += recv[r] = block(r).size() * row_of(r);
        received.resize(total);
        world.all_to_all<float>(from, send, received.data(), recv);
        world.together([&] {
          if (me != to) return;
          const float* p = received.data();
          for (int r = 0; r < n; ++r) {
            const redco::Range rows = block(r);
            if (rows.size() == 0) continue;
            // The sender's box: its ranges in the whole parameter.
            const Coord at = coord_of(mesh, r);
            Box box;
            Strides strides(t.rank());
            i64 step = 1;
            for (int d = t.rank() - 1; d >= 0; --d) {
              strides[d] = step;
              step *= locals[r][d];
            }
            for (int d = 0; d < t.rank(); ++d) {
              const redco::Range all = local_range(t.shape(), t.layout(), mesh, at, d);
              if (d == 0) {
                box.push_back({s.stored.row + all.begin + rows.begin, s.stored.row + all.begin + rows.end});
              } else {
                box.push_back({all.begin, all.end});
              }
            }
            if (s.stored.transposed) {
              std::swap(box[0], box[1]);
              std::swap(strides[0], strides[1]);
            }
            writers[file]->write(name, box, p, strides);
            p += recv[r];
          }
        });
      }
    }
  world.together([&] {
    for (auto& w : writers)
      if (w) w->commit();
    if (me == 0 && !plan.index_name.empty()) {
      write_file_durable(folder + "/" + plan.index_name, plan.index_json);
      mine.push_back(plan.index_name);
    }
  });
  return mine;
}

}  // namespace redco::ckpt
