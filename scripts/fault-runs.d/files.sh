# Damaged checkpoints. Each try starts with a run that was killed after step 22, and damages its newest checkpoint.
# Sourced by fault-runs.

SECTION_NOW="Damaged checkpoints"
begin_half() {
  cp -a "$FOLDER/half-$MESH/run" "$TRY/run"
  NEWEST=$(newest_whole)
  OLDER=$((NEWEST - 5))
  DAMAGED=$(step_folder "$NEWEST")
}
# Runs train. It must resume from the checkpoint of a step, and log in one line what it skips.
falls_back() { # STEP PATTERN
  local lines
  again
  note
  AT=- FAULT_AT=-
  [[ $BEGAN_AT == "$1" ]] || broke "it began at $BEGAN_AT, not at $1"
  lines=$(grep -csE "$2" "$ERR")
  [[ $lines == 1 ]] || broke "$lines lines name $2, not 1"
  MESSAGE=$(grep -sE "$2" "$ERR" | head -n 1 | cut -c 1-300)
  compare
}
# Runs train. It must end with 3 or 7, name the file and the remedy, and change nothing. With the older checkpoint it must
# give the result of an uninterrupted run, and so must the same command afterwards.
refuses() { # FILE [VAR=VALUE]
  local before
  before=$(cksum <"$TRY/run/metrics.jsonl")
  train run "${@:2}" --
  mark
  if [[ $1 == '?' ]]; then settle 90; else settle 20; fi # a run that meets no error trains to its end
  note
  AT=- FAULT_AT=-
  if ((CODE == 0)); then # an injected error that no call met; else a broken promise
    LOST=0
    [[ $1 == '?' ]] || broke "no error"
  elif [[ $1 == '?' ]]; then
    expect_code 3 7
    again
  else
    expect_code 3 7
    expect_said "$(basename "$DAMAGED")/$1" "$(basename "$DAMAGED")/$1"
    expect_said 'checkpoint\.resume=' "checkpoint.resume=..."
    [[ $(cksum <"$TRY/run/metrics.jsonl") == "$before" ]] || broke "the rejected run changed metrics.jsonl"
    again "checkpoint.resume=$(step_folder $OLDER)"
    [[ $BEGAN_AT == "$OLDER" ]] || broke "it began at $BEGAN_AT, not at $OLDER"
    again
  fi
  compare
}
# Changes one bit of a file, or writes '#' over one byte.
damage_byte() { # FILE flip|hash
  local at byte
  draw at 0 $(($(stat -c %s "$1") - 1))
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  if [[ $2 == hash ]]; then byte=35; else byte=$((byte ^ 16)); fi
  printf "\\x$(printf %02x "$byte")" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}
# Damages that change the size of a file, and damages that do not.
damage() { # KIND; sets FILE
  local files
  FILE=model.safetensors
  case $1 in
    truncated) truncate -s $(($(stat -c %s "$DAMAGED/$FILE") * (NUMBER % 9) / 9)) "$DAMAGED/$FILE" ;;
    missing)
      files=(model.safetensors config.json training/optimizer.safetensors training/state.json tokenizer.json)
      FILE=${files[NUMBER % 5]}
      rm "$DAMAGED/$FILE"
      ;;
    no-manifest) FILE=training/manifest.json && rm "$DAMAGED/$FILE" ;;
    flip-model) damage_byte "$DAMAGED/$FILE" flip ;;
    flip-optimizer) FILE=training/optimizer.safetensors && damage_byte "$DAMAGED/$FILE" flip ;;
    bad-state) FILE=training/state.json && damage_byte "$DAMAGED/$FILE" hash ;;
    newer-format)
      FILE=training/manifest.json
      sed -i 's/"format_version": [0-9]*/"format_version": 99/' "$DAMAGED/$FILE"
      ;;
    fifo) FILE=training/manifest.json && rm "$DAMAGED/$FILE" && mkfifo "$DAMAGED/$FILE" ;;
  esac
}
fall_back_from() {
  begin_half
  damage "$1"
  falls_back "$OLDER" "$(basename "$DAMAGED")"
}
refuse_after() {
  begin_half
  damage "$1"
  refuses "$FILE"
}

