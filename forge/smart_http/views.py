"""The addresses of Git: three of them for each repository, everything else is 404."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from base.addresses import counted
from forge.conf import forge_settings
from forge.models import Repository
from forge.selectors import find_repository
from forge.smart_http import fetching, pushing
from forge.smart_http.access import Answer, Caller, Kind, decide
from forge.smart_http.backend import Call
from forge.smart_http.bodies import BodyBroken, BodyTooLarge, BodyTooSlow, EncodingUnknown, RequestBody
from forge.smart_http.callers import Presented, WrongCredential, caller, presented
from forge.smart_http.crowd import ANONYMOUS, Crowded
from forge.smart_http.ref_list import BadRefList
from forge.states import Operation
from work.machines.throttling import client_address

R = TypeVar("R", bound=HttpResponseBase)

UPLOAD, RECEIVE = "git-upload-pack", "git-receive-pack"
CROWDED_SECONDS = 10
SERVICES = {UPLOAD: Operation.READ, RECEIVE: Operation.WRITE}
TEXTS = {
    Answer.WHO_ARE_YOU: "a credential is needed",
    Answer.NO: "this credential may not do that: the repository is read only for it",
    Answer.THERE_IS_NONE: "there is no such repository",
}


@csrf_exempt  # Git carries no cookie: the credential is in each request
def git(request: HttpRequest, owner: str, name: str, rest: str) -> HttpResponseBase:
    """One request of Git's smart protocol, version 0 to 2. Authenticated each time: there is no session."""
    call = _call(request, rest)
    if isinstance(call, HttpResponse):
        return call
    try:
        shown = presented(request.META.get("HTTP_AUTHORIZATION", ""))
        repository = find_repository(owner, name)
        who = caller(shown, repository)
    except WrongCredential:
        return _refused(Answer.WHO_ARE_YOU, "the credential is not valid")
    verdict = decide(who, repository, SERVICES[call.service])
    if verdict is not Answer.YES or repository is None:
        return _refused(verdict)
    response, leave = None, _nothing
    try:
        leave = _enter(request, who)
        response = _answer(request, repository, call, shown, who, leave)
        return _uncached(response)
    except Crowded:
        return _crowded()
    except BodyTooLarge:
        return _text(413, "the body is larger than it may be")
    except BodyTooSlow:
        return _text(408, "the body took longer than it may")
    except BodyBroken:
        return _text(400, "the body is not what it should be")
    except BadRefList as error:
        return _text(400, str(error))
    except EncodingUnknown:
        return _text(415, "the body may be packed with gzip only")
    finally:
        if response is None or not response.streaming:
            leave()


def _enter(request: HttpRequest, who: Caller) -> Callable[[], None]:
    """A place for the request; returns how to leave it. Raises Crowded: those without a credential have few."""
    if who.kind is not Kind.ANONYMOUS:
        return _nothing
    address = client_address(request)
    with suppress(ValueError):
        address = counted(address)
    return ANONYMOUS.enter(address, forge_settings().anonymous_requests)


def _nothing() -> None:
    """What there is to leave for those who are not counted."""


def _crowded() -> HttpResponse:
    response = _text(503, "too many requests without a credential: come back in a while, or with one")
    response["Retry-After"] = str(CROWDED_SECONDS)
    return response


def _call(request: HttpRequest, rest: str) -> Call | HttpResponse:
    """What is asked, or the refusal of what is none of the three addresses."""
    protocol = request.META.get("HTTP_GIT_PROTOCOL", "")
    if rest == "info/refs":
        if request.method != "GET":
            return _text(404, "not found")
        service = request.GET.get("service", "")
        if service not in SERVICES:
            return _text(
                400, "only the smart protocol is spoken: service is git-upload-pack or git-receive-pack"
            )
        return Call(service, is_advertisement=True, protocol=protocol)
    if request.method != "POST":
        return _text(404, "not found")
    wanted = f"application/x-{rest}-request"
    if request.META.get("CONTENT_TYPE", "") != wanted:
        return _text(415, f"send {wanted}")
    return Call(rest, is_advertisement=False, content_type=wanted, protocol=protocol)


def _answer(
    request: HttpRequest,
    repository: Repository,
    call: Call,
    shown: Presented,
    who: Caller,
    leave: Callable[[], None],
) -> HttpResponseBase:
    body = RequestBody(request.META, forge_settings().push_bytes)
    if call.is_advertisement or call.service == UPLOAD:
        return fetching.answer(repository, call, body, leave)
    try:
        return pushing.answer(repository, call, body, shown, who)
    except BodyTooSlow:
        body.stop()
        raise


def _refused(verdict: Answer, text: str = "") -> HttpResponse:
    response = _text(verdict.value, text or TEXTS[verdict])
    if verdict is Answer.WHO_ARE_YOU:
        response["WWW-Authenticate"] = 'Basic realm="OpenAgents Boxes"'
    return response


def _text(status: int, text: str) -> HttpResponse:
    return _uncached(HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8"))


def _uncached(response: R) -> R:
    response["Cache-Control"] = "no-cache, max-age=0, must-revalidate"
    response["Expires"] = "Fri, 01 Jan 1980 00:00:00 GMT"
    response["Pragma"] = "no-cache"
    return response
