#include "train/checkpoint_files.h"

#include <algorithm>
#include <limits>
#include <map>

#include "ckpt/peft.h"
#include "nn/lora.h"

namespace redco {

namespace {

// The trained parameters of the job's model, or of a pipeline without one.
ParamTree trained_part(const ParamTree& params) {
  const ParamTree own = params.part("");
  return own.subset(trained_ones(own.specs()));
}

}  // namespace

std::vector<SavedPart> own_parts(const ParamTree& extra) {
  std::map<std::string, std::vector<bool>> of;
  const auto folder_of = [](const std::string& name) {
    const size_t end = name.find('/');
    return end == name.npos ? part_folder(kExtra) : name.substr(0, end);
  };
  for (const ParamSpec& s : extra.specs()) of[folder_of(s.name)] = {};
  std::vector<SavedPart> out;
  for (auto& [folder, selected] : of) {
    for (const ParamSpec& s : extra.specs()) selected.push_back(folder_of(s.name) == folder);
    const ParamTree held = extra.subset(selected);
    std::vector<ParamSpec> specs = held.specs();
    for (ParamSpec& s : specs)
      if (const size_t end = s.stored.name.find('/'); end != std::string::npos)
        s.stored.name = s.stored.name.substr(end + 1);
    ParamTree renamed(std::move(specs), {});
    renamed.values() = held.values();
    out.push_back({folder, std::move(renamed), nullptr});
  }
  return out;
}

std::vector<SavedPart> parts_of(const CheckpointContents& what) {
  std::vector<SavedPart> out;
  if (what.params.has_part(kExtra)) out = own_parts(what.params.part(kExtra));
  for (const auto& [name, named] : what.models)
    if (!named.frozen) out.push_back({part_folder(name), what.params.part(name), &named});
  return out;
}

CheckpointContents saved_tensors(const Pipeline& pipeline, const TrainStep& step,
                                 const CheckpointSettings& settings, const std::string& adapter_config) {
  CheckpointContents out;
  out.model = pipeline.model;
  out.models = pipeline.models;
  out.model_files = in_pipeline(pipeline, "model_files()", [&] { return pipeline.model_files(); });
  out.params = step.masters();
  out.resumable = settings.save_optimizer;
  if (settings.save_optimizer) out.optimizer = step.state();
  out.adapter_config = adapter_config;
  out.dtype = settings.dtype == "bf16" ? ckpt::StoredType::bf16 : ckpt::StoredType::f32;
  return out;
}

std::vector<ckpt::SavedTree> SavedFiles::saved() const {
  std::vector<ckpt::SavedTree> out;
  for (const auto& [prefix, tree] : trees) out.push_back({prefix, &tree});
  return out;
}

std::vector<SavedFiles> saved_files(const CheckpointContents& what) {
  std::vector<SavedFiles> out;
  i64 writer = 0;
  const auto add = [&](SavedFiles f, ckpt::StoredType type, const std::string& stem, i64 most) {
    f.plan = ckpt::plan_params(f.saved(), type, stem, most);
    f.first_writer = writer;
    writer += static_cast<i64>(f.plan.files.size());
    out.push_back(std::move(f));
  };
  if (what.adapter_config.empty()) {
    add({.trees = {{"", what.params.part("")}}}, what.dtype, "model", ckpt::kDefaultFileBytes);
  } else {
    // PEFT reads one file.
    add({.trees = {{ckpt::kAdapterPrefix, trained_part(what.params)}}}, what.dtype, ckpt::kAdapterStem,
        std::numeric_limits<i64>::max());
  }
  for (SavedPart& p : parts_of(what))
    add({.folder = p.folder, .trees = {{"", std::move(p.tree)}}}, what.dtype, "model",
        ckpt::kDefaultFileBytes);
  SavedFiles kept{.folder = "training"};
  if (what.resumable) {
    for (const Optimizer::State& s : what.optimizer) kept.trees.emplace_back(s.name + "/", s.tree);
    if (what.dtype != ckpt::StoredType::f32)
      kept.trees.emplace_back(kMaster, what.params.subset(trained_ones(what.params.specs())));
  }
  if (!kept.trees.empty()) add(std::move(kept), ckpt::StoredType::f32, "optimizer", ckpt::kDefaultFileBytes);
  return out;
}

std::vector<ckpt::CopyQueue::Size> copy_sizes(const CheckpointContents& what,
                                              const CheckpointSettings& settings, int ranks) {
  constexpr ckpt::CopyQueue::Size kWaitedFor;
  constexpr i64 kWindow = ckpt::WriteQueue::Size{}.window_bytes;
  std::vector<ckpt::CopyQueue::Size> out(static_cast<size_t>(ranks), {.copy_bytes = 0, .windows = 0});
  i64 piece = 0;
  for (const SavedFiles& f : saved_files(what)) {
    const ckpt::CopiedBytes copied = ckpt::copied_bytes(f.saved(), f.plan);
    piece = std::max(piece, copied.largest_piece);
    for (size_t k = 0; k < f.plan.files.size(); ++k) {
      ckpt::CopyQueue::Size& of = out[ckpt::writer_of(f.first_writer + static_cast<i64>(k), ranks)];
      of.copy_bytes += copied.of_file[k];
      of.windows += ceil_div(f.plan.files[k].bytes, kWindow);
    }
  }
  for (ckpt::CopyQueue::Size& of : out) {
    // Files are filled in about their order, so no more windows are needed than in a save that waits.
    of.windows = std::clamp<i64>(of.windows, 1, kWaitedFor.windows);
    if (!settings.async_buffer_mib) continue;
    const i64 most = *settings.async_buffer_mib << 20;
    of.windows = std::min(of.windows, std::max<i64>(2, most / 4 / kWindow));
    of.copy_bytes = std::min(of.copy_bytes, std::max(piece, most - of.windows * kWindow));
  }
  return out;
}

}  // namespace redco
