"""`.env.example` says what the settings say, and a bad environment is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openagents_site.environment_reference import reference

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCTION = {
    "DATABASE_URL": "postgres://app@localhost/nowhere",
    "SECRET_KEY": "kCIKPp4mQ9-long-enough-and-not-a-word-zXw71Ue0qVbN8rGt",
    "PUBLIC_BASE_URL": "https://boxes.example",
    "PATH": os.environ["PATH"],
}


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "check", *arguments]
    return subprocess.run(command, cwd=ROOT, env=PRODUCTION | environment, capture_output=True, text=True)


def test_the_example_file_is_what_print_settings_prints():
    assert (ROOT / ".env.example").read_text() == reference()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BOX_TTL_SECONDS", "an hour"),
        ("BOX_API_DIALECT", "bot"),
        ("RUN_POLL_INTERVAL_MS", "0"),
        ("DEBUG", "perhaps"),
        ("LOG_LEVEL", "LOUD"),
        ("PUBLIC_BASE_URL", "boxes.example"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "nonsense"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_without_a_trace_of_the_rest(variable, value):
    result = check(**{variable: value})

    assert result.returncode != 0
    assert variable in result.stderr.strip().splitlines()[-1]


def test_there_is_no_default_secret_beside_an_external_database():
    result = check(SECRET_KEY="")

    assert result.returncode != 0
    assert "SECRET_KEY must be set" in result.stderr


def test_production_settings_have_no_deployment_warning():
    result = check("--deploy", "--fail-level", "WARNING")

    assert result.returncode == 0, result.stderr


def test_debug_is_off_and_only_our_host_is_answered():
    program = "from django.conf import settings as s; print(s.DEBUG, s.ALLOWED_HOSTS, s.SESSION_COOKIE_SECURE, s.SECURE_HSTS_SECONDS > 0)"
    environment = PRODUCTION | {"DJANGO_SETTINGS_MODULE": "openagents_site.settings"}
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )

    assert result.stdout.strip() == "False ['boxes.example'] True True"


def test_a_command_names_the_port_that_the_running_installation_found(tmp_path: Path) -> None:
    (tmp_path / "site-url").write_text("http://127.0.0.1:8001\n")
    program = "from django.conf import settings as s; print(s.PUBLIC_BASE_URL)"
    environment = PRODUCTION | {
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "STATE_DIR": str(tmp_path),
        "PUBLIC_BASE_URL": "",
    }

    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )

    assert told.stdout.strip() == "http://127.0.0.1:8001", told.stderr


def test_former_secret_keys_are_named_by_the_environment():
    read = "from django.conf import settings; print(settings.SECRET_KEY_FALLBACKS)"
    former = {
        "SECRET_KEY_FALLBACKS": "before,long-before",
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
    }

    told = subprocess.run(
        [sys.executable, "-c", read], cwd=ROOT, env=PRODUCTION | former, capture_output=True, text=True
    )

    assert told.stdout.strip() == "['before', 'long-before']", told.stderr
