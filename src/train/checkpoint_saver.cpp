#include "train/checkpoint_saver.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/timing.h"
#include "base/tolerate.h"
#include "base/words.h"
#include "ckpt/manifest.h"
#include "ckpt/peft.h"
#include "train/checkpoint_files.h"
#include "workdir/run_record.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// A folder of the checkpoint; "": the checkpoint itself.
std::string in(const std::string& temp, const std::string& folder) {
  return folder.empty() ? temp : join_path(temp, folder);
}

// What the first rank writes besides tensors: texts by their paths, and tokenizers by their folders.
struct SmallFiles {
  std::vector<std::pair<std::string, const Tokenizer*>> tokenizers;
  std::vector<std::pair<std::string, std::string>> texts;
  void write(const std::string& temp) const {
    for (const auto& [folder, tokenizer] : tokenizers) tokenizer->save(in(temp, folder));
    for (const auto& [path, text] : texts) {
      make_dirs(parent_path(join_path(temp, path)));
      write_file_durable(join_path(temp, path), text);
    }
  }
};

SmallFiles small_files(const CheckpointContents& what, const TrainState& state) {
  SmallFiles out;
  const bool adapter = !what.adapter_config.empty();
  const auto text = [&](const std::string& path, std::string content) {
    if (!content.empty()) out.texts.emplace_back(path, std::move(content));
  };
  for (const SavedPart& p : parts_of(what)) {
    if (!p.model) continue;
    text(p.folder + "/config.json", saved_config(*p.model->model, what.dtype));
    if (p.model->tokenizer) out.tokenizers.emplace_back(p.folder, &*p.model->tokenizer);
  }
  if (what.tokenizer) out.tokenizers.emplace_back("", what.tokenizer);
  text(ckpt::kAdapterConfig, what.adapter_config);
  // For an adapter, the config has the classes, which the base model doesn't know.
  if (what.model && (!adapter || what.model->num_labels() > 0))
    text("config.json", saved_config(*what.model, what.dtype));
  if (!adapter) text("generation_config.json", what.generation_config);
  const std::string preprocessor = join_path(what.weights_folder, "preprocessor_config.json");
  if (!what.weights_folder.empty() && !adapter && exists(preprocessor))
    text("preprocessor_config.json", read_file(preprocessor, 1 << 20));
  for (const auto& [path, content] : what.model_files) text(path, content);
  text("chat_template.jinja", what.chat_template);
  text(ckpt::kStatePath, to_json(state));
  text(ckpt::kJobPath, what.job_yaml);
  return out;
}

std::string to_text(const std::vector<ckpt::FileRecord>& records) {
  Json out = Json::array();
  for (const auto& r : records) out.push_back({r.path, r.size, r.xxh3});
  return out.dump();
}
std::vector<ckpt::FileRecord> from_texts(const std::vector<std::string>& texts) {
  std::vector<ckpt::FileRecord> out;
  for (const std::string& text : texts)
    for (const auto& r : Json::parse(text)) out.push_back({r[0], r[1], r[2]});
  return out;
}

}  // namespace

CheckpointSaver::CheckpointSaver(std::string folder, i64 keep_last,
                                 const std::vector<ckpt::CopyQueue::Size>& copy)
    : folder_(std::move(folder)), keep_last_(keep_last), copies_(!copy.empty()) {
  try {
    if (const std::string workdir = parent_path(folder_); exists(workdir)) inode_ = file_stamp(workdir).inode;
  } catch (const IoError&) {  // the first save reports it, on all ranks
  }
  if (!copies_) return;
  queue_ = std::make_unique<ckpt::CopyQueue>(copy[Context::current().world().rank()]);
  queue_->make_resident();
}

CheckpointSaver::~CheckpointSaver() {
  if (flight_ && queue_) queue_->cancel();
}

i64 CheckpointSaver::copy_bytes() const { return copies_ ? queue_->bytes() : 0; }

template <class F>
void CheckpointSaver::or_abandon(const ckpt::RunIdentity& run, i64 step, const F& f) {
  Group& world = Context::current().world();
  try {
    f();
  } catch (const Error& e) {
    if (world.rank() == 0)
      tolerate(fmt::format("[checkpoint] {}: an unfinished save was not removed", folder_),
               [&] { ckpt::CheckpointFolder(folder_, run).abandon(step); });
    // The job's settings worked for the run until now, so a path that doesn't exist any more was removed.
    if (e.code() == ExitCode::usage)
      world.on_first([&] {
        throw IoError("[checkpoint] {}; was {} moved or removed while the run was writing to it?", e.what(),
                      parent_path(folder_));
      });
    throw;
  }
}

