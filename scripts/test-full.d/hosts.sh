# The part `hosts` of test-full: trainings on hosts made of namespaces (scripts/netns-hosts), which are killed, cut
# from the network and connected again. Root only. Sourced by test-full.

NET=$SCRIPTS/netns-hosts
export NETNS_HOSTS_PREFIX=redcot

on() { "$NET" exec "redcot-$1" "${@:2}"; } # HOST COMMAND ...
# The pids of redco on a host, as the host sees them. WHICH: ranks or launchers.
pids_on() {
  local negate=''
  [[ $2 == ranks ]] || negate='!'
  # shellcheck disable=SC2016
  on "$1" bash -c 'for p in $(pgrep -x redco); do '"$negate"' grep -qz "^OMPI_COMM_WORLD_RANK=" /proc/$p/environ && echo $p; done'
}
hosts_of() { local h out=(); for h in "$@"; do out+=("redcot-$h:1"); done; (IFS=, && echo "[${out[*]}]"); }

hosts_job() {
  local i
  for ((i = 1; i <= 2000; i++)); do
    echo "the quick brown fox jumps over the lazy dog $((i * 7919 % 1000)) times and runs $((i * i % 97)) far"
  done >"$folder/train.txt"
  cat >"$folder/job.yaml" <<'JOB'
model: {arch: gpt2, tokenizer: bytes, n_layer: 2, n_embd: 64, n_head: 4, n_positions: 64, resid_pdrop: 0.1}
data: {train: train.txt}
train: {global_batch_size: 48, per_device_batch_size: 4, max_steps: 60, learning_rate: 3.0e-3, warmup_steps: 5, logging_steps: 1}
checkpoint: {every_n_steps: 5, keep_last: 3}
parallel: {threads_per_rank: 1}
fault: {timeout: 6}
JOB
}

# Starts a training of the given name on host a, in the background. NAME HOSTS [words ...]
begin() {
  name=$1
  (cd "$folder" && exec "$NET" exec redcot-a "$REDCO" train job.yaml "workdir=$name" ${2:+"parallel.hosts=$2"} "${@:3}" \
    >"$name.out" 2>"$name.err" </dev/null) &
  launcher=$!
}
last_step() { tail -n 1 "$folder/$name/metrics.jsonl" 2>/dev/null | sed -n 's/^{"step":\([0-9]*\),.*/\1/p'; }
at_step() { local s; s=$(last_step) && ((${s:-0} >= $1)); }
finished() { # CODE: the command ends with it within 120 s, and leaves no process on any host
  local code=0 h i
  for ((i = 0; i < 1200; i++)); do kill -0 "$launcher" 2>/dev/null || break; sleep 0.1; done
  ((i < 1200)) || { say "the command did not end" && kill -KILL "$launcher"; }
  wait "$launcher" 2>/dev/null || code=$?
  ((code == $1)) || { say "$name ended with $code, expected $1" && tail -n 20 "$folder/$name.err" >&2 && return 1; }
  for h in $("$NET" list | tr , ' '); do
    for ((i = 0; i < 200; i++)); do
      "$NET" exec "$h" sh -c 'pgrep -x redco || pgrep -x orted || pgrep -x mpirun' >/dev/null || break
      sleep 0.1
    done
    ((i < 200)) || { say "processes are left on $h" && return 1; }
  done
}
said() { grep -q -- "$1" "$folder/$name.err" || { say "not in $name.err: $1" && tail -n 20 "$folder/$name.err" >&2 && return 1; }; }
steps_once() { # each step is in metrics.jsonl once
  [[ $(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "$folder/$name/metrics.jsonl" | sort -n | uniq -c | awk '$1 != 1' | wc -l) == 0 ]] &&
    [[ $(last_step) == "$1" ]]
}
equal_to() { # the parameters and the optimizer state of another run
  local file
  for file in model.safetensors training/optimizer.safetensors; do
    cmp "$folder/$name/checkpoints/last/$file" "$folder/$1/checkpoints/last/$file" || return 1
  done
}

