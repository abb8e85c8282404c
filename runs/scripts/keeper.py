"""The small program that stays beside a run on the box and writes down how it ended.

It is written into the run directory as `run.sh` and started in a session of its own (`keep`). It starts the command in
another session (`lead`), so that a command that kills its own process group does not kill the witness.
"""

from __future__ import annotations

from .shell import LOG, PROCESSES

_KEEP = r"""
# keep: starts the command, waits for its shell alone, records the end.
own_session() {
  case $session_by in
    setsid) setsid "$@" ;;
    perl) perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV or exit 127' -- "$@" ;;
    python3) python3 -c 'import os, sys, signal
os.setsid()
for ignored in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(ignored, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" ;;
    none) "$@" ;;
  esac
}
# How many processes the kernel has ended so far for lack of memory, in this control group and on this machine.
memory_kills() {
  set --
  while IFS=: read -r number names path; do
    case $names in
      '') set -- "$@" "/sys/fs/cgroup$path/memory.events" ;;
      memory|*,memory|memory,*|*,memory,*) set -- "$@" "/sys/fs/cgroup/memory$path/memory.oom_control" ;;
    esac
  done < /proc/self/cgroup
  kills=0
  for count in $(grep -hs '^oom_kill ' /proc/vmstat /sys/fs/cgroup/memory.events "$@"); do
    case $count in *[!0-9]*) ;; *) kills=$((kills + count)) ;; esac
  done
}
keep() {
  # The shell itself reports here when its child dies by a signal; a plain exit with 128 or more leaves it empty.
  exec 3>&1 >/dev/null 2>"$dir/keeper.log"
  trap : HUP INT QUIT TERM USR1 USR2 ALRM PIPE
  kills=0; { memory_kills; } 2>/dev/null; kills_before=$kills
  # The room for the last record is taken now: a full disk must not swallow the exit status.
  printf '%63s\n' '' > "$dir/exit-code.new"
  stat_of "$$" || start=-
  own_session sh "$dir/run.sh" lead "$callers_umask" "$interpreter" "$session_by" "$$" "$start"
  status=$?
  rm -f "$dir/forge-credential" "$dir/gitconfig"
  signal=- memory=-
  if [ "$status" -gt 128 ] && [ -s "$dir/keeper.log" ]; then signal=$((status - 128)); fi
  if [ "$status" = 137 ]; then
    { memory_kills; } 2>/dev/null
    if [ "$kills" -gt "$kills_before" ]; then memory=memory; fi
  fi
  # `armed` is gone once a kill was sent: what follows a kill is no exit of its own.
  if [ -e "$dir/armed" ] && [ -e "$dir/started/run" ]; then
    size_of "$dir/output.log"
    printf '%s\n%s %s %s ' "$status" "$size" "$signal" "$memory" 1<> "$dir/exit-code.new" &&
      mv -f "$dir/exit-code.new" "$dir/exit-code"
  fi
  exit "$status"
}
"""

_LEAD = r"""
# lead: becomes the command. Only the one who makes `started` may go on; a probe or a kill makes it to forbid the start.
lead() {
  keeper=$1 keeper_start=$2
  stat_of "$$" || start=-
  boot_id
  printf '%s\n%s %s %s %s\n' "$$" "$start" "$keeper" "$keeper_start" "$boot_now" > "$dir/pid.new" || exit 74
  mv -f "$dir/pid.new" "$dir/pid" || exit 74
  mkdir "$dir/started" || exit 75
  : > "$dir/started/run" || exit 74
  printf '%s\n' "$$" >&3
  exec 3>&- </dev/null >>"$dir/output.log" 2>&1
  umask "$callers_umask"
  if [ -f "$dir/gitconfig" ]; then export GIT_CONFIG_GLOBAL="$dir/gitconfig" GIT_TERMINAL_PROMPT=0; fi
  if [ "$interpreter" = none ]; then exec "$dir/script.sh"; fi
  exec "$interpreter" "$dir/script.sh"
}
dir=$OPENAGENTS_RUN_DIRECTORY
role=$1 callers_umask=$2 interpreter=$3 session_by=$4
shift 4
umask 077
"$role" "$@"
exit
"""

KEEPER = "#!/bin/sh\n" + PROCESSES + LOG + _KEEP + _LEAD
