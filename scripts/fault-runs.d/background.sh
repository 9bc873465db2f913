# Faults of trainings that save in the background after each step, so that a save is nearly always in flight. Sourced by
# fault-runs, after the faults that it repeats.

SECTION_NOW="Background saves"
# Repeats another fault with saves in the background. The words are those of all trainings of the try.
in_background() { # FUNCTION [its words]
  SAVES=(checkpoint.async_save=true checkpoint.every_n_steps=1)
  "$@"
}

fault async-sigterm "1 2" "SIGTERM to redco"
try_async_sigterm() { in_background signal_launcher TERM; }
fault async-twice "1 2" "SIGINT to redco, again after 0.6 s: all end within 5 s"
try_async_twice() { in_background try_twice; }
fault async-in-eval "1 2" "SIGTERM to redco during an evaluation"
try_async_in_eval() { in_background try_in_eval; }
fault async-kill-rank "2" "SIGKILL to one rank"
try_async_kill_rank() { in_background try_kill_rank; }
fault async-kill-mpirun "2" "SIGKILL to mpirun"
try_async_kill_mpirun() { in_background try_kill_mpirun; }
fault async-kill-launcher "1 2" "SIGKILL to redco"
try_async_kill_launcher() { in_background try_kill_launcher; }
fault async-kill-all "1 2" "SIGKILL to all processes"
try_async_kill_all() { in_background try_kill_all; }
fault async-stop-train "2" "SIGSTOP to a rank in training, fault.timeout=3"
try_async_stop_train() { in_background try_stop_train; }

# More saves make more calls than in the faults that these repeat; most are of the threads that write.
fault async-no-space "1 2" "the N-th write fails: no space (ENOSPC)"
try_async_no_space() { in_background fault_io write ENOSPC 900 7; }
fault async-io-error "1 2" "the N-th file operation fails (EIO)"
try_async_io_error() { in_background fault_io any EIO 5000 7; }
fault async-io-kill "1 2" "SIGKILL at the N-th file operation"
try_async_io_kill() { in_background fault_io any kill 5000 137 5; }
fault async-full-disk "1 2" "the disk of the workdir is full, then has space again"
try_async_full_disk() { in_background try_full_disk; }
fault async-renamed "1 2" "the workdir is renamed during the run, and back after its end"
try_async_renamed() { in_background try_renamed; }
