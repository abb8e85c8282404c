"""Staff pages of API tokens: made here and shown once, revoked, and never shown again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.models import ADDITION
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.decorators import display
from unfold.widgets import INPUT_CLASSES

from accounts.models import ApiToken, User
from accounts.scopes import Scope
from accounts.services import InvalidToken, create_token, revoke_token
from base.admin import Action, Outcome, ReadOnlyAdmin, already, done, link_column, relate
from base.admin.actions import write_log
from base.admin.paging import StaffChangeList

LONGEST_LIFE_DAYS = 3650


def revoke(token: ApiToken, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    return done("revoked") if revoke_token(token) else already("was revoked before")


REVOKE = Action(
    name="revoke",
    title="Revoke",
    warning="Whoever uses the token is refused from now on. It cannot be given back; a new one can be made.",
    permission="revoke_apitoken",
    perform=revoke,
    icon="key_off",
    applies=lambda token: token.revoked_at is None,
    dangerous=True,
)


class TokenForm(forms.Form):
    """Whose token it is and what it may do."""

    username = forms.CharField(label="User name", max_length=150)
    name = forms.CharField(label="What it is for", max_length=80, required=False)
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
    )
    days = forms.IntegerField(
        label="Days it is good for",
        min_value=1,
        max_value=LONGEST_LIFE_DAYS,
        required=False,
        help_text="Empty: until it is revoked.",
    )

    def __init__(self, maker: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.maker = maker
        self.fields["username"].initial = maker.username
        for name in ("username", "name", "days"):
            self.fields[name].widget.attrs["class"] = " ".join(INPUT_CLASSES)

    def clean_username(self) -> User:
        user = User.objects.filter(
            username=self.cleaned_data["username"], is_active=True, deleted_at=None
        ).first()
        if user is None:
            raise ValidationError("There is no such user, or they may not sign in.")
        if user.is_superuser and not self.maker.is_superuser:
            raise ValidationError("Only a superuser makes a token for a superuser.")
        return user


class TokenChangeList(StaffChangeList):
    """A token's primary key is the digest of its secret; its page goes by its id."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pk_attname = "id"


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = (
        "shown_name",
        "user_link",
        "shown_scopes",
        "created",
        "expiry",
        "last_used_at",
        "revoked_at",
    )
    list_select_related = ("user",)
    ordering = ("-created",)
    search_fields = ("id", "user__username", "^name")
    search_help_text = "Id, name or user name"
    fields = ("id", "name", "user", "shown_scopes", "created", "expiry", "last_used_at", "revoked_at")
    change_form_template = "staff/token_page.html"
    staff_actions = (REVOKE,)
    user_link = link_column("user")

    @display(description="name")
    def shown_name(self, token: ApiToken) -> str:
        return token.name or "token"

    @display(description="may")
    def shown_scopes(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    # its page and its tick box go by its id

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[StaffChangeList]:
        return TokenChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> ApiToken | None:
        try:
            found: ApiToken | None = ApiToken.objects.select_related("user").filter(id=object_id).first()
        except ValidationError:
            return None
        return found

    def action_checkbox(self, token: ApiToken) -> str:
        box: str = super().action_checkbox(_Ticked(token.id))
        return box

    def response_action(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        ticked = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        digests = [token.pk for token in (self.get_object(request, key) for key in ticked) if token]
        posted: Any = request.POST.copy()
        posted.setlist(helpers.ACTION_CHECKBOX_NAME, digests)
        request.POST = posted
        answer: HttpResponse | None = super().response_action(request, queryset)
        return answer

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        context["original"] = str(obj)  # of the row itself the page's head makes an address
        return super().render_change_form(request, context, *args, obj=obj, **kwargs)

    # made here

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("accounts.add_apitoken"))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A form, and then the token, which is in that one answer and nowhere afterwards."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self._add(request)

    def _add(self, request: HttpRequest) -> HttpResponse:
        maker = request.user
        assert isinstance(maker, User)
        form = TokenForm(maker, request.POST if request.method == "POST" else None)
        plaintext = self._made(request, form) if form.is_valid() else None
        context = {
            **self.admin_site.each_context(request),
            "title": "Create an API token",
            "form": form,
            "token": plaintext,
            "opts": self.opts,
            "back": reverse("admin:accounts_apitoken_changelist"),
        }
        return TemplateResponse(
            request, "staff/token.html", context, headers={"Cache-Control": "no-store, private"}
        )

    def _made(self, request: HttpRequest, form: TokenForm) -> str | None:
        wanted = form.cleaned_data
        life = None if wanted["days"] is None else timedelta(days=wanted["days"])
        try:
            token, plaintext = create_token(
                wanted["username"], name=wanted["name"], scopes=wanted["scopes"], expires_in=life
            )
        except InvalidToken as error:
            form.add_error(None, error.detail)
            return None
        write_log(request, ApiToken, token, f"Created, may {', '.join(token.scopes)}", flag=ADDITION)
        messages.success(request, f"{token} was created.")
        return plaintext


class _Ticked:
    """What a tick box stands for."""

    def __init__(self, key: Any) -> None:
        self.pk = key


relate(
    User,
    "API tokens",
    lambda user: ApiToken.objects.filter(user=user).select_related("user").order_by("-created"),
    lambda user: {"user__id__exact": user.pk},
)
