# Starting redco, finding all processes of a try, and waiting until they have ended. Sourced by fault-runs.
# The processes of a try, from the launcher to the ranks, have REDCO_FAULT_RUN=ID in their environment. Processes that
# something else starts (orted) have the try's folder as their working folder.

# Milliseconds since the epoch, into NOW.
now() { NOW=$((${EPOCHREALTIME/./} / 1000)); }

sleep_ms() { (($1 <= 0)) || sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# The ids of all processes of a run; zombies have no environment and do not count.
processes_of() { # ID [environment entry]
  local file
  for file in $(grep -lzsxF "REDCO_FAULT_RUN=$1" /proc/[0-9]*/environ); do
    if [[ -z ${2:-} ]] || grep -qzsxF "$2" "$file"; then
      file=${file#/proc/}
      echo "${file%/environ}"
    fi
  done
}
processes_in() { # FOLDER
  find /proc -mindepth 2 -maxdepth 2 -name cwd \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null | cut -d/ -f3 || true
}
rank_process() { processes_of "$ID" "OMPI_COMM_WORLD_RANK=$1" | head -n 1; }
mpirun_process() {
  local pid
  for pid in $(processes_of "$ID"); do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == mpirun ]] && echo "$pid" && return
  done
  return 0
}

# launch NAME [VAR=VALUE ...] -- WORDS: starts redco in the try's folder with output in NAME.out and NAME.err. Sets
# LAUNCHER, and BEGAN when redco runs. redco has a new session with default signals, as from a terminal.
launch() {
  local name=$1 environment=()
  shift
  while [[ $1 != -- ]]; do environment+=("$1") && shift; done
  shift
  (cd "$TRY" && exec env --default-signal=INT,QUIT,HUP,TERM REDCO_FAULT_RUN="$ID" "${environment[@]}" \
    setsid "$REDCO" "$@" >"$name.out" 2>"$name.err" </dev/null) &
  LAUNCHER=$!
  ERR=$TRY/$name.err
  while [[ $(readlink "/proc/$LAUNCHER/exe") != "$REDCO" ]] && running; do sleep 0.002; done
  now
  BEGAN=$NOW
}
running() {
  local state=Z
  { read -r _ _ state _ <"/proc/$LAUNCHER/stat"; } 2>/dev/null
  [[ $state != [ZX] ]]
}

# Waits until a condition holds or the launcher has ended.
until_true() {
  while ! "$@"; do
    running || return 1
    sleep 0.01
  done
}

# Records the time of the fault, from which seconds are counted, and the last step of the run.
mark() {
  last_logged
  AT_STEP=$LOGGED
  now
  MARK=$NOW
  AT=$((MARK - BEGAN))
}
send() { # SIGNAL PID ...
  local signal=$1
  shift
  kill -s "$signal" "$@" 2>/dev/null
}

# settle LIMIT: waits until the launcher and all processes of the run have ended, at most LIMIT seconds after the mark.
# Then it kills the remaining processes; each is a broken promise. Sets CODE and TOOK (milliseconds after the mark).
settle() {
  local limit=$(($1 * 1000)) left ended
  while running; do
    now
    ((NOW - MARK <= limit)) || break
    sleep 0.02
  done
  now
  ended=$NOW
  while left=$(processes_of "$ID") && [[ -n $left ]]; do
    now
    if ((NOW - MARK > limit)); then
      if running; then
        broke "a wait beyond $1 s: $(names_of $left)"
      else
        broke "processes left $(((NOW - ended) / 1000)) s after the launcher's end: $(names_of $left)"
      fi
      send KILL $left
      sleep 0.5
      break
    fi
    sleep 0.05
  done
  ((NOW > ended)) || NOW=$ended
  TOOK=$((NOW - MARK))
  CODE=0
  wait "$LAUNCHER" 2>/dev/null || CODE=$?
  left=$(processes_in "$TRY")
  if [[ -n $left ]]; then
    sleep 1
    left=$(processes_in "$TRY")
    [[ -z $left ]] || { broke "processes left in the folder: $(names_of $left)" && send KILL $left; }
  fi
}
names_of() {
  local pid words=()
  for pid in "$@"; do words+=("$(cat "/proc/$pid/comm" 2>/dev/null)"); done
  echo "${words[*]}"
}

# Ends every process that this fault-runs has started, after an interruption.
end_all() {
  local file
  send KILL $(builtin jobs -p) # the tries first: they must note nothing more
  for file in $(grep -lzs "^REDCO_FAULT_RUN=$$-" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    send KILL "${file%/environ}"
  done
  return 0
}
