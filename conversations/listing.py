"""Lists of what belongs to conversations, as fast for an owner of twenty rows as if there were no others."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request

from accounts.caller import user_of
from base.api.parameters import all_owners
from conversations.services import conversation_ids

T = TypeVar("T", bound=Model)


def by_conversation(request: Request, rows: QuerySet[T]) -> QuerySet[T]:
    """The same rows of the caller's, named by the ids of their conversations; as they are where the caller sees everybody's.

    A condition on the owner is behind two joins, where the planner cannot see that few rows are theirs: it then walks through
    everybody's, newest first. One query.
    """
    if all_owners(request):
        return rows
    return rows.filter(conversation_id__in=conversation_ids(user_of(request)))
