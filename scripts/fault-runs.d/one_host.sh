# Faults of one of two hosts: clock, disks, memory. Sourced by fault-runs, after links.sh.

SECTION_NOW="One host of two"

# All programs on host b read a clock that is 10 minutes ahead.
clock_ahead() {
  cat >"$TRY/clock.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
enum { kAhead = 600 };
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(id, t);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) t->tv_sec += kAhead;
  return result;
}
int gettimeofday(struct timeval* t, void* zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
END
  gcc -shared -fPIC -O1 -o "$TRY/clock.so" "$TRY/clock.c" -ldl
  echo "$TRY/clock.so" >"$TRY/preload"
  on_b sh -c "touch /etc/ld.so.preload && mount --bind '$TRY/preload' /etc/ld.so.preload"
}
# The clock is wrong from the start; then the rank on host b is lost, so a lease is compared with both clocks.
try_one_clock() {
  BEFORE=clock_ahead
  host_ends 0 "" kill_rank_on_b
  grep -qs 'its clock is [56][0-9]* s ahead' "$TRY/run.err" || broke "the preflight does not report the clock"
}
fault one-clock "2" "one clock is 10 minutes ahead, then a rank is lost; the command finishes" slow

# /dev/shm holds the buddy checkpoints, and Open MPI's memory between ranks of a host.
small_shm() { on_b mount -o remount,size=64m /dev/shm; }
full_shm() {
  on_b sh -c "dd if=/dev/zero of=/dev/shm/.full bs=64k 2>/dev/null || true"
  kill_rank_on_b
}
fault one-shm "2" "/dev/shm of one host is full, then its rank is lost, buddy checkpoints; the command finishes" slow
try_one_shm() { BEFORE=small_shm && host_ends 0 "$BUDDY" full_shm; }
# The first host writes the files of the workdir; the other one reads them.
on_a() { hosts exec a "$@"; }
read_only() { # HOST
  hosts exec "$1" sh -c "mount --bind '$TRY/run' '$TRY/run' && mount -o remount,bind,ro '$TRY/run'"
}
fault one-ro-writer "2" "the workdir becomes read-only on the first host; the command ends" slow
try_one_ro_writer() { host_ends 7 "" read_only a; }
fault one-ro-reader "2" "the workdir becomes read-only on the other host; the command finishes or ends" slow
try_one_ro_reader() { host_ends "0 7" "" read_only b; }
# The workdir's folder of checkpoints is a small disk on one host, and full.
full_workdir() { # HOST
  mkdir -p "$TRY/small"
  hosts exec "$1" sh -c "mount -t tmpfs -o size=8m small '$TRY/small' && cp -a '$TRY/run/checkpoints/.' '$TRY/small/' &&
    mount --bind '$TRY/small' '$TRY/run/checkpoints' && dd if=/dev/zero of='$TRY/run/checkpoints/.full' bs=64k 2>/dev/null || true"
}
fault one-full-disk "2" "the disk of the first host's checkpoints is full; the command ends" slow
try_one_full_disk() { host_ends 7 "" full_workdir a; }

# A host's processes are in a cgroup with a limit of memory, and other data in its /dev/shm fill it. The kernel kills
# the largest process, the rank. Then the other data are removed.
if [[ -d /sys/fs/cgroup/memory ]]; then
  CGROUP=/sys/fs/cgroup/memory/redco-fault CGROUP_LIMIT=memory.limit_in_bytes CGROUP_USED=memory.usage_in_bytes
  CGROUP_MOUNT="mount -t tmpfs cgroups /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && mount -t cgroup -o memory memory /sys/fs/cgroup/memory"
else
  CGROUP=/sys/fs/cgroup/redco-fault CGROUP_LIMIT=memory.max CGROUP_USED=memory.current
  CGROUP_MOUNT="mount -t cgroup2 cgroups /sys/fs/cgroup"
fi
new_cgroup() {
  CGROUP+=-$NETNS_HOSTS_PREFIX
  ! [[ -d $CGROUP ]] || rmdir "$CGROUP"
  mkdir "$CGROUP" || broke "no cgroup of memory"
}
cgroup_of_b() {
  local first pid
  new_cgroup
  first=$("$SHARED/netns-hosts" status | awk '$1 ~ /-b$/ {print $4}')
  for pid in $(pgrep --ns "$first" --nslist pid .); do echo "$pid" >"$CGROUP/cgroup.procs"; done
}
# The command and its ranks on host a, which see their cgroup as on a machine.
cgroup_of_a() {
  new_cgroup
  on_a sh -c "$CGROUP_MOUNT"
  echo "$BASHPID" >"$CGROUP/cgroup.procs"
}
no_memory() { # HOST
  local rank
  rank=$(rank_on "$1")
  echo $(($(<"$CGROUP/$CGROUP_USED") + (32 << 20))) >"$CGROUP/$CGROUP_LIMIT"
  (
    echo "$BASHPID" >"$CGROUP/cgroup.procs"
    # Its memory is not taken in place of the rank's.
    echo -1000 >"/proc/$BASHPID/oom_score_adj"
    # A process that was killed has no exe; it stays until mpirun asks for its status.
    hosts exec "$1" sh -c "while [ -e /proc/$(pid_inside "$rank")/exe ]; do head -c 256k /dev/zero >>/dev/shm/.other; done; rm /dev/shm/.other"
  )
}
pid_inside() { awk '/^NSpid:/ {print $NF}' "/proc/$1/status"; } # PID: as its own namespace numbers it
try_one_oom() { BEFORE=cgroup_of_b && host_ends 0 "" no_memory b; }
fault one-oom "2" "a host is out of memory (a cgroup's limit), and its rank is killed; the command finishes" slow
try_one_oom_first() {
  BEFORE=cgroup_of_a
  host_ends 4 "" no_memory a
  grep -qs 'memory. the kernel killed rank 0 for lack of memory' "$TRY/run.err" || broke "no message about memory"
}
fault one-oom-first "2" "the same on the first host; the command ends" slow
try_one_oom_shrink() {
  BEFORE=cgroup_of_a COMPARE=compare_steps
  host_ends 0 "fault.shrink_batch=true" no_memory a
}
fault one-oom-shrink "2" "the same with fault.shrink_batch; the command finishes with half the micro-batch" slow
