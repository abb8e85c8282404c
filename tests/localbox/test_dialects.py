from __future__ import annotations

import pytest

from localbox.api.calls import failure
from localbox.dialects import BOX, SANDBOX, of_path
from localbox.errors import ApiError


@pytest.mark.parametrize(
    ("word", "translated"),
    [
        ("box_starting", "sandbox_starting"),
        ("not_found", "not_found"),
        ("machine_not_running", "machine_not_running"),
    ],
)
def test_codes_are_translated_by_their_prefix_alone(word: str, translated: str) -> None:
    assert SANDBOX.code(word) == translated
    assert BOX.code(word) == word


def test_a_refusal_is_translated_at_both_places_that_name_its_code() -> None:
    answer = failure(ApiError(409, "box_starting", "Not yet.", retry_after=1), SANDBOX, "req_1")

    assert bytes(answer.body).count(b'"code":"sandbox_starting"') == 2
    assert b'"type":"sandbox.error"' in bytes(answer.body)
    assert answer.headers["Retry-After"] == "1"


def test_events_are_offered_in_the_words_of_the_dialect() -> None:
    assert SANDBOX.event_types()["sandbox.ready"] == "box.ready"
    assert set(BOX.event_types()) == {"box.ready", "box.error", "box.archived", "box.hydrated"}


@pytest.mark.parametrize(
    ("path", "name"),
    [("/api/box/v1/boxes", "box"), ("/api/v1/sandboxes", "sandbox"), ("/api/v1", "box"), ("/", "box")],
)
def test_a_path_tells_its_dialect(path: str, name: str) -> None:
    assert of_path(path).name == name
