#include "commands/bench.h"

#include "commands.h"

namespace redco::cli {

void add_bench(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments job;
    BenchOptions bench;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "bench",
                            "Measure the speed of the job's training step or generation on random tokens, "
                            "relative to the machine's peak",
                            "  redco bench job.yaml --steps 10\n"
                            "  redco bench model.preset=gpt2 train.global_batch_size=4 data.max_length=256\n"
                            "  redco bench model.preset=gpt2 predict.batch_size=1 --predict --json\n");
  add_job_words(*c, o->job);
  c->add_option("--steps", o->bench.steps,
                "number of timed steps, or of generations with --predict; one untimed step comes first")
      ->check(CLI::Range(i64{1}, i64{1000000}));
  c->add_flag("--predict", o->bench.predict,
              "time generation: the prompt's forward pass, then one token at a time");
  c->add_flag(
      "--kernels", o->bench.kernels,
      "also print the time of each kind of kernel in one more step, next to the time that plan predicts");
  c->add_flag("--json", o->bench.json, "print the numbers as one JSON object");
  c->callback([o, &run] {
    run.exit_code =
        run_bench({.job = [o] { return o->job.load(JobUse::bench); }, .program = run.argv}, o->bench);
  });
}

}  // namespace redco::cli
