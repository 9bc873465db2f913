#include "pipelines/labelled_data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/ordered_work.h"
#include "data/builtin/builtin.h"
#include "data/text/token_index.h"
#include "ops/create.h"
#include "pipeline/indexed_data.h"
#include "pipeline/n_readers.h"
#include "pipelines/labelled_images.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Texts and vectors.
class IndexedExamples : public Dataset {
 public:
  IndexedExamples(LabelledIndex index, LabelledSource source)
      : index_(std::move(index)), source_(std::move(source)) {}
  i64 size() const override { return index_.size(); }
  i64 length(i64 i) const override { return std::max<i64>(1, index_.tokens(i)); }
  Example get(i64 i) const override {
    LabelledExample x = index_.read(i);
    Example e = example(x);
    e.ordinal = i;
    e.values["targets"] = std::move(x.targets);
    return e;
  }
  float target(i64 i) const { return index_.read(i).targets[0]; }  // the class
  static Example example(LabelledExample& x) {
    Example e;
    e.text = std::move(x.text);
    e.id = std::move(x.id);
    if (x.values.empty()) {
      e.ids["token_type_ids"].assign(x.types.begin(), x.types.end());
      e.ids["input_ids"] = std::move(x.ids);
    } else {
      e.values["features"] = std::move(x.values);
    }
    return e;
  }
  std::string fingerprint() const override { return index_.data_hash(); }
  Reading reading() const override { return Reading::threads; }
  std::string describe() const override {
    const bool texts = source_.input == LabelledInput::text;
    std::string s = fmt::format("{} {}", size(), texts ? "texts" : "vectors");
    if (source_.classes) s += fmt::format(" in {}", source_.classes->words());
    if (texts)
      s +=
          fmt::format("; {:.1f} tokens on average, at most {}",
                      static_cast<double>(index_.n_tokens()) / static_cast<double>(size()), index_.longest());
    if (index_.truncated() > 0)
      s += fmt::format("; {} had more than {} and were {}", index_.truncated(), source_.max_length,
                       source_.data.too_long.value_or("") == "skip" ? "skipped" : "cut");
    if (index_.n_bad() > 0)
      s += fmt::format("; {} bad rows skipped, the first: {}", index_.n_bad(), index_.first_bad());
    return s;
  }

 private:
  LabelledIndex index_;
  LabelledSource source_;
};

// Names the classes that none of the `size` training examples has; target(i) is the class of example i.
void warn_of_unused(i64 size, const std::function<float(i64)>& target, const ClassNames& classes) {
  std::vector<bool> used(classes.names().size());
  std::size_t missing = used.size();
  for (i64 i = 0; i < size && missing > 0; ++i) {
    const auto n = static_cast<std::size_t>(target(i));
    missing -= used[n] ? 0 : 1;
    used[n] = true;
  }
  if (missing == 0) return;
  std::string names;
  for (std::size_t n = 0, shown = 0; n < used.size() && shown < 10; ++n)
    if (!used[n]) names += (shown++ > 0 ? ", " : "") + classes.names()[n];
  warn("[data] {} of {} classes have no training example: {}{}. The model can't learn them", missing,
       used.size(), names, missing > 10 ? ", ..." : "");
}

}  // namespace

LabelledInput labelled_input_of(const Model& model) {
  if (model.n_features() > 0) return LabelledInput::vector;
  return model.image_shape().channels > 0 ? LabelledInput::image : LabelledInput::text;
}

LabelledData::LabelledData(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings,
                           LabelledTargets targets)
    : model_(model),
      tokenizer_(tokenizer),
      settings_(settings.data),
      targets_(std::move(targets)),
      weights_folder_(settings.weights_folder) {}

std::shared_ptr<const ImageSource> LabelledData::images() const {
  std::call_once(opened_images_, [&] { images_ = std::make_shared<ImageSource>(settings_.images); });
  return images_;
}

i64 LabelledData::max_length(i64 wanted) const {
  if (labelled_input_of(model_) != LabelledInput::text) return 0;
  if (!tokenizer_)
    throw UsageError(
        "[model] the {} model needs a tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
        model_.family());
  check_vocab(*tokenizer_, model_.vocab_size());
  if (wanted > model_.length_limit())
    throw UsageError("[data] data.max_length={} is more than the model's maximum of {}", wanted,
                     model_.length_limit());
  return wanted > 0 ? wanted : model_.max_length();
}

LabelledSource LabelledData::source(const DataRequest& request) const {
  return {.paths = request.files,
          .data = settings_,
          .input = labelled_input_of(model_),
          .tokenizer = tokenizer_,
          .max_length = max_length(request.max_length),
          .n_features = model_.n_features(),
          .classes = targets_.classes,
          .n_targets = targets_.n,
          .several = targets_.several};
}

