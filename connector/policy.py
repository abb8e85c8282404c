"""What an agent may do, by the tier that the computer's owner gave. Pure but for the look at where paths lead.

The connector answers what an agent asks permission for; an agent that does not ask is held back by nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from connector.roots import Roots

PROBE, CURATED, SHELL = "probe", "curated", "shell"
TIERS = (PROBE, CURATED, SHELL)
EDITS = frozenset({"edit", "delete", "move"})
READS = frozenset({"read", "search"})
_NAMES_FILES = re.compile(
    r"(path|file|filename|dir|directory|folder|cwd|ur[il]|root|destination|source|target)s?$"
)
"""How the arguments end, written small and without anything between, by which agents name files."""
_NO_LETTER = re.compile(r"[^a-z]")


@dataclass(frozen=True)
class Verdict:
    """Whether something is allowed, and the rule that said so."""

    allowed: bool
    reason: str


def narrower(one: str, other: str) -> str:
    """The tier with less authority. What is no tier has none."""
    known = [tier if tier in TIERS else PROBE for tier in (one, other)]
    return min(known, key=TIERS.index)


def judge(tier: str, kind: str | None, paths: Iterable[str], roots: Roots) -> Verdict:
    """Whether a tool call of this kind on these files is allowed."""
    named = list(paths)
    if tier == PROBE:
        return Verdict(False, "the tier probe runs nothing")
    if any(not roots.holds(path) for path in named):
        return Verdict(False, "outside the declared folders")
    if kind in READS or kind == "think":
        return Verdict(True, "reading inside the declared folders")
    if kind in EDITS and named:
        return Verdict(True, "a change inside the declared folders")
    if tier == SHELL:
        return Verdict(True, "the tier shell allows commands")
    if kind in EDITS:
        return Verdict(False, "a change of files that are not named")
    return Verdict(False, "the tier curated allows changes of files only")


def paths_of(tool_call: Any, cwd: str) -> list[str]:
    """Every file that a tool call says it is about; a relative name is one below `cwd`."""
    found = [location.path for location in tool_call.locations or []]
    found += [part.path for part in tool_call.content or [] if getattr(part, "type", "") == "diff"]
    found += list(_named_in(tool_call.raw_input))
    return list(dict.fromkeys(str(Path(cwd, _expanded(path))) for path in found))


def _expanded(path: str) -> Path:
    """A name as the file system takes it: agents write addresses of files and `~` too."""
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    try:
        return Path(path).expanduser()
    except RuntimeError:  # nobody's home
        return Path(path)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named_in(raw: Any, depth: int = 0) -> Iterator[str]:
    """The values among an agent's own arguments that name files."""
    if isinstance(raw, dict) and depth < 4:
        for key, value in raw.items():
            if _NAMES_FILES.search(_NO_LETTER.sub("", str(key).lower())):
                yield from (one for one in _several(value) if isinstance(one, str))
            if not isinstance(value, str):
                yield from _named_in(value, depth + 1)
        # Changes are sometimes keyed by the file's name.
        changes = raw.get("changes")
        if isinstance(changes, dict):
            yield from (str(name) for name in changes)
    elif isinstance(raw, list) and depth < 4:
        for item in raw:
            yield from _named_in(item, depth + 1)
