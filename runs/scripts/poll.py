"""The script that tells how a run is doing and brings the next piece of its output."""

from __future__ import annotations

from .shell import FAILURES, FORBIDDEN, LOG, PROCESSES, SCAN, TICKS, directory_lines

_POLL = r"""
set -u
need ls dd head base64
if [ ! -d "$dir" ] || forbidden; then printf 'OA_PRESENT=0\n'; exit 0; fi
forget_credential() { [ ! -e "$dir/begun" ] || rm -f "$dir/forge-credential" "$dir/gitconfig" 2>/dev/null; }
# The command's shell or its keeper; where the pid file is gone, anything that carries the run's mark.
running() {
  if read_pids; then
    alive "$leader" "$leader_start" || alive "$keeper" "$keeper_start"
  else
    [ "$(scan)" != end ]
  fi
}
quiet() { [ ! -f "$dir/exit-code" ] && size_of "$dir/output.log" && [ "$size" -le "$offset" ] && running; }
wait_here() {
  ticks=0 step=1
  while [ "$ticks" -lt $(($1 * 10)) ] && quiet; do
    pause "$step"
    [ "$step" -ge 5 ] || step=$((step + 1))
  done
}
# Waits for a wake of the kernel (pidfd, inotify) where perl can get one, else looks ten times a second. One process that
# waits is far cheaper than many that sleep a little, and perl is on most boxes. It prints the size of the log.
wait_in_perl() {
  perl -e '
    my ($dir, $offset, $wait, @pids) = @ARGV;
    my ($log, $end, $until) = ("$dir/output.log", "$dir/exit-code", time + $wait);
    sub size { -f $log ? -s _ || 0 : 0 }
    sub up { open(my $f, "<", "/proc/$_[0]/stat") or return 0; my $l = <$f> // ""; $l =~ /\) ([^ZXx]) / }
    my $mask = "";
    sub wake { $_[0] >= 0 or return 0; vec($mask, $_[0], 1) = 1 }
    my %calls = (62 => [294, 254], 183 => [26, 27]);
    my $head = "";
    if (open(my $perl, "<", "/proc/self/exe")) { read($perl, $head, 20) }
    my $calls = $calls{length $head == 20 ? unpack("x18 v", $head) : 0};
    my $all = $calls ? 1 : 0;
    if ($calls) {
      my $news = syscall($calls->[0], 02004000);
      $all &&= wake($news) && syscall($calls->[1], $news, $log, 2) >= 0 && syscall($calls->[1], $news, $dir, 0x80) >= 0;
      my ($witness) = grep { up($_) } reverse @pids;
      $all &&= wake(syscall(434, $witness + 0, 0)) if $witness;
    }
    until (-e $end or size() > $offset or not grep { up($_) } @pids) {
      my $left = $until - time;
      last if $left <= 0;
      if ($all) { select(my $ready = $mask, undef, undef, $left); $all = 0; } else { select(undef, undef, undef, 0.1) }
    }
    print size()' "$dir" "$offset" "$1" "$leader" "$keeper"
}
wait_for_news() {
  if [ "$1" -eq 0 ] || [ -f "$dir/exit-code" ] || ! running; then return; fi
  if [ -n "$leader" ] && [ -n "$keeper" ] && [ -r /proc/self/stat ]; then
    seen_size=$(wait_in_perl "$1" 2>/dev/null)
    case $seen_size in ''|*[!0-9]*) seen_size= ;; *) return ;; esac
  fi
  if command -v sleep >/dev/null; then wait_here "$1"; fi
}
"""

# Where nothing lives and nothing was left about the end, nobody else removes the credential.
#
# The exit is looked at first, liveness next, the exit again where nothing lives, the size and the bytes last: what is
# told about the end is never newer than the bytes that come with it. So a size that was seen before serves only while
# there is no end.
_REPORT = r"""
exit_status=
if ! read_exit; then
  if running; then is_alive=1; else is_alive=0; read_exit || forget_credential; fi
else
  if running; then is_alive=1; else is_alive=0; fi
fi
printf 'OA_PRESENT=1\nOA_ALIVE=%s\n' "$is_alive"
report_exit
if [ -n "$exit_status" ] || [ "$is_alive" = 0 ]; then seen_size=; fi
report_log "$offset" "$limit" "$seen_size"
"""


def poll_script(run_directory: str, *, offset: int, max_bytes: int, wait_seconds: int = 0) -> str:
    """The text that reports a run: `OA_PRESENT`, `OA_ALIVE`, `OA_EXIT` once it ended, `OA_SIZE`, and `OA_DATA`.

    `OA_DATA` is at most `max_bytes` bytes of the raw log from byte `offset`, in base64. With `wait_seconds` it first
    waits on the box, at most that long, until there is output beyond `offset`, an exit status, or no process any more.
    Raises `ValueError` for a negative number or a `max_bytes` below 1.
    """
    if offset < 0 or max_bytes < 1 or wait_seconds < 0:
        raise ValueError("offset and wait_seconds are not negative, max_bytes is at least 1")
    numbers = f"offset={int(offset)} limit={int(max_bytes)} seen_size=\n"
    wait = f"wait_for_news {int(wait_seconds)}\n"
    functions = FORBIDDEN + PROCESSES + TICKS + SCAN + LOG
    return FAILURES + directory_lines(run_directory) + functions + _POLL + numbers + wait + _REPORT