std::shared_ptr<const Dataset> LabelledData::open(const DataRequest& request) {
  const bool of_images = labelled_input_of(model_) == LabelledInput::image;
  LabelledSource s;
  std::function<float(i64)> target;  // the class of an example
  return open_indexed(
      {.prepare =
           [&] {
             s = source(request);
             s.paths = data_file_names(request.files, request.evaluation, request.cache);
           },
       .build =
           [&] {
             data_files(request.files, request.evaluation, request.cache);  // writes the built-in ones
             return of_images ? "" : build_labelled_index(s, request.cache);
           },
       .open = [&](const std::string& index) -> std::shared_ptr<const Dataset> {
         if (!of_images) {
           const auto all = std::make_shared<IndexedExamples>(LabelledIndex::open(index, s.paths), s);
           target = [all](i64 i) { return all->target(i); };
           return all;
         }
         const auto all = std::make_shared<LabelledImages>(s.paths, settings_, targets_,
                                                           preprocess(request.weights_folder), images(),
                                                           static_cast<i32>(opened_.size()));
         opened_.push_back(all);
         target = [all](i64 i) { return all->target(i); };
         return all;
       },
       .report =
           [&](const Dataset& data) {
             if (targets_.classes && !targets_.several && !request.evaluation)
               warn_of_unused(data.size(), target, *targets_.classes);
           }});
}

Example LabelledData::request(const std::string& json, const std::string& where) const {
  try {
    const LabelledInput input = labelled_input_of(model_);
    const LabelledRow row = unlabelled_row(json, settings_.fields, input);
    if (input == LabelledInput::image) {
      Example e;
      e.text = dump({{"image", row.image}});
      pixels_of(e);  // a broken image is an error here, not later
      return e;
    }
    DataRequest r;
    r.max_length = settings_.max_length.value_or(0);
    LabelledExample x = labelled_input(row, source(r));
    return IndexedExamples::example(x);
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where, e.what());
  }
}

std::vector<float> LabelledData::pixels_of(const Example& e) const {
  if (const auto it = e.values.find("pixel_values"); it != e.values.end()) return it->second;
  if (const auto it = e.ids.find("image"); it != e.ids.end())
    return opened_.at(static_cast<std::size_t>(it->second.at(0)))->pixels(it->second.at(1));
  const std::string path = Json::parse(e.text).at("image");
  return preprocess(weights_folder_)(images()->read(path, "."), images()->where(path, "."));
}

const ImagePreprocess& LabelledData::preprocess(const std::string& folder) const {
  std::call_once(made_preprocess_, [&] {
    const ImageShape shape = model_.image_shape();
    preprocess_.emplace(folder, shape.channels, shape.height, shape.width, settings_.resize_images);
  });
  return *preprocess_;
}

void LabelledData::collate(std::span<const Example> mine, Batch& b) const {
  const BatchShape& s = b.shape;
  b.weights["loss"] = static_cast<double>(mine.size());
  switch (labelled_input_of(model_)) {
    case LabelledInput::vector:
      b.fields["features"] = value_rows(mine, s, "features", {model_.n_features()});
      return;
    case LabelledInput::image: {
      const bool prefetched = std::all_of(mine.begin(), mine.end(),
                                          [](const Example& e) { return e.values.count("pixel_values"); });
      std::vector<Example> rows;
      OrderedWork<const Example*, std::vector<float>> work(
          prefetched ? 0 : n_readers(Reading::costly, settings_.n_workers),
          [&](const Example* e, int) { return pixels_of(*e); },
          [&](std::vector<float> pixels) { rows.emplace_back().values["pixel_values"] = std::move(pixels); });
      for (const Example& e : mine) work.add(&e);
      work.finish();
      const ImageShape shape = model_.image_shape();
      b.fields["pixel_values"] =
          value_rows(rows, s, "pixel_values", {shape.channels, shape.height, shape.width});
      return;
    }
    case LabelledInput::text: {
      std::vector<Example> masks(mine.size());
      for (std::size_t r = 0; r < mine.size(); ++r)
        masks[r].ids["key_mask"].assign(mine[r].ids.at("input_ids").size(), 1);
      b.fields["input_ids"] = id_rows(mine, s, "input_ids", std::max(0, model_.pad_token_id()));
      b.fields["key_mask"] = id_rows(masks, s, "key_mask", 0);
      for (const ParamSpec& p : model_.params().specs)  // RoBERTa has one token type for all tokens
        if (p.name.ends_with("token_type_embeddings.weight") && p.shape[0] > 1)
          b.fields["token_type_ids"] = id_rows(mine, s, "token_type_ids", 0);
      return;
    }
  }
}

EncoderInputs LabelledData::inputs(const Batch& b) const {
  const auto field = [&](const char* name) {
    const auto it = b.fields.find(name);
    return it == b.fields.end() ? Tensor() : it->second;
  };
  return {.input_ids = field("input_ids"),
          .key_mask = field("key_mask"),
          .token_type_ids = field("token_type_ids"),
          .pixel_values = field("pixel_values"),
          .features = field("features")};
}

Batch LabelledData::batch_of(std::span<const Example> examples) const {
  Batch b;
  const i64 n = static_cast<i64>(examples.size());
  b.shape = {.rows = n, .mine = {0, n}, .length = 1};
  for (const Example& e : examples)
    if (const auto it = e.ids.find("input_ids"); it != e.ids.end())
      b.shape.length = std::max(b.shape.length, static_cast<i64>(it->second.size()));
  collate(examples, b);
  return b;
}

std::string LabelledData::output(const Example& e, const std::string& prediction,
                                 const std::string& label) const {
  Json j = {{"id", e.id.empty() ? Json(e.ordinal) : Json::parse(e.id, nullptr, false)}};
  if (const Json asked = Json::parse(e.text, nullptr, false); asked.is_object()) j.update(asked);
  j.update(Json::parse(prediction));
  j["label"] = Json::parse(label);
  return dump(j);
}

std::string json_number(float x) { return std::isfinite(x) ? fmt::format("{}", x) : "null"; }

}  // namespace redco
