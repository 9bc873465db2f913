// completion: scripts for shells. They call redco itself (`redco __complete WORDS...`) for the next word, so
// they always match the installed version.
#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "job/shipped_jobs.h"

namespace redco::cli {

namespace {

// bash splits words at = and : (COMP_WORDBREAKS) and replaces only the part after them. So the script splits
// the line itself, at white space, and removes from each candidate the part that bash keeps.
constexpr const char* kBash = R"script(# redco's completion for bash: source <(redco completion bash)
_redco() {
  local line=${COMP_LINE:0:COMP_POINT} keep="" text cur words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=${words[-1]}
  local cut=${cur##*[=:]}
  [[ $cur != "$cut" ]] && keep=${cur%"$cut"}
  COMPREPLY=()
  while IFS=$'\t' read -r text _; do
    if [[ $text == :files ]]; then
      compopt -o filenames
      while IFS= read -r text; do COMPREPLY+=("$text"); done < <(compgen -f -- "$cut")
    else
      [[ $text == *[=.] ]] && compopt -o nospace
      COMPREPLY+=("${text#"$keep"}")
    fi
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _redco redco
)script";

constexpr const char* kZsh = R"script(#compdef redco
# redco's completion for zsh: redco completion zsh > "${fpath[1]}/_redco", or source <(redco completion zsh)
_redco() {
  local line text
  local -a ended open
  local files=0
  while IFS= read -r line; do
    text=${line%%$'\t'*}
    if [[ $text == :files ]]; then
      files=1
    elif [[ $text == *[=.] ]]; then
      open+=("${text//:/\\:}:${line#*$'\t'}")
    else
      ended+=("${text//:/\\:}:${line#*$'\t'}")
    fi
  done < <(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#open )) && _describe -t settings setting open -S ''
  (( $#ended )) && _describe -t values value ended
  if (( files )); then
    compset -P '*='
    _files
  fi
}
if [[ $funcstack[1] == _redco ]]; then
  _redco "$@"
else
  compdef _redco redco
fi
)script";

constexpr const char* kFish =
    R"script(# redco's completion for fish: redco completion fish > ~/.config/fish/completions/redco.fish
function __redco_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] $current 2>/dev/null)
        if test "$line" = ":files"
            set -l parts (string split -m 1 = -- $current)
            if set -q parts[2]
                for file in (__fish_complete_path $parts[2])
                    echo $parts[1]=$file
                end
            else
                __fish_complete_path $current
            end
        else
            echo $line
        end
    end
end
complete -c redco -f -a '(__redco_complete)'
)script";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool takes_job(const CLI::App& c) { return c.get_option_no_throw("JOB") != nullptr; }

// The option named by `word`, if its value is the next word; else null.
const CLI::Option* wants_value(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-") || word.find('=') != std::string::npos) return nullptr;
  const CLI::Option* o = command.get_option_no_throw(word);
  return o && o->get_expected_max() > 0 && o->get_type_size_max() > 0 ? o : nullptr;
}

}  // namespace

std::string complete_words(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string cur = words.empty() ? "" : words.back();
  const CLI::App* command = &app;
  const CLI::Option* pending = nullptr;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (pending) {
      pending = nullptr;
      continue;
    }
    const auto inner = command->get_subcommands([&](const CLI::App* c) { return c->get_name() == words[i]; });
    if (!inner.empty())
      command = inner.front();
    else
      pending = wants_value(*command, words[i]);
  }
  std::string out;
  auto offer = [&](const std::string& text, const std::string& help) {
    if (text.starts_with(cur)) out += text + "\t" + first_line(help) + "\n";
  };
  const auto inner = command->get_subcommands([](const CLI::App*) { return true; });
  const std::string name = command->get_name();
  if (pending) {
    if (pending->get_name() == "--explain") {
      std::string keys = complete_job_override(cur);
      std::erase(keys, '=');
      return keys.substr(0, keys.find(":files"));
    }
    return ":files\n";
  }
  if (cur.starts_with("-")) {
    for (const CLI::Option* o : command->get_options())
      for (const std::string& n : o->get_lnames()) offer("--" + n, o->get_description());
    return out;
  }
  for (const CLI::App* c : inner) offer(c->get_name(), c->get_description());
  if (!inner.empty() && !takes_job(*command)) return out;
  if (name == "completion") {
    for (const char* shell : {"bash", "zsh", "fish"}) offer(shell, "completion script for this shell");
  } else if (name == "cp") {
    for (const ShippedJob& j : shipped_jobs()) offer(j.name, j.summary);
    out += ":files\n";
  } else if (takes_job(*command)) {
    out += complete_job_override(cur);
  } else {
    out += ":files\n";
  }
  return out;
}

void add_completion(CLI::App& app, Invocation& run) {
  auto shell = std::make_shared<std::string>();
  CLI::App* c = add_command(app, "completion", "Print the completion script for a shell",
                            "  source <(redco completion bash)          in ~/.bashrc\n"
                            "  redco completion zsh > \"${fpath[1]}/_redco\"\n"
                            "  redco completion fish > ~/.config/fish/completions/redco.fish\n");
  c->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  c->callback([shell, &run] {
    const char* script = *shell == "bash"   ? kBash
                         : *shell == "zsh"  ? kZsh
                         : *shell == "fish" ? kFish
                                            : nullptr;
    if (!script) throw UsageError("completion: there is no script for '{}'; use bash, zsh or fish", *shell);
    std::fputs(script, stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
