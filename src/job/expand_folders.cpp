// Replaces folders in lists of data files by their files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "data/index/data_folders.h"
#include "data/text/record_lines.h"
#include "job/job_config.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

// The first names, for the log.
std::string words_of_names(const std::vector<std::string>& files, const std::string& folder) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(files.size(), shown); ++i)
    names.push_back(excerpt(files[i].substr(std::min(files[i].size(), folder.size()))));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     files.size() > shown ? fmt::format(" and {} more", files.size() - shown) : "");
}

// The files of a folder; the folder itself if the pipeline may read it.
std::vector<std::string> files_of(const JobConfig& job, const std::string& key, const std::string& folder,
                                  bool evaluation, bool log) {
  const FolderFiles found = files_of_folder(folder, job.data.format, evaluation);
  if (!found.image.empty())
    if (const std::string split = folder_of_image_split(folder, evaluation); !split.empty()) {
      if (log)
        info("[data] {}: the folder {} has splits; this is {}", key, excerpt(folder, 200),
             excerpt(split, 200));
      return files_of(job, key, split, evaluation, log);
    }
  const PipelineInfo* pipeline = pipeline_info(job.pipeline);
  const bool files_only = pipeline && pipeline->reads_files_only;
  // Built-in pipelines that read folders of images also read tables in folders below.
  const bool images = !pipeline || !found.below || !found.image.empty() || found.format == "text";
  const bool described = !found.files.empty() && std::ranges::all_of(found.files, is_image_table);
  if (!files_only && !described && (found.files.empty() || (found.has_folders && images))) return {folder};
  const std::string path = excerpt(folder, 200);
  // Texts among images: a built-in pipeline reads the images.
  if (!files_only && !found.image.empty() && found.format == "text" && !job.data.format) {
    if (pipeline) return {folder};
    throw UsageError(
        "the folder {} has images and texts, such as {} and {}, expected one of the two. To read the images, "
        "remove the texts; to read the texts, set data.format: text",
        path, excerpt(file_name(found.image)), excerpt(file_name(found.files[0])));
  }
  if (found.files.empty())
    throw UsageError(
        "the folder {} has no {}, and neither have the folders in it; expected names ending in {}. For other "
        "names use a pattern, e.g. {}",
        path, job.data.format ? "file of data.format=" + *job.data.format : "data file", kKnownEndings,
        join_path(path, "*.text"));
  if (!found.other.empty())
    throw UsageError(
        "the folder {} has files of several formats, such as {} and {}, expected one format. Set "
        "data.format, which selects the files of that format, or use a pattern, e.g. {}",
        path, excerpt(file_name(found.files[0])), excerpt(file_name(found.other)),
        join_path(path, "*.jsonl"));
  if (log)
    info("[data] {}: {} in the folder {}{}{}: {}", key, counted(found.files.size(), found.format + " file"),
         path, found.skipped == 0 ? "" : fmt::format("; {} skipped", counted(found.skipped, "other file")),
         found.other_splits == 0 ? "" : fmt::format("; {} of other splits left out", found.other_splits),
         words_of_names(found.files, join_path(folder, "")));
  return found.files;
}

}  // namespace

void expand_data_folders(JobConfig& job, JobUse use) {
  std::vector<std::string> problems;
  for (const bool evaluation : {false, true}) {
    const bool log = use == JobUse::train || use == JobUse::data || (evaluation && use == JobUse::evaluate);
    job.data.each_list(evaluation, [&](const std::string& key, std::vector<std::string>& files) {
      std::vector<std::string> all, places;
      for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string item = fmt::format("{}[{}]", key, i), place = job.origins.where(item);
        std::vector<std::string> some = {files[i]};
        try {
          if (!is_builtin(files[i]) && is_folder(files[i]))
            some = files_of(job, key, files[i], evaluation, log);
        } catch (const UsageError& e) {
          problems.push_back(fmt::format("{}: {}: {}", place, item, e.what()));
        }
        places.insert(places.end(), some.size(), place);
        all.insert(all.end(), some.begin(), some.end());
      }
      // The items of a list have their own places.
      if (job.origins.given(key + "[0]"))
        for (std::size_t i = 0; i < all.size(); ++i)
          job.origins.set(fmt::format("{}[{}]", key, i), places[i], job.origins.overridden(key));
      files = std::move(all);
    });
  }
  if (!problems.empty()) throw UsageError("{}", fmt::join(problems, "\n"));
}

}  // namespace redco
