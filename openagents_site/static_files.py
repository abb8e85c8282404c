"""How collected static files are named: by what they hold, so that a browser may keep them for good."""

from __future__ import annotations

from whitenoise.storage import (  # type: ignore[import-untyped]
    CompressedManifestStaticFilesStorage,
)


class StaticFiles(CompressedManifestStaticFilesStorage):
    """Names what a script imports as well: a page never gets modules of two releases."""

    support_js_module_import_aggregation = True
