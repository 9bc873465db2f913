# One try: its folder, its random numbers, the comparison with the uninterrupted run, its line of results.
# Sourced by fault-runs.

JOB='model:
  {arch: gpt2, tokenizer: bytes, n_layer: 2, n_embd: 64, n_head: 4, n_positions: 64, resid_pdrop: 0.1, embd_pdrop: 0.1,
   attn_pdrop: 0.1}
data: {train: train.txt, eval: eval.txt}
train:
  {global_batch_size: 48, per_device_batch_size: 4, max_steps: 40, learning_rate: 3.0e-3, warmup_steps: 5,
   logging_steps: 1}
eval: {every_n_steps: 10}
checkpoint: {every_n_steps: 5, keep_last: 3, save_best_by: {min: [loss]}}
parallel: {threads_per_rank: 1}
fault: {max_restarts: 0}
predict:
  {input: prompts.jsonl, output: answers.jsonl, max_new_tokens: 24, batch_size: 4,
  temperature: 1}
workdir: run'
STEPS=40

# The files of every run: a job, text with some structure, prompts.
write_inputs() { # FOLDER
  local i
  echo "$JOB" >"$1/job.yaml"
  for ((i = 1; i <= 2000; i++)); do
    echo "the quick brown fox jumps over the lazy dog $((i * 7919 % 1000)) times and runs $((i * i % 97)) far"
  done >"$1/train.txt"
  for ((i = 1; i <= 180; i++)); do
    echo "the lazy dog runs over the quick brown fox $((i * 7919 % 1000)) times and jumps $((i * i % 97)) far"
  done >"$1/eval.txt"
  for ((i = 1; i <= 800; i++)); do
    echo "{\"id\": $i, \"prompt\": \"the quick brown fox $((i * 7919 % 1000))\"}"
  done >"$1/prompts.jsonl"
}

mesh_words() { # one, dp2 or mp2
  case $1 in
    one) echo parallel.n_ranks=1 parallel.n_model_shards=1 ;;
    dp2) echo parallel.n_ranks=2 parallel.n_model_shards=1 ;;
    mp2) echo parallel.n_ranks=2 parallel.n_model_shards=2 ;;
  esac
}

# The uninterrupted runs, one per mesh, with which all tries are compared. base-MESH has the run and its answers,
# half-MESH a run killed after step 22, other-MESH a complete run with another seed.
make_baselines() {
  local mesh TRY ID BEGAN LAUNCHER ERR MARK AT TOOK CODE BROKEN=() span start kind
  [[ -e $FOLDER/inputs/job.yaml ]] || { mkdir -p "$FOLDER/inputs" && write_inputs "$FOLDER/inputs"; }
  for mesh in one dp2 mp2; do
    [[ ! -e $FOLDER/base-$mesh/span ]] || continue
    say "the uninterrupted run on $mesh"
    for kind in base half other; do
      TRY=$FOLDER/$kind-$mesh
      ID=$$-$kind-$mesh
      rm -rf "$TRY" && cp -r "$FOLDER/inputs" "$TRY"
      if [[ $kind == other ]]; then
        launch run -- train job.yaml $(mesh_words $mesh) train.seed=7
      else
        launch run -- train job.yaml $(mesh_words $mesh)
      fi
      mark
      until_true logged 1
      now
      start=$((NOW - BEGAN))
      [[ $kind != half ]] || { until_true logged 22 && send KILL $(processes_of "$ID"); }
      settle 300 2>/dev/null
      [[ $kind == half || $CODE == 0 ]] || die "the uninterrupted run ended with $CODE: $(cat "$ERR")"
      [[ $kind != half || -e $TRY/run/checkpoints/step-00000020 ]] || die "$TRY ended before step 22: $(message)"
      [[ $kind != base ]] || echo "$start" >"$TRY/start"
      [[ $kind != base ]] || span=$TOOK
    done
    TRY=$FOLDER/base-$mesh
    ID=$$-answers-$mesh
    launch predict -- predict job.yaml $(mesh_words $mesh)
    mark
    settle 300
    ((CODE == 0)) || die "the uninterrupted predict ended with $CODE: $(cat "$ERR")"
    echo "$span" >"$TRY/span"
  done
}

