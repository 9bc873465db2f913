#include "commands/merge.h"

#include <cmath>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/predict_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/model_files.h"
#include "ckpt/params_save.h"
#include "ckpt/peft.h"
#include "comm/group.h"
#include "commands/sample_outputs.h"
#include "commands/trained_request.h"
#include "pipelines/sentence_folder.h"
#include "train/checkpoint.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

// bf16 if all matrices of the base are bf16.
ckpt::StoredType stored_as(const std::string& dtype, const std::string& base) {
  if (dtype == "fp32") return ckpt::StoredType::f32;
  if (dtype == "bf16") return ckpt::StoredType::bf16;
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(base);
  for (const auto& l : files.tensors())
    if (l.entry->shape.size() > 1 && l.entry->type != ckpt::StoredType::bf16) return ckpt::StoredType::f32;
  return ckpt::StoredType::bf16;
}

// The files in `folder` of `from`, if there is one, for the same folder of `to`.
void copy_files(const std::string& from, const std::string& to, const std::string& folder) {
  const std::string source = join_path(from, folder);
  if (!is_folder(source)) return;
  make_dirs(join_path(to, folder));
  for (const std::string& name : list_dir(source))
    write_file_durable(join_path(join_path(to, folder), name),
                       read_file(join_path(source, name), i64{1} << 40));
  sync_dir(join_path(to, folder));
}

// The merged folder while it is written: a temporary folder next to the output, removed unless it is
// published.
class Output {
 public:
  Output(const std::string& path, Group& world) : path_(path), world_(world) {
    while (path_.size() > 1 && path_.ends_with("/")) path_.pop_back();
    temp_ = join_path(parent_path(path_), ".tmp-" + file_name(path_));
    world_.on_first([&] {
      if (exists(path_) && (!is_folder(path_) || !list_dir(path_).empty()))
        throw UsageError("[merge] the output {} exists. Name a folder that doesn't exist", path_);
      remove_tree(temp_);
      make_dirs(temp_);
      begun_ = true;
    });
  }
  ~Output() {
    if (!begun_) return;
    try {
      remove_tree(temp_);
    } catch (const Error& e) {
      warn("{}", e.what());
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  const std::string& temp() const { return temp_; }
  void publish() {
    world_.on_first([&] {
      sync_dir(temp_);
      if (exists(path_)) remove_tree(path_);  // empty
      rename_durable(temp_, path_);
      begun_ = false;
    });
  }

 private:
  std::string path_, temp_;
  Group& world_;
  bool begun_ = false;
};

}  // namespace

int merge(const MergeRequest& r) {
  Group& world = Context::current().world();
  const bool first = world.rank() == 0;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  ModelSource source;
  ckpt::StoredType type{};
  const auto leases = verify_source(r.job, world);
  world.together([&] {
    tokenizer = job_tokenizer(r.job);
    source = model_source(r.job, tokenizer.get());
    if (source.adapter.empty())
      throw UsageError("[merge] {} holds a whole model, no adapter: there is nothing to merge",
                       !source.folder.empty() ? source.folder : source.config.source());
    JobConfig widened = r.job;  // sums of weights and adapters
    widened.model.weight_dtype = DType::f32;
    model = make_job_model(widened, source);
    type = stored_as(r.options.dtype, source.folder);
  });
  Output output(r.options.output, world);
  ParamTree params = make_job_params(r.job, source, model.get(), model->params());
  const std::vector<double> wanted = sample_outputs(*model, params);
  merge_adapters(params);
  i64 layers = 0;
  for (const ParamSpec& s : params.specs()) layers += s.adapter.dim == 1;
  {
    const ParamTree merged = params.subset(no_adapters(params.specs()));
    const auto plan = ckpt::plan_params({{"", &merged}}, type, "model");
    world.on_first([&] {
      if (const i64 free = disk_free(output.temp()); free < plan.bytes)
        throw IoError("[merge] {}: {} bytes are needed, {} are free", output.temp(), plan.bytes, free);
    });
    ckpt::save_params({{"", &merged}}, plan, output.temp());
  }
  params = ParamTree();
  world.on_first([&] {
    write_file_durable(join_path(output.temp(), "config.json"), saved_config(*model, type));
    if (const auto text = saved_generation_config(r.job, source, *model, tokenizer.get()); !text.empty())
      write_file_durable(join_path(output.temp(), "generation_config.json"), text);
    if (const std::string path = join_path(source.folder, "preprocessor_config.json"); exists(path))
      write_file_durable(join_path(output.temp(), "preprocessor_config.json"), read_file(path, 1 << 24));
    // How the model is used (Pipeline::model_files()).
    for (const char* name :
         {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"})
      if (const std::string path = join_path(source.adapter, name); exists(path))
        write_file_durable(join_path(output.temp(), name), read_file(path, 1 << 24));
    copy_files(source.adapter, output.temp(), "1_Pooling");
    for (const DenseModule& d : read_sentence_folder(source.adapter).dense)
      copy_files(source.adapter, output.temp(), d.folder);
    if (tokenizer) tokenizer->save(output.temp());
    copy_files(source.adapter, output.temp(), part_folder(kExtra));
  });

  // Read the written folder as any model.
  JobConfig plain;
  plain.parallel = r.job.parallel;
  plain.model.path = output.temp();
  plain.model.ignore_config_keys = r.job.model.ignore_config_keys;
  const ModelSource again = model_source(plain, nullptr);
  const auto merged = make_job_model(plain, again);
  const std::vector<double> got =
      sample_outputs(*merged, make_job_params(plain, again, merged.get(), merged->params()));
  REDCO_CHECK(got.size() == wanted.size(), "{} outputs, {} before", got.size(), wanted.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - wanted[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : HUGE_VAL;
    largest = std::max(largest, std::abs(wanted[i]));
  }
  // fp32: each weight and product has a relative error of 6e-8, so 1e-3 can't be rounding. bf16: each weight
  // has a relative error of up to 2^-9, which grows through tens of layers.
  const double allowed = (type == ckpt::StoredType::bf16 ? 0.1 : 1e-3) * largest;
  const std::string difference = fmt::format(
      "the largest difference of {} outputs, merged against adapter, is {:.3g} (the largest is {:.3g})",
      got.size(), worst, largest);
  if (!(worst <= allowed)) {
    if (first) error("[merge] {}: this is more than rounding. Nothing was published", difference);
    return static_cast<int>(ExitCode::check_failed);
  }
  output.publish();
  if (first) info("[merge] {} layers merged in {}; {}", layers, r.options.output, difference);
  return 0;
}

JobConfig merge_job(const std::string& folder, const std::string& base,
                    const std::vector<std::string>& overrides) {
  JobConfig job = load_job({}, overrides);
  if (!base.empty()) {
    job.model.path = base;
    job.origins.set("model.path", "--base", true);
  }
  if (ckpt::is_adapter(folder)) {
    job.predict.checkpoint = folder.find('/') == std::string::npos ? "./" + folder : folder;
  } else if (is_folder(join_path(folder, workdir::kCheckpoints))) {
    job.workdir = folder;
  } else {
    throw UsageError(
        "[merge] {} is neither an adapter's folder (it has no {}) nor a workdir with checkpoints", folder,
        ckpt::kAdapterConfig);
  }
  return job;
}

int run_merge(const RunRequest& request, const MergeOptions& options) {
  return run(trained_request(request, Weights::needed, JobUse::merge), [&](Run& run) {
    return merge({run.job(), options});
  });
}

}  // namespace redco
