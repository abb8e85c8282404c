"""`bin/up`: everything from the state folder to the last curl line, and everything stopped again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from base import state_root
from base.embedded_postgres.account import Account
from base.embedded_postgres.cluster import Cluster
from base.embedded_postgres.server import command_of
from base.errors import CodedError
from openagents_site import environment_check

from . import plan, provision, records
from .api_client import Api
from .child import Place
from .database import Database
from .guide import Guide, Provisioned
from .heartbeat import HeartbeatWatch
from .hold import Hold
from .logs import LogFile
from .options import UpOptions
from .part import Part
from .parts import DATABASE, KILLED_AT_ONCE, STOP_PHASES, parts_of
from .ports import PortTaken
from .procfile import ProcfileError
from .progress import Progress
from .readiness import NotReady, culprit, last_lines, wait_until_ready
from .supervisor import Supervisor
from .terminal import Terminal, readable

SCHEDULER = "scheduler"
MIGRATION = "migration "  # how `provision` begins the line that says which one it is at
INTERRUPTED = 130


class UpFailed(Exception):
    """Why the installation is not up."""


def main(options: UpOptions) -> int:
    """Be up until told to stop. Returns the exit status."""
    terminal = Terminal(verbose=options.verbose)
    try:
        return _main(options, terminal)
    except (UpFailed, PortTaken, ProcfileError, plan.PlanError, ImproperlyConfigured) as reason:
        return _end_with(terminal, str(reason))
    except CodedError as error:
        return _end_with(terminal, error.detail)
    except OSError as error:
        return _end_with(terminal, f"{error.filename or 'the system'}: {error.strerror or error}")
    finally:
        terminal.close()


def _end_with(terminal: Terminal, reason: str) -> int:
    terminal.say(f"bin/up: {reason.rstrip('.')}.", style="bold red")
    return 1


def _main(options: UpOptions, terminal: Terminal) -> int:
    plan.load_env_file()
    environment_check.check(environ.Env())
    state = state_root.prepare()
    if state.notice:
        terminal.say(state.notice, style="yellow")
    run_folder, logs = state.path / "run", state.path / "logs"
    for folder in (run_folder, logs):
        folder.mkdir(mode=0o700, exist_ok=True)
    hold = Hold(run_folder)
    if not hold.take():
        return _already_running(hold, options, terminal, state.path)
    try:
        return Start(options, terminal, state, hold).run()
    finally:
        hold.release()


def _already_running(hold: Hold, options: UpOptions, terminal: Terminal, state: Path) -> int:
    """`--once` uses what runs; otherwise there is nothing to do but say where it is."""
    process, url = hold.holder()
    if not url:
        raise UpFailed("another bin/up is starting in this checkout: wait for it, or end it")
    terminal.say(f"Already running at {url} (process {process}; logs in {state / 'logs'}).")
    if options.port and not url.endswith(f":{options.port}"):
        raise UpFailed(f"to have it on port {options.port}, end process {process} first")
    if not options.once:
        return 0
    reached = plan.boxes_reach(url, os.environ)
    return Guide(terminal, url, state, threading.Event(), boxes_reach_site=reached).first_run()


class Start:
    """One start, from the plan to the last process ended. The hold is taken."""

    def __init__(
        self, options: UpOptions, terminal: Terminal, state: state_root.StateRoot, hold: Hold
    ) -> None:
        self._options = options
        self._terminal = terminal
        self._state = state
        self._hold = hold
        self._logs = state.path / "logs"
        self._status = INTERRUPTED if options.once else 0
        for name in records.end_leftovers(state.path / "run", KILLED_AT_ONCE):
            terminal.event(name, "was left running by a start that was killed, and has been ended")
        self._plan = plan.make(state, options.port)
        self._supervisor = Supervisor([], terminal, LogFile(self._logs, "supervisor"))

    def run(self) -> int:
        self._supervisor.take_signals()
        self._terminal.quiet = True  # until all is good, what one process misses of another is no news
        self._say_ports()
        try:
            self._start_database()
            provisioned = self._provision()
            if provisioned is not None and not self._supervisor.stopping.is_set():
                self._start_processes()
                threading.Thread(target=self._lead, args=(provisioned,), name="guide", daemon=True).start()
                self._supervisor.run()
        finally:
            self._supervisor.stop()
            self._terminal.say("Everything is stopped.", style="dim")
        return self._status

    def _say_ports(self) -> None:
        for said in unexpected_ports(self._plan):
            self._terminal.say(said, style="yellow")

    def _start_database(self) -> None:
        """As the first part, since everything else needs it."""
        if not self._plan.embedded_database:
            return
        with self._step("PostgreSQL"):
            database = Database(Cluster(self._state.postgres))
            part = Part(DATABASE, database, LogFile(self._logs, DATABASE), STOP_PHASES[DATABASE])
            self._supervisor.parts.append(part)
            part.start()

    def _provision(self) -> Provisioned | None:
        """None if it was interrupted."""
        log = LogFile(self._logs, "provision")
        with self._step("Database, schedules and administrator") as progress:
            status, said = self._run_provision(progress, log)
            if status == 0:
                return Provisioned(next(line for line in reversed(said) if line.startswith("{")))
            if self._supervisor.stopping.is_set():
                return None
            if status == provision.TO_MEND:
                raise UpFailed(said[-1])
            raise UpFailed(
                f"the database could not be prepared: {said[-1]}; all of it is in {log.baseFilename}"
            )

    def _run_provision(self, progress: Progress, log: LogFile) -> tuple[int, list[str]]:
        """Exit status and all lines; what it is at is shown."""
        said: list[str] = []
        with subprocess.Popen(
            command_of(  # killed with us, so that it never goes on beside that of the next start
                Account.of_uid(os.geteuid()),
                signal.SIGKILL,
                [sys.executable, "-m", "openagents_site.launcher.provision"],
            ),
            cwd=plan.CHECKOUT,
            env=self._plan.environment_of("provision"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in map(str.rstrip, process.stdout):
                said.append(line)
                log.write_line(line)
                if line.startswith(MIGRATION):
                    progress.note = line
        return process.returncode, list(filter(None, said)) or [f"exit status {process.returncode}"]

    def _start_processes(self) -> None:
        place = Place(plan.CHECKOUT, self._state.path / "run", uuid.uuid4().hex)
        self._supervisor.parts += parts_of(self._plan.entries(), self._plan.environment_of, place, self._logs)
        watch = HeartbeatWatch(SCHEDULER, self._plan.database_parameters())
        watch.start()
        self._supervisor.watches.append(watch)

    def _lead(self, provisioned: Provisioned) -> None:
        """In a thread of its own: see the installation become ready, do the run, say how to go on."""
        try:
            self._status = self._led(provisioned)
        except Exception as error:  # the installation is not left running without a word
            self._terminal.say(f"bin/up: {error}", style="bold red")
            self._status = 1
            self._supervisor.request_stop()

    def _led(self, provisioned: Provisioned) -> int:
        stopping = self._supervisor.stopping
        url = self._plan.public_url
        reached = plan.boxes_reach(url, os.environ)
        guide = Guide(self._terminal, url, self._state.path, stopping, boxes_reach_site=reached)
        try:
            with self._step("Site, scheduler, worker and provider") as progress:
                wait_until_ready(
                    Api(self._plan.url), lambda text: setattr(progress, "note", text), stopping.is_set
                )
        except NotReady as reason:
            self._show_culprit(str(reason))
            raise UpFailed(f"the installation did not become ready: {reason}") from reason
        if stopping.is_set():
            return self._status
        self._terminal.quiet = False
        self._hold.announce(self._plan.public_url)
        status = (
            guide.first_run() if self._options.once or (self._options.demo and not guide.had_first_run) else 0
        )
        if stopping.is_set():
            return self._status
        if self._options.once:
            self._status = status  # before the stop, which ends with it
            guide.say_account(provisioned)
            self._supervisor.request_stop()
            return status
        guide.closing_words(provisioned)
        self._say_ports()
        self._terminal.say("Up. Ctrl-C stops everything.", style="bold green")
        return 0

    def _show_culprit(self, missing: str) -> None:
        part = culprit(self._supervisor.parts, missing)
        if part is None:
            return
        self._terminal.say(f"The last lines of {part.name}:", style="bold")
        for line in last_lines(part):
            self._terminal.say(f"  {readable(line)}")

    def _step(self, what: str) -> Progress:
        return Progress(what, self._terminal, self._supervisor.stopping.is_set)


def unexpected_ports(made: plan.Plan) -> list[str]:
    """Why servers of ours are not where they are expected: neither on their usual port nor on one that was asked for."""
    servers = (
        ("the site", made.web, plan.WEB_PORT),
        ("the box provider", made.provider, plan.PROVIDER_PORT),
    )
    return [
        f"Port {usual} is taken by another program: {name} listens on port {chosen.port}."
        for name, chosen, usual in servers
        if chosen is not None and chosen.port != usual and not chosen.was_asked
    ]
