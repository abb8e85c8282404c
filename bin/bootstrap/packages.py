"""The pinned packages, installed by pip."""

from __future__ import annotations

import ast
import os
import re
import subprocess

from layout import CACHE, CHECKOUT, PYTHON
from progress import Progress, clean_environment, run
from reasons import Unready, cause_of

# What a user's pip settings may say about where packages come from. Anything else of theirs (user, target,
# no-binary, require-virtualenv ...) changes where they go or what they are, and would break the environment.
SETTINGS_KEPT = frozenset(
    [
        *("index-url", "extra-index-url", "find-links", "no-index"),
        *("trusted-host", "proxy", "cert", "client-cert", "timeout", "default-timeout", "retries"),
    ]
)


def install_packages(files: tuple[str, ...]) -> None:
    """Everything the files pin, hashes checked, wheels only. Raises Unready."""
    total = len(
        {name for file in files for name in re.findall(r"^([\w.-]+)==", (CHECKOUT / file).read_text(), re.M)}
    )
    progress = Progress(f"Installing up to {total} packages")
    command = [str(PYTHON), "-I", "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:"]
    command += [
        "--no-input",
        "--progress-bar",
        "off",
        *(part for file in files for part in ("-r", str(CHECKOUT / file))),
    ]
    status, output = run(command, progress.read_pip, pip_environment())
    progress.end()
    if status:
        halfway = status < 0 or "Installing collected packages" in output
        raise Unready(cause_of(output, "the packages could not be installed"), halfway=halfway)


def pip_environment() -> dict[str, str]:
    """The environment for pip: the user's word on where packages come from, and nothing else of their settings."""
    environment = {
        k: v for k, v in clean_environment().items() if not k.startswith("PIP_") or _is_kept(k[4:])
    }
    asked = subprocess.run(
        [str(PYTHON), "-I", "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    for line in asked.stdout.splitlines():
        section, _, assignment = line.partition(".")
        name, _, value = assignment.partition("=")
        if section in {"global", "install"} and _is_kept(name):
            environment.setdefault(
                "PIP_" + name.upper().replace("-", "_"), str(ast.literal_eval(value)).replace("\n", " ")
            )
    cache = os.environ.get("PIP_CACHE_DIR") or str(CACHE / "pip")
    return environment | {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_CACHE_DIR": cache,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _is_kept(name: str) -> bool:
    return name.lower().replace("_", "-") in SETTINGS_KEPT