hosts_undisturbed() { # what the others are compared with
  begin whole "$(hosts_of a b)" && finished 0 && steps_once 60
}
hosts_table() {
  on a "$REDCO" hosts "$folder/job.yaml" "workdir=$folder/none" "parallel.hosts=$(hosts_of a b c d)" >"$folder/table" || return 1
  (($(grep -c 'redcot-.*shared' "$folder/table") == 4)) && [[ ! -e $folder/none ]]
}
hosts_unshared_workdir() { # before any rank starts
  mkdir -p "$folder/own" && on b mount -t tmpfs tmpfs "$folder/own" || return 1
  begin own "$(hosts_of a b)" && finished 2 && said 'host redcot-b: .*Put workdir on a file system that all hosts share'
  local status=$?
  on b umount "$folder/own"
  return "$status"
}
hosts_logins() { # an sshd on another port, a name that only the job knows, a refused user
  # shellcheck disable=SC2016
  on b bash -c '/usr/sbin/sshd -f "$0" -o "ListenAddress 10.77.0.2" -o "Port 2222" -o PidFile=none' \
    "${NETNS_HOSTS_DIR:-/tmp/$NETNS_HOSTS_PREFIX-netns}/etc/sshd_config" || return 1
  begin logins '[redcot-a:1, "redcot-b:1 user=root port=2222"]' && finished 0 && steps_once 60 && equal_to whole &&
    begin alias '[redcot-a:1, "far:1 port=2222 address=10.77.0.2"]' && finished 0 && steps_once 60 && equal_to whole &&
    begin refused '[redcot-a:1, "redcot-b:1 user=absent port=2222"]' && finished 5 && said '`ssh -p 2222 absent@redcot-b true`'
}
hosts_unreachable_at_the_start() {
  "$NET" cut redcot-c && begin unreachable "$(hosts_of a c)"
  finished 5 && said 'host redcot-c: ssh cannot connect' && [[ ! -e $folder/unreachable/metrics.jsonl ]]
  local status=$?
  "$NET" heal redcot-c
  return "$status"
}
hosts_killed_rank() {
  begin killed "$(hosts_of a b)" && within 60 at_step 22 && on b kill -KILL $(pids_on b ranks) &&
    finished 0 && said 'restart 1 of 3' && steps_once 60 && equal_to whole
}
hosts_all_processes_of_a_host() {
  begin host "$(hosts_of a b)" && within 60 at_step 22 && on b pkill -KILL -x 'redco|orted' &&
    finished 0 && said 'restart 1 of 3' && steps_once 60 && equal_to whole
}
hosts_stopped_rank() {
  begin stopped "$(hosts_of a b)" && within 60 at_step 22 && on b kill -STOP $(pids_on b ranks) &&
    finished 0 && said 'no message for 6 s' && steps_once 60 && equal_to whole
}
# The first rank is on the host without network: its lock and its last save may come back.
hosts_first_rank_cut_and_healed() {
  begin first "$(hosts_of b c)" && within 60 at_step 22 && "$NET" cut redcot-b && within 60 in_file 'restart 1 of 3' "$folder/first.err" &&
    "$NET" heal redcot-b && finished 0 && steps_once 60 && equal_to whole
}
# All processes of the first rank's host are stopped and its link is cut, so nothing ends them. The next start takes
# over the lock; then the host comes back, and its rank may change nothing.
hosts_former_start_comes_back() {
  begin former "$(hosts_of b c d)" parallel.n_ranks=2 && within 60 at_step 22 && on b pkill -STOP -x 'redco|orted' &&
    "$NET" cut redcot-b && within 60 in_file 'of a former start of this job' "$folder/former.err" &&
    within 100 grep -q '"start":2' "$folder/former/history.jsonl" && "$NET" heal redcot-b && on b pkill -CONT -x 'redco|orted' &&
    finished 0 && steps_once 60 && equal_to whole
}
# 2 x 2: one host is cut at step 20 and healed at step 60.
hosts_elastic() {
  begin elastic "$(hosts_of a b c d)" parallel.n_model_shards=2 fault.elastic=true train.max_steps=600 &&
    within 60 at_step 20 && "$NET" cut redcot-d && within 90 at_step 60 && "$NET" heal redcot-d &&
    finished 0 && said 'dp 1 instead of 2' && said 'starts on all hosts' && steps_once 600
}
hosts_spare() { # another host has slots for the ranks of the lost one
  begin spare "$(hosts_of a b c)" parallel.n_ranks=2 && within 60 at_step 22 && "$NET" cut redcot-b &&
    finished 0 && said 'the other hosts have slots for all 2 ranks' && steps_once 60 && equal_to whole
  local status=$?
  "$NET" heal redcot-b
  return "$status"
}
nothing_kept() { # the keepers have removed the buddy checkpoints from the memory of all hosts
  local h
  for h in $("$NET" list | tr , ' '); do
    [[ -z $("$NET" exec "$h" find /dev/shm -name 'redco-kept-*') ]] || { say "buddy checkpoints are left on $h" && return 1; }
  done
}
# One host has all model shards of a lost rank in memory, or another replica has them. The only checkpoint is the last.
hosts_buddy() {
  local memory=(fault.buddy=true fault.buddy_steps=4 checkpoint.every_n_steps=1000) from='continuing from the buddy checkpoint of step'
  begin copied "$(hosts_of a b)" "${memory[@]}" && within 60 at_step 22 && on b kill -KILL $(pids_on b ranks) && finished 0 &&
    said "$from" && steps_once 60 && equal_to whole && nothing_kept || return 1
  begin shards "$(hosts_of a b)" parallel.n_model_shards=2 && finished 0 &&
    begin copied-shards "$(hosts_of b a c)" parallel.n_model_shards=2 parallel.n_ranks=2 "${memory[@]}" && within 60 at_step 22 &&
    "$NET" cut redcot-b && finished 0 && said "$from" && steps_once 60 && equal_to shards
  local status=$?
  "$NET" heal redcot-b
  return "$status"
}
hosts_budget() { # a host that stays away
  begin budget "$(hosts_of a b)" fault.max_restarts=1 && within 60 at_step 22 && "$NET" cut redcot-b &&
    finished 5 && said 'no further start: 1 restart brought no newer checkpoint'
  local status=$?
  "$NET" heal redcot-b
  return "$status"
}
# The kernel mounts a damaged file system read-only: that needs a person, and no restart.
hosts_read_only_remount() {
  local status=0 device
  truncate -s 64M "$folder/image" && mkfs.ext4 -q -F "$folder/image" >/dev/null && mkdir -p "$folder/mount" &&
    mount -o loop,errors=remount-ro "$folder/image" "$folder/mount" || return 1
  device=/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$folder/mount")")
  read_only_train
  name=mount/run
  within 60 at_step 12 && echo 1 >"$device/trigger_fs_error" || status=1
  name=ro
  finished 7 && said 'Read-only file system' && ! in_file 'restart 1' "$folder/ro.err" || status=1
  umount "$folder/mount" && fsck.ext4 -p "$folder/image" >/dev/null
  mount -o loop "$folder/image" "$folder/mount" || return 1
  read_only_train
  finished 0 && cmp "$folder/mount/run/checkpoints/last/model.safetensors" "$folder/whole/checkpoints/last/model.safetensors" &&
    name=mount/run && steps_once 60 || status=1
  umount "$folder/mount"
  return "$status"
}
read_only_train() {
  (cd "$folder" && exec "$REDCO" train job.yaml workdir=mount/run parallel.n_ranks=2 >ro.out 2>ro.err </dev/null) &
  launcher=$!
}
# The kernel kills a rank in a group with too little memory, of which another process has taken a part.
hosts_lack_of_memory() {
  local group=/sys/fs/cgroup/memory/redcot hog i status=0
  mkdir "$group" 2>/dev/null || { say "hosts: lack_of_memory is skipped: no memory controller of cgroup v1" && return 0; }
  echo $((1100 << 20)) >"$group/memory.limit_in_bytes"
  name=memory
  (cd "$folder" && echo $BASHPID >"$group/tasks" && echo 500 >/proc/self/oom_score_adj &&
    exec "$REDCO" train job.yaml workdir=memory parallel.n_ranks=2 model.n_layer=6 model.n_embd=128 model.n_positions=128 \
      train.global_batch_size=64 train.per_device_batch_size=32 train.max_steps=8 train.warmup_steps=1 checkpoint.every_n_steps=2 \
      fault.shrink_batch=true fault.timeout=60 >memory.out 2>memory.err </dev/null) &
  launcher=$!
  within 60 at_step 2 || status=1
  (echo $BASHPID >"$group/tasks" && exec perl -e 'vec($x, 700 << 20, 8) = 1; sleep 600') &
  hog=$!
  finished 0 && said 'the kernel killed rank' && said 'train.per_device_batch_size is 16 now' && steps_once 8 || status=1
  kill "$hog" 2>/dev/null
  wait "$hog" 2>/dev/null
  rmdir "$group"
  return "$status"
}
# A signal while no ranks run: in the wait of 5 s before the second restart, because host b does not answer.
hosts_signal_between_starts() {
  begin between "$(hosts_of a b)" && within 60 at_step 22 && "$NET" cut redcot-b && within 90 in_file 'restart 2 of' "$folder/between.err" &&
    on a kill -TERM $(pids_on a launchers) && finished 8 && said 'stopped by SIGTERM before the next start; the same command resumes' &&
    tail -n 1 "$folder/between/history.jsonl" | grep -q '"event":"stopped"'
  local status=$?
  "$NET" heal redcot-b
  return "$status"
}
hosts_hostfile_is_gone() {
  printf '\xef\xbb\xbfredcot-a slots = 1\r\nredcot-b\r\n' >"$folder/hostfile"
  begin gone '' parallel.hostfile=hostfile && within 60 at_step 22 && rm "$folder/hostfile" && on b kill -KILL $(pids_on b ranks) &&
    finished 0 && said 'restart 1 of 3' && steps_once 60 && equal_to whole
}
# The key of the host is not the one in known_hosts; a login that prints without a line break, and one that ends.
hosts_logins_that_disturb() {
  local etc=${NETNS_HOSTS_DIR:-/tmp/$NETNS_HOSTS_PREFIX-netns}/etc status=0
  echo "10.77.0.2 $(cut -d' ' -f 1,2 <(ssh-keygen -q -t ed25519 -N '' -f "$folder/other" && cat "$folder/other.pub"))" >"$folder/known"
  { printf 'Host changed\n HostName 10.77.0.2\n StrictHostKeyChecking yes\n UserKnownHostsFile %s\n' "$folder/known" && cat "$etc/ssh_config"; } >"$folder/config"
  on a mount --bind "$folder/config" /etc/ssh/ssh_config && begin changed '[redcot-a:1, changed:1]' && finished 5 &&
    said "ssh-keygen -R '10.77.0.2'" || status=1
  on a umount /etc/ssh/ssh_config
  printf 'printf loading...\n' >"$folder/rc" && on b mount --bind "$folder/rc" /root/.bashrc &&
    begin prints "$(hosts_of a b)" && finished 0 && steps_once 60 && equal_to whole || status=1
  echo 'exit 3' >"$folder/rc" && begin ends "$(hosts_of a b)" && finished 5 && said 'the login ended with status 3 before redco ran' || status=1
  on b umount /root/.bashrc
  return "$status"
}
hosts_interrupted_check() { # leaves no file in the workdir
  local status=0
  name=checked
  mkdir -p "$folder/checked" && echo 'sleep 60' >"$folder/rc" && on b mount --bind "$folder/rc" /root/.bashrc || return 1
  (cd "$folder" && exec "$NET" exec redcot-a "$REDCO" hosts job.yaml workdir=checked "parallel.hosts=$(hosts_of a b)" >checked.out 2>checked.err </dev/null) &
  launcher=$!
  within 20 eval '[[ -n $(ls -A "$folder/checked") ]]' && on a pkill -TERM -o -x redco && finished 8 && said 'stopped by SIGTERM' &&
    [[ -z $(ls -A "$folder/checked") ]] || status=1
  on b umount /root/.bashrc
  return "$status"
}
# As machines of a cloud: each has an own network, and Docker's bridge with the same address.
hosts_docker_without_common_network() {
  local h k=0 status=0
  for h in a b; do
    k=$((k + 1))
    on "$h" bash -c "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up
      ip addr flush dev eth0; ip addr add 10.77.0.$k/32 dev eth0; ip route add 10.77.0.0/24 dev eth0 src 10.77.0.$k"
  done
  begin docker "$(hosts_of a b)" && finished 0 && said 'no network in common' && steps_once 60 && equal_to whole || status=1
  k=0
  for h in a b; do
    k=$((k + 1))
    on "$h" bash -c "ip link del docker0; ip addr flush dev eth0; ip addr add 10.77.0.$k/24 dev eth0"
  done
  return "$status"
}
hosts_model_not_mounted() { # the mount point is there, without the model
  mkdir -p "$folder/model" && cp -r "$folder/whole/checkpoints/last/." "$folder/model" && on b mount -t tmpfs tmpfs "$folder/model" || return 1
  sed 's/^model: .*/model: {path: model}/' "$folder/job.yaml" >"$folder/path.yaml"
  name=path
  (cd "$folder" && exec "$NET" exec redcot-a "$REDCO" train path.yaml workdir=path "parallel.hosts=$(hosts_of a b)" >path.out 2>path.err </dev/null) &
  launcher=$!
  finished 2 && said "host redcot-b: it cannot read $folder/model/config.json: No such file"
  local status=$?
  on b umount "$folder/model"
  return "$status"
}
hosts_without_home() {
  (cd "$folder" && env -u HOME "$REDCO" train job.yaml workdir=nohome parallel.n_ranks=2 train.max_steps=4 train.warmup_steps=0 >nohome.out \
    2>nohome.err </dev/null) && [[ -e $folder/nohome/checkpoints/last/model.safetensors ]]
}
hosts_without_ssh() {
  local h i=0 code members=()
  for h in a b c; do on "$h" pkill -x sshd; done
  (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/key")
  for h in b c; do
    i=$((i + 1))
    (cd "$folder" && exec "$NET" exec "redcot-$h" "$REDCO" train job.yaml --n-processes 3 --process-id $i --host0-address redcot-a \
      --key-file key >"member$i.out" 2>"member$i.err" </dev/null) &
    members+=($!)
  done
  begin joined "" --n-processes 3 --process-id 0 --host0-address redcot-a --key-file key train.max_steps=900 &&
    within 60 at_step 5 || return 1
  # A process with another number of processes, and one whose number is taken.
  for h in 4 3; do
    code=0
    (cd "$folder" && exec "$NET" exec redcot-d timeout 60 "$REDCO" train job.yaml --n-processes $h --process-id 1 \
      --host0-address redcot-a --key-file key >"wrong$h.out" 2>"wrong$h.err" </dev/null) || code=$?
    ((code == 2)) || { say "a process that cannot take part ended with $code" && cat "$folder/wrong$h.err" >&2 && return 1; }
  done
  within 60 at_step 22 && on b kill -KILL $(pids_on b ranks) && finished 0 && said 'restart 1 of 3' && steps_once 900 || return 1
  for i in "${members[@]}"; do wait "$i" || return 1; done
}

part_hosts() {
  ((EUID == 0)) || { echo "netns-hosts needs root" && return "$SKIP"; }
  [[ -n ${REDCO:-} ]] || { "$SCRIPTS/build" && REDCO=$BUILD/bin/redco; } || return 1
  local folder name launcher check failures=0
  folder=$(mktemp -d /tmp/redco-hosts-test.XXXXXX)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  "$NET" down && "$NET" up 4 || return 1
  hosts_job
  for check in undisturbed table logins unshared_workdir unreachable_at_the_start killed_rank all_processes_of_a_host stopped_rank \
    first_rank_cut_and_healed former_start_comes_back elastic spare buddy budget read_only_remount lack_of_memory \
    signal_between_starts hostfile_is_gone logins_that_disturb interrupted_check docker_without_common_network model_not_mounted without_home without_ssh; do
    [[ $check == undisturbed || -z ${ONLY_HOSTS:-} || " $ONLY_HOSTS " == *" $check "* ]] || continue
    say "hosts: $check"
    "hosts_$check" || { failures=$((failures + 1)) && say "FAILED: $check"; }
  done
  "$NET" down
  ((failures == 0)) && rm -rf "$folder"
}
