#include "pipelines/captioned_images.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/text/example_json.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

const Tokenizer& required(const Tokenizer* tokenizer, const Model& text) {
  if (!tokenizer)
    throw UsageError(
        "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
        text.family());
  return *tokenizer;
}

}  // namespace

CaptionedImages::CaptionedImages(const Model& images, const Model& text, const Tokenizer* tokenizer,
                                 std::shared_ptr<const PipelineSettings> settings)
    : images_(images), text_(text), tokenizer_(tokenizer), settings_(std::move(settings)) {}

CaptionLines CaptionedImages::lines(const std::string& format) const {
  const DataSettings& data = settings_->data;
  PairSettings s = PairSettings::of(data, data.max_length.value_or(text_.max_length()), text_.length_limit());
  s.format = format;
  s.fields.source = data.fields.image;
  s.fields.target = data.fields.caption;
  return {required(tokenizer_, text_), std::move(s)};
}

ImagePreprocess CaptionedImages::preprocess() const {
  const ImageShape& image = images_.image_shape();
  return {settings_->weights_folder, image.channels, image.height, image.width,
          settings_->data.resize_images};
}

std::shared_ptr<const Dataset> CaptionedImages::open(const DataRequest& r) const {
  return make_caption_dataset(
      {r.files, r.evaluation, settings_->data.skip_bad, r.cache, text_.vocab_size()}, [&]() -> CaptionReader {
        return {lines(pair_format(settings_->data, r.files)),
                std::make_shared<CaptionedImageFiles>(settings_->data.images, preprocess())};
      });
}

std::vector<float> CaptionedImages::pixels(const std::string& name) const {
  std::call_once(opened_, [&] {
    files_ = std::make_unique<const CaptionedImageFiles>(settings_->data.images, preprocess());
  });
  return files_->read(name, ".");
}

Example CaptionedImages::request(const std::string& json, const std::string& where) const {
  Example e;
  try {
    const Json line = parse_example_line(json);
    const auto given = [&](const std::string& key) { return line.contains(key) && line[key].is_string(); };
    const std::string &image = settings_->data.fields.image, &named = settings_->data.fields.caption;
    const std::string key = caption_key(line, named), caption = given(key) ? key : "prompt";
    if (!given(image) && !given(caption))
      throw ContentsError("neither \"{}\" nor \"{}\" is a text", image, named);
    if (given(image)) e.values["pixels"] = pixels(line[image]);
    if (given(caption)) e.ids["labels"] = lines("jsonl").caption_ids(line[caption]);
  } catch (const ContentsError& error) {
    throw ContentsError("{}: {}", where, error.what());
  }
  return e;
}

Example CaptionedImages::image_request(const std::string& json, const std::string& where) const {
  Example e;
  try {
    const std::string name = lines("jsonl").image_of(json);
    e.values["pixels"] = pixels(name);
    e.text = Json({{"image", name}}).dump();
  } catch (const ContentsError& error) {
    throw ContentsError("{}: {}", where, error.what());
  }
  return e;
}

Example CaptionedImages::caption_request(const std::string& json, const std::string& where) const {
  try {
    return lines("jsonl").caption_of(json);
  } catch (const ContentsError& error) {
    throw ContentsError("{}: {}", where, error.what());
  }
}

void CaptionedImages::collate(std::span<const Example> rows, Batch& b) const {
  // Without rows: a plan, or a replica without examples.
  const auto any = [&](const auto& has) {
    return rows.empty() || std::any_of(rows.begin(), rows.end(), has);
  };
  const ImageShape& image = images_.image_shape();
  if (any([](const Example& e) { return e.values.count("pixels") > 0; }))
    b.fields["pixels"] = value_rows(rows, b.shape, "pixels", {image.channels, image.height, image.width});
  if (!any([](const Example& e) { return e.ids.count("labels") > 0; })) return;
  std::vector<Example> masks(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) masks[r].ids["mask"].assign(rows[r].ids.at("labels").size(), 1);
  BatchShape shape = b.shape;
  if (text_.pads_texts()) shape.length = text_.max_length();
  b.fields["input_ids"] = id_rows(rows, shape, "labels", std::max(0, text_.pad_token_id()));
  if (!text_.pads_texts()) b.fields["mask"] = id_rows(masks, shape, "mask", 0);
}

Batch CaptionedImages::batch_of(std::span<const Example> examples, bool image,
                                std::vector<size_t>* places) const {
  Batch b;
  std::vector<Example> rows;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& e = examples[i];
    if (image ? e.values.count("pixels") == 0 : e.ids.count("labels") == 0) continue;
    Example& row = rows.emplace_back();
    if (image) {
      row.values["pixels"] = e.values.at("pixels");
    } else {
      row.ids["labels"] = e.ids.at("labels");
      b.shape.length = std::max(b.shape.length, static_cast<i64>(row.ids["labels"].size()));
    }
    places->push_back(i);
  }
  b.shape.rows = b.shape.mine.end = static_cast<i64>(rows.size());
  if (!rows.empty()) collate(rows, b);
  return b;
}

}  // namespace redco
