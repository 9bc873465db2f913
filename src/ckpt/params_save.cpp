#include "ckpt/params_save.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/stored_rows.h"
#include "comm/group.h"
#include "tensor/context.h"
#include "tensor/send_elements.h"
#include "tensor/transfer.h"

namespace redco::ckpt {

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

constexpr i64 kPieceBytes = 4 << 20;

// Rank r's ranges in the whole parameter; empty: it sends nothing.
using Parts = std::vector<std::vector<redco::Range>>;

// Every rank's part of a tensor, computed from the mesh. Of the ranks with the same part, the writer sends
// it, or the one whose place on the other axes is the writer's.
Parts parts_of(const Tensor& t, int writer) {
  const Mesh& mesh = Context::current().mesh();
  Parts parts(mesh.ranks());
  const Coord to = coord_of(mesh, writer);
  for (int r = 0; r < mesh.ranks(); ++r) {
    const Coord at = coord_of(mesh, r);
    bool sends = true;
    for (Axis a : mesh.axes()) sends = sends && (t.layout()[a].is_sharded() || at.at(a) == to.at(a));
    if (!sends) continue;
    if (redco::numel(local_shape(t.shape(), t.layout(), mesh, at)) == 0) continue;
    for (int d = 0; d < t.rank(); ++d) parts[r].push_back(local_range(t.shape(), t.layout(), mesh, at, d));
  }
  return parts;
}

// A stored tensor: the k-th of parameter i.
struct Stored {
  i64 file, offset;
  std::string name;
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
        std::string name = saved.prefix + saved.tree->specs()[i].stored.tensor(k);
        const i64 file = plan.file_of(name), offset = plan.files[file].entry(name).offset;
        out.push_back({file, offset, std::move(name), &saved, i, k});
      }
  std::ranges::stable_sort(out, {}, [](const Stored& s) { return std::pair(s.file, s.offset); });
  return out;
}

// Rows of a rank's part that are handed over at a time.
struct Piece {
  int rank;
  i64 begin, rows, row;  // row: elements
  Place place;
  i64 first;  // of its elements in the stored tensor, the index of the first
  i64 elements() const { return rows * row; }
  i64 bytes() const { return elements() * size_of(DType::f32); }
};
i64 rows_at_once(i64 row) { return std::max<i64>(1, kPieceBytes / std::max<i64>(4, row * 4)); }

// The pieces of the ranks whose parts are given, in the order of the file. So windows fill up one after the
// other, whether the ranks have rows or columns of the stored tensor.
std::vector<Piece> pieces_of(const Stored& t, const Parts& parts) {
  const ParamSpec& s = t.spec();
  std::vector<Piece> out;
  for (size_t r = 0; r < parts.size(); ++r) {
    if (parts[r].empty()) continue;
    Shape local;
    for (const redco::Range& d : parts[r]) local.push_back(d.size());
    i64 begin = 0, end = rows_of(s, local);
    if (s.stored.stacked > 0) {
      const i64 at = t.k - parts[r][0].begin;
      const bool has = at >= 0 && at < local[0];
      begin = has ? at * local[1] : 0;
      end = has ? (at + 1) * local[1] : 0;
    }
    const i64 row = row_elements(s, local), most = rows_at_once(row);
    for (i64 at = begin; at < end; at += most) {
      const i64 rows = std::min(most, end - at);
      i64 row_begin = at;
      for (Place& place : places_of(s, parts[r], at, at + rows)) {  // several if rows are stored in blocks
        i64 first = 0;
        for (size_t d = 0; d < place.box.size(); ++d) first = first * s.stored.shape[d] + place.box[d].begin;
        const i64 count = place.elements / row;
        out.push_back({static_cast<int>(r), row_begin, count, row, std::move(place), first});
        row_begin += count;
      }
    }
  }
  std::ranges::stable_sort(out, {}, &Piece::first);
  return out;
}

// The piece's values in fp32, in the host's memory.
void read_piece(const Tensor& from, const Piece& p, float* to) {
  const std::span<float> values(to, static_cast<size_t>(p.elements()));
  if (from.dtype() == DType::f32) return copy_to_host<float>(from, p.begin * p.row, values);
  const Tensor block({p.rows, p.row}, DType::f32, {});
  Context::current().run(&Kernels::cast, rows_in(from, p.begin, p.rows, p.row), block);
  copy_to_host<float>(block, 0, values);
}
// The same to the memory of another rank.
void send_piece(const Tensor& from, const Piece& p, int to) {
  Group& world = Context::current().world();
  if (from.dtype() == DType::f32) return send_elements(from, p.begin * p.row, p.elements(), world, to);
  std::vector<float> values(static_cast<size_t>(p.elements()));
  read_piece(from, p, values.data());
  world.send(values.data(), p.bytes(), to);
}

// Writes a piece, whose values are `from`, to its place in a file; on the queue's thread.
using WritePiece = std::function<void(const std::string& tensor, const Place& to, const float* from)>;

