"""What a document links to is there."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)")


def test_every_link_between_documents_leads_somewhere() -> None:
    pages = [CHECKOUT / "README.md", CHECKOUT / "connector/README.md", *(CHECKOUT / "docs").rglob("*.md")]
    links = [
        (page.relative_to(CHECKOUT), link)
        for page in pages
        if page.exists()
        for link in LINK.findall(page.read_text())
        if "://" not in link and not link.startswith(("/", "mailto:"))
    ]

    assert len(links) > 30
    assert [(page, link) for page, link in links if not (CHECKOUT / page.parent / link).exists()] == []
