# Simultaneous runs, repeated runs. Sourced by fault-runs.

SECTION_NOW="Runs"
fault two-trainings "1 2" "two trainings in one workdir: one ends with 2, the other succeeds"
try_two_trainings() {
  local first first_err second second_err first_code began
  train run --
  first=$LAUNCHER first_err=$ERR began=$BEGAN
  pause
  train second --
  second=$LAUNCHER second_err=$ERR
  mark
  AT=$((MARK - began))
  settle 180 # both have the same mark in their environment; the code is the second's
  note
  second=$CODE
  first_code=0
  wait "$first" || first_code=$?
  FAULT_CODE=$first_code+$second
  # The second run may get the lock before the first one. If it starts after the first one's end, both succeed.
  [[ "$first_code $second" == "0 2" || "$first_code $second" == "2 0" || "$first_code $second" == "0 0" ]] ||
    broke "they ended with $first_code and $second"
  [[ $first_code != 2 ]] || second_err=$first_err
  [[ "$first_code $second" == "0 0" ]] || grep -qs 'in use' "$second_err" || broke "no message about the folder in use"
  [[ "$first_code $second" != "0 0" ]] || grep -qs "step $STEPS of $STEPS" "$second_err" ||
    broke "both trained"
  CODE=0
  LOST=0
  compare
}

fault two-predicts "1 2" "two predictions with one output: one ends with 2, the other succeeds"
try_two_predicts() {
  local first first_code second began
  model_here
  launch run -- predict job.yaml $(mesh_words "$MESH")
  first=$LAUNCHER
  began=$BEGAN
  pause_predict
  launch second -- predict job.yaml $(mesh_words "$MESH")
  mark
  AT=$((MARK - began))
  settle 180
  note
  second=$CODE
  first_code=0
  wait "$first" || first_code=$?
  FAULT_CODE=$first_code+$second
  [[ "$first_code $second" == "0 2" || "$first_code $second" == "2 0" || "$first_code $second" == "0 0" ]] ||
    broke "they ended with $first_code and $second"
  [[ "$first_code $second" != "0 0" ]] || grep -qs 'already holds all' "$TRY/second.err" || broke "both predicted"
  compare_answers
}

fault kill-predict "1 2" "SIGKILL to all processes of predict, then the same command"
try_kill_predict() {
  model_here
  launch run -- predict job.yaml $(mesh_words "$MESH")
  pause_predict
  mark
  send KILL $(processes_of "$ID")
  settle $MARGIN
  expect_code 137 0
  note
  launch again -- predict job.yaml $(mesh_words "$MESH")
  mark
  settle 180
  RERUNS+=("$CODE")
  ((CODE == 0)) || broke "the same command again ended with $CODE: $(message)"
  compare_answers
}
model_here() {
  mkdir -p "$TRY/run"
  cp -a "$FOLDER/base-$MESH/run/checkpoints" "$TRY/run/"
}
compare_answers() {
  EQUAL=yes
  cmp -s "$TRY/answers.jsonl" "$FOLDER/base-$MESH/answers.jsonl" ||
    { EQUAL=no && broke "answers.jsonl is not that of an uninterrupted run"; }
}

fault never "1 2" "resume=never in an old workdir, SIGTERM, then resume=auto"
try_never() {
  local old
  cp -a "$FOLDER/other-$MESH/run" "$TRY/run"
  old=$(cksum <"$TRY/run/checkpoints/last/model.safetensors")
  train run -- checkpoint.resume=never
  until_true began_again # before, auto has nothing of the new run to resume
  pause
  mark
  send TERM "$LAUNCHER"
  settle $MARGIN
  expect_end 8
  finish
  # (grep -q would end the pipe early, which pipefail counts as a failure.)
  find "$TRY" -name model.safetensors -exec cksum {} + | grep "^$old " >/dev/null || broke "the old run's last checkpoint is gone"
}
began_again() { last_logged && ((LOGGED > 0 && LOGGED < STEPS)); }

fault renamed "1 2" "the workdir is renamed during the run, and back after its end"
try_renamed() {
  train run --
  until_true logged 1
  pause
  mark
  mv "$TRY/run" "$TRY/elsewhere"
  settle 60
  expect_end 7
  if [[ -e $TRY/run ]]; then
    broke "the run made its folder again: $(ls -A "$TRY/run" | tr '\n' ' ')"
    rm -rf "$TRY/run"
  fi
  mv "$TRY/elsewhere" "$TRY/run"
  finish
}
