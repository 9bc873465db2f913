// Checks of the files that a job names.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "job/checks.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

class FileChecks {
 public:
  FileChecks(const JobConfig& job, Checks& c) : job_(job), c_(c) {}

  void file(const std::string& key, const std::string& path, bool folder_allowed = false) {
    if (is_builtin(path)) return;
    const auto info = file_info(path);
    if (!info) {
      problem(key, path, fmt::format("does not exist; {}", hint(path)));
    } else if (info->kind == FileInfo::folder && !folder_allowed) {
      problem(key, path, "is a folder; expected a file");
    }
  }
  // Data files; a folder that is left after expand_data_folders() may be one of images.
  void list(const std::string& key, const std::vector<std::string>& paths, bool folders_allowed) {
    for (std::size_t i = 0; i < paths.size(); ++i)
      file(fmt::format("{}[{}]", key, i), paths[i], folders_allowed);
  }

 private:
  void problem(const std::string& key, const std::string& path, const std::string& what) {
    c_.problem("{}: {}: {} {}", job_.origins.where(key), key, excerpt(path, 200), what);
  }

  // The similar name in the same folder; else the folder that relative paths start from.
  static std::string hint(const std::string& path) {
    if (path.find("://") != std::string::npos)
      return "redco reads files only: download it, and give the file";
    const std::string folder = parent_path(path);
    if (!is_folder(folder)) return fmt::format("neither does the folder {}", excerpt(folder, 200));
    const std::string near = nearest(file_name(path), list_dir(folder));
    if (!near.empty()) return fmt::format("did you mean {}?", folder == "." ? near : join_path(folder, near));
    std::error_code ec;
    return path.starts_with("/")
               ? "check the path"
               : fmt::format("the path is relative to {}", std::filesystem::current_path(ec).string());
  }

  const JobConfig& job_;
  Checks& c_;
};

}  // namespace

void check_files(const JobConfig& job, JobUse use, const MoreProblems& more) {
  Checks c(job);
  FileChecks files(job, c);
  // A custom pipeline may use the names in another way.
  if (const PipelineInfo* info = pipeline_info(job.pipeline); info && info->needs_data) {
    const bool folders = !info->reads_files_only;
    DataSettings data = job.data;
    const auto check = [&](const std::string& key, const std::vector<std::string>& paths) {
      files.list(key, paths, folders);
    };
    if (use == JobUse::train || use == JobUse::data) data.each_list(false, check);
    if (use == JobUse::train || use == JobUse::evaluate || use == JobUse::data) data.each_list(true, check);
  }
  files.list("data.calibration", job.data.calibration, false);
  if (use == JobUse::predict && job.predict.input) files.file("predict.input", *job.predict.input, true);
  if (use == JobUse::predict && job.predict.tools) files.file("predict.tools", *job.predict.tools);
  if (job.parallel.hostfile) files.file("parallel.hostfile", *job.parallel.hostfile);
  c.done(more);
}

}  // namespace redco
