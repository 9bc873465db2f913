// hosts: the check of a job's hosts before ranks start there.
#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "commands/check_hosts.h"

namespace redco::cli {

namespace {

struct HostsOptions {
  JobArguments words;
  bool json = false, here = false;
  HostQuestions questions;
};

}  // namespace

void add_hosts(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<HostsOptions>();
  CLI::App* c = add_command(
      app, "hosts", "Check the hosts of a job: reachable, same redco, cores, memory, clock, shared workdir",
      "  redco hosts job.yaml                                   a table, and a line for each problem\n"
      "  redco hosts job.yaml parallel.hosts='[node1:8, node2:8]' --json\n");
  add_job_words(*c, o->words, false);
  c->add_flag("--json", o->json, "print one JSON object on one line");
  c->add_flag("--here", o->here, "print the report of this host only, as JSON; redco runs it on each host");
  c->add_option("--nonce-file", o->questions.nonce_file, "with --here: file that another host has written")
      ->group("");
  c->add_option("--nonce", o->questions.nonce, "with --here: its contents")->group("");
  c->add_option("--readable", o->questions.files, "with --here: path that must be readable")->group("");
  c->callback([o, &run] {
    if (o->here) {
      std::puts(to_json(report_here(o->questions, REDCO_VERSION)).c_str());
      run.exit_code = 0;
      return;
    }
    const HostsCheck check = check_hosts(o->words.load(JobUse::validate), REDCO_VERSION, o->json);
    std::fputs(check.text.c_str(), stdout);
    run.exit_code = static_cast<int>(check.ok ? ExitCode::ok : ExitCode::check_failed);
  });
}

}  // namespace redco::cli
