"""`/pair/`: where the signed-in owner types the code of a computer, sees what asks, and approves it. Works without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.rates import RateLimited
from base.errors import CodedError
from base.pages import page
from work.errors import PairingConsumed, PairingExpired, PairingNotFound, TooManyMachines
from work.machines import selectors, throttling
from work.machines.errors import MachinesDisabled
from work.machines.pairing import approve_pairing, find_pairing
from work.machines.secrets import plain_code
from work.machines_conf import machine_settings
from work.models import Machine

LONGEST_CODE = 40
_SAID: Mapping[type[CodedError], tuple[int, str]] = {
    PairingNotFound: (404, "No computer shows this code. Look at it again: it has eight letters and digits."),
    PairingExpired: (410, "This code has expired. Let the computer ask again; it will show another one."),
    PairingConsumed: (
        409,
        "This code was used already. Let the computer ask again; it will show another one.",
    ),
    TooManyMachines: (409, "You have as many machines as you may have. Revoke one first."),
    MachinesDisabled: (403, "Computers cannot be paired on this installation."),
    RateLimited: (429, "Too many codes were tried. Wait a minute, then try again."),
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def pair(request: HttpRequest) -> HttpResponse:
    """First the code, then what shows it, then yes or no. Nothing is granted by a GET."""
    if request.method != "POST":
        return _asked(request)
    code = request.POST.get("code", "")[:LONGEST_CODE]
    try:
        return _answered(request, code)
    except tuple(_SAID) as error:
        status, said = next(_SAID[kind] for kind in _SAID if isinstance(error, kind))
        return _page(request, {"code": code, "error": said}, status)


def _asked(request: HttpRequest) -> HttpResponse:
    paired = request.GET.get("paired", "")
    machine = _own_machine(request, paired) if paired else None
    return _page(request, {"code": request.GET.get("code", "")[:LONGEST_CODE], "machine": machine})


def _answered(request: HttpRequest, code: str) -> HttpResponse:
    if not machine_settings().enabled:
        raise MachinesDisabled
    if not plain_code(code):
        return _page(request, {"code": "", "error": "Type the code that the computer shows."}, 422)
    user = request.user
    assert isinstance(user, User)
    throttling.count_code(user.pk)
    if request.POST.get("answer") != "approve":
        return _page(request, {"code": code, "pairing": find_pairing(code)})
    machine = approve_pairing(user, code)
    return HttpResponseRedirect(f"{reverse('pair')}?paired={machine.pk}")


def _own_machine(request: HttpRequest, text: str) -> Machine | None:
    assert isinstance(request.user, User)
    try:
        machine_id = UUID(text)
    except ValueError:
        return None
    return selectors.machines_of(request.user).filter(pk=machine_id).first()


def _page(request: HttpRequest, values: dict[str, Any], status: int = 200) -> HttpResponse:
    return page(request, "work/pair.html", {"here": "pair"} | values, status=status)
