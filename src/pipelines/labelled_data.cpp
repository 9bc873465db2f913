#include "pipelines/labelled_data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/log.h"
#include "comm/group.h"
#include "data/builtin.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/token_index.h"
#include "ops/create.h"
#include "tensor/context.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The dimensions that an IDX file's header tells; 0: it is none.
int idx_dims(const std::string& path) {
  InputFile f = InputFile::open(path);
  char head[4] = {};
  std::size_t n = 0;
  while (n < 4)
    if (const std::size_t got = f.read(head + n, 4 - n); got > 0)
      n += got;
    else
      break;
  const bool idx = n == 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] >= 1;
  return idx ? head[3] : 0;
}

bool is_zip(const std::string& path) {
  std::string tail = path.size() < 4 ? "" : path.substr(path.size() - 4);
  std::transform(tail.begin(), tail.end(), tail.begin(), [](unsigned char c) { return std::tolower(c); });
  return tail == ".zip";
}

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
  bool concurrent() const override { return true; }
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
                       source_.data.too_long.value_or("") == "skip" ? "left out" : "cut");
    if (index_.n_bad() > 0)
      s += fmt::format("; {} bad rows passed over, the first: {}", index_.n_bad(), index_.first_bad());
    return s;
  }

 private:
  LabelledIndex index_;
  LabelledSource source_;
};

}  // namespace

LabelledInput labelled_input_of(const Model& model) {
  if (model.n_features() > 0) return LabelledInput::vector;
  return model.image_shape().channels > 0 ? LabelledInput::image : LabelledInput::text;
}

