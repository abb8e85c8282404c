"""Which error an answer becomes: its code, and whether what was asked for may have happened."""

from __future__ import annotations

from typing import Any

import pytest
import responses
from hypothesis import given
from hypothesis import strategies as st

from boxes.client import BoxClient
from boxes.client.classification import Answer, command_error, create_error, general_error
from boxes.errors import (
    DETAIL_BY_CODE,
    PUBLIC_CODE,
    STATUS_BY_CODE,
    BoxError,
    BoxNotFound,
    ProviderCode,
    ProviderError,
    QuotaReached,
    Refused,
    RetryLater,
    Unknown,
)
from tests.boxes.client.conftest import BASE
from tests.boxes.client.properties import JSON, unhurried

BOX = f"{BASE}/boxes/bx_8bhkse3n"


def error_of(action: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        action()
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "code", "kind"),
    [
        (401, {}, "box_unauthorized", Refused),
        (402, {"code": "billing_required"}, "box_billing_required", Refused),
        (403, {"code": "org_suspended"}, "box_billing_required", Refused),
        (404, {}, "box_not_found", Refused),
        (404, {"code": "not_found"}, "box_not_found", Refused),
        (404, {"code": "not_supported"}, "box_provider_refused", Refused),
        (429, {}, "box_rate_limited", RetryLater),
        (400, {"code": "stop_failed"}, "box_provider_refused", Refused),
        (409, {"code": "resume_failed"}, "box_provider_refused", Refused),
        (409, {"code": "box_recent_snapshot_required"}, "box_provider_refused", RetryLater),
        (418, {}, "box_provider_refused", Refused),
        (408, {}, "box_provider_refused", Unknown),
        (500, {"code": "internal_error"}, "box_provider_refused", Unknown),
        (503, {}, "box_provider_refused", Unknown),
        (302, {}, "box_provider_refused", Unknown),
        (200, {"ok": False, "code": "stop_failed"}, "box_provider_refused", Refused),
    ],
)
def test_each_status_has_its_code_and_kind(
    client: BoxClient,
    stub: responses.RequestsMock,
    status: int,
    body: Any,
    code: str,
    kind: type[ProviderError],
) -> None:
    stub.post(f"{BOX}/stop", status=status, json=body)
    error = error_of(lambda: client.stop("bx_8bhkse3n"))

    assert (type(error), error.code, error.provider_status) == (kind, code, status)
    assert error.provider_code == body.get("code", "unknown")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"code": "a_code"}', "a_code"),
        ('{"error": {"code": "a_code"}}', "a_code"),
        ('{"error": "a_code"}', "a_code"),
        ('{"code": "sandbox_starting"}', "box_starting"),
        ('{"code": "boat_gone"}', "box_gone"),
        ('{"code": 7, "error": {"code": "a_code"}}', "a_code"),
        ('{"error": "The key sk-12345 is wrong"}', "unknown"),
        ('{"code": "' + "x" * 100 + '"}', "unknown"),
        ("<html>Bad Gateway</html>", "unknown"),
        ("", "unknown"),
        ("null", "unknown"),
        ("[" * 100_000, "unknown"),
    ],
)
def test_the_providers_code_is_found_wherever_it_stands(
    client: BoxClient, stub: responses.RequestsMock, body: str, code: str
) -> None:
    stub.post(f"{BOX}/stop", status=400, body=body)

    assert error_of(lambda: client.stop("bx_8bhkse3n")).provider_code == code


@pytest.mark.parametrize(
    "body",
    [
        "<html>hello</html>",
        "",
        "null",
        "[]",
        '"text"',
        "7",
        '{"box": ',
        "NaN",
        '{"a":' * 2000 + "1" + "}" * 2000,
    ],
    ids=["html", "empty", "null", "list", "text", "number", "cut", "nan", "deep"],
)
def test_a_success_that_is_no_object_is_an_invalid_answer(
    client: BoxClient, stub: responses.RequestsMock, body: str
) -> None:
    stub.get(BOX, body=body)
    error = error_of(lambda: client.get("bx_8bhkse3n"))

    assert (type(error), error.code) == (Unknown, "box_response_invalid")


CERTAINLY_NOT_MADE = [
    *((status, "unknown") for status in (400, 401, 402, 403, 404, 422, 429)),
    (503, "no_ready_machine"),
    (503, "out_of_capacity"),
    (409, "unknown"),
    (409, "account_not_ready"),
    (409, "box_starting"),
]
PERHAPS_MADE = [
    (200, "unknown"),
    (202, "unknown"),
    (204, "unknown"),
    (302, "unknown"),
    (405, "unknown"),
    (408, "unknown"),
    (409, "idempotency_in_progress"),
    (409, "idempotency_key_reused"),
    (500, "internal_error"),
    (502, "no_ready_machine"),
    (503, "unknown"),
    (504, "request_timeout"),
]


@pytest.mark.parametrize(("status", "code"), CERTAINLY_NOT_MADE)
@pytest.mark.parametrize("retry_after", [None, 120.0])
def test_a_create_is_refused_where_no_box_was_made(status: int, code: str, retry_after: float | None) -> None:
    error = create_error(Answer(status, {"code": code}, retry_after))

    assert (type(error), error.retry_after_seconds) == (Refused, retry_after)


@pytest.mark.parametrize(("status", "code"), PERHAPS_MADE)
@pytest.mark.parametrize("retry_after", [None, 120.0])
def test_a_create_is_unknown_where_a_box_may_have_been_made(
    status: int, code: str, retry_after: float | None
) -> None:
    assert type(create_error(Answer(status, {"code": code}, retry_after))) is Unknown