void CheckpointSaver::begin(const CheckpointContents& what, const TrainState& state,
                            const std::vector<std::string>& best_of) {
  finish();
  Flight flight{.step = state.step, .best_of = best_of, .run = what.run, .began = seconds(), .files = {}};
  if (!queue_) queue_ = std::make_unique<ckpt::CopyQueue>();
  or_abandon(what.run, state.step, [&] { start(flight, what, state); });
  flight.stall_s = seconds() - flight.began;
  flight_ = std::move(flight);
}

// An unmounted file system leaves an empty folder, and a save would make the workdir again in it, where
// nobody looks for it.
void CheckpointSaver::check_same_folder() const {
  const std::string workdir = parent_path(folder_);
  if (!inode_ || (exists(workdir) && file_stamp(workdir).inode == *inode_)) return;
  throw IoError(
      "[checkpoint] {} is no longer the folder in which the run began: it was moved or removed, or its file "
      "system was unmounted. The last checkpoint is there",
      workdir);
}

void CheckpointSaver::start(Flight& flight, const CheckpointContents& what, const TrainState& state) {
  Group& world = Context::current().world();
  ckpt::CheckpointFolder checkpoints(folder_, what.run);
  const std::string temp = checkpoints.temp_folder(flight.step);
  const std::vector<SavedFiles> files = saved_files(what);
  SmallFiles small;
  world.on_first([&] {
    check_same_folder();
    if (removal_.valid()) removal_.get();  // frees disk space
    i64 bytes = 4 << 20;
    for (const SavedFiles& f : files) bytes += f.plan.bytes;
    checkpoints.begin(flight.step, bytes);
    inode_ = file_stamp(parent_path(folder_)).inode;
    for (const SavedFiles& f : files) make_dirs(in(temp, f.folder));
    small = small_files(what, state);
  });
  std::vector<std::pair<std::string, ckpt::HandedFiles>> handed;
  for (const SavedFiles& f : files)
    handed.emplace_back(
        f.folder, ckpt::hand_over_params(f.saved(), f.plan, in(temp, f.folder), *queue_, f.first_writer));
  flight.files = worker_.run([temp, small = std::move(small), handed = std::move(handed)]() mutable {
    std::vector<ckpt::FileRecord> records;
    for (auto& [folder, files] : handed)
      for (ckpt::FileRecord& r : files.finish()) {
        if (!folder.empty()) r.path = folder + "/" + r.path;
        records.push_back(std::move(r));
      }
    small.write(temp);
    return records;
  });
}

void CheckpointSaver::poll() {
  if (!flight_) return;
  const double from = seconds();
  const bool writes = flight_->files.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  const bool any = Context::current().world().any(writes);
  flight_->stall_s += seconds() - from;
  if (!any) finish();
}

void CheckpointSaver::finish() {
  if (!flight_) return;
  const double from = seconds();
  Flight flight = std::move(*flight_);
  flight_.reset();
  or_abandon(flight.run, flight.step, [&] { publish(flight); });
  saved_ = true;
  const double now = seconds(), took = now - flight.began;
  if (!times_) times_.emplace();
  times_->save_s += took;
  times_->stall_s += flight.stall_s + now - from;
  if (Context::current().world().rank() == 0)
    debug("saved {} in {}", ckpt::step_name(flight.step), human_duration(took));
}

void CheckpointSaver::publish(Flight& flight) {
  Group& world = Context::current().world();
  const i64 step = flight.step;
  ckpt::CheckpointFolder checkpoints(folder_, flight.run);
  std::vector<ckpt::FileRecord> mine;
  world.together([&] { mine = flight.files.get(); });
  const std::vector<std::string> all = world.gather(to_text(mine));
  world.on_first([&] {
    require_newest_start(parent_path(folder_), flight.run);
    checkpoints.publish(step, algorithm_versions(), from_texts(all));
  });
  // The checkpoint is published: no later failure may end the run.
  world.on_first([&] {
    const auto point = [&](const std::string& name) {
      tolerate(fmt::format("[checkpoint] {}: the pointer {} was not updated", folder_, name),
               [&] { checkpoints.point(name, step); });
    };
    point("last");
    for (const std::string& metric : flight.best_of) point("best-" + metric);
    // To free the blocks of large files takes as long as to write some of them.
    removal_ = worker_.run([checkpoints, keep = keep_last_]() mutable {
      tolerate(fmt::format("[checkpoint] {}: old checkpoints were not removed", checkpoints.path()),
               [&] { checkpoints.prune(keep); });
    });
  });
}

std::optional<SaveTimes> CheckpointSaver::take_times() { return std::exchange(times_, std::nullopt); }

void save_checkpoint(const std::string& folder, const CheckpointContents& what, const TrainState& state,
                     const std::vector<std::string>& best_of, i64 keep_last) {
  CheckpointSaver saver(folder, keep_last);
  saver.begin(what, state, best_of);
  saver.finish();
}

}  // namespace redco
