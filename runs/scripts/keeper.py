"""The small program that stays beside a run on the box and writes down how it ended.

It is written into the run directory as `run.sh` and started in a session of its own. It starts the command in another
session, so that a command that kills its own process group does not kill the witness.
"""

from __future__ import annotations

import re

from .shell import FIRST, SIZE, STAT

_LEAD = r"""
# In place of this process: the program, in a session of its own.
own_session() {
  case $session_by in
    setsid) exec setsid "$@" ;;
    perl) exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV or exit 127' -- "$@" ;;
    python3) exec python3 -c 'import os, sys, signal
os.setsid()
for ignored in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(ignored, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" ;;
    none) exec "$@" ;;
  esac
}
# lead PID START: becomes the command. Only the one who makes `started` may go on; a probe or a kill makes it to forbid
# the start.
lead() {
  boot_id
  printf '%s\n%s %s %s %s\n' "$1" "$2" "$keeper" "$keeper_start" "$boot_now" > "$dir/pid" || exit 74
  first "$dir/started" || exit 75
  true > "$dir/begun" || exit 74
  printf '%s\n' "$1" >&3
  exec 3>&- </dev/null >>"$dir/output.log" 2>&1
  umask "$callers_umask"
  if [ -f "$dir/gitconfig" ]; then export GIT_CONFIG_GLOBAL="$dir/gitconfig" GIT_TERMINAL_PROMPT=0; fi
  if [ "$interpreter" = none ]; then own_session "$dir/script.sh"; fi
  own_session "$interpreter" "$dir/script.sh"
}
"""

_KEEP = r"""
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
# A shell cannot tell the process id of its own subshell; /proc can. Without it a second shell has to lead.
start_command() {
  stat_line=
  { read -r stat_line < /proc/self/stat; } 2>/dev/null
  pid=${stat_line%% *}
  if [ -n "$pid" ] && stat_of "$pid"; then lead "$pid" "$start"; fi
  own_session sh "$dir/run.sh" "$callers_umask" "$interpreter" none "$keeper" "$keeper_start"
}
# keep: starts the command, waits for its shell alone, records the end.
keep() {
  # The shell itself reports here when its child dies by a signal; a plain exit with 128 or more leaves it empty.
  exec 3>&1 >/dev/null 2>"$dir/keeper.log"
  trap : HUP INT QUIT TERM USR1 USR2 ALRM PIPE
  kills=0; { memory_kills; } 2>/dev/null; kills_before=$kills
  # The room for the last record is taken now: a full disk must not swallow the exit status.
  printf '%63s\n' '' > "$dir/exit-code.new"
  (start_command)
  status=$?
  forget_credential
  signal=- memory=-
  if [ "$status" -gt 128 ] && [ -s "$dir/keeper.log" ]; then signal=$((status - 128)); fi
  if [ "$status" = 137 ]; then
    { memory_kills; } 2>/dev/null
    if [ "$kills" -gt "$kills_before" ]; then memory=memory; fi
  fi
  # `armed` is gone once a kill was sent, or `killed` is there: what follows a kill is no exit of its own.
  if [ -e "$dir/armed" ] && [ ! -e "$dir/killed" ] && [ -e "$dir/begun" ]; then
    size_of "$dir/output.log"
    printf '%s\n%s %s %s ' "$status" "$size" "$signal" "$memory" 1<> "$dir/exit-code.new" &&
      mv -f "$dir/exit-code.new" "$dir/exit-code"
  fi
  exit "$status"
}
forget_credential() {
  if [ -e "$dir/forge-credential" ] || [ -e "$dir/gitconfig" ]; then
    rm -f "$dir/forge-credential" "$dir/gitconfig"
  fi
}
dir=$OPENAGENTS_RUN_DIRECTORY
callers_umask=$1 interpreter=$2 session_by=$3 keeper=${4:-$$} keeper_start=${5:-}
umask 077
stat_of "$$" || start=-
if [ -n "$keeper_start" ]; then lead "$$" "$start"; fi
keeper_start=$start
keep
"""

_COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)

# It is sent with every dispatch, so without the comments.
KEEPER = "#!/bin/sh\n" + _COMMENT.sub("", FIRST + STAT + SIZE + _LEAD + _KEEP)