fault truncated "1 2" "model.safetensors is truncated: uses the older checkpoint"
try_truncated() { fall_back_from truncated; }
fault missing "1 2" "a file is missing: uses the older checkpoint"
try_missing() { fall_back_from missing; }
fault no-manifest "1 2" "the manifest is missing: uses the older checkpoint"
try_no_manifest() { fall_back_from no-manifest; }
fault leftover "1 2" "unfinished save (.tmp-step-...): uses the newest checkpoint"
try_leftover() {
  begin_half
  local temp
  temp=$TRY/run/checkpoints/.tmp-$(basename "$(step_folder $((NEWEST + 5)))")
  cp -r "$DAMAGED" "$temp" && rm "$temp/training/manifest.json"
  falls_back "$NEWEST" '\.tmp-'
}
fault flip-model "1 2" "one bit of model.safetensors is flipped: error"
try_flip_model() { refuse_after flip-model; }
fault flip-optimizer "1 2" "one bit of optimizer.safetensors is flipped: error"
try_flip_optimizer() { refuse_after flip-optimizer; }
fault bad-state "1 2" "one byte of state.json is damaged: error"
try_bad_state() { refuse_after bad-state; }
fault newer-format "1 2" "the manifest has a newer format_version: error"
try_newer_format() { refuse_after newer-format; }
fault fifo "1 2" "the manifest is a FIFO: error"
try_fifo() { refuse_after fifo; }
fault read-error "1 2" "the N-th read of the resumed run fails (EIO)"
try_read_error() {
  local n
  begin_half
  draw n 1 60
  refuses '?' "REDCO_FAULT_IO=read:$n:EIO"
}

# predict and evaluate must give the answer of the undamaged checkpoint, or that of the older one with a log line, or an
# error that names the checkpoint. They must not hang.
DAMAGES=(truncated missing no-manifest flip-model flip-optimizer bad-state newer-format fifo)
read_damaged() { # predict or evaluate
  local kind=${DAMAGES[(NUMBER - 1) % 8]} answer
  begin_half
  ln -sfn "$(basename "$DAMAGED")" "$TRY/run/checkpoints/last"
  rm -f "$TRY/run/.lock"
  ask "$1" && cp "$answer" "$TRY/expected-new"
  ln -sfn "$(basename "$(step_folder $OLDER)")" "$TRY/run/checkpoints/last"
  mv "$DAMAGED" "$TRY/aside"
  ask "$1" && cp "$answer" "$TRY/expected-old"
  mv "$TRY/aside" "$DAMAGED"
  ln -sfn "$(basename "$DAMAGED")" "$TRY/run/checkpoints/last"
  damage "$kind"
  ask "$1"
  MESSAGE="$kind: $(message)"
  note_keeping_message
  EQUAL=-
  if ((CODE != 0)); then
    expect_code 2 3 7
    expect_said "$(basename "$DAMAGED")|checkpoints/last" "the checkpoint"
  elif cmp -s "$answer" "$TRY/expected-new"; then
    EQUAL=yes
  elif cmp -s "$answer" "$TRY/expected-old"; then
    EQUAL=yes
    grep -qs "$(basename "$DAMAGED")" "$ERR" || broke "$kind: used the older checkpoint without a message about the newer one"
  else
    EQUAL=no
    broke "$kind: exit code 0, but the answers belong to neither checkpoint"
  fi
}
note_keeping_message() { FAULT_CODE=$CODE FAULT_TOOK=$TOOK FAULT_AT=-; }
ask() {
  answer=$TRY/answers.jsonl
  rm -f "$TRY"/answers.jsonl*
  [[ $1 == predict ]] || answer=$TRY/ask.out
  if [[ $1 == predict ]]; then
    head -n 8 "$FOLDER/inputs/prompts.jsonl" >"$TRY/prompts.jsonl"
    launch ask -- predict job.yaml $(mesh_words "$MESH")
  else
    launch ask -- evaluate job.yaml $(mesh_words "$MESH")
  fi
  mark
  settle 30
  ((CODE == 0))
}
fault predict-damaged "1 2" "redco predict with each of these damages"
try_predict_damaged() { read_damaged predict; }
fault evaluate-damaged "1 2" "redco evaluate with each of these damages"
try_evaluate_damaged() { read_damaged evaluate; }
