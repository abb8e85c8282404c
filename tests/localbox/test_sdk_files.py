"""The vendor's own SDK writes and reads files, against a real server process, in each sandbox."""

from __future__ import annotations

import base64

import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.box_helpers import read_text, write_text
from ascii_box_sdk.exceptions import BadRequestException, NotFoundException
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.file_write_request import FileWriteRequest

from tests.localbox.client import run
from tests.localbox.conformance import refusal, refused_code


@pytest.mark.parametrize("name", ["plain.txt", "with a space.txt", "grün/åäö.txt", "/tmp/elsewhere.txt"])
def test_a_text_file_comes_back_as_it_was_written(api: BoxApi, box: Box, name: str) -> None:
    content = "first line\nzweite Zeile: äöü €\n"

    written = api.write_file(box.id, FileWriteRequest(path=name, content=content))
    read = api.read_file(box.id, name)

    assert (written.type, read.type) == ("file.written", "file.read")
    assert written.size == read.size == len(content.encode())
    assert (read.content, read.encoding) == (content, "utf8")
    shell_path = name if not name.startswith("/tmp/") else f"${{TMPDIR:-/tmp}}/{name.removeprefix('/tmp/')}"
    assert run(api, box.id, f'cat "{shell_path}"').stdout == content


def test_bytes_come_back_as_they_were_written(api: BoxApi, box: Box) -> None:
    content = base64.b64encode(bytes(range(256))).decode()

    api.write_file(box.id, FileWriteRequest(path="all.bin", content=content, encoding="base64"))
    read = api.read_file(box.id, "all.bin", encoding="base64")

    assert (read.content, read.size, read.encoding) == (content, 256, "base64")
    assert api.artifact(box.id, "all.bin") == bytes(range(256))


def test_the_helpers_for_text_work(api: BoxApi, box: Box) -> None:
    write_text(api, box.id, "note.txt", "hello")

    assert read_text(api, box.id, "/home/user/note.txt") == "hello"


@pytest.mark.parametrize("path", ["/etc/hosts", "../outside.txt", "/home/user/../../etc/x", "/tmp/../etc/x"])
def test_a_path_outside_the_box_is_refused(api: BoxApi, box: Box, path: str) -> None:
    request = FileWriteRequest(path=path, content="x")

    assert refusal(BadRequestException, lambda: api.write_file(box.id, request)).code == "invalid_path"
    assert refused_code(BadRequestException, lambda: api.read_file(box.id, path)) == "invalid_path"


def test_a_link_out_of_the_box_is_refused(api: BoxApi, box: Box) -> None:
    run(api, box.id, "ln -s /etc exit")

    assert refused_code(BadRequestException, lambda: api.read_file(box.id, "exit/hosts")) == "invalid_path"


def test_a_file_that_is_not_there_is_unknown(api: BoxApi, box: Box) -> None:
    assert refused_code(NotFoundException, lambda: api.read_file(box.id, "nothing.txt")) == "not_found"


def test_bytes_that_are_no_text_are_not_given_as_text(api: BoxApi, box: Box) -> None:
    run(api, box.id, r"printf '\377\376' > raw")

    assert refused_code(BadRequestException, lambda: api.read_file(box.id, "raw")) == "invalid_encoding"
