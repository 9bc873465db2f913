#include "train/checkpoint_files.h"

#include <algorithm>
#include <limits>

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

std::vector<SavedPart> parts_of(const CheckpointContents& what) {
  std::vector<SavedPart> out;
  if (ParamTree extra = what.params.part(kExtra); extra.size() > 0)
    out.push_back({part_folder(kExtra), std::move(extra), nullptr});
  for (const auto& [name, named] : what.models)
    if (!named.frozen) out.push_back({part_folder(name), what.params.part(name), &named});
  return out;
}

CheckpointContents saved_tensors(const Pipeline& pipeline, const TrainStep& step,
                                 const CheckpointSettings& settings, const std::string& adapter_config) {
  CheckpointContents out;
  out.model = pipeline.model;
  out.models = pipeline.models;
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

std::vector<i64> copy_windows(const CheckpointContents& what, const CheckpointSettings& settings, int ranks) {
  std::vector<i64> out(static_cast<size_t>(ranks), 0);
  for (const SavedFiles& f : saved_files(what))
    for (size_t k = 0; k < f.plan.files.size(); ++k)
      out[ckpt::writer_of(f.first_writer + static_cast<i64>(k), ranks)] +=
          ceil_div(f.plan.files[k].bytes, kWindowBytes);
  for (i64& n : out) {
    if (settings.async_buffer_mib) n = std::min(n, (*settings.async_buffer_mib << 20) / kWindowBytes);
    n = std::max<i64>(n, 1);
  }
  return out;
}

}  // namespace redco
