# Faults of SLURM jobs. They need root and local-slurm. Sourced by fault-runs, after links.sh.

SECTION_NOW="SLURM"
slurm() { "$SHARED/local-slurm" "$@" 8>&-; }
# Starts a SLURM of N nodes that no other try uses.
take_slurm() { # N
  take_place slurm
  export LOCAL_SLURM_DIR=/tmp/redco-faults-slurm-$PLACE LOCAL_SLURM_PORT=$((17600 + 20 * PLACE))
  slurm stop >/dev/null 2>&1
  slurm start --nodes "$1" --cpus 2 >"$TRY/slurm.log" 2>&1 || { broke "local-slurm does not start" && return 1; }
}
# A batch job on two nodes, including its requeue, until it leaves the queue. The code is that of the job's output.
slurm_fault() { # WHAT ...
  local job state=none shown i paused=-1
  take_slurm 3 || return
  ERR=$TRY/job.out
  job=$(cd "$TRY" && slurm run "$REDCO" sbatch job.yaml $(mesh_words "$MESH") --nodes 2 --output job.out >job.sh 2>job.err &&
    slurm run sbatch --parsable --requeue job.sh 2>>job.err)
  now
  BEGAN=$NOW
  MARK=$NOW
  if [[ ! $job =~ ^[0-9]+$ ]]; then
    broke "no job: $(tail -n 1 "$TRY/job.err")"
  else
    LAUNCHER=$$
    for ((i = 0; i < 600; i++)); do logged 1 && break || sleep 0.1; done
    pause
    mark
    "$@" "$job"
    for ((i = 0; i < 400; i++)); do
      shown=$(slurm run scontrol show job -o "$job" 2>/dev/null)
      state=$(sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p' <<<"$shown")
      case $state in
        PENDING) last_logged && paused=$LOGGED ;; # between the two runs
        COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) break ;;
      esac
      sleep 0.3
    done
    now
    TOOK=$((NOW - MARK))
    CODE=$(sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p' <<<"$shown")
    [[ $state == COMPLETED ]] || broke "the job is $state after $((TOOK / 1000)) s"
    note
    BEGAN_AT=$(sed -n 's/.*step-0*\([0-9]*\) (step .*/\1/p' "$ERR" | tail -n 1)
    BEGAN_AT=${BEGAN_AT:-0}
    ((paused < 0)) || LOST=$((paused - BEGAN_AT))
    MESSAGE=$(grep -s 'requeue\|queue\|stopped by\|FAILURE' "$TRY/job.out" | tail -n 1)
    local left
    left=$(processes_in "$TRY")
    [[ -z $left ]] || { broke "processes left: $(names_of $left)" && send KILL $left; }
    compare
  fi
  slurm stop >/dev/null 2>&1
  exec 8>&-
}
slurm_usr1() { slurm run scancel --signal=USR1 --batch "$1"; }
slurm_requeue() { slurm run scontrol requeue "$1"; }
slurm_node() { slurm fail redco-n2 >/dev/null 2>&1; }
fault slurm-usr1 "2" "SLURM: USR1 before the time limit; the job requeues itself" slow
try_slurm_usr1() { slurm_fault slurm_usr1; }
fault slurm-requeue "2" "SLURM: scontrol requeue (TERM, KILL after 5 s), as in a preemption" slow
try_slurm_requeue() { slurm_fault slurm_requeue; }
fault slurm-node "2" "SLURM: a node of the job fails; SLURM requeues the job" slow
try_slurm_node() { slurm_fault slurm_node; }
# The command in an allocation of two nodes: it starts its ranks again, from the copies that a step of srun keeps.
try_slurm_buddy() {
  local rank pid left i
  take_slurm 2 || return
  ERR=$TRY/run.err
  (cd "$TRY" && exec "$SHARED/local-slurm" run salloc -N2 --ntasks-per-node=1 "$REDCO" train job.yaml $(mesh_words "$MESH") \
    fault.max_restarts=3 $BUDDY >run.out 2>"$ERR" </dev/null 8>&-) &
  LAUNCHER=$!
  now
  BEGAN=$NOW
  until_true logged 12
  mark
  for pid in $(processes_in "$TRY"); do
    ! grep -qzs '^OMPI_COMM_WORLD_RANK=1' "/proc/$pid/environ" || rank=$pid
  done
  send KILL $rank
  CODE=0
  wait "$LAUNCHER" || CODE=$?
  now
  TOOK=$((NOW - MARK))
  expect_end 0
  note
  LOST=$(lost_of_starts)
  MESSAGE=$(grep -sE 'continuing from|restart [0-9]* of' "$ERR" | tail -n 1)
  ((AT_STEP >= STEPS - 1)) || expect_said 'continuing from the buddy checkpoint' "that it continues from the buddy checkpoint"
  # The steps of srun end with their job, which salloc gives back without waiting for them.
  for ((i = 0; i < MARGIN * 10; i++)); do
    [[ -n $(processes_in "$TRY") ]] || break
    sleep 0.1
  done
  left=$(processes_in "$TRY")
  [[ -z $left ]] || { broke "processes left: $(names_of $left)" && send KILL $left; }
  compare
  slurm stop >/dev/null 2>&1
  exec 8>&-
}
fault slurm-buddy "2" "SLURM: SIGKILL to a rank under mpirun, a checkpoint every 10 steps, a buddy one every 3; the command finishes" slow
