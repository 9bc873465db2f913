# Four hosts, dp 2 and mp 2: one is cut off at step 20 and comes back. Sourced by fault-runs, after links.sh.

SECTION_NOW="Four hosts"
FOUR="train.max_steps=100 checkpoint.every_n_steps=10"

# The uninterrupted run of 100 steps, with which the others are compared.
make_four_baseline() {
  local TRY=$FOLDER/base-2x2 NUMBER=2 HOSTS=(a b c d) EXTRA=$FOUR BROKEN=()
  local LAUNCHER ERR MARK TOOK CODE BEGAN HOST_TIMES
  [[ ! -e $TRY/span ]] || return 0
  say "the uninterrupted run on four hosts"
  rm -rf "$TRY" && cp -r "$FOLDER/inputs" "$TRY"
  take_hosts || die "netns-hosts does not start"
  host_train run
  until_true logged 20
  now
  MARK=$NOW
  host_settle 300
  leave_hosts
  ((CODE == 0)) || die "the uninterrupted run on four hosts ended with $CODE: $(cat "$ERR")"
  echo $((MARK - BEGAN)) >"$TRY/start"
  echo "$TOOK" >"$TRY/span" # from step 20 on
}
# With fewer replicas the training goes on, so the host can come back at step 60; otherwise it comes back after the
# first restart was announced.
four_cut() { # WORDS
  HOSTS=(a b c d) STEPS=100
  [[ $1 != *elastic=true* ]] || COMPARE=compare_steps
  host_ends 0 "$FOUR $1" cut_and_heal_c "$1"
}
cut_and_heal_c() { # WORDS
  hosts cut c
  if [[ $1 == *elastic=true* ]]; then
    until_true logged 60
  else
    until_true grep -qs 'restart 1 of' "$ERR"
  fi
  hosts heal c
}
BUDDY_3="fault.buddy=true fault.buddy_steps=3"
fault four-cut "4" "one is cut off, healed after the first restart" slow
try_four_cut() { four_cut ""; }
fault four-cut-buddy "4" "the same with fault.buddy, every 3 steps" slow
try_four_cut_buddy() { four_cut "$BUDDY_3"; }
fault four-cut-elastic "4" "one is cut off at step 20, healed at step 60, with fault.elastic" slow
try_four_cut_elastic() { four_cut "fault.elastic=true"; }
fault four-cut-both "4" "the same with fault.elastic and fault.buddy" slow
try_four_cut_both() { four_cut "fault.elastic=true $BUDDY_3"; }
