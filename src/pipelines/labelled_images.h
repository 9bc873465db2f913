// Images with labels as examples: from IDX files, from folders and archives with one folder per class, or
// from lines with image names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "data/images/idx.h"
#include "data/images/image_folder.h"
#include "data/images/image_preprocess.h"
#include "data/images/image_source.h"
#include "pipelines/labelled_data.h"

namespace redco {

class LabelledImages : public Dataset {
 public:
  // IDX files come in pairs, images before labels; without targets, files of labels are skipped. UsageError,
  // ContentsError: see data/images/image_folder.h, data/images/idx.h, data/labelled/labelled_rows.h; also for
  // a label outside the classes. `set`: the number of this data set; an Example's ids["image"] has it, and
  // the index in the set.
  LabelledImages(const std::vector<std::string>& files, const DataSettings& s, const LabelledTargets& targets,
                 const ImagePreprocess& preprocess, std::shared_ptr<const ImageSource> source, i32 set);

  i64 size() const override { return static_cast<i64>(places_.size()); }
  i64 length(i64) const override { return 1; }
  Example get(i64 i) const override;
  Example outline(i64 i) const override;  // without pixels
  std::string fingerprint() const override { return hasher_.digest128().hex(); }
  // IDX images are in memory.
  Reading reading() const override {
    return folders_.empty() && line_folders_.empty() ? Reading::threads : Reading::costly;
  }
  std::string describe() const override;
  float target(i64 i) const { return places_[static_cast<std::size_t>(i)].targets[0]; }  // the class index
  // [channels, height, width] of an image. ContentsError names the image.
  std::vector<float> pixels(i64 i) const;

 private:
  struct Place {
    i64 idx = -1, folder = -1, lines = -1;  // index of its IDX file, folder, or file of lines
    i64 image = 0;                          // index in it
    std::string name;                       // from its line
    std::vector<float> targets;
    std::string id;
  };

  std::string where(const Place& p) const;
  std::vector<float> targets_of(const std::vector<std::string>& label) const;
  void add(Place p, const std::vector<std::string>& label, const std::string& at);
  void add_folder(const std::string& path);
  void add_idx(const std::string& images, const std::string& labels);  // "" without targets
  void add_lines(const std::string& path, const DataSettings& s);

  i32 set_;
  ImagePreprocess preprocess_;
  LabelledTargets targets_;
  std::shared_ptr<const ImageSource> source_;  // of images in lines
  std::vector<IdxImages> idx_;
  std::vector<std::string> idx_names_;
  std::vector<ImageFolder> folders_;
  std::vector<std::string> line_folders_;
  std::vector<Place> places_;
  i64 n_bad_ = 0;  // skipped lines
  std::string first_bad_;
  Hasher hasher_;
};

// The number of dimensions in an IDX file's header; 0: not an IDX file.
int idx_dims(const std::string& path);
// Whether the path holds images in folders by class: a folder, or a .zip.
bool is_image_folder(const std::string& path);

}  // namespace redco
