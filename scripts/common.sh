# Sourced by the other scripts: folders, messages, the number of parallel compilers.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SCRIPTS=$ROOT/scripts
BUILD=${REDCO_BUILD_DIR:-$ROOT/build}

say() { printf '== %s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}
usage() { sed -n '2,/^[^#]/{/^#/{s/^# \{0,1\}//;p;};}' "$0"; }
# For scripts without arguments except --help.
no_arguments() {
  case ${1:-} in
    "") ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
}

# Number of parallel compilers: one per usable CPU, with 1.2 GiB of free memory each, which the largest sources need.
jobs() {
  local cpus kib limit used by_memory
  cpus=$(nproc)
  kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit =~ ^[0-9]+$ ]]; then
    used=$(cat /sys/fs/cgroup/memory.current)
    ((kib > (limit - used) / 1024)) && kib=$(((limit - used) / 1024))
  fi
  by_memory=$((kib * 10 / (12 * 1024 * 1024)))
  ((by_memory < 1)) && by_memory=1
  echo $((by_memory < cpus ? by_memory : cpus))
}

# configure FOLDER [cmake arguments ...]: creates or updates a build folder. An existing folder keeps its settings that
# are not given.
configure() {
  local folder=$1
  shift
  cmake -S "$ROOT" -B "$folder" -G Ninja --log-level=WARNING "$@" >"$folder.log" 2>&1 ||
    { cat "$folder.log" >&2 && rm -f "$folder.log" && die "cmake could not configure $folder"; }
  rm -f "$folder.log"
}

# compile FOLDER [targets ...]
compile() {
  local folder=$1
  shift
  NINJA_STATUS='[%f/%t %es] ' ninja -C "$folder" -j "$(jobs)" "$@" >&2
}
