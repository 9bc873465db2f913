#include "commands/sweep.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "config/tree.h"

namespace redco {

namespace {

constexpr std::size_t kMostTasks = 10'000;
constexpr i64 kMostSweepBytes = 1 << 20;

std::string sweep_value(const YamlNode& n, const std::string& key) {
  switch (n.kind) {
    case YamlNode::Kind::null:
      return "~";
    case YamlNode::Kind::scalar: {
      if (n.text.find('\n') != std::string::npos)
        throw UsageError("{}: a value of {} has a line break", n.place.words(), key);
      if (!n.quoted) return n.text;
      std::string text = "'";
      for (const char c : n.text) text += c == '\'' ? std::string("''") : std::string(1, c);
      return text + "'";
    }
    case YamlNode::Kind::list: {
      std::string text = "[";
      for (const YamlNode& e : n.list) text += (text.size() > 1 ? ", " : "") + sweep_value(e, key);
      return text + "]";
    }
    case YamlNode::Kind::map: {
      std::string text = "{";
      for (const auto& e : n.map)
        text += (text.size() > 1 ? ", " : "") + e.key + ": " + sweep_value(e.value, key);
      return text + "}";
    }
  }
  return "";
}

void check_sweep_key(const YamlNode::Entry& e) {
  if (e.key == "workdir")
    throw UsageError("{}: each task of a sweep has a workdir below the workdir of the job; remove the key",
                     e.place.words());
}

std::string task_file(i64 number) { return fmt::format("task-{}.txt", number); }

std::string lines_of(const std::vector<std::string>& overrides) {
  return fmt::format("{}\n", fmt::join(overrides, "\n"));
}

}  // namespace

Sweep read_sweep(const std::string& path) {
  const YamlNode root = parse_yaml(read_file(path, kMostSweepBytes), path);
  if (root.kind != YamlNode::Kind::map || root.map.empty())
    throw UsageError("{}: expected keys with lists of values: train.learning_rate: [1.0e-3, 3.0e-4]", path);
  Sweep out;
  out.tasks = {{}};
  for (const YamlNode::Entry& e : root.map) {
    check_sweep_key(e);
    if (e.value.kind != YamlNode::Kind::list || e.value.list.empty())
      throw UsageError("{}: {} needs a list of values, such as {}: [1, 2]", e.place.words(), e.key, e.key);
    if (out.tasks.size() * e.value.list.size() > kMostTasks)
      throw UsageError("{}: the sweep has more than {} tasks", e.place.words(), kMostTasks);
    std::vector<std::vector<std::string>> longer;
    for (const auto& task : out.tasks)
      for (const YamlNode& v : e.value.list) {
        longer.push_back(task);
        longer.back().push_back(e.key + "=" + sweep_value(v, e.key));
      }
    out.tasks = std::move(longer);
  }
  return out;
}

std::string sweep_folder(const std::string& workdir) {
  return join_path(std::filesystem::absolute(workdir).string(), "sweep");
}

void write_sweep(const Sweep& sweep, const std::string& folder) {
  const auto n = static_cast<i64>(sweep.tasks.size());
  bool same = !exists(join_path(folder, task_file(n)));
  for (i64 i = 0; i < n; ++i) {
    const std::string path = join_path(folder, task_file(i));
    same = same &&
           (!exists(path) || read_file(path, 1 << 20) == lines_of(sweep.tasks[static_cast<std::size_t>(i)]));
  }
  if (!same)
    throw UsageError(
        "[sbatch] {} holds another sweep, whose tasks may still run. Use another workdir, or remove the folder",
        folder);
  make_dirs(folder);
  for (i64 i = 0; i < n; ++i)
    write_file_durable(join_path(folder, task_file(i)), lines_of(sweep.tasks[static_cast<std::size_t>(i)]));
}

}  // namespace redco