def test_a_create_without_an_answer_is_unknown(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.post(f"{BASE}/boxes", body=ConnectionError("refused"))
    error = error_of(lambda: client.create("key-1", ttl_seconds=60))

    assert (type(error), error.code, len(stub.calls)) == (Unknown, "box_unreachable", 1)


@pytest.mark.parametrize("body", ['{"ok": true}', '{"box": {"id": 7}}', '{"box": {"id": ""}}', "<html>", ""])
def test_a_create_without_an_id_is_unknown(
    client: BoxClient, stub: responses.RequestsMock, body: str
) -> None:
    stub.post(f"{BASE}/boxes", status=202, body=body)
    error = error_of(lambda: client.create("key-1", ttl_seconds=60))

    assert (type(error), error.code) == (Unknown, "box_response_invalid")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "rate_limited", RetryLater),
        (409, "box_starting", RetryLater),
        (409, "box_restoring", RetryLater),
        (409, "box_securing", RetryLater),
        (409, "box_stopped", Refused),
        (409, "machine_not_running", Refused),
        (400, "invalid_timeout", Refused),
        (404, "not_found", Refused),
        (401, "unauthorized", Refused),
        (400, "box_direct_failed", Unknown),
        (408, "unknown", Unknown),
        (500, "internal_error", Unknown),
        (502, "box_direct_failed", Unknown),
        (503, "box_starting", Unknown),
        (504, "request_timeout", Unknown),
        (302, "unknown", Unknown),
    ],
)
def test_a_command_comes_later_only_where_it_never_ran(
    status: int, code: str, kind: type[ProviderError]
) -> None:
    for retry_after in (None, 7.0):
        error = command_error(Answer(status, {"code": code}, retry_after))
        assert (type(error), error.retry_after_seconds) == (kind, retry_after)


@pytest.mark.parametrize(
    ("status", "code", "gone"),
    [
        (404, "not_found", "box_not_found"),
        (404, "unknown", "box_not_found"),
        (409, "box_stopped", "box_stopped"),
        (410, "box_gone", "box_gone"),
        (400, "machine_not_running", "machine_not_running"),
        (409, "box_starting", None),
        (502, "box_stopped", None),
        (404, "not_supported", None),
        (401, "unauthorized", None),
    ],
)
def test_a_box_that_is_gone_is_recognised(status: int, code: str, gone: str | None) -> None:
    assert command_error(Answer(status, {"code": code})).gone_code == gone


def test_a_pause_that_was_asked_for_is_later_with_its_seconds() -> None:
    for status in (408, 429, 500, 502, 503, 504):
        error = general_error(Answer(status, {}, 120.0))
        assert (type(error), error.retry_after_seconds) == (RetryLater, 120.0)
    assert type(general_error(Answer(404, {}, 120.0))) is Refused


DOCUMENTS = st.none() | st.dictionaries(st.sampled_from(["ok", "code", "error", "box", "x"]), JSON)


@unhurried
@given(st.integers(100, 999), DOCUMENTS, st.none() | st.floats(0, 3600))
def test_any_answer_becomes_an_error_that_shows_nothing_of_the_provider(
    status: int, document: dict[str, Any] | None, pause: float | None
) -> None:
    for classify in (general_error, create_error, command_error):
        error = classify(Answer(status, document, pause))
        assert error.code in set(ProviderCode)
        assert error.detail == DETAIL_BY_CODE[error.code]
        assert len(error.log_detail) < 80
        assert STATUS_BY_CODE[error.code] in {402, 404, 429, 502, 503}


@unhurried
@given(st.integers(500, 599), DOCUMENTS, st.none() | st.floats(0, 3600))
def test_no_failure_of_the_server_is_ever_taken_for_a_refused_command(
    status: int, document: dict[str, Any] | None, pause: float | None
) -> None:
    assert type(command_error(Answer(status, document, pause))) is Unknown


def shown(error: BoxError) -> tuple[int, str]:
    return STATUS_BY_CODE[error.code], PUBLIC_CODE.get(error.code, error.code)


def test_the_api_shows_its_own_status_and_code() -> None:
    assert shown(QuotaReached("box_owner_quota_reached")) == (409, "box_owner_quota_reached")
    assert shown(BoxNotFound("box_not_owned")) == (404, "box_not_found")
    assert shown(Refused("box_billing_required")) == (402, "box_billing_required")
    assert shown(RetryLater("box_rate_limited")) == (429, "box_provider_rate_limited")
    assert shown(Refused("box_unauthorized")) == (502, "box_provider_unauthorized")
    assert shown(Refused("box_provider_refused")) == (502, "box_provider_request_refused")
    assert shown(Unknown("box_response_invalid")) == (502, "box_provider_response_invalid")
    assert shown(Unknown("box_unreachable")) == (503, "box_unreachable")
    assert shown(Refused("box_not_configured")) == (503, "box_not_configured")
    assert shown(Refused("box_malformed_id")) == (502, "box_request_failed")


def test_every_code_has_a_status_and_a_sentence_of_its_own() -> None:
    classes = {error.code: error.__doc__ for error in BoxError.__subclasses__() if error is not ProviderError}

    assert set(classes) | set(DETAIL_BY_CODE) <= set(STATUS_BY_CODE)
    assert set(PUBLIC_CODE) <= set(STATUS_BY_CODE)
    for code in DETAIL_BY_CODE:
        assert BoxError(code).detail == DETAIL_BY_CODE[code]
