"""Operations of migrations that cost less than those of the libraries, and do the same."""

from __future__ import annotations

import pgtrigger.migrations
from django.db.migrations.state import ProjectState


class AddTrigger(pgtrigger.migrations.AddTrigger):
    """Put a compiled trigger on a model's table.

    The library's own operation builds the model's class anew, and those of all models that refer to it, which were a
    third of the time of making a database; a trigger changes nothing of a class that a later operation could look at.
    """

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        options = state.models[app_label, self.model_name].options
        options["triggers"] = [*options.get("triggers", []), self.trigger]
