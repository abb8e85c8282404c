"""What the rules of accessibility say of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openagents_site.launcher.peers import npm_folder

if TYPE_CHECKING:
    from playwright.sync_api import Page

Wrong = dict[str, list[str]]


class Inspector:
    """Looks at a page as axe-core does: by every rule in light, by those about colours again in dark."""

    def __init__(self) -> None:
        self.wrong: Wrong = {}
        self.rules = (npm_folder("axe") / "node_modules" / "axe-core" / "axe.min.js").read_text()

    def look_at(self, page: Page, name: str, inside: str = "html") -> None:
        """In light, and then in dark."""
        self.look_in_light(page, name, inside)
        page.emulate_media(color_scheme="dark")
        self.look_in_dark(page, name, inside)

    def look_in_light(self, page: Page, name: str, inside: str) -> None:
        page.evaluate(self.rules)
        self._note(page, f"{name}, light", inside, {})

    def look_in_dark(self, page: Page, name: str, inside: str) -> None:
        """A page that is in dark already."""
        page.evaluate(self.rules)
        self._note(page, f"{name}, dark", inside, {"runOnly": ["color-contrast"]})

    def _note(self, page: Page, name: str, inside: str, options: dict[str, Any]) -> None:
        found = page.evaluate(
            "asked => axe.run(...asked).then(result => result.violations)", [inside, options]
        )
        for rule in found:
            self.wrong[f"{name}: {rule['id']}"] = [node["html"][:200] for node in rule["nodes"]]
