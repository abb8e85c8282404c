"""The OpenAPI description by itself: scopes, errors with their codes, and examples that fit."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

from accounts.scopes import Scope
from base.api.errors import status_of
from boxes.lifetime import EndRule
from boxes.states import QueueReason, StopReason
from forge.states import IssueState, RequesterKind, Role, TargetKind, Visibility
from tests.contract import guide
from work.states import PairingStatus

FOR_EVERYBODY = {"POST /api/v1/pairings", "GET /api/v1/pairings/{pairing_id}"}
WITHOUT_EXAMPLE_OF_A_BODY: set[str] = set()


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found


@pytest.fixture(scope="module")
def operations(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    paths = description["paths"].items()
    return {f"{method.upper()} {path}": each for path, methods in paths for method, each in methods.items()}


def test_every_operation_names_the_scope_that_it_needs(operations: dict[str, dict[str, Any]]) -> None:
    for name, operation in operations.items():
        [by_token, *_] = operation["security"]
        if name in FOR_EVERYBODY:
            assert by_token == {}
        else:
            assert by_token["token"][0] in Scope.values, name
            assert f"Scope: `{by_token['token'][0]}`" in operation["description"], name


def test_every_error_answer_lists_its_codes_with_an_example_of_each(
    operations: dict[str, dict[str, Any]],
) -> None:
    for name, operation in operations.items():
        for code in operation["x-error-codes"]:
            answer = operation["responses"][str(status_of(code))]
            examples = answer["content"]["application/json"]["examples"]
            assert f"`{code}`" in answer["description"], name
            assert set(examples[code]["value"]["error"]) == {"code", "detail"}, name
            assert examples[code]["value"]["error"]["detail"] != "the request failed", (
                f"{code} is not explained"
            )


def test_what_is_shown_to_keepers_alone_says_so(operations: dict[str, dict[str, Any]]) -> None:
    codes = operations["GET /api/v1/repositories/{repository_id}/machines"]["x-error-codes"]

    assert "repository_not_yours_to_change" in codes


@pytest.mark.parametrize(
    ("schema", "field", "values"),
    [
        ("Item", "queue_reason", {*QueueReason.values, None}),
        ("QueuedBox", "queue_reason", {*QueueReason.values, None}),
        ("Attempt", "requester_kind", {*RequesterKind.values}),
    ],
)
def test_what_has_a_closed_set_of_values_lists_them(
    description: dict[str, Any], schema: str, field: str, values: set[str | None]
) -> None:
    place = description["components"]["schemas"][schema]["properties"][field]

    assert listed(description, place) == values


def listed(description: dict[str, Any], place: dict[str, Any]) -> set[str | None]:
    if "$ref" in place:
        place = description["components"]["schemas"][place["$ref"].rsplit("/", 1)[1]]
    found = {
        value for each in place.get("oneOf", place.get("allOf", ())) for value in listed(description, each)
    }
    return found | set(place.get("enum", ())) | ({None} if place.get("type") == "null" else set())


def test_every_failure_reason_is_explained(description: dict[str, Any]) -> None:
    for name, schema in description["components"]["schemas"].items():
        if "failure_reason" in schema.get("properties", {}):
            assert schema["properties"]["failure_reason"].get("description"), name


def test_whoever_is_not_signed_in_and_what_is_unavailable_is_answered_everywhere(
    operations: dict[str, dict[str, Any]],
) -> None:
    for name, operation in operations.items():
        codes = set(operation["x-error-codes"])
        assert codes >= {"internal_error", "temporarily_unavailable"}, name
        assert name in FOR_EVERYBODY or codes >= {"invalid_api_token", "insufficient_scope"}, name


def test_every_operation_has_an_example_that_fits_its_schema(
    description: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    for name, operation in operations.items():
        good = [answer for status, answer in operation["responses"].items() if status < "300"]
        shown = [
            media for answer in good for media in answer.get("content", {}).values() if "example" in media
        ]
        assert shown or operation["responses"].keys() >= {"204"}, f"{name} has no example of its answer"
        bodies = list(operation.get("requestBody", {}).get("content", {}).values())
        assert all("example" in media for media in bodies), f"{name} has no example of its body"
        for media in (*shown, *bodies):
            fits(description, media["schema"], media["example"], name)


def fits(description: dict[str, Any], schema: dict[str, Any], example: Any, name: str) -> None:
    whole = {"components": description["components"], **schema}
    wrong = sorted(jsonschema.Draft202012Validator(whole).iter_errors(example), key=str)
    assert wrong == [], name


def test_whatever_makes_something_takes_an_idempotency_key(operations: dict[str, dict[str, Any]]) -> None:
    ensures = {"POST /api/v1/conversations"}  # the same one every time, by itself
    anonymous = {
        "POST /api/v1/pairings"
    }  # there is nobody whose key it could be; grants nothing, ends by itself
    for name, operation in operations.items():
        makes = name.startswith("POST") and not name.endswith("}") and not acts_on_something(name)
        keyed = {"Idempotency-Key"} <= {place["name"] for place in operation.get("parameters", ())}
        assert keyed or not makes or name in ensures | anonymous, name


def acts_on_something(name: str) -> bool:
    """Whether it changes what is there and makes nothing: `.../cancel`, `/reconcile`."""
    return name.rsplit("/", 1)[1] in {
        "cancel", "stop", "extend", "forget", "commands", "adopt", "dismiss", "probe", "approve", "reconcile", "replay",
    }  # fmt: skip


def test_the_guide_shows_the_recorded_answers() -> None:
    text = guide.GUIDE.read_text()

    assert guide.rendered(text) == text, "run python -m tests.contract.guide"
    assert len(guide.MARKED.findall(text)) >= 20


@pytest.mark.parametrize(
    ("component", "field", "values"),
    [
        ("CreateAssignmentRequest", "target_kind", TargetKind.values),
        ("CreateRepositoryRequest", "visibility", Visibility.values),
        ("SetMemberRequest", "role", Role.values),
        ("PatchedChangeIssueRequest", "state", IssueState.values),
        ("Pairing", "status", PairingStatus.values),
        ("Box", "expires_because", [rule.value for rule in EndRule]),
        ("FleetBox", "stop_reason", StopReason.values),
    ],
)
def test_a_field_of_few_values_names_them(
    description: dict[str, Any], component: str, field: str, values: list[str]
) -> None:
    told = description["components"]["schemas"][component]["properties"][field]

    names = [
        each["$ref"].rpartition("/")[2]
        for each in [told, *told.get("oneOf", []), *told.get("allOf", [])]
        if "$ref" in each
    ]
    named = {value for name in names for value in description["components"]["schemas"][name].get("enum", ())}
    assert named - {None} == set(values)
