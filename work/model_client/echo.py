"""The built-in model. It understands nothing and says so; with it a fresh machine has the whole path without a key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

from work.model_client.types import Done, Event, ModelRequest, Started, Text, UserText

NOTE = "(This is the built-in echo model: it repeats and does not think. Set WORK_MODEL and its key to have work done.)"


class EchoClient:
    """Answers with what it was told last."""

    def stream(self, request: ModelRequest) -> Iterator[Event]:
        """The text in pieces, as a real model would send it. Tokens are counted by words."""
        response_id = f"echo-{uuid4().hex}"
        yield Started(response_id)
        told = next((item.text for item in reversed(request.items) if isinstance(item, UserText)), "")
        answer = f"I hear you. You said: {told}\n\n{NOTE}"
        for piece in re.findall(r"\S+\s*", answer):
            yield Text(piece)
        asked, said = len(told.split()), len(answer.split())
        yield Done(response_id, {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said})
