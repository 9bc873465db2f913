# Faults of hosts and links in a training that restarts: it finishes, or ends with a message for a person.
# Sourced by fault-runs, after hosts.sh.

SECTION_NOW="Hosts with restarts"

# A training on the hosts, with the words after the fault, that ends with one of CODES. BEFORE: a command before its
# start.
host_ends() { # CODES "WORDS" WHAT ...
  local codes=$1
  RESTARTS=3 EXTRA=$2
  shift 2
  take_hosts || return
  ${BEFORE:-}
  host_train run
  until_true logged 20
  mark
  "$@"
  host_settle $((150 + 6 * SPAN / 1000))
  expect_end $codes
  note
  LOST=$(lost_of_starts)
  MESSAGE=$(grep -sE 'continuing from|restart [0-9]* of|error: |no further' "$TRY/run.err" | tail -n 1)
  ((CODE == 0)) || { hosts down && hosts up "${#HOSTS[@]}" && TRAIN=host_train SETTLE=host_settle && again; }
  "${COMPARE:-compare}"
  leave_hosts
}
# For a training that ran on fewer replicas in between: other sums of gradients, so other bytes.
compare_steps() {
  diff <(seq 1 "$STEPS") <(sed -nE '/"eval_/!s/^\{"step":([0-9]+),.*/\1/p' "$TRY/run/metrics.jsonl") >"$TRY/metrics.diff" ||
    broke "metrics.jsonl has not each step once: $(grep -m 2 '^[<>]' "$TRY/metrics.diff" | tr '\n' ' ')"
}
# Steps that starts made again: each start's last step minus the step where the next one began.
lost_of_starts() {
  sed -n 's/.*"event":"\([a-z]*\)".*"step":\(-\{0,1\}[0-9]*\).*/\1 \2/p' "$TRY/run/history.jsonl" 2>/dev/null |
    awk '$1 == "start" {if (n++ && last > $2) lost += last - $2; last = $2; next} $2 > last {last = $2} END {print lost + 0}'
}
on_b() { hosts exec b "$@"; }
# The link is bad for 10 s. KIND VALUE
bad_link() {
  hosts "$1" "$2" b
  sleep 10
  hosts "$1" 0 b
}
short_cut() {
  hosts cut b
  sleep 3
  hosts heal b
}
stop_rank() {
  local pids
  pids=$(host_processes | awk '$2 == "b" && $3 == "redco" {print $1}')
  send STOP $pids
}
# Another redco is installed while the training runs. Then a rank is lost.
other_build() {
  local copy=$TRY/redco-other
  cp /bin/true "$copy"
  on_b mount --bind "$copy" "$REDCO"
  kill_on b redco
}
rank_on() { # HOST: prints the pid of its first rank
  local pid
  for pid in $(host_processes | awk -v host="$1" '$2 == host && $3 == "redco" {print $1}'); do
    ! grep -qzs '^OMPI_COMM_WORLD_RANK=' "/proc/$pid/environ" || { echo "$pid" && return; }
  done
}
kill_rank_on_b() { send KILL $(rank_on b); }
crash_and_boot() {
  hosts crash b
  until_true grep -qs 'restart 1 of' "$ERR"
  hosts boot b
}
cut_and_heal_a() {
  hosts cut a
  until_true grep -qs 'restart 1 of' "$ERR"
  hosts heal a
}
SPARSE="checkpoint.every_n_steps=10"
BUDDY="$SPARSE fault.buddy=true fault.buddy_steps=3"

fault link-cut-3s "2" "two hosts: the link of one is cut for 3 s; the run continues" slow
try_link_cut_3s() { host_ends 0 "" short_cut; }
fault link-loss "2" "two hosts: one loses 5 % of its frames for 10 s; the run continues" slow
try_link_loss() { host_ends 0 "" bad_link loss 5; }
fault link-delay "2" "two hosts: frames of one take 200 ms more for 10 s; the run continues" slow
try_link_delay() { host_ends 0 "" bad_link delay 200; }
fault link-gone "2" "two hosts: the link of one is cut for good; the command ends" slow
try_link_gone() { host_ends 5 "" hosts cut b; }
fault link-boot "2" "two hosts: one crashes, and boots after the first restart; the command finishes" slow
try_link_boot() { host_ends 0 "" crash_and_boot; }
fault link-first "2" "two hosts: the link of the first, with the command, is cut, then healed; the command finishes" slow
try_link_first() { host_ends 0 "" cut_and_heal_a; }
fault link-rate "2" "two hosts: one sends at most 1 Mbit/s for 10 s; the run continues" slow
try_link_rate() { host_ends 0 "" bad_link rate 1; }
fault link-stop "2" "two hosts: SIGSTOP to all redco processes of one; the command finishes" slow
try_link_stop() { host_ends 0 "" stop_rank; }
# The question of the preflight to host b is stopped.
stopped_question() {
  printf '#!/bin/sh\nkill -STOP $$\n' >"$TRY/redco"
  chmod +x "$TRY/redco"
  on_b mount --bind "$TRY/redco" "$REDCO"
}
on_host_b() { [[ $(host_processes) == *" b redco"* ]]; }
fault link-stop-first "2" "two hosts: SIGSTOP to the redco of one during the preflight; the command ends" slow
try_link_stop_first() {
  RESTARTS=3
  take_hosts || return
  stopped_question
  host_train run
  until_true on_host_b || broke "no process of redco on host b"
  mark
  host_settle $((12 + MARGIN))
  expect_code 5
  expect_said 'host redcof[0-9]*-b' "which host does not answer"
  note
  hosts down
  hosts up 2
  TRAIN=host_train SETTLE=host_settle
  again
  compare
  leave_hosts
}
fault link-stop-buddy "2" "two hosts: SIGSTOP to all redco processes of one, with buddy checkpoints; the command finishes" slow
try_link_stop_buddy() { host_ends 0 "$BUDDY" stop_rank; }
fault link-build "2" "two hosts: another redco on one, then its rank is lost; the command ends" slow
try_link_build() { host_ends "2 5" "" other_build; }
fault link-buddy-rank "2" "two hosts: SIGKILL to the rank on one, a checkpoint every 10 steps, a buddy one every 3" slow
try_link_buddy_rank() { host_ends 0 "$BUDDY" kill_rank_on_b; }
fault link-buddy-cut "2" "two hosts: the link of one is cut, then healed, a checkpoint every 10 steps, a buddy one every 3" slow
try_link_buddy_cut() { host_ends 0 "$BUDDY" cut_and_heal; }
fault link-no-buddy "2" "two hosts: the same without buddy checkpoints" slow
try_link_no_buddy() { host_ends 0 "$SPARSE" cut_and_heal; }
