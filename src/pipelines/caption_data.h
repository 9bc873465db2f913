// Images with captions, for the pipelines that read them: captioning and text_to_image.
#pragma once

#include <memory>
#include <string>

#include "data/image_preprocess.h"
#include "train/caption_dataset.h"
#include "train/pipeline.h"

namespace redco {

// The tokenization of captions by the job's settings. A caption has at most data.max_target_length tokens, or
// else as many as the model has positions. UsageError: the job has no tokenizer.
CaptionLines caption_lines(const Pipeline& pipeline, const std::string& format);
// From images to the model's pixels.
ImagePreprocess pixel_preprocess(const Pipeline& pipeline);
// Pipeline::open(): the Dataset of train/caption_dataset.h. Collective.
std::shared_ptr<const Dataset> open_captions(const Pipeline& pipeline, const DataRequest& request);

}  // namespace redco
