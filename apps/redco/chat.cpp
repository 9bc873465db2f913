#include "commands/chat.h"

#include <unistd.h>

#include "commands.h"

namespace redco::cli {

void add_chat(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments job;
    std::string system, tools;
    bool interactive = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "chat", "Chat with a model that has a chat template",
                            "  redco chat model.path=models/qwen2-chat\n"
                            "  redco chat job.yaml --system 'You answer in one sentence.' "
                            "predict.temperature=0.7 predict.top_p=0.9\n"
                            "  redco chat model.path=models/qwen3 --tools tools.json "
                            "predict.chat_template_kwargs.enable_thinking=false\n"
                            "  printf 'Hi!\\nAnd now?\\n' | redco chat job.yaml     one message per line\n");
  add_job_words(*c, o->job);
  CLI::Option* system =
      c->add_option("--system", o->system, "system message, taken as typed; the same as predict.system");
  CLI::Option* tools =
      c->add_option("--tools", o->tools, "JSON file with a list of tools; the same as predict.tools");
  c->add_flag("--interactive", o->interactive,
              "behave as on a terminal: print a prompt; Ctrl-C stops the answer, not the chat");
  c->callback([o, system, tools, &run] {
    const auto job = [o, system, tools] {
      JobConfig job = o->job.load();
      if (system->count() > 0) job.predict.system = o->system;
      if (tools->count() > 0) job.predict.tools = o->tools;
      return job;
    };
    const bool terminal = isatty(0) && isatty(1);
    run.exit_code = run_chat({.job = job, .program = run.argv}, o->interactive || terminal);
  });
}

}  // namespace redco::cli
