# docs/reliability.md, from results.tsv. Sourced by fault-runs.
# Columns: 1 fault, 2 try, 3 mesh, 4 moment (ms), 5 code, 6 ms to the end, 7 steps lost, 8 resumed at, 9 codes of the
# same command again, 10 equal, 11 message, 12 broken promises.

describe_machine() {
  printf '%s cores of %s, %s, Linux %s.\n%s, redco %s.\n' "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(. /etc/os-release && echo "$PRETTY_NAME")" \
    "$(uname -r | cut -d- -f1)" "$(date +'%-d %B %Y')" "$("$REDCO" --version | head -n 1 | sed 's/^redco //')"
}

# The numbers in a column of a fault, one per line.
column() { awk -F '\t' -v name="$1" -v c="$2" '$1 == name && $c != "-" && $c >= 0 {print $c}' "$RESULTS"; }
median_worst() { # DIVISOR FORMAT
  sort -n | awk -v d="$1" -v f="$2" '{a[NR] = $1 / d}
    END {if (!NR) print "|"; else printf f " | " f "\n", (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2, a[NR]}'
}
codes() {
  awk -F '\t' -v name="$1" '$1 == name {print $5}' "$RESULTS" | sort | uniq -c | sort -rn |
    awk '{s = s (NR > 1 ? ", " : "") $2 " (" $1 ")"} END {print s}'
}
equals() {
  awk -F '\t' -v name="$1" '$1 == name && $10 != "-" {n++; e += $10 == "yes"} END {if (n) printf "%d of %d", e, n}' "$RESULTS"
}
# The most frequent message of the tries with a code other than 0, with N for numbers.
typical_message() {
  awk -F '\t' -v name="$1" '$1 == name && ($5 != 0 || $1 ~ /^(truncated|missing|no-manifest|leftover)@/) && $11 != "-" {print $11}' "$RESULTS" |
    sed -E 's/\r//g; s|/[^ ]*/redco env|redco env|g; s/ \([0-9.]+ s\)//g; s/^host a [0-9.]+ s, host b [0-9.]+ s: //; s/redcof[0-9]+-/redco-/g; s/[0-9]+(\.[0-9]+)?/N/g; s/\|/ /g; s/`/'"'"'/g' | sort | uniq -c | sort -rn |
    awk 'NR == 1 {sub(/^ *[0-9]+ /, ""); print (length($0) > 115 ? substr($0, 1, 112) "..." : $0)}'
}

# What the present page has: all before the first table, a section, a fault's row, its message.
old_head() { sed '/^## Signals$/,$d' "$PAGE" | sed '$ {/^$/d}'; }
old_section() { # TITLE
  awk -v title="## $1" '/^## / {on = $0 == title} on' "$PAGE" | sed '$ {/^$/d}'
}
old_row() { awk -v row="| ${WHAT[$1]} | ${1#*@} |" 'index($0, row) == 1 {print; exit}' "$PAGE"; }
old_message() {
  awk -v line="- ${WHAT[$1]} (ranks: ${1#*@}):" '$0 == line {getline; print; exit}' "$PAGE" | sed 's/^  `//; s/`$//'
}
tries_on_page() { awk -F ' *[|] *' '{print $4 + 0}' <<<"$(old_row "$1")"; }
# Whether a row of the section is replaced.
has_results() { # SECTION
  local name tries
  for name in "${FAULTS[@]}"; do
    [[ ${SECTION[$name]} == "$1" ]] || continue
    tries=$(column "$name" 2 | wc -l)
    ((tries == 0 || tries < $(tries_on_page "$name"))) || return 0
  done
  return 1
}

# Sections and rows without results here, and rows of more tries, stay unchanged. A new row replaces one of as many
# tries.
write_page() {
  local name section="" messages="" kept=""
  if has_results Signals || [[ ! -e $PAGE ]]; then write_head; else old_head; fi
  for name in "${FAULTS[@]}"; do
    if [[ ${SECTION[$name]} != "$section" ]]; then
      end_section
      section=${SECTION[$name]} messages="" kept=""
      if ! has_results "$section"; then
        kept=$(old_section "$section")
        [[ -z $kept ]] || printf '\n%s\n' "$kept"
      fi
      [[ -n $kept ]] || begin_section
    fi
    [[ -n $kept ]] || write_row
  done
  end_section
  write_end
}

# These use the variables of write_page.
begin_section() {
  printf '\n## %s\n' "$section"
  [[ -z $NOTE ]] || printf 'Measured on %s, %s.\nRows of more tries may be older.\n\n' "$(date +'%-d %B %Y')" "$NOTE"
  [[ $section != "Hosts with restarts" ]] || printf 'The first three faults are at a random step, the others at step 20 or later.\n\n'
  [[ $section != "One host of two" ]] || printf 'The fault is at step 20 or later.\n\n'
  [[ $section != "Four hosts" ]] || four_hosts_note
  printf '| fault | ranks | tries | exit codes | seconds | worst | steps lost | worst | equal | broken |\n'
  echo '|---|---:|---:|---|---:|---:|---:|---:|---:|---:|'
}
write_row() {
  local tries reason said row had
  tries=$(column "$name" 2 | wc -l)
  row=$(old_row "$name")
  had=$(tries_on_page "$name")
  if ((tries == 0 || had > tries)); then
    reason=$(awk -F '\t' -v name="$name" '$1 == name {print $2}' "$FOLDER/skipped" 2>/dev/null || true)
    said=$(old_message "$name")
    echo "${row:-| ${WHAT[$name]} | ${name#*@} | 0 | ${reason:+skipped: }${reason:-not run} | | | | | | |}"
  else
    said=$(typical_message "$name")
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "${WHAT[$name]}" "${name#*@}" "$tries" "$(codes "$name")" \
      "$(column "$name" 6 | median_worst 1000 %.1f)" "$(column "$name" 7 | median_worst 1 %.3g)" "$(equals "$name")" \
      "$(awk -F '\t' -v name="$name" '$1 == name && $12 != "-"' "$RESULTS" | wc -l)"
  fi
  [[ -z $said ]] || messages+="- ${WHAT[$name]} (ranks: ${name#*@}):"$'\n'"  \`$said\`"$'\n'
}
end_section() {
  [[ -n $section && -z $kept ]] || return 0
  put_messages "$messages"
  [[ $section != Hosts ]] || host_times
}

write_head() {
  cat <<END
# Reliability
\`scripts/fault-runs\` injects faults into trainings and predictions and compares the results with an uninterrupted
run. It generates this page, so do not edit the page by hand.

## Promises
- No silent restart: if a complete checkpoint exists, the same command resumes from it or ends with an error.
- No mixed runs: \`metrics.jsonl\` has each step once, in order, with the losses of an uninterrupted run.
- No orphans: no process remains after the command has ended.
- No endless wait: all processes end within $MARGIN s of the fault. If a process or host is silent, the limit is
  \`fault.timeout\` plus $MARGIN s.
- The same result: the command is repeated until it ends with 0. Then the parameters, the optimizer state and
  \`state.json\` have the same bytes as those of an uninterrupted run, except for the folder of the start.

## Setup
Machine: $(cat "$FOLDER/machine" 2>/dev/null)

The job trains a GPT-2 with 2 layers, width 64 and dropout 0.1 on bytes. It makes $STEPS steps with 12 or 6
micro-batches each. It evaluates every 10 steps and saves every 5 steps (\`keep_last: 3\`,
\`save_best_by: {min: [loss]}\`). Each rank has one thread. An uninterrupted run takes $(seconds_of one) s on one rank,
$(seconds_of dp2) s with dp 2 and $(seconds_of mp2) s with mp 2. On two ranks, half of the tries have dp 2 and half have mp 2.

The time of a fault is random within the duration of an uninterrupted run, including the start. It depends only on
the name of the fault and the number of the try. If the run ends before the fault, the exit code is 0.

The faults in "Background saves" repeat others with \`checkpoint.async_save\` and a save after each step, so that a save
is nearly always in flight. The uninterrupted run saves every 5 steps and waits for its saves.

The columns of the tables:

- exit codes: the codes of the command under the fault, with the number of tries
- seconds: from the fault until no process remains on any host; median and worst
- steps lost: optimizer steps that were made and are repeated; median and worst
- equal: tries with the same bytes as an uninterrupted run (for predict: of the file of answers)
- broken: tries that broke a promise

Seconds count from the second signal or from the start of the refused command, if the fault has one. For runs that
continue, and for requeued SLURM jobs, they include the time until the end of the training. Below each table is the
most frequent message of each fault. N replaces numbers.
END
}
write_end() {
  cat <<END

## How to repeat
    scripts/build
    scripts/fault-runs                      # about 50 minutes on two cores; continues after an interruption
    scripts/fault-runs --only 'kill-*'      # some of the faults
    scripts/fault-runs --page               # generates this page from existing results

\`build/fault-runs/results.tsv\` has one line per try. The folder of a try that broke a promise is kept in
\`build/fault-runs/work\`. A fault of hosts or of SLURM takes up to a minute, so it has \`--slow-tries\` tries
(default 3); \`--parallel 2\` makes two of them at the same time.
END
}
# The number of tries in all tables of a page.
write_total() { # FILE
  awk -F ' *[|] *' '/^## / {title = $0} $4 ~ /^[0-9]+$/ {all += $4; if (title ~ /[Hh]ost|SLURM/) hosts += $4}
    END {printf "\nThe tables have %d tries. %d of them are of several hosts or SLURM.\n", all, hosts}' "$1"
}
four_hosts_note() {
  cat <<END
2 x 2 ranks on four hosts, 100 steps, a checkpoint every 10 steps, \`fault.timeout: $HOST_TIMEOUT\`. The link of one is cut at
step 20. An uninterrupted run takes $(seconds_of 2x2) s from there. The seconds are those until the end of the training,
on the two cores that all ranks share. With \`fault.elastic\` the training continues with dp 1 until the host is back, so
its sums of gradients have another order: of these tries only the steps in \`metrics.jsonl\` are compared.

END
}
# The list below a table. LIST has a line for each fault with a message.
put_messages() {
  [[ -z $1 ]] || printf '\nMessages:\n\n%s' "$1"
}
host_times() {
  awk -F '\t' '$1 ~ /^host-/ {if (!n++) print "\nSeconds until no process remains on each host, for each try:\n"
    sub(/@2$/, "", $1); sub(/: .*/, "", $11); print "- " $1 ", try " $2 " (" $3 "): " $11}' OFS='\t' "$RESULTS"
}
seconds_of() {
  local ms
  ms=$(cat "$FOLDER/base-$1/span" 2>/dev/null || echo 0)
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}
