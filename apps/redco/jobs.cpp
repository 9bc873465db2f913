// ls, cp and schema: the job files that come with redco.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/terminal.h"
#include "commands.h"
#include "job/shipped_jobs.h"

namespace redco::cli {

namespace {

constexpr const char* kSchemaFile = "redco.schema.json";

struct CopyOptions {
  std::string name, to;
  bool force = false, no_schema = false;
};

int copy_job(const CopyOptions& o) {
  const ShippedJob& job = shipped_job(o.name);
  const std::string file = job.name.substr(job.name.rfind('/') + 1) + ".yaml";
  const bool into_folder = o.to.empty() || o.to.back() == '/' || is_folder(o.to);
  const std::string folder = !into_folder ? parent_path(o.to) : o.to.empty() ? "." : o.to;
  const std::string to = into_folder ? join_path(folder, file) : o.to;
  if (!is_folder(folder)) throw UsageError("no such folder: {}", folder);
  if (exists(to) && !o.force) throw UsageError("{} exists; add --force to replace it", to);
  write_file_durable(to, text_for_user(job, o.no_schema ? "" : kSchemaFile));
  std::string also;
  if (!o.no_schema) {
    const std::string schema = join_path(folder, kSchemaFile);
    write_file_durable(schema, job_schema());
    also = fmt::format(" and {} (for editors)", schema);
  }
  info("wrote {}{}", to, also);
  return 0;
}

}  // namespace

void add_ls(CLI::App& app, Invocation& run) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = add_command(app, "ls", "List the example jobs of redco",
                            "  redco ls\n  redco cp lm/gpt2      copies one\n");
  c->add_flag("--json", *json, "print one JSON object per line: name, summary");
  c->callback([json, &run] {
    size_t width = 0;
    for (const ShippedJob& j : shipped_jobs()) width = std::max(width, j.name.size());
    for (const ShippedJob& j : shipped_jobs()) {
      std::string line;
      if (*json) {
        line = nlohmann::ordered_json{{"name", j.name}, {"summary", j.summary}}.dump();
      } else {
        line = fmt::format("{:<{}}  {}", j.name, width, j.summary);
        const auto columns = static_cast<size_t>(std::max(40, terminal_columns()));
        if (isatty(STDOUT_FILENO) && line.size() > columns) line = line.substr(0, columns - 3) + "...";
      }
      std::puts(line.c_str());
    }
    run.exit_code = 0;
  });
}

void add_cp(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<CopyOptions>();
  CLI::App* c = add_command(app, "cp", "Copy an example job, as a start for your own",
                            "  redco cp lm/gpt2                  writes gpt2.yaml here\n"
                            "  redco cp lm/gpt2 jobs/mine.yaml\n");
  c->add_option("NAME", o->name, "name of a job from `redco ls`")->required();
  expand_paths(c->add_option("TO", o->to, "file or folder to write; default: NAME.yaml in this folder"));
  c->add_flag("-f,--force", o->force, "replace an existing file");
  c->add_flag("--no-schema", o->no_schema,
              "do not write redco.schema.json, which editors use to complete and check keys");
  c->callback([o, &run] { run.exit_code = copy_job(*o); });
}

void add_schema(CLI::App& app, Invocation& run) {
  CLI::App* c = add_command(app, "schema", "Print the JSON Schema of job files, for editors",
                            "  redco schema > redco.schema.json\n"
                            "Put `# yaml-language-server: $schema=redco.schema.json` into the first line of "
                            "a job. Editors\n"
                            "with YAML support then complete its keys, show their help and mark mistakes.\n");
  c->callback([&run] {
    std::fputs(job_schema().c_str(), stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