# Sets LOGGED to the last step in metrics.jsonl, or 0. An incomplete last line does not count. It starts no process,
# because it is called often.
last_logged() { # [FILE]
  local file=${1:-$TRY/run/metrics.jsonl} lines=() i
  LOGGED=0
  [[ ! -e $file ]] || mapfile -t lines <"$file"
  for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
    [[ ${lines[i]} =~ ^\{\"step\":([0-9]+),.*\}$ ]] && LOGGED=${BASH_REMATCH[1]} && return
  done
  return 0
}
logged() { last_logged && ((LOGGED >= $1)); }
answered() {
  local lines=()
  [[ ! -e $TRY/answers.jsonl ]] || mapfile -t lines <"$TRY/answers.jsonl"
  ((${#lines[@]} >= $1))
}

# The newest step with a checkpoint that has a manifest and each of its files in its size; 0: none.
newest_whole() {
  local folder best=0 step
  for folder in "$TRY"/run/checkpoints/step-*; do
    whole "$folder" || continue
    step=$((10#${folder##*-}))
    ((step <= best)) || best=$step
  done
  echo $best
}
whole() {
  local path size manifest=$1/training/manifest.json
  [[ -f $manifest ]] || return 1
  while read -r path size; do
    [[ $(stat -c %s "$1/$path" 2>/dev/null) == "$size" ]] || return 1
  done < <(sed -n 's/.*"path": "\([^"]*\)", "size": \([0-9]*\),.*/\1 \2/p' "$manifest")
}
step_folder() { printf '%s/run/checkpoints/step-%08d' "$TRY" "$1"; }

# draw NAME LOW HIGH: the next random number of this try.
draw() {
  SEED=$(((SEED * 1103515245 + 12345) & 0x7fffffff))
  printf -v "$1" %d $(($2 + (SEED >> 8) % ($3 - $2 + 1)))
}

# The broken promises of the try.
broke() { BROKEN+=("$*"); }
expect_code() { # CODES ...
  [[ " $* " == *" $CODE "* ]] || broke "ended with $CODE, not ${*// / or }"
}
# The same for a training. It may have finished before the fault. Otherwise code 0 means that the fault had no effect.
expect_end() { # CODES ...
  ((CODE != 0 || AT_STEP < STEPS - 1)) || return 0
  expect_code "$@"
}
expect_said() { # PATTERN WHAT
  grep -qsE "$1" "$ERR" || broke "the message does not say $2"
}
# The line of stderr that describes the event: the last error, otherwise the last line of a training or of the launcher.
message() {
  local line
  line=$(grep -sE '(^|: )error: ' "$ERR" | tail -n 1)
  [[ -n $line ]] || line=$(grep -sE '^redco: |stopped by|no sign of' "$ERR" | tail -n 1)
  [[ -n $line ]] || line=$(tail -n 1 "$ERR" 2>/dev/null)
  line=${line//$TRY\//}
  line=${line//$'\t'/ }
  echo "${line:0:300}"
}

# train NAME [VAR=VALUE ...] -- [more words]. SAVES has words for all trainings of the try.
train() {
  local name=$1 environment=()
  shift
  while [[ $1 != -- ]]; do environment+=("$1") && shift; done
  shift
  launch "$name" "${environment[@]}" -- train job.yaml $(mesh_words "$MESH") "${SAVES[@]}" "$@"
}
# Waits for a random moment of a training: its start, a step, or its end. It counts steps, because times vary on a busy
# machine.
pause() {
  local step wait
  draw step -6 "$STEPS"
  if ((step <= 0)); then
    draw wait 0 "$START"
  else
    until_true logged "$step"
    draw wait 0 $(((SPAN - START) / STEPS))
  fi
  sleep_ms "$wait"
}
# The same for a predict.
pause_predict() {
  local lines wait
  draw lines -100 490
  until_true answered "$lines"
  draw wait 0 100
  sleep_ms "$wait"
}

# Records the results of the run with the fault.
note() {
  FAULT_CODE=$CODE FAULT_TOOK=$TOOK FAULT_AT=$AT MESSAGE=$(message)
}

# Runs the same command without a fault. It must end with 0. Records its first step and the lost steps. metrics.jsonl
# gives the first step: earlier steps have their old lines, including the times.
again() { # [more words]
  local before=$TRY/metrics.before had done_before said
  had=$(newest_whole)
  cp "$TRY/run/metrics.jsonl" "$before" 2>/dev/null || : >"$before"
  last_logged "$before"
  done_before=$LOGGED
  "$TRAIN" "again$((++ROUNDS))" -- "$@"
  mark
  "$SETTLE" 180
  RERUNS+=("$CODE")
  BEGAN_AT=$(cmp "$before" "$TRY/run/metrics.jsonl" 2>/dev/null | sed -n 's/.* line \([0-9]*\)$/\1/p')
  if [[ ! -s $before ]]; then
    BEGAN_AT=0
  elif [[ -n $BEGAN_AT ]]; then
    BEGAN_AT=$(head -n $((BEGAN_AT - 1)) "$before" | sed -n 's/^{"step":\([0-9]*\),.*/\1/p' | tail -n 1)
  else # no line differs
    BEGAN_AT=$done_before
  fi
  BEGAN_AT=${BEGAN_AT:-0}
  said=$(sed -n 's/.*step-0*\([0-9]*\) (step .*/\1/p' "$ERR" | tail -n 1)
  ((CODE == 0)) || { broke "the same command again ended with $CODE: $(message | cut -c 1-160)" && return; }
  [[ ${said:-0} == "$BEGAN_AT" ]] || ((said > BEGAN_AT && done_before < said)) ||
    broke "it says it began at step ${said:-0}, but it began at $BEGAN_AT"
  ((had == 0 || BEGAN_AT > 0)) || broke "a fresh start, though step $had has a whole checkpoint"
  ((LOST >= 0)) || { LOST=$((done_before - BEGAN_AT)) && FIRST_BEGAN=$BEGAN_AT; }
}

# The end: repeats the command until it is done, then compares everything with the uninterrupted run.
finish() { # [more words of the first command after the fault]
  note
  ((CODE == 0)) && LOST=0 || again "$@"
  compare
}
compare() {
  local file last=$TRY/run/checkpoints/last base=$FOLDER/base-$MESH/run
  EQUAL=yes
  for file in model.safetensors training/optimizer.safetensors training/state.json; do
    cmp -s <(without_folder "$last/$file") <(without_folder "$base/checkpoints/last/$file") ||
      { EQUAL=no && broke "$file is not that of an uninterrupted run"; }
  done
  [[ $(readlink "$TRY/run/checkpoints/best-loss") == "$(readlink "$base/checkpoints/best-loss")" ]] ||
    broke "best-loss names another step than in an uninterrupted run"
  # Step and loss of each line, in order, without times.
  diff <(losses "$base") <(losses "$TRY/run") >"$TRY/metrics.diff" ||
    broke "metrics.jsonl differs: $(grep -m 2 '^[<>]' "$TRY/metrics.diff" | cut -c 1-40 | tr '\n' ' ')"
}
# The file; of state.json all but the folder in which the run was started.
without_folder() {
  case $1 in
    *.json) grep -v '^  "started_in": ' "$1" ;;
    *) cat "$1" ;;
  esac
}
losses() { sed -E 's/^\{("step":[0-9]+,).*("(eval_)?loss":[^,]*),.*/\1\2/' "$1/metrics.jsonl" 2>&1; }

# run_try NAME@RANKS NUMBER
run_try() {
  local name=$1 number=$2 function
  function=try_${name%@*}
  RANKS=${name#*@}
  MESH=one
  ((RANKS != 4)) || MESH=2x2
  ((RANKS != 2)) || MESH=$( ((number % 2)) && echo dp2 || echo mp2)
  TRY=$FOLDER/work/$name-$number
  ID=$$-$name-$number
  SEED=$(cksum <<<"$name $number" | cut -d' ' -f1)
  NUMBER=$number
  SPAN=$(<"$FOLDER/base-$MESH/span")
  START=$(<"$FOLDER/base-$MESH/start")
  BROKEN=() RERUNS=() SAVES=() ROUNDS=0 TRAIN=train SETTLE=settle LOST=-1 EQUAL=- BEGAN_AT=- FIRST_BEGAN='' FAULT_CODE=- FAULT_TOOK=- AT=- FAULT_AT=- MESSAGE=-
  ! mountpoint -q "$TRY/run" || umount "$TRY/run"
  rm -rf "$TRY" && mkdir -p "$TRY" && cp "$FOLDER"/inputs/* "$TRY"
  "${function//-/_}" 2>"$TRY/shell.err" # sets all of the above; what bash says of killed jobs is no news
  local broken=- reruns="${RERUNS[*]:--}"
  ((LOST >= 0)) || LOST=-
  ((${#BROKEN[@]} == 0)) || printf -v broken '%s; ' "${BROKEN[@]}"
  broken=${broken//$'\t'/ }
  broken=${broken//$'\n'/ }
  broken=${broken%; }
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$number" "$MESH" "$FAULT_AT" "$FAULT_CODE" \
    "$FAULT_TOOK" "$LOST" "${FIRST_BEGAN:-$BEGAN_AT}" "$reruns" "$EQUAL" "${MESSAGE:--}" "$broken" >>"$RESULTS"
  if [[ $broken == - ]]; then
    say "$name try $number: $FAULT_CODE"
    rm -rf "$TRY"
  else
    say "$name try $number: BROKEN: $broken"
  fi
}
