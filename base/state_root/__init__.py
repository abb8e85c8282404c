"""Where an installation keeps its files: the database, the boxes, its secrets.

`resolve` says where, cheaply and the same in every process; `prepare` makes it ready; `private_secret` generates what
must be secret and stay the same. By default the folder is `.data` in the checkout; STATE_DIR names another.
"""

from __future__ import annotations

from .addresses import provider_url, record_provider_url, record_site_url, site_url
from .errors import StateRootError
from .location import resolve
from .prepare import StateRoot, prepare
from .private import private_secret
from .reach import reachable_folder

__all__ = [
    "StateRoot",
    "StateRootError",
    "prepare",
    "private_secret",
    "provider_url",
    "reachable_folder",
    "record_provider_url",
    "record_site_url",
    "resolve",
    "site_url",
]
