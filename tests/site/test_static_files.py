"""Scripts and styles as an installation collects them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders

from openagents_site.static_files import StaticFiles

IMPORTED = re.compile(r'from "\./([^"]+)";')


def test_a_module_imports_the_others_by_names_that_tell_what_they_hold(tmp_path: Path) -> None:
    source = Path(str(finders.find("site/fleet.js"))).parent
    shutil.copytree(source, tmp_path / "site")
    storage = StaticFiles(location=tmp_path, base_url=settings.STATIC_URL)
    names = [str(path.relative_to(tmp_path)) for path in (tmp_path / "site").rglob("*.*")]

    list(storage.post_process({name: (storage, name) for name in names}))

    page = tmp_path / storage.stored_name("site/fleet.js")
    [imported] = IMPORTED.findall(page.read_text())
    assert re.fullmatch(r"fleet/page\.[0-9a-f]{12}\.js", imported)
    assert len(IMPORTED.findall((page.parent / imported).read_text())) == 4
