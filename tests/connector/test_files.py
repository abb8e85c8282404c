"""Files that an agent has the connector read and write: what was judged is what is opened, whatever has become of it since."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from connector.listening import REFUSALS_TOLD, Listener
from connector.roots import Roots, real


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "site").mkdir(parents=True)
    (root / "site/page").write_text("one\ntwo\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/page").write_text("secret")
    return root


@pytest.fixture
def told() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def listener(root: Path, told: list[dict[str, Any]]) -> Listener:
    return Listener("curated", Roots([str(root)]), str(root), lambda kind, **body: told.append(body))


def read(listener: Listener, path: Path, **more: Any) -> str:
    return asyncio.run(listener.read_text_file("s", str(path), **more)).content


def write(listener: Listener, path: Path, content: str) -> None:
    asyncio.run(listener.write_text_file("s", str(path), content))


def test_it_reads_and_writes_inside(listener: Listener, root: Path) -> None:
    write(listener, root / "new/folder/file", "grüße\n")
    write(listener, root / "site/page", "three\nfour\n")

    assert (root / "new/folder/file").read_text() == "grüße\n"
    assert read(listener, root / "site/page", line=2) == "four\n"


@pytest.mark.parametrize("where", ["outside/page", "root/../outside/page", "root/none", "root/site"])
def test_what_is_not_inside_or_no_file_is_not_read(listener: Listener, tmp_path: Path, where: str) -> None:
    with pytest.raises(RequestError):
        read(listener, tmp_path / where)


def swap(root: Path, outside: Path, name: str) -> None:
    """The folder or file becomes a link that leads out."""
    (root / name).rename(root / f"{name}-was")
    (root / name).symlink_to(outside)


@pytest.mark.parametrize(("name", "leads_to"), [("site", "outside"), ("site/page", "outside/page")])
def test_a_link_that_comes_between_look_and_opening_is_not_followed(
    listener: Listener, root: Path, tmp_path: Path, monkeypatch: Any, name: str, leads_to: str
) -> None:
    judged = listener._checked

    def and_then_swapped(path: str, kind: str) -> Path:
        file = judged(path, kind)
        swap(root, tmp_path / leads_to, name)
        return file

    monkeypatch.setattr(listener, "_checked", and_then_swapped)

    with pytest.raises(RequestError):
        write(listener, root / "site/page", "mine")

    assert (tmp_path / "outside/page").read_text() == "secret"


def test_what_is_no_file_keeps_nobody_waiting(listener: Listener, root: Path) -> None:
    os.mkfifo(root / "pipe")

    for act in (lambda: read(listener, root / "pipe"), lambda: write(listener, root / "pipe", "x")):
        with pytest.raises(RequestError):
            act()


def test_a_root_that_has_become_a_link_is_none_any_more(root: Path, tmp_path: Path) -> None:
    root.rename(tmp_path / "root-was")
    root.symlink_to(tmp_path / "outside")

    assert not Roots([str(root)]).holds(str(root / "page"))
    assert real(str(root / "page")) == tmp_path / "outside/page"


def test_who_asks_for_ever_is_not_written_down_for_ever(
    listener: Listener, tmp_path: Path, told: list[dict[str, Any]]
) -> None:
    for _ in range(REFUSALS_TOLD + 10):
        with pytest.raises(RequestError):
            read(listener, tmp_path / "outside/page")

    assert len(told) == REFUSALS_TOLD
