"""An installation with a database and a provider of its own, whose parts are killed and come back."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg

from base.embedded_postgres import Cluster
from base.state_root import reachable_folder
from tests.faults.installation import Installation, answers
from tests.localbox.server import LocalboxServer
from tests.waiting import eventually

WORKERS = ("worker-1", "worker-2")


class House:
    """Everything on one database. Made by `house`, which ends every part of it."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        settings: Mapping[str, str],
        provider_settings: Mapping[str, str],
    ) -> None:
        self.cluster = Cluster(reachable_folder(folder / "postgres"))
        self.cluster.start()
        stack.callback(self.cluster.close)
        self.provider = stack.enter_context(LocalboxServer(settings=dict(provider_settings)))
        database = self.cluster.ensure_database()
        self.installation = stack.enter_context(Installation(database, self.provider, dict(settings)))
        self.installation.migrate()

    def start(self, **web: str) -> None:
        """Web and the workers, if they do not run yet; returns once web answers."""
        if "web" in self.installation.parts:
            return self.revive()
        self.installation.add_web(WEB_THREADS="64", **web)
        for name in WORKERS:
            self.installation.add_worker(name)
        return self.installation.await_web()

    def kill_part(self, name: str) -> None:
        """Kill -9; `revive` brings it back, as its supervisor would."""
        self.installation.parts[name].kill9()

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """SIGSTOP to this part, and SIGCONT at the end: it does not know that time has passed."""
        process = psutil.Process(self.installation.parts[name].pid)
        process.suspend()
        try:
            yield
        finally:
            process.resume()

    def restart_database(self, pause: float) -> None:
        """Kill -9 its server, and start it `pause` seconds later."""
        pid = self.cluster.status().pid
        assert pid is not None
        psutil.Process(pid).kill()
        eventually(lambda: self.cluster.poll() is not None)
        time.sleep(pause)
        self.cluster.start()

    def restart_provider(self, pause: float) -> None:
        """Kill -9 the provider, whose boxes go on, and start it `pause` seconds later."""
        self.provider.kill9()
        time.sleep(pause)
        self.provider.start()

    def revive(self) -> None:
        for part in self.installation.parts.values():
            part.ensure()

    def serves(self) -> bool:
        return answers(f"{self.installation.url}/healthz")

    def works(self, worker: str) -> bool:
        """Whether this worker is up and past its start."""
        part = self.installation.parts[worker]
        return part.is_running and "worker_started" in part.said()

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(**self.cluster.connection().parameters(), **options)

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.connect() as link:
            return link.execute(query, parameters or None).fetchall()


@contextmanager
def house(settings: Mapping[str, str], provider_settings: Mapping[str, str] | None = None) -> Iterator[House]:
    """A house without parts yet, with these settings beside those of `Installation`."""
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    folder.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield House(stack, folder, settings, provider_settings or {})
