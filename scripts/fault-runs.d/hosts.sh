# Lost hosts. They need root and netns-hosts. Sourced by fault-runs.

why_skipped() { # NAME@RANKS: prints why it cannot be tried here
  local tool=""
  case $1 in
    host-* | restart-* | link-* | four-* | one-*) tool=netns-hosts ;;
    slurm-*) tool=local-slurm ;;
    full-disk@*) ;;
    *) return 0 ;;
  esac
  ((EUID == 0)) || { echo "needs root" && return; }
  [[ -z $tool || -x $SHARED/$tool ]] || echo "needs scripts/$tool"
}

SECTION_NOW="Hosts"
HOST_TIMEOUT=8
HOSTS=(a b) # of the try
# Waits for a PLACE, 1 to PARALLEL, that no other try has. Descriptor 8 holds it.
take_place() { # NAME
  while :; do
    for ((PLACE = 1; PLACE <= PARALLEL; PLACE++)); do
      exec 8>"/tmp/redco-faults-$1-$PLACE.lock"
      ! flock -n 8 || return 0
    done
    sleep 0.2
  done
}
# Starts hosts that no other try uses: their names begin with NETNS_HOSTS_PREFIX.
take_hosts() {
  take_place hosts
  export NETNS_HOSTS_PREFIX=redcof$PLACE
  hosts down
  hosts up "${#HOSTS[@]}" || { broke "netns-hosts does not start" && return 1; }
}
leave_hosts() { hosts down && exec 8>&-; }
hosts() { "$SHARED/netns-hosts" "$@" >>"$TRY/hosts.log" 2>&1 8>&-; }
# The processes of redco and of Open MPI on the try's hosts, as "PID HOST COMMAND".
host_processes() {
  local pid here command host
  here=$(readlink /proc/self/ns/uts)
  for pid in $(pgrep -x 'redco|orted|mpirun' 2>/dev/null); do
    [[ $(readlink "/proc/$pid/ns/uts") != "$here" ]] || continue
    command=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
    host=$(nsenter -t "$pid" -u hostname 2>/dev/null) || continue
    [[ $host != "$NETNS_HOSTS_PREFIX"-? ]] || echo "$pid ${host##*-} $command"
  done
}
host_train() { # NAME
  local list
  printf -v list "$NETNS_HOSTS_PREFIX-%s:1, " "${HOSTS[@]}"
  (cd "$TRY" && exec setsid "$SHARED/netns-hosts" exec a "$REDCO" train job.yaml \
    $( ((NUMBER % 2 && ${#HOSTS[@]} == 2)) || echo parallel.n_model_shards=2) "parallel.hosts=[${list%, }]" \
    "fault.timeout=$HOST_TIMEOUT" "fault.max_restarts=${RESTARTS:-0}" ${EXTRA:-} >"$1.out" 2>"$1.err" </dev/null 8>&-) &
  LAUNCHER=$!
  ERR=$TRY/$1.err
  now
  BEGAN=$NOW
}
# Waits until no process remains on the hosts, and records the seconds for each host.
host_settle() { # LIMIT
  local left host line at=()
  declare -A last=()
  for host in "${HOSTS[@]}"; do last[$host]=0; done
  while left=$(host_processes) && [[ -n $left ]]; do
    now
    while read -r _ host _; do last[$host]=$((NOW - MARK)); done <<<"$left"
    if ((NOW - MARK > $1 * 1000)); then
      broke "left after $1 s: $(cut -d' ' -f 2,3 <<<"$left" | paste -sd, -)"
      send KILL $(cut -d' ' -f1 <<<"$left")
      sleep 1
      break
    fi
    sleep 0.25
  done
  TOOK=0
  for host in "${HOSTS[@]}"; do
    ((last[$host] <= TOOK)) || TOOK=${last[$host]}
    printf -v line 'host %s %d.%d s' "$host" $((last[$host] / 1000)) $((last[$host] % 1000 / 100))
    at+=("$line")
  done
  printf -v HOST_TIMES '%s, ' "${at[@]}"
  HOST_TIMES=${HOST_TIMES%, }
  CODE=0
  wait "$LAUNCHER" 2>/dev/null || CODE=$?
}
host_fault() { # CODES WHAT ...: WHAT is the command that makes the fault
  local codes=$1
  shift
  take_hosts || return
  host_train run
  pause
  mark
  "$@"
  host_settle $((HOST_TIMEOUT + MARGIN))
  expect_end $codes
  note
  MESSAGE="$HOST_TIMES: $MESSAGE"
  hosts down
  hosts up 2
  TRAIN=host_train SETTLE=host_settle
  ((CODE == 0)) && LOST=0 || again
  compare
  leave_hosts
}
kill_on() { # HOST COMMAND
  send KILL $(host_processes | awk -v host="$1" -v command="$2" '$2 == host && $3 == command {print $1; exit}')
}
fault host-cut "2" "two hosts: the network link of one is cut, fault.timeout=$HOST_TIMEOUT" slow
try_host_cut() { host_fault 5 hosts cut b; }
fault host-crash "2" "two hosts: one crashes" slow
try_host_crash() { host_fault 5 hosts crash b; }
fault host-orted "2" "two hosts: SIGKILL to Open MPI's daemon on one" slow
try_host_orted() { host_fault 5 kill_on b orted; }
fault host-launcher "2" "two hosts: SIGKILL to redco on the first" slow
try_host_launcher() { host_fault 137 kill_launcher_on_host; }
kill_launcher_on_host() { # the redco without a rank
  local pid
  for pid in $(host_processes | awk '$2 == "a" && $3 == "redco" {print $1}'); do
    grep -qzs '^OMPI_COMM_WORLD_RANK=' "/proc/$pid/environ" || send KILL "$pid"
  done
}

SECTION_NOW="Hosts with restarts"
# The command starts its ranks again and finishes.
host_restart() { # WHAT ...
  RESTARTS=3
  take_hosts || return
  host_train run
  pause
  mark
  "$@"
  host_settle $((120 + 6 * SPAN / 1000))
  # Before the first start the command names the host that does not answer, and ends.
  if [[ ! -e $TRY/run/metrics.jsonl ]] && grep -qs '^error: \[hosts\]' "$ERR"; then expect_end 5; else expect_end 0; fi
  note
  LOST=$(sed -n 's/.*"lost_steps":\([0-9]*\).*/\1/p' "$TRY/run/history.jsonl" 2>/dev/null | paste -sd+ - | sed 's/^$/0/' | bc)
  MESSAGE=$(grep -s 'restart [0-9]* of' "$TRY/run.err" | tail -n 1)
  ((CODE == 0)) || { hosts down && hosts up 2 && TRAIN=host_train SETTLE=host_settle && again; }
  compare
  leave_hosts
}
cut_and_heal() {
  hosts cut b
  until_true grep -qs 'restart 1 of' "$ERR"
  hosts heal b
}
fault restart-cut "2" "two hosts: the link of one is cut, healed after the first restart; the command finishes" slow
try_restart_cut() { host_restart cut_and_heal; }
fault restart-rank "2" "two hosts: SIGKILL to the rank on one; the command finishes" slow
try_restart_rank() { host_restart kill_on b redco; }
fault restart-orted "2" "two hosts: SIGKILL to Open MPI's daemon on one; the command finishes" slow
try_restart_orted() { host_restart kill_on b orted; }
