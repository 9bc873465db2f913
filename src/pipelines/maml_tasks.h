// Tasks of meta-learning: a few examples to learn from (support), and others of the same task to be tested on
// (query). Drawn anew by (seed, epoch, number), the same on every rank.
//
// A task of a classification is n_ways classes in an order of its own, n_shots and n_query drawings of each;
// of a regression, a sine curve and points on it (Finn et al. 2017: amplitude 0.1 to 5, phase 0 to pi, x
// within 5).
#pragma once

#include <memory>

#include "models/model.h"
#include "train/pipeline.h"

namespace redco {

// Drawings in classes, as a model reads them.
struct ImageClasses {
  std::string name;  // for messages
  ImageShape shape;
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<float>>> images;  // by class, each [channels, height, width]
  std::string fingerprint;
};

// `builtin:glyphs`, else folders or .zip archives whose innermost folders are classes (data/image_folder.h):
// images resized to the shape, pixels from 0 (white) to 1 (black). evaluation: other glyphs than those of
// training. ContentsErrors name file or class.
std::shared_ptr<const ImageClasses> read_image_classes(const DataRequest& request, const ImageShape& shape);
// A task of predict.input, {"support": [{"image": path, "label": name}, ...], "query": [{"image": path},
// ...]} or, of sine curves' models, {"support": [[x, y], ...], "query": [x, ...]}, as a TaskSet's; `text` has
// the names of the classes, a JSON list. ContentsErrors begin with `where`.
Example read_task(const std::string& json, const std::string& where, const Model& model);

// A task of sine curves as such a line, with y beside each x; of another one its classes; and what is
// predicted, an object. For people.
std::string task_json(const Example& task, const std::string& prediction);

// Its examples have values support_x, query_x, and ids (classes) or values (regression) support_y, query_y,
// rows in the order of the classes, whose names `text` has.
class TaskSet : public Dataset {
 public:
  // classes: null for sine curves. ContentsError where they are too few, or one of them has too few drawings.
  TaskSet(std::shared_ptr<const ImageClasses> classes, const MamlSettings& s, i64 size, u64 seed,
          bool evaluation);
  // The tasks of that epoch.
  std::shared_ptr<const TaskSet> at_epoch(i64 epoch) const;

  i64 size() const override { return size_; }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override;
  std::string fingerprint() const override;
  bool concurrent() const override { return true; }
  bool ordered() const override { return true; }  // they are drawn, not stored
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
