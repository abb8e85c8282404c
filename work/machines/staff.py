"""Staff pages of machines and pairings. Digests of tokens and raw probes are never shown. Revoking needs a permission; giving
work to a machine is for its owner alone, since it runs as the owner on the owner's own computer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.enums import ActionVariant
from unfold.widgets import INPUT_CLASSES, SELECT_CLASSES

from accounts.models import User
from base.admin import Action, Outcome, ReadOnlyAdmin, already, done, link_column, relate, state_column
from base.errors import CodedError
from work import limits
from work.delegations import start_delegation
from work.machines.presence import agents_of
from work.machines.revoking import revoke_machine
from work.models import Machine, MachinePairing
from work.states import MachineStatus

ONE_HOUR = limits.LONGEST_DELEGATION_MS // 1000


class DelegateForm(forms.Form):
    """What is to be done, and where."""

    agent_id = forms.ChoiceField(label="Agent")
    cwd = forms.CharField(label="Folder", max_length=limits.CWD_BYTES, help_text="Inside one of the roots.")
    prompt = forms.CharField(widget=forms.Textarea(attrs={"rows": 10, "cols": 80}), strip=False)
    seconds = forms.IntegerField(
        label="Seconds it may take", min_value=1, max_value=ONE_HOUR, initial=ONE_HOUR
    )

    def __init__(self, machine: Machine, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = self.fields["agent_id"]
        assert isinstance(agents, forms.ChoiceField)
        agents.choices = [(agent["id"], agent["name"]) for agent in agents_of(machine)]
        self.fields["cwd"].initial = machine.roots[0] if machine.roots else ""
        for shown in self.fields.values():
            shown.widget.attrs["class"] = " ".join(
                SELECT_CLASSES if hasattr(shown, "choices") else INPUT_CLASSES
            )


def revoke(machine: Machine, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    return done("revoked") if revoke_machine(machine) else already("was revoked before")


REVOKE = Action(
    name="revoke",
    title="Revoke",
    warning="Its token is worth nothing from now on, and what it was asked to do is cancelled. To use it again its owner "
    "pairs it anew.",
    permission="revoke_machine",
    perform=revoke,
    icon="link_off",
    applies=lambda machine: machine.status == MachineStatus.ACTIVE,
    dangerous=True,
)


@admin.register(Machine)
class MachineAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "tier", "platform", "shown_status", "last_seen_at", "token_expires_at")
    list_filter = ("status", "tier")
    list_select_related = ("user",)
    search_fields = ("id", "^name", "user__username")
    search_help_text = "Id, name or user name"
    exclude = ("token_digest", "last_probe")
    staff_actions = (REVOKE,)
    shown_status = state_column("status", {"active": "success"})
    owner = link_column("user", "owner")

    def offered(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """The owner is offered to give it work."""
        buttons = super().offered(request, row)
        if row.user_id == request.user.pk and row.status == MachineStatus.ACTIVE:
            address = reverse("admin:work_machine_delegate", args=[row.pk])
            buttons.insert(0, {"title": "Delegate", "icon": "forward_to_inbox", "variant": ActionVariant.PRIMARY,
                               "attrs": {}, "dialog": None, "path": address})  # fmt: skip
        return buttons

    def get_urls(self) -> list[URLPattern]:
        delegate = self.admin_site.admin_view(self.delegate)
        return [
            path("<uuid:machine_id>/delegate/", delegate, name="work_machine_delegate"),
            *super().get_urls(),
        ]

    def delegate(self, request: HttpRequest, machine_id: UUID) -> HttpResponse:
        """A form that gives work to an agent on the caller's own machine."""
        machine = Machine.objects.filter(pk=machine_id).first()
        if machine is None:
            raise Http404
        if machine.user_id != request.user.pk:
            raise PermissionDenied
        form = DelegateForm(machine, request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            job_id = self._started(request, machine, form)
            if job_id is not None:
                return HttpResponseRedirect(reverse("admin:work_job_change", args=[job_id]))
        values = {**self.admin_site.each_context(request), "form": form, "machine": machine, "title": "Delegate", "opts": Machine._meta}  # fmt: skip
        return TemplateResponse(request, "work/delegate.html", values)

    def _started(self, request: HttpRequest, machine: Machine, form: DelegateForm) -> UUID | None:
        """The new job; None where it was refused, which the form then says."""
        wanted = form.cleaned_data
        try:
            job = start_delegation(
                machine.user,
                machine_id=machine.pk,
                agent_id=wanted["agent_id"],
                prompt=wanted["prompt"].replace("\r\n", "\n"),
                cwd=wanted["cwd"],
                timeout_ms=wanted["seconds"] * 1000,
            )
        except CodedError as error:
            form.add_error(None, f"{error.detail} ({error.code})")
            return None
        self.message_user(request, "Delegated.", messages.SUCCESS)
        return job.pk


@admin.register(MachinePairing)
class MachinePairingAdmin(ReadOnlyAdmin):
    list_display = ("name", "tier", "shown_status", "machine_link", "created_at", "expires_at")
    list_filter = ("status", "tier")
    list_select_related = ("machine",)
    search_fields = ("id", "machine")
    search_help_text = "Id of the pairing or of its machine"
    exclude = ("code_digest", "poll_secret_digest", "sealed_token")
    shown_status = state_column("status", {"pending": "warning", "approved": "info", "claimed": "success"})
    machine_link = link_column("machine")


relate(
    User,
    "Machines",
    lambda user: user.machines.order_by("-created_at"),
    lambda user: {"user__id__exact": user.pk},
)
relate(Machine, "Pairing", lambda machine: MachinePairing.objects.filter(machine=machine))
