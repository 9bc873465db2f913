#include <cstdio>

#include "assembly/trained_job.h"
#include "base/log.h"
#include "base/terminal.h"
#include "commands.h"
#include "commands/build_data.h"
#include "commands/show_data.h"
#include "job/prepare_job.h"

namespace redco::cli {

namespace {

void add_data_build(CLI::App& data, Invocation& run) {
  struct Options {
    JobArguments words;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(
      data, "build",
      "Tokenize a job's data before its training: build the indexes of data.train and data.eval",
      "  redco data build job.yaml data.cache=/shared/indexes\n"
      "  redco train job.yaml data.cache=/shared/indexes          # finds the indexes, also of copied files\n"
      "  redco data build job.yaml --json\n");
  add_job_words(*c, o->words);
  c->add_flag("--json", o->json, "print JSON: an object for each index");
  c->callback([o, &run] {
    const BuiltData d = build_data(o->words.load(JobUse::data), [&](const BuiltData::Index& index) {
      if (o->json) return;
      std::puts(to_text(index).c_str());
      std::fflush(stdout);
    });
    if (o->json) std::fputs(to_json(d).c_str(), stdout);
    if (d.indexes.empty()) info("[data] these data need no index: the pipeline reads the files themselves");
    run.exit_code = 0;
  });
}

}  // namespace

void add_data(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments words;
    i64 show = 3;
    std::string split = "train", source;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(
      app, "data",
      "Show a job's data as the model reads them: counts and the first rows; build their indexes",
      "  redco data job.yaml --show 5\n"
      "  redco data job.yaml --split eval --json\n"
      "  redco data model.tokenizer=bytes data.train=chats.jsonl data.max_length=512 "
      "data.chat_template=builtin:chat\n"
      "  redco data build job.yaml data.cache=/shared/indexes     # tokenize before the training\n");
  add_job_words(*c, o->words);
  c->add_option("--show", o->show, "number of rows to print, token by token")
      ->check(CLI::Range(i64{0}, i64{1} << 40))
      ->capture_default_str();
  c->add_option("--split", o->split, "data.train or data.eval")
      ->check(CLI::IsMember({"train", "eval"}))
      ->capture_default_str();
  c->add_option("--source", o->source, "name of a source of data.mixture or data.eval_sets");
  c->add_flag("--json", o->json, "print JSON: ids, tokens and the loss mask");
  add_data_build(*c, run);
  c->callback([o, c, &run] {
    if (!c->get_subcommands().empty()) return;  // CLI11 also calls the parents of a command
    TrainedJob trained = trained_job(o->words.load(), Weights::optional);
    prepare_job(trained.job, JobUse::data);
    const ShownData d = show_data(trained.job, o->split == "eval", o->source, o->show);
    std::fputs((o->json ? to_json(d) : to_text(d, stdout_has_color())).c_str(), stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
