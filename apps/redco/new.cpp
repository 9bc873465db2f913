// new: writes the skeleton of a pipeline or of a model family.
#include <fmt/ranges.h>

#include <cctype>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "commands.h"
#include "skeleton.h"

namespace redco::cli {
namespace {

constexpr const char* kCmake = R"text(cmake_minimum_required(VERSION 3.25)
project(@NAME@_@KIND@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(redco @VERSION@ REQUIRED)
add_library(@NAME@_@KIND@ MODULE @NAME@.cpp)
set_target_properties(@NAME@_@KIND@ PROPERTIES PREFIX "" OUTPUT_NAME @NAME@)
target_link_libraries(@NAME@_@KIND@ PRIVATE redco::redco)
)text";

std::string filled(std::string text, const std::map<std::string, std::string>& words) {
  for (const auto& [word, value] : words)
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size())
      text.replace(at, word.size(), value);
  return text;
}

// z_loss -> ZLoss.
std::string class_name(const std::string& name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return out;
}

void check_name(const std::string& name, const Skeleton& s) {
  constexpr std::size_t kLongest = 64;
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool good = !name.empty() && name.size() <= kLongest && letter(name[0]);
  for (const char c : name) good = good && (letter(c) || c == '_' || (c >= '0' && c <= '9'));
  if (!good)
    throw UsageError(
        "'{}' is not a {} name; expected lower-case letters, digits and underscores, at most {}, "
        "beginning with a letter, e.g. {}",
        excerpt(name), s.kind, kLongest, s.example);
}

void write_skeleton(const Skeleton& s, const std::string& name, const std::string& folder) {
  check_name(name, s);
  if (exists(folder) && !(is_folder(folder) && std::filesystem::is_empty(folder)))
    throw UsageError("{} exists; use another name, or another folder with --to", folder);
  const std::string version = REDCO_VERSION;
  const std::map<std::string, std::string> words = {
      {"@NAME@", name}, {"@CLASS@", class_name(name)}, {"@VERSION@", version.substr(0, version.rfind('.'))}};
  make_dirs(folder);
  for (const auto& [file, text] : s.files)
    write_file_durable(join_path(folder, filled(file, words)), filled(text, words));
  std::vector<std::string> files;
  for (const auto& [file, text] : s.files) files.push_back(filled(file, words));
  info("wrote {} into {}; now: cd {} && {}", fmt::join(files, ", "), folder, folder, s.begin);
}

// in_cpp: of the same kind in C++, for --cpp; null: there is one language.
void add_kind(CLI::App& parent, Invocation& run, const Skeleton& s, const Skeleton* in_cpp) {
  struct Options {
    std::string name, folder;
    bool cpp = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* p = add_command(parent, s.kind, "Write source, job.yaml and README.md of a " + s.kind,
                            fmt::format("  redco new {0} {1}\n"
                                        "  cd {1} && {2}\n",
                                        s.kind, s.example, s.begin));
  p->add_option("NAME", o->name,
                fmt::format("name of the {}: lower-case letters, digits and underscores", s.kind))
      ->required();
  expand_paths(p->add_option("--to", o->folder, "folder to write; default: NAME"));
  if (in_cpp) p->add_flag("--cpp", o->cpp, "in C++, with a CMakeLists.txt, instead of Python");
  p->callback([o, s, cpp = in_cpp ? *in_cpp : s, &run] {
    write_skeleton(o->cpp ? cpp : s, o->name, o->folder.empty() ? o->name : o->folder);
    run.exit_code = 0;
  });
}

}  // namespace

std::string skeleton_cmake(const std::string& kind) { return filled(kCmake, {{"@KIND@", kind}}); }

void add_new(CLI::App& app, Invocation& run) {
  CLI::App* c = add_command(app, "new", "Write the skeleton of a pipeline or of a model family",
                            "  redco new pipeline z_loss        writes z_loss/, in Python\n"
                            "  redco new pipeline z_loss --cpp  the same in C++\n"
                            "  redco new model my_decoder       writes my_decoder/\n");
  c->require_subcommand(1);
  const Skeleton in_cpp = pipeline_skeleton();
  add_kind(*c, run, python_pipeline_skeleton(), &in_cpp);
  add_kind(*c, run, model_skeleton(), nullptr);
}

}  // namespace redco::cli
