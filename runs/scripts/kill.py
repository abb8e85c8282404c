"""The script that ends a run and everything that belongs to it."""

from __future__ import annotations

from .shell import FAILURES, FIRST, LOG, PROCESSES, SCAN, TICKS, directory_lines

_KILL = r"""
set -u
umask 077
need mkdir rm ls dd head base64 tr grep sed sort sleep
# A run that has filled the box with processes leaves no room for those of this script. Then the shell gives up; on its way
# out it ends what can be found without starting any. The next kill has room, and can tell.
make_room() {
  no_room=yes
  [ -n "$leader" ] || read_pids
  read_exit || true > "$dir/killed"
  for attempt in 1 2 3 4 5 6 7 8; do
    full=no
    if session_is_ours && kill -KILL "-$leader"; then full=yes; fi
    for entry in /proc/[0-9]*; do
      pid=${entry#/proc/}
      [ "$pid" != "$$" ] && carries_mark "$entry/environ" && kill -KILL "$pid" && full=yes
    done
    [ "$full" = yes ] || return
  done
}
carries_mark() {
  while read -r line || [ -n "$line" ]; do case $line in *"$mark"*) return ;; esac; done < "$1"
  return 1
}
leader=
trap '{ make_room; } 2>/dev/null' EXIT
made=no
mkdir -p "${dir%/*}" 2>/dev/null
if mkdir "$dir" 2>/dev/null; then made=yes; true > "$dir/never"; fi
[ -d "$dir" ] || { trap - EXIT; fail cannot_create_directory "the run directory cannot be made" 74; }
read_pids
# A status that is there now is the run's own. From here on the keeper records none: what follows comes from this kill.
exit_status= trusted=yes
if ! read_exit; then
  rm -f "$dir/armed"
  if [ -e "$dir/armed" ]; then trusted=no; fi
fi
# A run that has not started by now is forbidden to.
if [ ! -e "$dir/pid" ] && [ -z "$exit_status" ] && first "$dir/started"; then
  made=yes
  true > "$dir/never"
fi
"""

_END = r"""
seen=
# left: the processes of this run that still live, out of all that were ever found.
look() {
  left= still=
  for word in $seen $1; do
    pid=${word%%:*}
    case " $left " in *" $pid "*) continue ;; esac
    if alive "$pid" "${word#*:}"; then left="$left $pid" still="$still $word"; fi
  done
  seen=$still
  [ -z "$left" ]
}
# Gone is: two scans in a row find nothing. One can miss a process that ended just then and left a child behind, and
# what a scan found may have ended since, for the same reason.
all_gone() {
  look '' || return 1
  for attempt in 1 2; do
    found=$(scan)
    if [ "$found" != end ]; then look "${found%end}"; return 1; fi
  done
}
# The session keeps its number for as long as anything of it lives, so it stays ours after its leader ended.
if session_is_ours; then ours=yes; fi
terminate() {
  [ "$ours" = no ] || kill -TERM "-$leader" 2>/dev/null
  for pid in $left; do
    stat_of "$pid" || group=
    [ "$ours$group" = "yes$leader" ] || kill -TERM "$pid" 2>/dev/null
  done
}
finish() { [ "$ours" = no ] || kill -KILL "-$leader" 2>/dev/null; kill -KILL $left 2>/dev/null; }
# within TICKS ACTION: all gone in that time, where the action is repeated for as long as something lives.
within() { ticks=0; until all_gone; do [ "$ticks" -lt "$1" ] || return 1; "$2"; pause 1; done; }
cancelled=1
all_gone || { terminate; within "$grace_ticks" :; } || within 20 finish || { make_room; no_room=no; all_gone; } 2>/dev/null ||
  cancelled=0
rm -f "$dir/forge-credential" "$dir/gitconfig"
if [ "$made" = yes ]; then printf 'OA_PRESENT=0\n'; else printf 'OA_PRESENT=1\n'; fi
printf 'OA_CANCELLED=%s\n' "$cancelled"
if [ -n "$left" ]; then printf 'OA_REMAINING=%s\n' "${left# }"; fi
if [ "$trusted" = yes ]; then read_exit; else exit_status=; fi
report_exit
trap - EXIT
if [ "$made" = no ]; then report_log "$offset" "$limit"; fi
"""


def kill_script(
    run_directory: str, *, offset: int = 0, max_bytes: int = 65_536, grace_seconds: int = 5
) -> str:
    """The text that ends a run: TERM, at most `grace_seconds` of patience, KILL, and a look at what is left.

    It prints `OA_CANCELLED=1` when nothing of the run is left (also when it never started, and then never will),
    else `OA_CANCELLED=0` and `OA_REMAINING=` with the process ids. `OA_EXIT` is printed only for a run that had ended
    by itself. The next `max_bytes` bytes of the log from `offset` come along as in a poll. The credential files are
    removed in every case. Takes at most about `grace_seconds` + 4 seconds. Raises `ValueError` as `poll_script` does.
    """
    if offset < 0 or max_bytes < 1 or grace_seconds < 0:
        raise ValueError("offset and grace_seconds are not negative, max_bytes is at least 1")
    numbers = f"offset={int(offset)} limit={int(max_bytes)} grace_ticks={int(grace_seconds) * 10}\n"
    functions = PROCESSES + TICKS + SCAN + LOG
    return FAILURES + FIRST + directory_lines(run_directory) + functions + _KILL + numbers + _END