// Images of IDX files, of folders by class, or that lines name.
class LabelledData::Images : public Dataset {
 public:
  // `read`: get() reads the pixels. UsageError, ContentsError.
  Images(const std::vector<std::string>& files, const DataSettings& s, const LabelledTargets& targets,
         const ImagePreprocess& preprocess, const ImageSource& source, bool read)
      : preprocess_(preprocess), targets_(targets), read_(read), source_(source) {
    for (std::size_t k = 0; k < files.size(); ++k) {
      if (is_folder(files[k]) || is_zip(files[k])) {
        add_folder(files[k]);
      } else if (const int dims = idx_dims(files[k]); dims > 0) {
        const bool pair = k + 1 < files.size() && !is_folder(files[k + 1]) && idx_dims(files[k + 1]) == 1;
        if (dims == 1 || !pair)
          throw UsageError(
              "[data] {}: IDX files come in pairs: the images, then their labels, as in [{}, {}]", files[k],
              "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
        add_idx(files[k], files[k + 1]);
        ++k;
      } else {
        add_lines(files[k], s);
      }
    }
    if (places_.empty()) throw ContentsError("{}: there is no image in it", SourceFiles(files).words());
  }

  i64 size() const override { return static_cast<i64>(places_.size()); }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override {
    const Place& p = places_[static_cast<std::size_t>(i)];
    Example e;
    e.ordinal = i;
    e.id = p.id;
    e.text = dump({{"image", where(p)}});
    e.ids["image"] = {static_cast<i32>(i)};
    e.values["targets"] = p.targets;
    if (read_) e.values["pixel_values"] = pixels(i);
    return e;
  }
  std::vector<float> pixels(i64 i) const {
    const Place& p = places_[static_cast<std::size_t>(i)];
    const std::string at = where(p);
    if (p.idx >= 0) return preprocess_(idx_[static_cast<std::size_t>(p.idx)].at(p.image), at);
    if (p.folder >= 0)
      return preprocess_(decode_image(folders_[static_cast<std::size_t>(p.folder)].read(p.image), at), at);
    return preprocess_(source_.read(p.name, line_folders_[static_cast<std::size_t>(p.lines)]), at);
  }
  std::string fingerprint() const override { return hasher_.digest128().hex(); }
  bool concurrent() const override { return true; }
  std::string describe() const override {
    std::string s = fmt::format("{} images", size());
    if (!idx_.empty()) s += fmt::format(" of {} x {}", idx_[0].height, idx_[0].width);
    return targets_.classes ? s + " in " + targets_.classes->words() : s;
  }

 private:
  struct Place {
    i64 idx = -1, folder = -1, lines = -1;  // which of the files, the folders, the files of lines
    i64 image = 0;                          // in it
    std::string name;                       // that a line gives
    std::vector<float> targets;
    std::string id;
  };

  std::string where(const Place& p) const {
    if (p.idx >= 0) return fmt::format("{}: image {}", idx_names_[static_cast<std::size_t>(p.idx)], p.image);
    return p.folder >= 0 ? folders_[static_cast<std::size_t>(p.folder)].where(p.image)
                         : source_.where(p.name, line_folders_[static_cast<std::size_t>(p.lines)]);
  }

  void add(Place p, const std::vector<std::string>& label, const std::string& at) {
    const i64 expected = targets_.classes ? 1 : targets_.n;
    try {
      if (static_cast<i64>(label.size()) != expected)
        throw ContentsError("{} labels where {} are expected", label.size(), expected);
      for (const std::string& l : label)
        p.targets.push_back(targets_.classes ? static_cast<float>(targets_.classes->number_of(l))
                                             : parse_number(l, "the label"));
    } catch (const ContentsError& e) {
      throw ContentsError("{}: {}", at, e.what());
    }
    put(hasher_, where(p));
    for (const float t : p.targets) hasher_.update(&t, sizeof t);
    places_.push_back(std::move(p));
  }

  void add_folder(const std::string& path) {
    folders_.push_back(ImageFolder::open(path));
    const ImageFolder& f = folders_.back();
    put(hasher_, f.fingerprint());
    for (std::size_t i = 0; i < f.files().size(); ++i) {
      Place p;
      p.folder = static_cast<i64>(folders_.size()) - 1;
      p.image = static_cast<i64>(i);
      add(p, {f.classes()[static_cast<std::size_t>(f.files()[i].label)]}, f.where(p.image));
    }
  }

  void add_idx(const std::string& images, const std::string& labels) {
    idx_.push_back(read_idx_images(images));
    idx_names_.push_back(images);
    const std::vector<i32> all = read_idx_labels(labels);
    if (static_cast<i64>(all.size()) != idx_.back().count)
      throw ContentsError("{}: {} images, but {} has {} labels", images, idx_.back().count, labels,
                          all.size());
    hasher_.update(idx_.back().pixels.data(), idx_.back().pixels.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      Place p;
      p.idx = static_cast<i64>(idx_.size()) - 1;
      p.image = static_cast<i64>(i);
      add(p, {std::to_string(all[i])}, fmt::format("{}: label {}", labels, i));
    }
  }

  void add_lines(const std::string& path, const DataSettings& s) {
    line_folders_.push_back(parent_path(path));
    LabelledReader rows(path, s, LabelledInput::image);
    for (LabelledRow row;;) {
      try {
        if (!rows.next(row)) return;
        Place p;
        p.lines = static_cast<i64>(line_folders_.size()) - 1;
        p.name = row.image;
        p.id = row.id;
        add(p, row.label, rows.where());
      } catch (const ContentsError&) {
        if (!s.skip_bad) throw;
      }
    }
  }

  ImagePreprocess preprocess_;
  LabelledTargets targets_;
  bool read_;
  std::vector<IdxImages> idx_;
  std::vector<std::string> idx_names_;
  std::vector<ImageFolder> folders_;
  const ImageSource& source_;
  std::vector<std::string> line_folders_;
  std::vector<Place> places_;
  Hasher hasher_;
};

LabelledData::LabelledData(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings,
                           LabelledTargets targets)
    : model_(model),
      tokenizer_(tokenizer),
      settings_(settings.data),
      targets_(std::move(targets)),
      model_folder_(settings.model_folder) {}

const ImageSource& LabelledData::images() const {
  if (!images_) images_ = std::make_unique<ImageSource>(settings_.images);
  return *images_;
}

i64 LabelledData::max_length(i64 wanted) const {
  if (labelled_input_of(model_) != LabelledInput::text) return 0;
  if (!tokenizer_)
    throw UsageError(
        "[model] the {} model reads texts and has no tokenizer; give model.tokenizer (`bytes` or a "
        "tokenizer's folder)",
        model_.family());
  check_vocab(*tokenizer_, model_.vocab_size());
  if (wanted > model_.length_limit())
    throw UsageError("[data] data.max_length={} is more than the model's {} positions", wanted,
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
          .n_targets = targets_.n};
}

std::shared_ptr<const Dataset> LabelledData::open(const DataRequest& request) {
  Group& world = Context::current().world();
  const bool of_images = labelled_input_of(model_) == LabelledInput::image;
  std::string built;  // of images: their files, one a line
  LabelledSource s;
  world.together([&] { s = source(request); });
  world.on_first([&] {
    s.paths = data_files(request.files, request.evaluation, request.cache);
    if (!of_images)
      built = build_labelled_index(s, request.cache);
    else
      for (const std::string& f : s.paths) built += f + "\n";
  });
  built = world.agree(built);
  std::shared_ptr<const Dataset> data;
  world.together([&] {
    if (!of_images) {
      data = std::make_shared<IndexedExamples>(LabelledIndex::open(built), s);
      return;
    }
    s.paths.clear();
    for (std::size_t begin = 0, end; (end = built.find('\n', begin)) != std::string::npos; begin = end + 1)
      s.paths.push_back(built.substr(begin, end - begin));
    // An evaluation's examples are held all at once: their pixels are read batch by batch.
    auto all = std::make_shared<Images>(s.paths, settings_, targets_, preprocess(request.model_folder),
                                        images(), !request.evaluation);
    if (request.evaluation) evaluation_ = all;
    data = all;
  });
  return data;
}

Example LabelledData::request(const std::string& json, const std::string& where) const {
  try {
    const LabelledInput input = labelled_input_of(model_);
    const LabelledRow row = unlabelled_row(json, settings_.fields, input);
    if (input == LabelledInput::image) {
      Example e;
      e.text = dump({{"image", row.image}});
      pixels_of(e);  // a broken image shows now
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
  if (const auto it = e.ids.find("image"); it != e.ids.end() && evaluation_)
    return evaluation_->pixels(it->second.at(0));
  const std::string path = Json::parse(e.text).at("image");
  return preprocess(model_folder_)(images().read(path, "."), images().where(path, "."));
}

const ImagePreprocess& LabelledData::preprocess(const std::string& folder) const {
  const ImageShape shape = model_.image_shape();
  if (!preprocess_)
    preprocess_.emplace(folder, shape.channels, shape.height, shape.width, settings_.resize_images);
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
      std::vector<Example> rows(mine.size());
      for (std::size_t r = 0; r < mine.size(); ++r) rows[r].values["pixel_values"] = pixels_of(mine[r]);
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
      for (const ParamSpec& p : model_.params().specs)  // RoBERTa has a table of one type, for all tokens
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

std::vector<std::string> training_labels(const Model& model, const DataSettings& s,
                                         const std::string& cache) {
  const auto files = data_files(s.train, false, cache);
  const LabelledInput input = labelled_input_of(model);
  if (input != LabelledInput::image) return distinct_labels(files, s, input);
  std::vector<std::string> lines, out;
  for (const std::string& f : files) {
    if (is_folder(f) || is_zip(f)) {
      const ImageFolder folder = ImageFolder::open(f);
      out.insert(out.end(), folder.classes().begin(), folder.classes().end());
    } else if (const int dims = idx_dims(f); dims == 1) {
      for (const i32 label : read_idx_labels(f)) out.push_back(std::to_string(label));
    } else if (dims == 0) {
      lines.push_back(f);
    }
  }
  if (!lines.empty()) {
    const auto more = distinct_labels(lines, s, input);
    out.insert(out.end(), more.begin(), more.end());
  }
  return sorted_labels(std::move(out));
}

i64 training_targets(const Model& model, const DataSettings& s, const std::string& cache) {
  const auto files = data_files(s.train, false, cache);
  if (files.empty() || is_folder(files[0]) || idx_dims(files[0]) > 0) return 1;
  LabelledReader rows(files[0], s, labelled_input_of(model));
  LabelledRow row;
  return rows.next(row) ? static_cast<i64>(row.label.size()) : 1;
}

std::string json_number(float x) { return std::isfinite(x) ? fmt::format("{}", x) : "null"; }

}  // namespace redco
