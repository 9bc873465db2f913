#include "commands/validate.h"

#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "commands.h"

namespace redco::cli {

void add_validate(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments job;
    bool json = false, reference = false;
    std::string explain;
    CLI::Option* explained = nullptr;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "validate", "Check a job's settings, and names and shapes of its weights",
                            "  redco validate job.yaml train.learning_rate=1e-3\n"
                            "  redco validate --explain parallel        print the keys of a section\n");
  add_job_words(*c, o->job, false);
  c->add_flag("--json", o->json, "print the result as JSON");
  auto* reference = c->add_flag("--reference", o->reference, "print all settings as Markdown, then stop");
  o->explained = c->add_option("--explain", o->explain, "print the help of a section or key, then stop")
                     ->type_name("[KEY]")
                     ->expected(0, 1);
  reference->excludes(o->explained);
  c->callback([o, &run] {
    std::string text;
    if (o->reference) {
      text = job_reference();
    } else if (o->explained->count() > 0) {
      text = job_help(o->explain);
    } else if (o->job.empty()) {
      throw CLI::RequiredError("JOB");
    } else {
      const Validation v = validate_job(o->job.files(), o->job.overrides());
      if (!v.problems.empty()) {
        if (o->json) std::fputs(to_json(v).c_str(), stdout);
        throw UsageError("{}", fmt::join(v.problems, "\n"));
      }
      text = o->json ? to_json(v) : to_text(v);
    }
    std::fputs(text.c_str(), stdout);
    if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
