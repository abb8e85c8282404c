"""Which files are inside, as the file system has them, and what an agent may do with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.errors import ConnectorError
from connector.policy import judge, narrower, paths_of
from connector.roots import Roots, declared


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "site").mkdir(parents=True)
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "outside.txt").write_text("secret")
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "site")
    (root / "loop").symlink_to(root / "loop")
    (root / "file-out").symlink_to(tmp_path / "outside.txt")
    (root / "new-out").symlink_to(tmp_path / "not-there-yet")
    return root


@pytest.mark.parametrize("name", ["", "site", "site/new/file.txt", "in/x", "site/../site", "..data"])
def test_what_is_really_below_a_root_is_inside(root: Path, name: str) -> None:
    assert Roots([str(root)]).holds(f"{root}/{name}")


@pytest.mark.parametrize(
    "name", ["..", "../root-evil", "../outside.txt", "out/outside.txt", "out", "file-out", "new-out", "in/../../x/..", "site/\0"]
)  # fmt: skip
def test_what_only_looks_like_it_is_not(root: Path, name: str) -> None:
    assert not Roots([str(root)]).holds(f"{root}/{name}")


@pytest.mark.parametrize("path", ["", "site", "./site", "~/site"])
def test_a_relative_name_is_never_inside(root: Path, path: str) -> None:
    assert not Roots([str(root)]).holds(path)


def test_two_sets_of_folders_share_what_is_inside_both(root: Path) -> None:
    both = Roots([str(root)]).within(Roots([str(root / "site"), "/"]))
    narrow = Roots([str(root)]).within(Roots([str(root / "site")]))

    assert both.holds(str(root / "x"))
    assert (narrow.holds(str(root / "site/x")), narrow.holds(str(root / "x"))) == (True, False)
    assert not Roots([str(root)]).within(Roots([])).holds(str(root))


def test_roots_are_declared_as_they_really_are(root: Path) -> None:
    assert declared([str(root / "in"), str(root / "site")]) == [str((root / "site").resolve())]
    for missing in (root / "none", root / "file-out"):
        with pytest.raises(ConnectorError):
            declared([str(missing)])


@pytest.mark.parametrize(
    ("tier", "kind", "names", "allowed"),
    [
        ("probe", "read", ["site/a"], False),
        ("probe", "edit", ["site/a"], False),
        ("curated", "edit", ["site/a"], True),
        ("curated", "edit", ["site/a", "../outside.txt"], False),
        ("curated", "edit", [], False),
        ("curated", "delete", ["out/outside.txt"], False),
        ("curated", "move", ["site/a", "site/b"], True),
        ("curated", "read", [], True),
        ("curated", "read", ["../outside.txt"], False),
        ("curated", "search", ["site"], True),
        ("curated", "think", [], True),
        ("curated", "execute", [], False),
        ("curated", "execute", ["site/a"], False),
        ("curated", "fetch", [], False),
        ("curated", "other", [], False),
        ("curated", None, ["site/a"], False),
        ("curated", "switch_mode", [], False),
        ("shell", "execute", [], True),
        ("shell", "fetch", [], True),
        ("shell", None, [], True),
        ("shell", "edit", ["../outside.txt"], False),
        ("shell", "execute", ["../outside.txt"], False),
        ("nonsense", "execute", [], False),
    ],
)
def test_the_tier_decides(root: Path, tier: str, kind: Any, names: list[str], allowed: bool) -> None:
    verdict = judge(tier, kind, [f"{root}/{name}" for name in names], Roots([str(root)]))

    assert verdict.allowed is allowed


@pytest.mark.parametrize(
    ("one", "other", "less"),
    [
        ("shell", "curated", "curated"),
        ("curated", "probe", "probe"),
        ("shell", "shell", "shell"),
        ("shell", "None", "probe"),
    ],
)
def test_of_two_tiers_the_one_with_less_authority_counts(one: str, other: str, less: str) -> None:
    assert narrower(one, other) == narrower(other, one) == less


def test_every_file_that_a_tool_call_names_is_looked_at() -> None:
    call = SimpleNamespace(
        locations=[SimpleNamespace(path="/a")],
        content=[SimpleNamespace(type="diff", path="b"), SimpleNamespace(type="content")],
        raw_input={
            "file_path": "../c",
            "edits": [{"path": "/d", "text": "/not-a-path"}],
            "changes": {"/e": {}},
            "command": ["rm"],
        },
    )

    assert paths_of(call, "/w") == ["/a", "/w/b", "/w/../c", "/d", "/e"]
    assert paths_of(SimpleNamespace(locations=None, content=None, raw_input=None), "/w") == []


ARGUMENTS: list[dict[str, Any]] = [
    {"absolute_path": "/etc/passwd"}, {"targetFile": "/etc/passwd"}, {"paths": ["a", "/etc/passwd"]},
    {"dir_path": "/etc/passwd"}, {"uri": "file:///etc/passwd"}, {"files": [{"filename": "/etc/passwd"}]},
    {"Directory": "/etc/passwd"}, {"cwd": "/etc/passwd"}, {"notebookPath": "/etc/./passwd"},
]  # fmt: skip


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_files_are_found_under_the_names_that_agents_give_them(arguments: dict[str, Any]) -> None:
    call = SimpleNamespace(locations=None, content=None, raw_input=arguments)

    assert "/etc/passwd" in paths_of(call, "/w")
    assert not judge("curated", "read", paths_of(call, "/w"), Roots(["/w"])).allowed


def test_words_are_not_taken_for_files() -> None:
    call = SimpleNamespace(
        locations=None, content=None, raw_input={"command": "/bin/ls", "pattern": "/x", "content": "/* */"}
    )

    assert paths_of(call, "/w") == []
