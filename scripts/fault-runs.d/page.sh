# docs/reliability.md, from results.tsv. Sourced by fault-runs.
# Columns: 1 fault, 2 try, 3 mesh, 4 moment (ms), 5 code, 6 ms to the end, 7 steps lost, 8 resumed at, 9 codes of the
# same command again, 10 equal, 11 message, 12 broken promises.

describe_machine() {
  printf '%s cores of %s, %s, Linux %s, %s. Redco %s.\n' "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(. /etc/os-release && echo "$PRETTY_NAME")" \
    "$(uname -r | cut -d- -f1)" "$(date +'%-d %B %Y')" "$("$REDCO" --version | head -n 1 | sed 's/^redco //')"
}

# The numbers of a column of a fault, each line one.
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
# What most tries said at a code other than 0; numbers that differ between tries as N.
typical_message() {
  awk -F '\t' -v name="$1" '$1 == name && ($5 != 0 || $1 ~ /^(truncated|missing|no-manifest|leftover)@/) && $11 != "-" {print $11}' "$RESULTS" |
    sed -E 's|/[^ ]*/redco env|redco env|g; s/ \([0-9.]+ s\)//g; s/^redco-a [0-9.]+ s, redco-b [0-9.]+ s: //; s/[0-9]+(\.[0-9]+)?/N/g; s/\|/ /g; s/`/'"'"'/g' | sort | uniq -c | sort -rn |
    awk 'NR == 1 {sub(/^ *[0-9]+ /, ""); print (length($0) > 170 ? substr($0, 1, 167) "..." : $0)}'
}

write_page() {
  local name section="" tries reason said
  cat <<END
# Reliability
\`scripts/fault-runs\` trains and predicts under faults and compares the end with an uninterrupted run. It writes this
page. Nothing here is written by hand.

## Promises
- No silent fresh start: where a whole checkpoint is, the same command resumes from it or ends with an error.
- No mixed runs: \`metrics.jsonl\` has each step once, in order, with the losses of an uninterrupted run.
- No orphans: no process is left when the command has ended.
- No endless wait: all processes end within $MARGIN s of the fault; where the fault is a silent process or host, within
  \`fault.timeout\` and $MARGIN s more.
- The same end: the same command is repeated until it ends with 0. Then the parameters, the optimizer's state and
  \`state.json\` are the same bytes as those of an uninterrupted run.

## What was run
Machine: $(cat "$FOLDER/machine" 2>/dev/null)

The job is a GPT-2 of 2 layers and width 64 on bytes with dropout 0.1. It trains $STEPS steps in 12 or 6 micro-batches,
evaluates every 10 steps and saves every 5 steps (\`keep_last: 3\`, \`save_best_by: {min: [loss]}\`). Each rank has one
thread. An uninterrupted run takes $(seconds_of one) s on one rank, $(seconds_of dp2) s with dp 2 and $(seconds_of mp2) s
with mp 2. Of the tries on two ranks half have dp 2 and half mp 2.

The moment of a fault is random over the time of an uninterrupted run, its start included. It depends only on the
fault's name and the try's number. A try whose run had ended before the fault has exit code 0.

- Exit codes: those of the command under the fault, with the number of tries.
- Seconds: from the fault (the second signal, the start of the refused command) until no process is left on any host.
  For a run that continues, and for SLURM with its requeue, they include the time until the end of the training.
- Steps lost: optimizer steps that had been made and are made again.
- Equal: tries whose end is the same bytes as that of an uninterrupted run; for predict the file of answers.
- Broken: tries that broke a promise.

END
  for name in "${FAULTS[@]}"; do
    tries=$(column "$name" 2 | wc -l)
    reason=$(awk -F '\t' -v name="$name" '$1 == name {print $2}' "$FOLDER/skipped" 2>/dev/null || true)
    if [[ ${SECTION[$name]} != "$section" ]]; then
      [[ $section != Hosts ]] || host_times
      section=${SECTION[$name]}
      printf '\n## %s\n| fault | ranks | tries | exit codes | seconds: median | worst | steps lost: median | worst | equal | broken | the message |\n' "$section"
      echo '|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---|'
    fi
    if ((tries == 0)); then
      printf '| %s | %s | 0 | %s | | | | | | | |\n' "${WHAT[$name]}" "${name#*@}" "${reason:+skipped: }${reason:-not run}"
      continue
    fi
    said=$(typical_message "$name")
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "${WHAT[$name]}" "${name#*@}" "$tries" "$(codes "$name")" \
      "$(column "$name" 6 | median_worst 1000 %.1f)" "$(column "$name" 7 | median_worst 1 %.3g)" "$(equals "$name")" \
      "$(awk -F '\t' -v name="$name" '$1 == name && $12 != "-"' "$RESULTS" | wc -l)" "${said:+\`$said\`}"
  done
  cat <<END

## Again
    scripts/build
    scripts/fault-runs                      # about 50 minutes on two cores; continues where it was stopped
    scripts/fault-runs --only 'kill-*'      # some of the faults
    scripts/fault-runs --page               # this page from the results that are there

\`build/fault-runs/results.tsv\` has one line a try. The folder of a try that broke a promise stays in
\`build/fault-runs/work\`. Faults of hosts and of SLURM have at most 3 tries because each takes up to a minute.
END
}
host_times() {
  awk -F '\t' '$1 ~ /^host-/ {if (!n++) print "\nSeconds until nothing is left on each host, by try:\n"
    sub(/@2$/, "", $1); sub(/: .*/, "", $11); print "- " $1 ", try " $2 " (" $3 "): " $11}' OFS='\t' "$RESULTS"
}
seconds_of() {
  local ms
  ms=$(cat "$FOLDER/base-$1/span" 2>/dev/null || echo 0)
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}
