"""`python -m tests.faults.prepare OWNERS BOXES_EACH`: users with a token and boxes that are up, printed as JSON.

Run with an installation's environment.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import django

CREATES_AT_ONCE = 4


def main(number: int, boxes_each: int) -> None:
    django.setup()
    print(json.dumps(prepared(number, boxes_each)))


def prepared(number: int, boxes_each: int = 1) -> list[dict[str, object]]:
    """The users as plain objects: `token`, and `boxes` as pairs of our id and the provider's."""
    with ThreadPoolExecutor(CREATES_AT_ONCE) as pool:
        ids = list(pool.map(lambda _: _created(), range(number * boxes_each)))
    return [_owner(ids[index * boxes_each : (index + 1) * boxes_each]) for index in range(number)]


def _created() -> str:
    """A new box at the provider, once it is up."""
    from boxes.client import client

    created = client().create(str(uuid.uuid4()), ttl_seconds=3600)
    while not client().get(created.id, tries=10).is_up:  # a crowded machine may be late
        time.sleep(0.05)
    return created.id


def _owner(box_ids: list[str]) -> dict[str, object]:
    from accounts.models import User
    from accounts.scopes import Scope
    from accounts.services import create_token
    from boxes.models import Box
    from conversations.services import ensure_conversation

    name = f"owner-{uuid.uuid4().hex[:12]}"
    user = User.objects.create_user(username=name, slug=name)
    _, token = create_token(user, scopes=Scope.values)
    conversation = ensure_conversation(user)
    boxes = [
        Box.objects.create(
            conversation=conversation, box_id=box_id, label=box_id, state="ready", setup_status="done"
        )
        for box_id in box_ids
    ]
    return {"token": token, "boxes": [(str(box.pk), box.box_id) for box in boxes]}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
