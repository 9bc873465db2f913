#include "assembly/trust.h"

#include "base/log.h"
#include "commands.h"

namespace redco::cli {

void add_trust(CLI::App& app, Invocation& run) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* c = add_command(
      app, "trust", "Let checkpoints load a script or shared object of yours that they name",
      "  redco trust my_dpo.py            then `redco predict workdir=runs/dpo` needs no pipeline=\n"
      "A training trusts its own files for its own checkpoints. A changed or moved file has to be trusted again.\n");
  expand_paths(c->add_option("FILE", *files, "scripts and shared objects to trust, by their present contents")
                   ->required());
  c->callback([files, &run] {
    for (const std::string& f : *files) {
      const std::string hash = trust(f);
      info("[trust] {} (SHA-256 {}) is in {}", f, hash, trusted_file());
    }
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
