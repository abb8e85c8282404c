"""The script that starts a run, once and never twice."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from .keeper import KEEPER
from .shell import FAILURES, FIRST, directory_lines, write_file

GITCONFIG = """\
[include]
	path = ~/.config/git/config
[include]
	path = ~/.gitconfig
[credential "{origin}"]
	helper =
	helper = "store --file=\\"$OPENAGENTS_RUN_DIRECTORY/forge-credential\\""
"""


@dataclass(frozen=True, slots=True)
class GitCredential:
    """What lets Git on the box push: `secret` is the password of `username` at `origin` (scheme, host, port)."""

    origin: str
    secret: str = field(repr=False)
    username: str = "x"

    def __post_init__(self) -> None:
        """Refuses an origin that is not just scheme and host: Git would match it to nothing, silently."""
        parts = urlsplit(self.origin)
        plain = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
        if (
            not plain
            or parts.path.strip("/")
            or parts.query
            or not self.secret.isprintable()
            or not self.secret
        ):
            raise ValueError("a Git credential needs an http(s) origin and a printable secret")

    @property
    def store_line(self) -> bytes:
        """The one line of a file of `git credential-store`."""
        parts = urlsplit(self.origin)
        user, password = quote(self.username, safe=""), quote(self.secret, safe="")
        return f"{parts.scheme}://{user}:{password}@{parts.netloc}\n".encode()

    @property
    def gitconfig(self) -> bytes:
        """A global Git configuration: the person's own, and for our host the file above as the only helper."""
        parts = urlsplit(self.origin)
        return GITCONFIG.format(origin=f"{parts.scheme}://{parts.netloc}").encode()


_CLAIM = r"""
set -u
need mkdir mv rm chmod base64 sh ls
[ -d "${dir%/*}" ] || (umask 077; mkdir -p "${dir%/*}") ||
  fail cannot_create_directory "the folder of runs cannot be made" 74
if ! mkdir -m 700 "$dir"; then
  if [ -e "$dir" ] || [ -L "$dir" ]; then printf 'OPENAGENTS_RUN_EXISTS\n'; exit 73; fi
  fail cannot_create_directory "the run directory cannot be made" 74
fi
# Nothing has started yet. Whoever makes `started` decides: here, nobody will start it any more.
give_up() {
  first "$dir/started" || return 0
  rm -f "$dir/script.sh" "$dir/run.sh" "$dir/forge-credential" "$dir/gitconfig"
  true > "$dir/never"
  fail "$1" "$2" 74
}
# By way of a file, since a command substitution costs a process.
umask > "$dir/armed" || give_up cannot_write "the run directory cannot be written"
{ read -r callers_umask < "$dir/armed"; } 2>/dev/null || callers_umask=$(umask)
umask 077
"""

# Each way to a session of its own is tried by using it. A keeper that got as far as the file `pid` is not started again.
_START = r"""
export OPENAGENTS_RUN_MARK="${mark#*=}" OPENAGENTS_RUN_DIRECTORY="$dir"
told() { read -r pid && case $pid in ''|*[!0-9]*) false ;; *) printf '%s\n' "$pid" ;; esac; }
started_by() { [ ! -e "$dir/pid" ] && "$@" </dev/null 2>/dev/null | told; }
in_background() { "$@" & }
alone() { (trap '' HUP; exec "$@") & }
set -- sh "$dir/run.sh" "$callers_umask" "$interpreter"
started_by setsid -f "$@" setsid ||
  started_by perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' -- "$@" perl ||
  started_by python3 -c 'import os, sys, signal
os.fork() and os._exit(0)
os.setsid()
for ignored in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(ignored, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" python3 ||
  { command -v setsid >/dev/null 2>&1 && started_by in_background setsid "$@" setsid; } ||
  started_by alone "$@" none || {
    give_up not_started "the run's process could not be started"
    { read -r pid < "$dir/pid"; } 2>/dev/null
    printf '%s\n' "${pid:-}"
  }
"""


def dispatch_script(run_directory: str, command: str, *, credential: GitCredential | None) -> str:
    """The text that starts `command` detached in `run_directory` and prints the process id as its last line.

    If the directory is already there it prints `OPENAGENTS_RUN_EXISTS` and exits 73 without doing anything. Any other
    failure prints `OA_ERROR=<code>` and exits 69 or 74; then the command has not run and never will. A command that
    begins with `#!` chooses its own interpreter, others are run by bash where there is one, else by sh.
    """
    writes = [write_file(command.encode(), "script.sh"), f'printf %s {shlex.quote(KEEPER)} > "$dir/run.sh"']
    if credential is not None:
        writes += [
            write_file(credential.store_line, "forge-credential"),
            write_file(credential.gitconfig, "gitconfig"),
        ]
    writes += ['true > "$dir/output.log"', 'chmod 700 "$dir/script.sh"']
    files = (
        "{ " + " &&\n".join(writes) + '; } || give_up cannot_write "the run directory cannot be written"\n'
    )
    return FAILURES + FIRST + directory_lines(run_directory) + _CLAIM + files + _interpreter(command) + _START


def _interpreter(command: str) -> str:
    if command.startswith("#!"):
        return "interpreter=none\n"
    return "if command -v bash >/dev/null 2>&1; then interpreter=bash; else interpreter=sh; fi\n"
