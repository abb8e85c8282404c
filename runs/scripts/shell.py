"""Shell functions that the scripts share, and the safe way to put values into a script.

Everything here runs in dash, bash and busybox: no arrays, no `local`, no `[[`. A function answers in variables, because
a command substitution costs a process.
"""

from __future__ import annotations

import base64
import re
import shlex

HOME_PREFIX = "$HOME/"
FILES = ("forge-credential", "gitconfig")

_SPECIAL = re.compile(r'([\\"$`])')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(rb"[\t\n\x20-\x7e]*")


def directory_lines(run_directory: str) -> str:
    """Shell lines that set `$dir` to the run's directory and `$mark` to what its processes carry in their environment.

    A leading `$HOME/` is expanded on the box; every other character stands for itself. Raises `ValueError` for a path
    that is neither absolute nor below `$HOME`, climbs with `..`, or holds control characters.
    """
    below_home = run_directory.startswith(HOME_PREFIX)
    rest = run_directory.removeprefix(HOME_PREFIX)
    if not (below_home or run_directory.startswith("/")) or not rest.strip("/"):
        raise ValueError("a run directory is an absolute path or one below $HOME/")
    if _CONTROL.search(rest) or ".." in rest.split("/"):
        raise ValueError("a run directory holds no control characters and no ..")
    home = '[ -n "${HOME:-}" ] || fail home_missing "HOME is not set on this box" 69\n' if below_home else ""
    path = (HOME_PREFIX if below_home else "") + _SPECIAL.sub(r"\\\1", rest.rstrip("/"))
    return f'{home}dir="{path}"\nmark="OPENAGENTS_RUN_MARK=$dir/."\n'


def write_file(content: bytes, name: str) -> str:
    """A shell command that writes these bytes to a file of the run directory; false if it could not.

    Plain text is written by the shell itself, which costs no process. Everything that some shell or some locale
    could read in a way of its own goes through base64.
    """
    if _PLAIN.fullmatch(content):
        return f'printf %s {shlex.quote(content.decode())} > "$dir/{name}"'
    return f"printf %s '{base64.b64encode(content).decode()}' | base64 -d > \"$dir/{name}\""


# fail CODE TEXT STATUS: says why on both streams and ends the script. need TOOL...: fails where one is missing.
FAILURES = r"""
fail() { printf 'OA_ERROR=%s\n' "$1"; printf 'openagents: %s\n' "$2" >&2; exit "$3"; }
need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null 2>&1 || fail "missing_tool $tool" "this box has no $tool, which a run needs" 69
  done
}
"""

# first FILE makes an empty file; of all who try only one succeeds. No program is started for it: the shell opens it with
# O_EXCL. (`:` instead of `true` would end the shell where the file cannot be made.)
FIRST = r"""
first() {
  set -C
  if { true > "$1"; } 2>/dev/null; then set +C; else set +C; return 1; fi
}
"""

# Whoever made `never` had made `started`, so the run cannot have made `begun`: where both are, the command made `never`.
FORBIDDEN = r"""
forbidden() { [ -e "$dir/never" ] && [ ! -e "$dir/begun" ]; }
"""

# stat_of PID sets state, group, session and start (clock ticks after boot: with the pid it names one process for ever).
# few_of FILE sets few: its first two lines as far as they are in its first 256 bytes, since the command may have made it as
# long as it likes. Where no process can be started it is read by the shell itself, which knows no bound. lines_of cuts few.
# alive PID START: a process that is not a zombie and not a stranger who got the same number later. Without /proc it is only
# that something has the number, and -PID asks for a process group.
# read_pids sets leader and keeper with their start times; false where there is nothing to believe.
STAT = r"""
boot_id() { boot_now=-; { read -r boot_now < /proc/sys/kernel/random/boot_id; } 2>/dev/null; }
stat_of() {
  stat_line=
  { read -r stat_line < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${stat_line##*) }
  state=${1:-X} group=${3:-0} session=${4:-0}
  [ "$#" -ge 20 ] || return 1
  shift 19
  start=$1
}
"""

FEW = r"""
newline='
' no_room=no
few_of() {
  few= more=
  if [ "$no_room" = no ]; then { few=$(head -c 256 "$1"); } 2>/dev/null; return; fi
  { read -r few; read -r more; } < "$1"
  few=$few$newline$more
}
lines_of() {
  first_line=${few%%"$newline"*} second_line=
  case $few in *"$newline"*) second_line=${few#*"$newline"} second_line=${second_line%%"$newline"*} ;; esac
}
"""

PROCESSES = (
    STAT
    + FEW
    + r"""
alive() {
  case ${1#-} in ''|0|1|*[!0-9]*) return 1 ;; esac
  [ -r /proc/self/stat ] || { kill -0 "$1" 2>/dev/null; return; }
  stat_of "$1" || return 1
  case $state in Z|X|x) return 1 ;; esac
  [ "$2" = - ] || [ "$2" = "$start" ]
}
read_pids() {
  leader= leader_start=- keeper= keeper_start=- boot=-
  [ -f "$dir/pid" ] || return 1
  few_of "$dir/pid"
  lines_of
  leader=$first_line
  set -f; set -- $second_line; set +f
  leader_start=${1:-} keeper=${2:-} keeper_start=${3:-} boot=${4:-}
  case $leader in ''|0|1|*[!0-9]*) leader= keeper=; return 1 ;; esac
  boot_id
  if [ "${boot:--}" != "$boot_now" ]; then keeper= leader_start=gone; fi
}
"""
)

