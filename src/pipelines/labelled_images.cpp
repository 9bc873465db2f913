#include "pipelines/labelled_images.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"

namespace redco {

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

bool is_image_folder(const std::string& path) {
  if (is_folder(path)) return true;
  std::string tail = path.size() < 4 ? "" : path.substr(path.size() - 4);
  std::transform(tail.begin(), tail.end(), tail.begin(), [](unsigned char c) { return std::tolower(c); });
  return tail == ".zip";
}

LabelledImages::LabelledImages(const std::vector<std::string>& files, const DataSettings& s,
                               const LabelledTargets& targets, const ImagePreprocess& preprocess,
                               std::shared_ptr<const ImageSource> source, i32 set)
    : set_(set), preprocess_(preprocess), targets_(targets), source_(std::move(source)) {
  for (std::size_t k = 0; k < files.size(); ++k) {
    if (is_image_folder(files[k])) {
      add_folder(files[k]);
    } else if (const int dims = idx_dims(files[k]); dims > 0) {
      if (targets_.none()) {
        if (dims > 1) add_idx(files[k], "");
        continue;
      }
      const bool pair = k + 1 < files.size() && !is_folder(files[k + 1]) && idx_dims(files[k + 1]) == 1;
      if (dims == 1 || !pair)
        throw UsageError("[data] {}: IDX files come in pairs: the images, then their labels, as in [{}, {}]",
                         files[k], "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
      add_idx(files[k], files[k + 1]);
      ++k;
    } else {
      add_lines(files[k], s);
    }
  }
  if (places_.empty()) throw ContentsError("{}: the files have no images", words_of_files(files));
}

Example LabelledImages::get(i64 i) const {
  Example e = outline(i);
  e.values["pixel_values"] = pixels(i);
  return e;
}

Example LabelledImages::outline(i64 i) const {
  const Place& p = places_[static_cast<std::size_t>(i)];
  Example e;
  e.ordinal = i;
  e.id = p.id;
  e.text =
      nlohmann::json({{"image", where(p)}}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  e.ids["image"] = {set_, static_cast<i32>(i)};
  e.values["targets"] = p.targets;
  return e;
}

std::vector<float> LabelledImages::pixels(i64 i) const {
  const Place& p = places_[static_cast<std::size_t>(i)];
  const std::string at = where(p);
  if (p.idx >= 0) return preprocess_(idx_[static_cast<std::size_t>(p.idx)].at(p.image), at);
  if (p.folder >= 0)
    return preprocess_(decode_image(folders_[static_cast<std::size_t>(p.folder)].read(p.image), at), at);
  return preprocess_(source_->read(p.name, line_folders_[static_cast<std::size_t>(p.lines)]), at);
}

std::string LabelledImages::describe() const {
  std::string s = fmt::format("{} images", size());
  if (!idx_.empty()) s += fmt::format(" of {} x {}", idx_[0].height, idx_[0].width);
  if (targets_.classes) s += " in " + targets_.classes->words();
  for (const ImageFolder& f : folders_) s += f.ignored();
  if (n_bad_ > 0) s += fmt::format("; {} bad rows skipped, the first: {}", n_bad_, first_bad_);
  return s;
}

std::string LabelledImages::where(const Place& p) const {
  if (p.idx >= 0) return fmt::format("{}: image {}", idx_names_[static_cast<std::size_t>(p.idx)], p.image);
  return p.folder >= 0 ? folders_[static_cast<std::size_t>(p.folder)].where(p.image)
                       : source_->where(p.name, line_folders_[static_cast<std::size_t>(p.lines)]);
}

std::vector<float> LabelledImages::targets_of(const std::vector<std::string>& label) const {
  if (targets_.none()) return {};
  const i64 expected = targets_.classes ? 1 : targets_.n;
  if (static_cast<i64>(label.size()) != expected)
    throw ContentsError("{} labels, but {} are expected", label.size(), expected);
  std::vector<float> out;
  for (const std::string& l : label)
    out.push_back(targets_.classes ? static_cast<float>(targets_.classes->number_of(l))
                                   : parse_number(l, "the label"));
  return out;
}

void LabelledImages::add(Place p, const std::vector<std::string>& label, const std::string& at) {
  try {
    p.targets = targets_of(label);
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", at, e.what());
  }
  put(hasher_, where(p));
  for (const float t : p.targets) hasher_.update(&t, sizeof t);
  places_.push_back(std::move(p));
}

void LabelledImages::add_folder(const std::string& path) {
  folders_.push_back(ImageFolder::open(path, targets_.none()));
  const ImageFolder& f = folders_.back();
  put(hasher_, f.fingerprint());
  for (std::size_t i = 0; i < f.files().size(); ++i) {
    Place p;
    p.folder = static_cast<i64>(folders_.size()) - 1;
    p.image = static_cast<i64>(i);
    add(p, {f.classes()[static_cast<std::size_t>(f.files()[i].label)]}, f.where(p.image));
  }
}

void LabelledImages::add_idx(const std::string& images, const std::string& labels) {
  idx_.push_back(read_idx_images(images));
  idx_names_.push_back(images);
  const i64 n = idx_.back().count;
  const bool labelled = !targets_.none();
  const std::vector<i32> all = labelled ? read_idx_labels(labels) : std::vector<i32>();
  if (labelled && static_cast<i64>(all.size()) != n)
    throw ContentsError("{}: {} images, but {} has {} labels", images, n, labels, all.size());
  hasher_.update(idx_.back().pixels.data(), idx_.back().pixels.size());
  for (i64 i = 0; i < n; ++i) {
    Place p;
    p.idx = static_cast<i64>(idx_.size()) - 1;
    p.image = i;
    add(p, {labelled ? std::to_string(all[static_cast<std::size_t>(i)]) : ""},
        fmt::format("{}: label {}", labels, i));
  }
}

void LabelledImages::add_lines(const std::string& path, const DataSettings& s) {
  line_folders_.push_back(parent_path(path));
  DataSettings own = s;
  if (targets_.none()) own.fields.label.clear();
  LabelledReader rows(path, own, LabelledInput::image);
  for (LabelledRow row; rows.next(row);) {
    std::string bad = row.bad;
    if (bad.empty()) {
      Place p;
      p.lines = static_cast<i64>(line_folders_.size()) - 1;
      p.name = row.image;
      p.id = row.id;
      try {
        add(p, row.label, rows.where());
        continue;
      } catch (const ContentsError& e) {
        bad = e.what();
      }
    }
    skip_or_throw(bad, s);
    if (n_bad_++ == 0) first_bad_ = bad;
  }
}

}  // namespace redco
