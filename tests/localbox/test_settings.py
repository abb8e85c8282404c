"""Settings: what each may be, and the sentence for what it may not be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localbox.settings import SettingsError, load

KEY = "box_0123456789abcdef"


def test_nothing_given_is_the_documented_default() -> None:
    settings = load({}, {})

    assert (settings.host, settings.port, settings.sandbox) == ("127.0.0.1", 4600, "auto")
    assert (settings.max_active_boxes, settings.starts_per_minute) == (100, None)
    assert settings.prune_after_seconds == 7 * 86_400
    assert not settings.loopback_webhooks
    assert settings.key is None


def test_the_environment_is_read_and_a_flag_wins() -> None:
    environment = {"LOCALBOX_PORT": "1", "LOCALBOX_STATE_DIR": "/a", "LOCALBOX_BOX_PROCESSES": "7"}

    settings = load(environment, {"port": "2", "state_dir": None})

    assert (settings.port, settings.state_dir, settings.limits.processes) == (2, Path("/a"), 7)


def test_the_key_is_taken_from_the_variable_that_was_named_and_never_shown() -> None:
    settings = load({"OTHER": KEY, "LOCALBOX_KEY": "box_another_key_here"}, {}, key_env="OTHER")

    assert settings.key == KEY
    assert KEY not in repr(settings)


def test_an_empty_value_is_as_good_as_none() -> None:
    assert load({"LOCALBOX_PORT": "", "LOCALBOX_KEY": ""}, {}).port == 4600


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("PORT", "http"),
        ("PORT", "4 600"),
        ("PORT", "²"),
        ("SANDBOX", "docker"),
        ("MAX_ACTIVE_BOXES", "many"),
        ("STARTS_PER_MINUTE", "0"),
        ("PRUNE_AFTER_SECONDS", "7d"),
        ("LOOPBACK_WEBHOOKS", "maybe"),
        ("NETWORK", "2"),
        ("WEBHOOK_BACKOFF_SECONDS", "nan"),
        ("WEBHOOK_BACKOFF_SECONDS", "-1"),
        ("LOG_LEVEL", "loud"),
        ("BOX_MEMORY_BYTES", "4G"),
        ("BOX_PROCESSES", "0"),
        ("MAX_BODY_BYTES", "5"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load({f"LOCALBOX_{name}": value}, {})

    assert f"LOCALBOX_{name}" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "key", ["short", "with a blank in it", "mit-einem-ümlaut-darin", "with\ttabs-in-the-key"]
)
def test_a_key_that_is_easily_guessed_or_cannot_be_sent_is_refused(key: str) -> None:
    with pytest.raises(SettingsError, match="LOCALBOX_KEY") as refused:
        load({"LOCALBOX_KEY": key}, {})

    assert key not in str(refused.value)


def test_the_default_folder_is_one_that_boxes_can_reach() -> None:
    chosen = load({}, {}).state_dir

    expected = "/var/lib/localbox" if os.geteuid() == 0 else os.path.expanduser("~/.local/state/localbox")
    assert chosen == Path(expected)