# pause N sleeps N tenths of a second where sleep knows fractions, else a whole one; ticks counts the tenths.
TICKS = r"""
pause() { if sleep "0.$1" 2>/dev/null; then ticks=$((ticks + $1)); else sleep 1; ticks=$((ticks + 10)); fi; }
"""

# scan prints PID:START of every living process of this run: those that carry its mark, that write to its log, or that
# belong to its leader's session. A process that shed all three is not found; stopping the box ends it. Without /proc there
# are only the recorded pids and the leader's group (-PID), and no way to tell a stranger once the run has ended. The last
# line is `end`; it is missing where the box had no room for the processes of a scan, which then says nothing about absence.
SCAN = r"""
ours=no
marked() {
  if printf 'a\0b' | grep -qzxF b 2>/dev/null; then
    grep -lszxF -- "$mark" /proc/[0-9]*/environ
  else
    for entry in /proc/[0-9]*/environ; do
      { tr '\0' '\n' < "$entry"; } 2>/dev/null | grep -qxF -- "$mark" && printf '%s\n' "$entry"
    done
  fi
}
writing() {
  real=$(cd "$dir" 2>/dev/null && pwd -P) || return
  ls -l /proc/[0-9]*/fd/1 /proc/[0-9]*/fd/2 2>/dev/null | grep -F -- " -> $real/output.log"
}
session_is_ours() { session=; alive "$leader" "$leader_start" && [ "$session" = "$leader" ]; }
in_session() {
  [ "$ours" = yes ] || session_is_ours || return
  for entry in /proc/[0-9]*/stat; do
    pid=${entry#/proc/}
    stat_of "${pid%/stat}" && [ "$session" = "$leader" ] && printf '%s\n' "$entry"
  done
}
recorded() {
  [ -n "$leader" ] && [ -z "${exit_status:-}" ] || return
  for pid in "-$leader" "$leader" "$keeper"; do if alive "$pid" -; then printf '%s:-\n' "$pid"; fi; done
}
scan() {
  [ -r /proc/self/stat ] || { recorded; printf 'end\n'; return; }
  { marked; writing; in_session; printf '/proc/end/\n'; } | sed -n 's|^.*/proc/\([0-9][0-9]*\)/.*|\1|p; s|^/proc/end/$|end|p' | sort -u | while read -r pid; do
    case $pid in "$$") continue ;; end) printf 'end\n'; continue ;; esac
    stat_of "$pid" || { printf '%s:vanished\n' "$pid"; continue; }
    case $state in Z|X|x) ;; *) printf '%s:%s\n' "$pid" "$start" ;; esac
  done
}
"""

# size_of FILE sets size in bytes without reading it; what is no file has none, since reading a pipe would wait for ever. A
# link counts as what it leads to: that is what would be read. read_exit sets what the keeper left about the end of the run.
# report_log OFFSET LIMIT prints at most LIMIT bytes of the log, of which the caller may know the size already; dd moves to
# the offset without reading, so a piece of a long log costs no more than one of a short log.
SIZE = r"""
size_of() {
  set -- $(ls -lnLd -- "$1" 2>/dev/null)
  case ${1:-} in -*) size=${5:-0} ;; *) size=0 ;; esac
  case $size in *[!0-9]*) size=0 ;; esac
}
"""
LOG = (
    SIZE
    + r"""
read_exit() {
  exit_status= exit_size= exit_signal= exit_memory=
  [ -f "$dir/exit-code" ] || return 1
  few_of "$dir/exit-code"
  lines_of
  exit_status=$first_line
  set -f; set -- $second_line; set +f
  exit_size=${1:-} exit_signal=${2:-} exit_memory=${3:-}
  case $exit_status in ''|*[!0-9]*) exit_status=; return 1 ;; esac
}
report_exit() {
  [ -n "$exit_status" ] || return 0
  printf 'OA_EXIT=%s\n' "$exit_status"
  case $exit_size in ''|*[!0-9]*) ;; *) printf 'OA_END=%s\n' "$exit_size" ;; esac
  case $exit_signal in ''|*[!0-9]*) ;; *) printf 'OA_SIGNAL=%s\n' "$exit_signal" ;; esac
  if [ "$exit_memory" = memory ]; then printf 'OA_MEMORY=1\n'; fi
}
piece() {
  { [ "$1" -eq 0 ] || dd bs=1 skip="$1" count=0 2>/dev/null; head -c "$2"; } < "$dir/output.log" | base64
}
report_log() {
  size=${3:-}
  [ -n "$size" ] || size_of "$dir/output.log"
  count=$((size - $1))
  [ "$count" -gt 0 ] || count=0
  [ "$count" -le "$2" ] || count=$2
  printf 'OA_OFFSET=%s\nOA_SIZE=%s\nOA_LENGTH=%s\nOA_DATA=' "$1" "$size" "$count"
  if [ "$count" -eq 0 ]; then printf '\n'; else piece "$1" "$count"; fi
}
"""
)
