// man: the manual page, generated from the declarations of the commands.
#include <fmt/format.h>

#include <cstdio>

#include "commands.h"

namespace redco::cli {

namespace {

// Text for troff: escapes are quoted, no line looks like a request, hyphens can be copied.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

void add_options(const CLI::App& c, std::string& out) {
  for (const CLI::Option* o : c.get_options()) {
    if (o->get_lnames().empty() && o->get_snames().empty()) {
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(o->get_name(true)), roff(o->get_description()));
      continue;
    }
    if (o->check_lname("help") || o->check_lname("version")) continue;
    std::string names;
    for (const std::string& s : o->get_snames())
      names += (names.empty() ? "" : ", ") + ("\\fB\\-" + s) + "\\fR";
    for (const std::string& l : o->get_lnames())
      names += (names.empty() ? "" : ", ") + ("\\fB\\-\\-" + roff(l)) + "\\fR";
    const bool flag = o->get_expected_max() == 0 || o->get_type_size_max() == 0;
    out += fmt::format(".TP\n{}{}\n{}\n", names, flag ? "" : " \\fI" + roff(o->get_type_name()) + "\\fR",
                       roff(o->get_description()));
  }
}

void add_command_text(const CLI::App& c, const std::string& path, std::string& out) {
  const auto inner = c.get_subcommands([](const CLI::App*) { return true; });
  out += fmt::format(".SS {}\n{}\n", roff(path), roff(c.get_description()) + ".");
  add_options(c, out);
  if (const std::string examples = c.get_footer(); !examples.empty())
    out += ".PP\n.nf\n" + roff(examples) + "\n.fi\n";
  for (const CLI::App* s : inner) add_command_text(*s, path + " " + s->get_name(), out);
}

}  // namespace

void add_man(CLI::App& app, Invocation& run) {
  CLI::App* c = add_command(app, "man", "Print the manual page", "  redco man | man -l -\n");
  c->callback([&app, &run] {
    std::string out = fmt::format(".TH REDCO 1 \"\" \"redco {}\" \"User Commands\"\n", REDCO_VERSION);
    out +=
        ".SH NAME\nredco \\- distributed training and inference of transformers on CPUs, from one job file\n";
    out +=
        ".SH SYNOPSIS\n.B redco\n.I COMMAND\n[\\fIoptions\\fR] [\\fB\\-c\\fR \\fIFILE\\fR ...] "
        "\\fIJOB.yaml\\fR ... [\\fIkey\\fR=\\fIvalue\\fR ...]\n";
    out +=
        ".SH DESCRIPTION\nA job is a YAML file that names a model, data and the number of ranks. redco finds "
        "the tensor\\-parallel\nsharding, starts the ranks (on this machine, on a list of hosts or in a "
        "SLURM allocation) and runs the job.\nWords with an = override the job's keys; their values are "
        "YAML.\n";
    out += ".SH COMMANDS\n";
    for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; }))
      add_command_text(*s, "redco " + s->get_name(), out);
    out += ".SH KEYS OF A JOB\n.nf\n" + roff(job_help("")) + ".fi\n";
    out += ".SH EXAMPLES AND EXIT CODES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
    std::fputs(out.c_str(), stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
