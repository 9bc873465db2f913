// The data files in a folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct FolderFiles {
  std::vector<std::string> files;  // sorted by name
  std::string format;              // of all files; of the first one if they differ
  std::string other;               // a file of another format; "" if there is none
  i64 skipped = 0;                 // files of unknown format, without hidden ones
  std::string image;               // an image among them; "" if there is none
  bool has_folders = false;
  bool below = false;  // the files are in folders below
  std::string split;   // of the files, if there are others: "train"; "" for files whose names tell none
  i64 other_splits = 0;
};

// The data files of a folder, for training or for evaluation:
// - A data set that the library datasets saved (save_to_disk): the files that its state.json names. A folder
//   of several splits: those of the split.
// - Otherwise the files directly in `folder` whose names tell a format (format_by_name), or only those of
//   `format`; if there are none, the files in the folders below. Hidden files and folders are skipped.
//   Symbolic links to files count as files.
// If their names tell different splits (split_of), training takes train, else the files of no split;
// evaluation takes validation, else test. UsageError: none of these. ContentsError: damaged files of
// datasets.
FolderFiles files_of_folder(const std::string& folder, const std::optional<std::string>& format,
                            bool evaluation);

// The folder of the images to use in a folder whose folders are all splits (train, val, test, and so on, at
// least two of them): that of train, or for evaluation of validation, else test. "" for another folder.
// UsageError: none of these.
std::string folder_of_image_split(const std::string& folder, bool evaluation);

// Whether the name of a folder is a split's: train, validation, test and the other words of the Hugging Face
// Hub.
bool is_split_name(const std::string& name);

// The split that the path of a file names, by the words of the Hugging Face Hub: "train", "validation" or
// "test", such as data/train-00000-of-00002.parquet, squad_dev.json, test/a.csv; "" if there is none. A text
// file is of a split only if its name has no other word, or by its folder.
std::string split_of(const std::string& path);

}  // namespace redco
