"""`recall_messages`, and the registry that it is in."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import SchemaError

from base import hooks
from base.clock import database_now
from conversations.models import Conversation, Message
from conversations.services import add_user_message, ensure_conversation
from tests.work.conftest import JobOf
from tests.work.scripted import QUERY, tool
from work.models import Job
from work.services import claim_for_run
from work.tools import REGISTRY, Invocation, Registry

pytestmark = pytest.mark.django_db


def recalled(job: Job, query: str, **arguments: Any) -> list[str]:
    call = Invocation(
        arguments={"query": query, **arguments},
        call_id="call-1",
        tool_name="recall_messages",
        job_id=job.pk,
        conversation_id=job.conversation_id,
        owner_visitor_id=job.owner_visitor_id,
        owner_user_id=None,
        job_started_at=job.started_at or database_now(),
    )
    return [match["text"] for match in REGISTRY["recall_messages"].execute(call)["matches"]]


def test_it_finds_what_was_said_best_first(conversation: Conversation, make_job: JobOf) -> None:
    add_user_message(conversation, "The deploy broke: deploy key expired, deploy again later")
    add_user_message(conversation, "We deploy on Tuesdays")
    add_user_message(conversation, "Lunch?")
    found = recalled(claim_for_run(make_job().pk), "DEPLOY")
    assert len(found) == 2
    assert found[0].startswith("The deploy broke")
    assert recalled(make_job(), "deploy key") == found[:1]
    assert recalled(make_job(), '"on tuesdays" or lunch', limit=1) != []


def test_it_finds_nothing_said_after_the_job_began(conversation: Conversation, make_job: JobOf) -> None:
    running = claim_for_run(make_job().pk)
    add_user_message(conversation, "a late remark")
    assert recalled(running, "remark") == []


def test_it_finds_nothing_of_others_and_nothing_unfinished(
    conversation: Conversation, make_job: JobOf
) -> None:
    add_user_message(ensure_conversation("somebody else"), "the secret plan")
    Message.objects.create(
        conversation=conversation, role="assistant", content="half a plan", status="streaming"
    )
    assert recalled(make_job(), "plan") == []


def test_reports_of_earlier_jobs_are_found(conversation: Conversation, make_job: JobOf) -> None:
    Message.objects.create(conversation=conversation, role="assistant", content="Report: the cache was stale")
    assert recalled(make_job(), "stale") == ["Report: the cache was stale"]


@pytest.mark.parametrize("query", ["'", "a & | !", "((", "\\", "日本", "-"], ids=str)
def test_no_query_is_an_error(conversation: Conversation, make_job: JobOf, query: str) -> None:
    add_user_message(conversation, "日本 and more")
    assert isinstance(recalled(make_job(), query), list)


def test_a_long_message_is_told_in_pieces(conversation: Conversation, make_job: JobOf) -> None:
    Message.objects.create(
        conversation=conversation, role="user", content="word " * 100_000 + "needle " + "word " * 100_000
    )
    add_user_message(conversation, "a needle in short")
    (found, *_) = recalled(make_job(), "needle")
    assert len(found) < 2000


def test_what_apps_register_is_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks.tools, "_callables", [lambda: tool("a_b", print), lambda: [tool("c-2", print)]])
    made = Registry(collects=True)
    assert list(made) == ["a_b", "c-2"]
    assert made["a_b"].version == "1"
    del made["c-2"]
    assert "c-2" not in made


def test_the_built_in_tools_are_there() -> None:
    assert list(REGISTRY) == ["box_new", "box_output", "box_run", "box_stop", "recall_messages"]
    assert {each.authority for each in REGISTRY.values()} == {None, "box:control"}


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "deep_work", "a.b"])
def test_a_name_that_may_not_be_used_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        Registry([tool(name, print)])


def test_a_tool_is_there_once_and_has_a_schema() -> None:
    with pytest.raises(ValueError, match="already"):
        Registry([tool("look", print), tool("look", print)])
    with pytest.raises(SchemaError):
        Registry([tool("look", print, parameters={"type": "odd"})])
    made = Registry([tool("look", print)])
    with pytest.raises(ValueError, match="is 'look'"):
        made["other"] = tool("look", print)


def test_the_digest_follows_what_a_model_sees() -> None:
    one = Registry([tool("look", print), tool("find", print)])
    assert one.digest() == Registry([tool("find", len), tool("look", len)]).digest()
    assert one.digest() != Registry([tool("look", print, version="2"), tool("find", print)]).digest()
    assert (
        one.digest()
        != Registry([tool("look", print, parameters=QUERY | {"title": "x"}), tool("find", print)]).digest()
    )
