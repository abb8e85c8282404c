"""`recall_messages`: what was said in the conversation before the job began."""

from __future__ import annotations

import threading
from typing import Any

from django.contrib.postgres.search import SearchHeadline, SearchQuery, SearchRank, SearchVector
from django.db import transaction
from django.db.models.functions import Left

from conversations.models import Message
from work.tools.types import Invocation, Tool

LARGEST_TEXT = 200_000
"""Characters of one message that are searched; a text search vector has a largest size."""

WHOLE_CHARACTERS = 600
DEFAULT_LIMIT = 5
MOST_MATCHES = 20
_PLACES = threading.BoundedSemaphore(8)
"""So many search at once in a process: each needs a database connection while it does."""

_DICTIONARY = "simple"  # conversations are in any language


def recall_messages(call: Invocation) -> dict[str, Any]:
    """The messages that fit the query best, best first, each with what surrounds the words found."""
    query = SearchQuery(call.arguments["query"], config=_DICTIONARY, search_type="websearch")
    text = Left("content", LARGEST_TEXT)
    vector = SearchVector(text, config=_DICTIONARY)
    found = (
        Message.objects.filter(
            conversation_id=call.conversation_id,
            created_at__lte=call.job_started_at,
            status=Message.Status.COMPLETE,
        )
        .annotate(vector=vector)
        .filter(vector=query)
        .annotate(
            rank=SearchRank(vector, query),
            excerpt=SearchHeadline(
                text,
                query,
                config=_DICTIONARY,
                start_sel="",
                stop_sel="",
                max_fragments=3,
                max_words=60,
                min_words=20,
            ),
        )
        .order_by("-rank", "-created_at")
    )
    with _PLACES, transaction.atomic():
        rows = list(found[: call.arguments.get("limit", DEFAULT_LIMIT)])
    return {
        "matches": [
            {"role": row.role, "at": row.created_at.isoformat(timespec="seconds"), "text": _shown(row)}
            for row in rows
        ]
    }


def _shown(row: Any) -> str:
    """A short message whole, of a long one what surrounds the words found."""
    return str(row.content if len(row.content) <= WHOLE_CHARACTERS else row.excerpt)


RECALL_MESSAGES = Tool(
    name="recall_messages",
    version="1",
    description=(
        "Search what was said in this conversation before this work began. Words are found as they are written, in any "
        'case; "a phrase" in quotes, `or` and -word are understood. Best matches first.'
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 500,
                "description": "Words to look for.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_MATCHES,
                "description": "At most so many.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    execute=recall_messages,
    safe_to_repeat=True,
)