// Hands a stored tensor over to its writer, rank `to`, which has `write`.
void hand_over(const Stored& t, int to, CopyQueue& queue, const WritePiece& write) {
  Group& world = Context::current().world();
  const int me = world.rank();
  for (const Piece& p : pieces_of(t, parts_of(t.value(), to))) {
    if (me != to) {
      if (p.rank == me) send_piece(t.value(), p, to);
      continue;
    }
    auto* const copy = reinterpret_cast<float*>(queue.take(p.bytes()));
    if (p.rank == me) {
      read_piece(t.value(), p, copy);
    } else {
      world.receive(copy, p.bytes(), p.rank);
    }
    queue.put([write, name = t.name, place = p.place, copy] { write(name, place, copy); });
  }
}

}  // namespace

CopiedBytes copied_bytes(const std::vector<SavedTree>& trees, const ModelPlan& plan) {
  CopiedBytes out{.of_file = std::vector<i64>(plan.files.size())};
  for (const Stored& t : in_file_order(trees, plan)) {
    const i64 row = row_elements(t.spec(), t.spec().shape) * size_of(DType::f32);
    const i64 share = redco::numel(t.spec().shape) / (t.spec().stored.stacked > 0 ? t.spec().shape[0] : 1);
    out.of_file[t.file] += share * size_of(DType::f32);
    out.largest_piece = std::max({out.largest_piece, row, std::min(kPieceBytes, share * 4)});
  }
  return out;
}

// Of this rank. The queue's thread creates and fills the files; other threads use them after drain().
struct HandedFiles::Files {
  struct File {
    FilePlan plan;
    std::optional<SafetensorsWriter> writer;
  };
  explicit Files(CopyQueue& q) : queue(q) {}
  // Runs f on the queue's thread, unless the save has failed. Its error is that of the save; the windows of
  // the file are free then.
  template <class F>
  void guarded(File& file, const F& f) {
    if (failed) return;
    try {
      if (queue.cancelled()) throw IoError("{}: the save was cancelled", join_path(folder, file.plan.file));
      f();
    } catch (...) {
      failed = std::current_exception();
      file.writer.reset();
    }
  }

  // Adds a file, which the queue's thread creates. Returns the function that writes to it there.
  WritePiece add(const FilePlan& plan) {
    File* const file = files.emplace_back(std::make_unique<File>(File{plan, {}})).get();
    queue.run([this, file] {
      guarded(*file,
              [&] { file->writer.emplace(SafetensorsWriter::create(folder, file->plan, queue.files())); });
    });
    return [this, file](const std::string& tensor, const Place& to, const float* from) {
      guarded(*file, [&] { file->writer->write(tensor, to.box, from, to.strides); });
    };
  }

  CopyQueue& queue;
  std::string folder, index_name, index_json;
  std::vector<std::unique_ptr<File>> files;
  std::exception_ptr failed;
};

HandedFiles::HandedFiles() = default;
HandedFiles::HandedFiles(HandedFiles&&) noexcept = default;
HandedFiles::~HandedFiles() {
  if (!files_) return;
  files_->queue.run([&files = *files_] {
    if (!files.failed) files.failed = std::make_exception_ptr(IoError("{}: dropped", files.folder));
  });
  files_->queue.drain();
}

std::vector<FileRecord> HandedFiles::finish() {
  files_->queue.drain();
  if (files_->failed) std::rethrow_exception(files_->failed);
  const std::unique_ptr<Files> f = std::move(files_);
  std::vector<FileRecord> out;
  for (const auto& file : f->files) out.push_back(file->writer->commit());
  if (f->index_name.empty()) return out;
  write_file_durable(join_path(f->folder, f->index_name), f->index_json);
  out.push_back(record_file(f->folder, f->index_name));
  return out;
}

HandedFiles hand_over_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                             const std::string& folder, CopyQueue& queue, i64 first_writer) {
  Group& world = Context::current().world();
  const int me = world.rank();
  HandedFiles out;
  out.files_ = std::make_unique<HandedFiles::Files>(queue);
  HandedFiles::Files& files = *out.files_;
  files.folder = folder;
  if (me == writer_of(first_writer, world.size())) {
    files.index_name = plan.index_name;
    files.index_json = plan.index_json;
  }
  const std::vector<Stored> all = in_file_order(trees, plan);
  auto next = all.begin();
  for (i64 f = 0; f < static_cast<i64>(plan.files.size()); ++f) {
    const int to = writer_of(first_writer + f, world.size());
    const WritePiece write = me == to ? files.add(plan.files[f]) : nullptr;
    for (; next != all.end() && next->file == f; ++next) hand_over(*next, to, queue, write);
  }
  return out;
}

std::vector<FileRecord> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                    const std::string& folder) {
  CopyQueue queue;
  std::vector<FileRecord> mine;
  HandedFiles handed = hand_over_params(trees, plan, folder, queue);
  Context::current().world().together([&] { mine = handed.finish(); });
  return mine;
}

}  // namespace redco::ckpt
