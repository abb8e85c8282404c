"""Which folders are inside which, by their names alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from work.delegations.folders import is_inside

POSIX = ["/home/ann/work", "/srv"]
WINDOWS = [r"C:\Users\Ann\work"]


@pytest.mark.parametrize("folder", ["/home/ann/work", "/home/ann/work/", "/home/ann/work/a/b", "/srv/x", "/home/ann/work/..a", "/home/ann/work/a b"])  # fmt: skip
def test_a_folder_below_a_root_is_inside(folder: str) -> None:
    assert is_inside(folder, POSIX)


@pytest.mark.parametrize(
    "folder",
    [
        "/home/ann/work-secret",
        "/home/ann/workshop/a",
        "/home/ann",
        "/",
        "/home/ann/work/../.ssh",
        "/home/ann/work/./a",
        "/home/ann/work/..",
        "/home/ann/work//a",
        "//home/ann/work",
        "home/ann/work",
        "./work",
        "~/work",
        "/HOME/ann/work",
        "/home/ann/Work",
        "/home/ann/work/a\0b",
        r"C:\home\ann\work",
        "",
        " /home/ann/work",
    ],
)
def test_anything_else_is_not(folder: str) -> None:
    assert not is_inside(folder, POSIX)


@pytest.mark.parametrize("folder", [r"C:\Users\Ann\work", r"c:\users\ANN\WORK\site", "C:/Users/Ann/work/site", "C:\\Users\\Ann\\work\\"])  # fmt: skip
def test_windows_folders_are_compared_without_case(folder: str) -> None:
    assert is_inside(folder, WINDOWS)


@pytest.mark.parametrize(
    "folder",
    [
        r"C:\Users\Ann\work-secret",
        r"C:\Users\Ann\work\..\secret",
        r"C:\Users\Ann\work\.\a",
        r"D:\Users\Ann\work",
        r"C:Users\Ann\work",
        r"\\server\share\work",
        r"\\?\C:\Users\Ann\work",
        r"C:\Users\Ann\work.",
        r"C:\Users\Ann\work\site ",
        r"C:\Users\Ann\work\file:stream",
        r"C:\Users\Ann\WORKSH~1",
        "/Users/Ann/work",
        r"C:\Users\Ann",
    ],
)
def test_windows_names_that_mean_others_are_not_inside(folder: str) -> None:
    assert not is_inside(folder, WINDOWS)


@pytest.mark.parametrize("root", ["", "work", "./work", "C:work", r"\\server\share"])
def test_a_root_that_is_not_absolute_holds_nothing(root: str) -> None:
    assert not is_inside(root, [root])
    assert not is_inside("/srv/code", [root])


@given(st.lists(st.sampled_from(["a", "..", ".", "", "work", "b c", "work-x"]), max_size=6))
def test_what_is_inside_stays_inside_when_it_is_resolved(names: list[str]) -> None:
    import posixpath

    folder = "/" + "/".join(["root", "work", *names])

    if is_inside(folder, ["/root/work"]):
        assert (posixpath.normpath(folder) + "/").startswith("/root/work/")
