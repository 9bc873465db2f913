// Tasks of meta-learning: a few examples for adaptation (support), and others of the same task for the loss
// (query). Drawn from (seed, epoch, index), the same on every rank.
//
// A classification task has n_ways classes in random order, with n_shots and n_query images of each. A
// regression task is a sine curve and points on it (Finn et al. 2017: amplitude 0.1 to 5, phase 0 to pi, x
// from -5 to 5).
#pragma once

#include <memory>

#include "models/model.h"
#include "pipeline/pipeline.h"

namespace redco {

// Images by class, preprocessed for a model.
struct ImageClasses {
  std::string name;  // for messages
  ImageShape shape;
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<float>>> images;  // by class; each is [channels, height, width]
  std::string fingerprint;
};

// `builtin:glyphs`, else folders or .zip archives whose innermost folders are classes
// (data/images/image_folder.h). Images are resized to the shape, with pixels from 0 (white) to 1 (black).
// evaluation: other glyphs than in training. ContentsErrors name the file or class.
std::shared_ptr<const ImageClasses> read_image_classes(const DataRequest& request, const ImageShape& shape);
// Parses a task of predict.input: {"support": [{"image": path, "label": name}, ...], "query": [{"image":
// path}, ...]}, or, for models of sine curves, {"support": [[x, y], ...], "query": [x, ...]}. The result is
// like a TaskSet's; `text` has the class names, a JSON list. ContentsErrors begin with `where`.
Example read_task(const std::string& json, const std::string& where, const Model& model);

// A task for display, with its prediction, an object: a task of sine curves as such a line, with y for each
// x; another task by its classes.
std::string task_json(const Example& task, const std::string& prediction);

// Its examples have values support_x, query_x, and ids (classes) or values (regression) support_y, query_y.
// Rows are in the order of the classes, whose names are in `text`.
class TaskSet : public Dataset {
 public:
  // classes: null for sine curves. ContentsError if there are too few classes, or too few images of a class.
  TaskSet(std::shared_ptr<const ImageClasses> classes, const MamlSettings& s, i64 size, u64 seed,
          bool evaluation);
  i64 size() const override { return size_; }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override;
  std::string fingerprint() const override;
  Reading reading() const override { return Reading::threads; }
  bool ordered() const override { return true; }  // they are generated
  // The tasks follow from the seed of the constructor.
  std::shared_ptr<const Dataset> of_epoch(std::shared_ptr<const Dataset> self, u64 seed,
                                          i64 epoch) const override;
  std::string describe() const override;

 private:
  bool turned() const { return settings_.rotations && !evaluation_; }
  std::vector<float> image(i64 way, i64 number) const;

  std::shared_ptr<const ImageClasses> classes_;
  MamlSettings settings_;
  i64 size_, epoch_ = 0;
  u64 seed_;
  bool evaluation_;
};

}  // namespace redco
