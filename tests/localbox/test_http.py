"""The edge of the API: keys, bodies, paths and envelopes, as bare HTTP."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from typing import Any

import pytest
import requests

from tests.localbox.client import Http, new_key, wait_until
from tests.localbox.server import LocalboxServer

ENVELOPE = {"ok", "type", "status", "code", "message", "requestId", "error"}


@pytest.fixture
def http(localbox_server: LocalboxServer) -> Http:
    return Http(localbox_server)


@pytest.fixture
def box_id(http: Http) -> Any:
    made = http("POST", "/boxes").json()["box"]["id"]
    wait_until(lambda: http("GET", f"/boxes/{made}").json()["box"]["state"] == "ready")
    yield made
    http("DELETE", f"/boxes/{made}", headers={"X-Ascii-Confirm-Delete": made})


def refused(answer: requests.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a refusal, after checking that its envelope is complete."""
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), body
    assert set(body) == ENVELOPE
    assert (body["ok"], body["type"], body["status"]) == (False, "box.error", status)
    assert body["error"] == {"code": code, "message": body["message"], "status": status}
    assert body["requestId"] == answer.headers["X-Request-Id"]
    return dict(body)


# keys


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic {key}", "{key}", "Bearer {key}x", "Bearer \xff"],
)
@pytest.mark.parametrize("path", ["/boxes", "/nothing/like/this"])
def test_it_refuses_every_call_without_the_right_key(
    localbox_server: LocalboxServer, header: str | None, path: str
) -> None:
    headers = (
        {} if header is None else {"Authorization": header.format(key=localbox_server.key).encode("latin-1")}
    )

    answer = requests.get(localbox_server.base_url + path, headers=headers, timeout=30)

    refused(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_it_says_without_a_key_that_it_is_there(localbox_server: LocalboxServer) -> None:
    answer = requests.get(f"{localbox_server.origin}/healthz", timeout=30).json()

    assert set(answer) == {"ok", "runtime"}
    assert answer["runtime"] in ("bwrap", "plain")


def test_every_answer_carries_a_request_id_of_its_own(http: Http) -> None:
    first, second = (http("GET", "/me").headers["X-Request-Id"] for _ in range(2))

    assert re.fullmatch(r"req_[a-f0-9]{24}", first)
    assert first != second


# bodies


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"{",
            b"nonsense",
            b"[]",
            b'"text"',
            b"17",
            b"null",
            b'{"a": NaN}',
            b'{"a": Infinity}',
            b"\xff\xfe",
        ),
        *(b'{"name": "\\ud800"}', b"[" * 100_000, b'{"a": ' + b"9" * 10_000 + b"}"),
    ],
    ids=lambda body: repr(body[:16]),
)
def test_a_body_that_is_no_json_object_is_refused(http: Http, body: bytes) -> None:
    refused(http("POST", "/boxes", data=body), 400, "invalid_json")


def test_a_body_beyond_the_limit_is_refused_unread(http: Http) -> None:
    connection = HTTPConnection(http.base_url.split("/")[2], timeout=30)
    connection.putrequest("POST", "/api/box/v1/boxes")
    connection.putheader("Authorization", http.session.headers["Authorization"])
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders()

    answer = connection.getresponse()

    assert answer.status == 413
    assert b'"body_too_large"' in answer.read()
    connection.close()


def test_a_body_of_unknown_length_beyond_the_limit_is_refused(http: Http) -> None:
    chunks = (b" " * 65_536 for _ in range(40))

    refused(http("POST", "/boxes", data=chunks), 413, "body_too_large")


@pytest.mark.parametrize("path", ["stop", "resume", "fork"])
def test_an_action_needs_no_body(http: Http, box_id: str, path: str) -> None:
    answer = http("POST", f"/boxes/{box_id}/{path}", data=b"", headers={"Content-Type": "application/json"})

    assert answer.status_code == 202
    if path == "fork":
        made = answer.json()["id"]
        http("DELETE", f"/boxes/{made}", headers={"X-Ascii-Confirm-Delete": made})


