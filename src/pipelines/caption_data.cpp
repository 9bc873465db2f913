#include "pipelines/caption_data.h"

#include "base/error.h"

namespace redco {

CaptionLines caption_lines(const Pipeline& pipeline, const std::string& format) {
  const Model& model = *pipeline.model;
  const DataSettings& data = pipeline.settings->data;
  if (!pipeline.tokenizer)
    throw UsageError(
        "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
        model.family());
  PairSettings s = PairSettings::of(data, data.max_length.value_or(model.max_length()), model.length_limit());
  s.format = format;
  s.fields.source = data.fields.image;
  s.fields.target = data.fields.caption;
  return {*pipeline.tokenizer, std::move(s)};
}

ImagePreprocess pixel_preprocess(const Pipeline& pipeline) {
  const ImageShape& image = pipeline.model->image_shape();
  const PipelineSettings& s = *pipeline.settings;
  return {s.weights_folder, image.channels, image.height, image.width, s.data.resize_images};
}

std::shared_ptr<const Dataset> open_captions(const Pipeline& pipeline, const DataRequest& r) {
  const DataSettings& data = pipeline.settings->data;
  return make_caption_dataset(
      {r.files, r.evaluation, data.skip_bad, r.cache, pipeline.model->vocab_size()},
      [&]() -> CaptionReader {
        return {caption_lines(pipeline, pair_format(data, r.files)), pixel_preprocess(pipeline)};
      },
      data.images);
}

}  // namespace redco
