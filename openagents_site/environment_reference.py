"""The reference of every environment variable, made from the declarations: `.env.example`."""

from __future__ import annotations

from typing import Any

from base.conf import Declaration, declarations
from base.retention import RetentionSettings
from boxes.conf import BoxApi
from conversations.conf import ConversationSettings
from forge.conf import ForgeSettings
from openagents_site.conf import Site
from openagents_site.sign_in.conf import SignInSettings
from openagents_site.webhooks.conf import WebhookSettings
from work.conf import WorkSettings
from work.machines_conf import MachineSettings

FAMILIES: tuple[tuple[str, type], ...] = (
    ("The site", Site),
    ("Signing in", SignInSettings),
    ("Boxes, runs and the provider", BoxApi),
    ("Agent jobs", WorkSettings),
    ("Conversations", ConversationSettings),
    ("Paired machines", MachineSettings),
    ("Repositories", ForgeSettings),
    ("Webhooks", WebhookSettings),
    ("What is kept, and for how long", RetentionSettings),
)
HEADER = """\
# Every setting of OpenAgents Boxes. Copy to `.env` beside it, or set in the environment, which wins.
# A commented line shows the default. Made by `manage.py print_settings`; a test keeps it true.

# postgres://user:password@host:5432/name, or postgres://user@%2Ffolder%2Fof%2Fsocket/name.
# Empty: the embedded PostgreSQL that `bin/up` starts.
#DATABASE_URL=

# The same for `bin/test`, which makes databases of its own there. Empty: a PostgreSQL of its own, which `bin/test` starts.
#TEST_DATABASE_URL=

# Where the embedded installation keeps database, boxes and secrets. Default: .data in the checkout.
#STATE_DIR=

# Ports of `bin/up`. Unset: 8000 and 4600, or the next free ones. Set: those, or an error.
#WEB_PORT=
#LOCALBOX_PORT=
"""


def reference() -> str:
    """The text of `.env.example`."""
    return HEADER + "".join(_family(title, settings_class) for title, settings_class in FAMILIES)


def _family(title: str, settings_class: type) -> str:
    defaults = settings_class()
    lines = [f"\n# --- {title} ---\n"]
    for name, declaration in declarations(settings_class).items():
        lines.append(f"\n# {declaration.meaning}{_bounds(declaration)}\n")
        lines.append(f"#{declaration.variable}={_text(getattr(defaults, name))}\n")
    return "".join(lines)


def _bounds(declaration: Declaration) -> str:
    parts = []
    if declaration.choices:
        parts.append(f"One of {', '.join(declaration.choices)}.")
    if declaration.maximum is not None:
        parts.append(f"{declaration.minimum or 0} to {declaration.maximum}.")
    elif declaration.minimum:
        parts.append(f"At least {declaration.minimum}.")
    return "".join(f" {part}" for part in parts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
