"""The tools of this installation, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping

from jsonschema import Draft202012Validator

from base import hooks
from work import digests
from work.deep_work.decide import RECURSIVE_TOOLS
from work.model_client import Offer
from work.tools.types import Tool

LONGEST_NAME = 64


class Registry(MutableMapping[str, Tool]):
    """Tools by name. What the apps registered with `hooks.tools` is in it from the first look on."""

    def __init__(self, tools: Collection[Tool] = (), *, collects: bool = False) -> None:
        self._tools: dict[str, Tool] = {}
        self._is_collected = not collects
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> Tool:
        """Add a tool. Raises ValueError for a name that is taken or may not be used, and for a schema that is none."""
        if tool.name in self._tools:
            raise ValueError(f"there is a tool {tool.name!r} already")
        self._check(tool)
        self._tools[tool.name] = tool
        return tool

    def __getitem__(self, name: str) -> Tool:
        self._collect()
        return self._tools[name]

    def __setitem__(self, name: str, tool: Tool) -> None:
        self._collect()
        if tool.name != name:
            raise ValueError(f"the tool's name is {tool.name!r}, not {name!r}")
        self._check(tool)
        self._tools[name] = tool

    def __delitem__(self, name: str) -> None:
        self._collect()
        del self._tools[name]

    def __iter__(self) -> Iterator[str]:
        self._collect()
        return iter(sorted(self._tools))

    def __len__(self) -> int:
        self._collect()
        return len(self._tools)

    def offers(self, authority: Collection[str] | None) -> tuple[Offer, ...]:
        """What a job with this authority may call, by name; None is all authority."""
        return tuple(
            Offer(tool.name, tool.description, tool.parameters)
            for tool in self.values()
            if tool.authority is None or authority is None or tool.authority in authority
        )

    def digest(self) -> str:
        """The digest of all tools as models see them."""
        return digests.digest([tool.facts for tool in self.values()])

    def repeatable(self) -> list[str]:
        """The names of the tools whose calls may simply be carried out again."""
        return [tool.name for tool in self.values() if tool.safe_to_repeat]

    def _check(self, tool: Tool) -> None:
        if tool.name in RECURSIVE_TOOLS:
            raise ValueError(f"{tool.name!r}: a job never starts another job")
        if (
            not 1 <= len(tool.name) <= LONGEST_NAME
            or not tool.name.replace("_", "").replace("-", "").isalnum()
        ):
            raise ValueError(
                f"{tool.name!r} is no name of a tool: letters, digits, _ and -, at most {LONGEST_NAME}"
            )
        Draft202012Validator.check_schema(dict(tool.parameters))

    def _collect(self) -> None:
        if self._is_collected:
            return
        self._is_collected = True
        for answer in hooks.tools():
            for tool in [answer] if isinstance(answer, Tool) else answer:
                self.add(tool)


REGISTRY = Registry(collects=True)
