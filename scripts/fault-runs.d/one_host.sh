# Faults of one of two hosts: clock, disks. Sourced by fault-runs, after links.sh.

SECTION_NOW="One host of two"

# All programs on redco-b read a clock that is 10 minutes ahead.
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
# The clock is wrong from the start; then the rank on redco-b is lost, so a lease is compared with both clocks.
try_one_clock() {
  BEFORE=clock_ahead
  host_ends 0 "" kill_rank_on_b
  grep -qs 'its clock is [56][0-9]* s ahead' "$TRY/run.err" || broke "the preflight does not report the clock"
}
fault one-clock "2" "one clock is 10 minutes ahead, then a rank is lost; the command finishes" 3

# /dev/shm holds the buddy checkpoints, and Open MPI's memory between ranks of a host.
small_shm() { on_b mount -o remount,size=64m /dev/shm; }
full_shm() {
  on_b sh -c "dd if=/dev/zero of=/dev/shm/.full bs=64k 2>/dev/null || true"
  kill_rank_on_b
}
fault one-shm "2" "/dev/shm of one host is full, then its rank is lost, buddy checkpoints; the command finishes" 3
try_one_shm() { BEFORE=small_shm && host_ends 0 "$BUDDY" full_shm; }
# The first host writes the files of the workdir; the other one reads them.
on_a() { hosts exec redco-a "$@"; }
read_only() { # HOST
  hosts exec "$1" sh -c "mount --bind '$TRY/run' '$TRY/run' && mount -o remount,bind,ro '$TRY/run'"
}
fault one-ro-writer "2" "the workdir becomes read-only on the first host; the command ends" 3
try_one_ro_writer() { host_ends 7 "" read_only redco-a; }
fault one-ro-reader "2" "the workdir becomes read-only on the other host; the command finishes or ends" 3
try_one_ro_reader() { host_ends "0 7" "" read_only redco-b; }
# The workdir's folder of checkpoints is a small disk on one host, and full.
full_workdir() { # HOST
  mkdir -p "$TRY/small"
  hosts exec "$1" sh -c "mount -t tmpfs -o size=8m small '$TRY/small' && cp -a '$TRY/run/checkpoints/.' '$TRY/small/' &&
    mount --bind '$TRY/small' '$TRY/run/checkpoints' && dd if=/dev/zero of='$TRY/run/checkpoints/.full' bs=64k 2>/dev/null || true"
}
fault one-full-disk "2" "the disk of the first host's checkpoints is full; the command ends" 3
try_one_full_disk() { host_ends 7 "" full_workdir redco-a; }
