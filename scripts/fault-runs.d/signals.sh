# Signals, kills, stops. Sourced by fault-runs.

SECTION_NOW="Signals"
signal_launcher() {
  train run --
  pause
  mark
  send "$1" "$LAUNCHER"
  settle $MARGIN
  expect_end 8
  finish
}
for signal in TERM INT HUP USR1; do
  eval "try_sig${signal,,}() { signal_launcher $signal; }"
  fault "sig${signal,,}" "1 2" "SIG$signal to redco"
done

fault early "1 2" "SIGTERM to redco in its first 0.4 s"
try_early() {
  local wait
  train run --
  draw wait 15 400
  sleep_ms "$wait"
  mark
  send TERM "$LAUNCHER"
  settle $MARGIN
  expect_end 8
  finish
}

fault twice "1 2" "SIGINT to redco, again after 0.6 s: all end within 5 s"
try_twice() {
  train run --
  pause
  mark
  send INT "$LAUNCHER"
  sleep 0.6
  now
  MARK=$NOW
  send INT "$LAUNCHER"
  settle 5
  # On one rank the second signal may end the process itself.
  if ((RANKS == 1)); then expect_end 8 5 130; else expect_end 8 5; fi
  finish
}

fault in-eval "1 2" "SIGTERM to redco during an evaluation"
try_in_eval() {
  local step wait
  train run --
  step=$((NUMBER % 4 * 10 + 10))
  until_true logged "$step"
  draw wait 0 30
  sleep_ms "$wait"
  mark
  send TERM "$LAUNCHER"
  settle $MARGIN
  expect_end 8
  finish
}

# A rank of the run, as soon as one exists. The try's number decides which rank.
pick_rank() {
  PICKED=$((NUMBER / 2 % 2))
  until_true has_rank
  VICTIM=$(rank_process "$PICKED")
}
pick_mpirun() {
  until_true has_mpirun
  VICTIM=$(mpirun_process)
}
has_mpirun() { [[ -n $(mpirun_process) ]]; }
has_rank() { [[ -n $(rank_process $PICKED) ]]; }

fault term-rank "2" "SIGTERM to one rank"
try_term_rank() {
  train run --
  pause
  pick_rank
  mark
  send TERM $VICTIM
  settle $MARGIN
  expect_end 8
  finish
}

fault term-mpirun "2" "SIGTERM to mpirun"
try_term_mpirun() {
  train run --
  pause
  pick_mpirun
  mark
  send TERM $VICTIM
  settle $MARGIN
  expect_end 8 5
  finish
}

SECTION_NOW="Kills"
fault kill-rank "2" "SIGKILL to one rank"
try_kill_rank() {
  train run --
  pause
  pick_rank
  mark
  send KILL $VICTIM
  settle $MARGIN
  expect_end 5
  ((CODE == 0)) || expect_said "rank|mpirun" "that a rank was killed"
  finish
}

fault kill-mpirun "2" "SIGKILL to mpirun"
try_kill_mpirun() {
  train run --
  pause
  pick_mpirun
  mark
  send KILL $VICTIM
  settle $MARGIN
  expect_end 5
  finish
}

fault kill-launcher "1 2" "SIGKILL to redco"
try_kill_launcher() {
  train run --
  pause
  mark
  send KILL "$LAUNCHER"
  settle $MARGIN
  expect_end 137
  finish
}

fault kill-all "1 2" "SIGKILL to all processes"
try_kill_all() {
  train run --
  pause
  mark
  send KILL $(processes_of "$ID")
  settle $MARGIN
  expect_end 137
  finish
}

SECTION_NOW="Stopped processes"
# Stops a rank with fault.timeout=3. The timeout starts when the other ranks wait.
stop_rank() {
  mark
  send STOP $VICTIM
  settle $((3 + MARGIN))
  expect_end 5
  ((CODE == 0)) || expect_said "rank $PICKED" "rank $PICKED"
  finish
}
fault stop-start "2" "SIGSTOP to a rank within 0.1 s of its start, fault.timeout=3"
try_stop_start() {
  local wait
  train run -- fault.timeout=3
  pick_rank
  draw wait 0 100
  sleep_ms "$wait"
  stop_rank
}

fault stop-load "2" "SIGSTOP to a rank before the first step, fault.timeout=3"
try_stop_load() {
  train run -- fault.timeout=3
  until_true test -e "$TRY/run/plan.json"
  pick_rank
  stop_rank
}

fault stop-train "2" "SIGSTOP to a rank in training, fault.timeout=3"
try_stop_train() {
  train run -- fault.timeout=3
  until_true logged 1
  pause
  pick_rank
  stop_rank
}

fault stop-cont "1 2" "SIGSTOP to a rank, SIGCONT after 1 s: the run continues"
try_stop_cont() {
  train run -- fault.timeout=3
  if ((RANKS == 1)); then VICTIM=$LAUNCHER; else pick_rank; fi
  pause
  mark
  send STOP $VICTIM
  sleep 1
  send CONT $VICTIM
  settle 180
  expect_code 0
  finish
}

SECTION_NOW="Disk"
# REDCO_FAULT_IO counts calls per process. A run makes about 2000 calls, of which 400 are writes.
fault_io() { # OPERATION HOW HIGHEST CODES ...
  local n operation=$1 how=$2
  draw n 1 "$3"
  shift 3
  train run "REDCO_FAULT_IO=$operation:$n:$how" --
  mark
  settle 120
  AT=- TOOK=-
  expect_code "$@" 0
  finish
}
fault no-space "1 2" "the N-th write fails: no space (ENOSPC)"
try_no_space() { fault_io write ENOSPC 300 7; }
fault io-error "1 2" "the N-th file operation fails (EIO)"
try_io_error() { fault_io any EIO 1500 7; }
fault io-kill "1 2" "SIGKILL at the N-th file operation"
try_io_kill() { fault_io any kill 1500 137 5; }

fault full-disk "1 2" "the disk of the workdir is full, then has space again"
try_full_disk() {
  local kib
  mkdir "$TRY/run" && mount -t tmpfs -o size=16m fault-runs "$TRY/run" || { broke "no tmpfs can be mounted" && return; }
  draw kib 6000 15500
  head -c $((kib * 1024)) /dev/zero >"$TRY/run/ballast"
  train run --
  mark
  settle 120
  AT=- TOOK=-
  expect_code 7 0
  ((CODE == 0)) || expect_said "space|free" "that there is no space"
  rm "$TRY/run/ballast"
  finish
  umount "$TRY/run"
}
