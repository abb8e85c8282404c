"""The script that asks whether an unanswered dispatch arrived, and settles it."""

from __future__ import annotations

from .shell import FAILURES, FIRST, FORBIDDEN, PROCESSES, TICKS, directory_lines

_PROBE = r"""
set -u
umask 077
need mkdir sleep head
absent() {
  true > "$dir/never"
  rm -f "$dir/forge-credential" "$dir/gitconfig" 2>/dev/null
  printf 'OA_PRESENT=0\n'
  exit 0
}
mkdir -p "${dir%/*}" 2>/dev/null
if mkdir "$dir" 2>/dev/null; then absent; fi
[ -d "$dir" ] || fail cannot_create_directory "the run directory cannot be made" 74
if forbidden; then printf 'OA_PRESENT=0\n'; exit 0; fi
# Another dispatch made the directory. It gets a moment to start; then whoever makes `started` first decides.
ticks=0
while [ ! -e "$dir/begun" ] && [ ! -e "$dir/exit-code" ] && [ "$ticks" -lt 20 ]; do pause 1; done
if [ ! -e "$dir/exit-code" ] && [ ! -e "$dir/pid" ] && first "$dir/started"; then absent; fi
printf 'OA_PRESENT=1\n'
if read_pids; then printf 'OA_PID=%s\n' "$leader"; fi
"""


def probe_script(run_directory: str) -> str:
    """The text that prints `OA_PRESENT=1` and `OA_PID=` for a run that started, else `OA_PRESENT=0`.

    After `OA_PRESENT=0` the run can never start: a missing directory is made with the file `never` in it, and a
    dispatch that hangs half-way is shut out. Takes at most about two seconds. Where the directory can be neither
    found nor made it prints `OA_ERROR=` and no `OA_PRESENT`.
    """
    return FAILURES + FIRST + directory_lines(run_directory) + FORBIDDEN + PROCESSES + TICKS + _PROBE