def test_fields_it_does_not_know_are_ignored(http: Http, box_id: str) -> None:
    answer = http(
        "POST", f"/boxes/{box_id}/commands", json={"command": "echo $X", "env": {"X": "1"}, "stdin": "y"}
    )

    assert answer.json()["stdout"] == "\n"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"ttlSeconds": 0}, "invalid_ttl"),
        ({"ttlSeconds": 2_592_001}, "invalid_ttl"),
        ({"ttlSeconds": 900.0}, "invalid_ttl"),
        ({"ttlSeconds": True}, "invalid_ttl"),
        ({"ttlSeconds": "900"}, "invalid_ttl"),
        ({"type": "huge"}, "invalid_type"),
        ({"type": ["small"]}, "invalid_type"),
        ({"noEnv": "yes"}, "invalid_request"),
        ({"environment": "production"}, "unknown_environment"),
        ({"environment": 7}, "unknown_environment"),
        ({"setupScript": 7}, "invalid_setup_script"),
        ({"setupScript": "x" * 65_537}, "invalid_setup_script"),
        ({"setupScript": "a\0b"}, "invalid_setup_script"),
        ({"env": []}, "invalid_env"),
        ({"env": {"A": 1}}, "invalid_env"),
        ({"env": {"A": "x\0y"}}, "invalid_env"),
        ({"env": {"1A": "x"}}, "invalid_env"),
        ({"env": {"A-B": "x"}}, "invalid_env"),
        ({"env": {"": "x"}}, "invalid_env"),
        ({"env": {"A" * 129: "x"}}, "invalid_env"),
        ({"env": {"BOX_ID": "x"}}, "invalid_env"),
        ({"env": {f"K{number}": "" for number in range(101)}}, "invalid_env"),
        ({"env": {"A": "x" * 65_536}}, "invalid_env"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_create_with_a_wrong_field_is_refused(http: Http, body: dict[str, Any], code: str) -> None:
    refused(http("POST", "/boxes", json=body), 400, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_command"),
        ({"command": ""}, "invalid_command"),
        ({"command": " \n"}, "invalid_command"),
        ({"command": "a\0b"}, "invalid_command"),
        ({"command": "a\ud800"}, "invalid_json"),
        ({"command": ["ls"]}, "invalid_command"),
        ({"command": "true", "timeoutSeconds": 0}, "invalid_timeout"),
        ({"command": "true", "timeoutSeconds": 601}, "invalid_timeout"),
        ({"command": "true", "timeoutSeconds": 1.5}, "invalid_timeout"),
        ({"command": "true", "timeoutSeconds": None}, "invalid_timeout"),
        ({"command": "true", "detached": 1}, "invalid_request"),
        ({"command": "true", "cwd": ""}, "invalid_cwd"),
        ({"command": "true", "cwd": 7}, "invalid_cwd"),
    ],
    ids=str,
)
def test_a_command_with_a_wrong_field_is_refused(
    http: Http, box_id: str, body: dict[str, Any], code: str
) -> None:
    refused(http("POST", f"/boxes/{box_id}/commands", json=body), 400, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"path": "a", "content": 7}, "invalid_content"),
        ({"path": "a", "content": "***", "encoding": "base64"}, "invalid_content"),
        ({"path": "a", "content": "x", "encoding": "hex"}, "invalid_encoding"),
        ({"path": "", "content": "x"}, "invalid_path"),
        ({"path": "a\0b", "content": "x"}, "invalid_path"),
        ({"content": "x"}, "invalid_path"),
    ],
    ids=str,
)
def test_a_file_with_a_wrong_field_is_refused(
    http: Http, box_id: str, body: dict[str, Any], code: str
) -> None:
    refused(http("PUT", f"/boxes/{box_id}/files", json=body), 400, code)


def test_a_file_larger_than_other_bodies_may_be_is_written(http: Http, box_id: str) -> None:
    content = "0123456789abcdef" * 131_072

    written = http("PUT", f"/boxes/{box_id}/files", json={"path": "big", "content": content})
    read = http("GET", f"/boxes/{box_id}/artifacts", params={"path": "big"})

    assert written.json()["size"] == 2 << 20
    assert read.text == content
    assert read.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": ""}, "invalid_name"),
        ({"name": 7}, "invalid_name"),
        ({"unknown": 1}, "no_changes"),
        ({"subdomain": "ab"}, "invalid_subdomain"),
        ({"subdomain": "-abc"}, "invalid_subdomain"),
        ({"subdomain": "a--b"}, "invalid_subdomain"),
        ({"subdomain": "Abc"}, "invalid_subdomain"),
    ],
    ids=str,
)
def test_an_update_with_a_wrong_field_is_refused(
    http: Http, box_id: str, body: dict[str, Any], code: str
) -> None:
    refused(http("PATCH", f"/boxes/{box_id}", json=body), 400, code)


def test_a_long_name_is_cut(http: Http, box_id: str) -> None:
    answer = http("PATCH", f"/boxes/{box_id}", json={"name": "n" * 200})

    assert answer.json()["box"]["name"] == "n" * 120


# queries


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_limit"),
        ("limit=201", "invalid_limit"),
        ("limit=many", "invalid_limit"),
        ("limit=-1", "invalid_limit"),
        ("limit=²", "invalid_limit"),
        ("sort=up", "invalid_sort"),
        ("state=ready,nowhere", "invalid_state"),
        ("cursor=***", "invalid_cursor"),
        ("cursor=AAAA", "invalid_cursor"),
        ("cursor=é", "invalid_cursor"),
    ],
)
def test_a_listing_with_a_wrong_query_is_refused(http: Http, query: str, code: str) -> None:
    refused(http("GET", f"/boxes?{query}"), 400, code)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("since=yesterday", "invalid_since"),
        ("until=nan", "invalid_until"),
        ("until=1e99", "invalid_until"),
        ("since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "invalid_window"),
    ],
)
def test_usage_of_a_window_that_is_none_is_refused(http: Http, box_id: str, query: str, code: str) -> None:
    refused(http("GET", f"/boxes/{box_id}/usage?{query}"), 400, code)


