// Images as examples, with or without a class, for the open() of a pipeline that has no model of images.
// (Pipelines with one read them as its config says: pipelines/labelled_data.h.)
//
//   std::shared_ptr<const Dataset> open(const DataRequest& request) override {
//     return read_images(request, settings->data, {1, 28, 28}, 10);
//   }
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace redco {

// The images of the request's files: pairs of IDX files (images, then their labels), folders and .zip
// archives with a folder per class, lines with an image's name and its label, or builtin:glyphs (28 x 28,
// grey). An example has values["pixel_values"], [channels, height, width] from -1 to 1, and ids["label"], the
// class. Images must have this shape, or data.resize_images is true. Classes are those of data.label_names;
// if it is empty, labels are numbers below n_classes. n_classes 0: examples have no "label", folders have
// images in any place, IDX files of labels are skipped, and lines need no label.
//
// UsageError: a file does not exist; data.label_names has another number of classes. ContentsError, with file
// and place: a broken file, an image of another size, an unknown label. Collective.
std::shared_ptr<const Dataset> read_images(const DataRequest& request, const DataSettings& settings,
                                           const ImageShape& shape, i64 n_classes = 0);
// For request(): the image that {"image": path} or {"prompt": path} names, as such an example without label;
// its text is {"image": path}. ContentsErrors begin with `where`. Thread-safe.
Example image_request(const std::string& json, const std::string& where, const DataSettings& settings,
                      const ImageShape& shape);

// The number of labels (i32) whose logit is the largest of its row: logits have one more dim than labels, the
// classes. Labels below 0 do not count. Without derivative.
Tensor count_right(const Tensor& logits, const Tensor& labels);
// For predict(): {"prediction": class, "label": class} of each example, from the logits of their rows.
std::vector<std::string> class_answers(const Tensor& logits, std::span<const Example> examples);

}  // namespace redco
