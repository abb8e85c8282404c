"""The examples are of this product: what they name is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from django.test import Client

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DASHBOARD = json.loads((EXAMPLES / "grafana" / "openagents-boxes.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
UNITS = sorted((EXAMPLES / "systemd").glob("*.service"))
METRIC = re.compile(r"\b(?:openagents|django)_[a-z_]+\b")
COMMANDS = {path.stem for path in (ROOT / "openagents_site" / "management" / "commands").glob("*.py")} | {
    "migrate",
    "collectstatic",
    "qcluster",
}


@pytest.mark.django_db
def test_every_metric_that_the_dashboard_and_the_reference_name_is_there(client: Client):
    page = client.get("/metrics").content.decode()
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    named = {name for expression in EXPRESSIONS for name in METRIC.findall(expression)}
    written = (ROOT / "docs" / "reference" / "operations.md").read_text()
    named |= set(re.findall(r"`(openagents_[a-z0-9_]+)`", written)) - {"openagents_site"}

    assert {name for name in named if not {name, base_of(name)} & shown} == set()


def base_of(name: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", name)


def test_every_panel_of_the_dashboard_asks_something_in_a_place_of_its_own():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]

    assert len(set(places)) == len(places)
    assert all(panel["targets"] for panel in DASHBOARD["panels"])


@pytest.mark.parametrize("path", [*UNITS, EXAMPLES / "compose.yaml"], ids=lambda path: path.name)
def test_every_command_that_is_named_exists(path: Path):
    named = set(re.findall(r"manage\.py ([a-z_]+)", path.read_text()))

    assert named <= COMMANDS


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_every_unit_runs_in_the_installation_as_its_account(path: Path):
    text = path.read_text()

    assert "User=openagents" in text
    assert "EnvironmentFile=/etc/openagents-boxes.env" in text
    assert "Environment=STATE_DIR=/var/lib/openagents-boxes" in text


def test_the_image_holds_every_part_of_the_product_and_no_other_program():
    copied = set(re.findall(r"^COPY (\w+) \1$", (EXAMPLES / "Containerfile").read_text(), re.MULTILINE))

    assert copied == {
        "base",
        "accounts",
        "conversations",
        "boxes",
        "runs",
        "work",
        "forge",
        "openagents_site",
    }


def test_the_compose_file_runs_several_workers_on_one_database():
    services = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())["services"]

    assert set(services) == {"database", "prepare", "web", "scheduler", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    urls = {services[name]["environment"]["DATABASE_URL"] for name in ("web", "scheduler", "worker")}
    assert len(urls) == 1