def test_usage_takes_epoch_seconds_too(http: Http, box_id: str) -> None:
    answer = http("GET", f"/boxes/{box_id}/usage?since=0&until=86400.5").json()

    assert (answer["since"], answer["until"]) == ("1970-01-01T00:00:00.000Z", "1970-01-02T00:00:00.500Z")


@pytest.mark.parametrize("tail", ["0", "524289", "x"])
def test_a_tail_beyond_the_limit_is_refused(http: Http, box_id: str, tail: str) -> None:
    refused(http("GET", f"/boxes/{box_id}/commands/1?tailBytes={tail}"), 400, "invalid_tail_bytes")


@pytest.mark.parametrize("process_id", ["0", "-1", "x", "9" * 30, "1.0"])
def test_a_process_id_that_is_none_is_unknown(http: Http, box_id: str, process_id: str) -> None:
    refused(http("GET", f"/boxes/{box_id}/commands/{process_id}"), 404, "not_found")


# paths


@pytest.mark.parametrize(
    "box", ["bx_22222222", "bx_2222222", "bx_00000000", "BX_22222222", "x", "%00", "bx_2222222%0a"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/stop"),
        ("POST", "/resume"),
        ("POST", "/fork"),
        ("POST", "/commands"),
        ("GET", "/commands/1"),
        ("GET", "/files?path=x"),
        ("PUT", "/files"),
        ("GET", "/artifacts?path=x"),
        ("GET", "/usage"),
        ("GET", "/events"),
    ],
)
def test_a_box_that_is_not_there_is_unknown_to_every_call(
    http: Http, method: str, path: str, box: str
) -> None:
    body = {"command": "true", "name": "x", "path": "x", "content": "x"}

    refused(http(method, f"/boxes/{box}{path}", json=body), 404, "not_found")


@pytest.mark.parametrize("path", ["/webhooks/wh_x", f"/webhooks/wh_{'0' * 24}", "/deletion-operations/x"])
def test_other_ids_that_are_not_there_are_unknown(http: Http, path: str) -> None:
    refused(http("GET", path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/boxes/"),
        ("GET", "/boxes/bx_22222222/desktop"),
        ("POST", "/boxes/bx_22222222/prompt"),
        ("POST", "/boxes/bx_22222222/interrupt"),
        ("PUT", "/boxes"),
        ("DELETE", "/me"),
        ("OPTIONS", "/boxes"),
        ("GET", "/named-snapshots"),
        ("POST", "/webhooks/wh_x/test"),
    ],
)
def test_what_is_not_served_says_so_in_the_full_envelope(http: Http, method: str, path: str) -> None:
    refused(http(method, path), 404, "not_supported")


def test_a_path_outside_the_api_says_so_too(localbox_server: LocalboxServer) -> None:
    refused(Http(localbox_server, prefix="")("GET", "/"), 404, "not_supported")


def test_a_command_is_not_in_the_log(localbox_server: LocalboxServer, http: Http, box_id: str) -> None:
    secret = new_key()

    http("POST", f"/boxes/{box_id}/commands", json={"command": f"echo {secret}"})
    http("PUT", f"/boxes/{box_id}/files", json={"path": secret, "content": secret})

    assert f"/boxes/{box_id}/commands" in localbox_server.log()
    assert secret not in localbox_server.log()
    assert localbox_server.key not in localbox_server.log()


# the second dialect


def test_the_successor_dialect_says_the_same_in_its_own_words(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server, prefix="/api/v1")

    created = http("POST", "/sandboxes", headers={"Idempotency-Key": new_key()})
    made = created.json()["sandbox"]["id"]
    wait_until(lambda: http("GET", f"/sandboxes/{made}").json()["sandbox"]["state"] == "ready")
    usage = http("GET", f"/sandboxes/{made}/usage").json()
    listed = http("GET", "/sandboxes").json()
    command = http("POST", f"/sandboxes/{made}/commands", json={"command": "true"}).json()
    deleted = http("DELETE", f"/sandboxes/{made}", headers={"X-Ascii-Confirm-Delete": made}).json()

    assert (created.status_code, created.json()["type"]) == (202, "sandbox.created")
    assert (usage["type"], usage["sandboxId"], usage["sandboxType"]) == ("sandbox.usage", made, "default")
    assert (listed["type"], made in {row["id"] for row in listed["sandboxes"]}) == ("sandbox.list", True)
    assert command["type"] == "command.finished"
    assert deleted["type"] == "sandbox.deleting"
    assert http("GET", f"/sandboxes/{made}").json()["type"] == "sandbox.error"


def test_both_dialects_show_the_same_boxes(localbox_server: LocalboxServer, box_id: str) -> None:
    old = Http(localbox_server)("GET", f"/boxes/{box_id}").json()["box"]
    new = Http(localbox_server, prefix="/api/v1")("GET", f"/sandboxes/{box_id}").json()["sandbox"]

    assert old == new
