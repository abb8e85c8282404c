"""How much is asked for at once, and how often."""

from __future__ import annotations

from typing import Any

from runs.driver.calls import bearable
from runs.policy import LARGEST_PIECE_BYTES, PIECE_BYTES, SMALLEST_PIECE_BYTES, piece_bytes, policy_in_force


def test_the_interval_is_the_setting(settings: Any) -> None:
    settings.BOX_API = settings.BOX_API | {"run_poll_interval_ms": 250}

    assert policy_in_force(waits=False).interval == 0.25
    assert policy_in_force(waits=False).wait == 0
    assert 0 < policy_in_force(waits=True).wait < 60


def test_the_first_look_comes_after_the_starts_of_those_that_were_admitted_together() -> None:
    assert policy_in_force(waits=True, starts=1).first_look == 0
    assert 0 < policy_in_force(waits=True, starts=10).first_look < 1
    assert policy_in_force(waits=True, starts=500).first_look == 1


def test_a_run_far_behind_its_log_is_read_in_larger_pieces() -> None:
    assert piece_bytes(0, 0) == PIECE_BYTES
    assert piece_bytes(100 << 20, 0) == LARGEST_PIECE_BYTES
    assert LARGEST_PIECE_BYTES * 4 / 3 < 1 << 20


def test_after_answers_that_were_cut_the_pieces_get_smaller_down_to_a_bound() -> None:
    sizes = [piece_bytes(0, failures) for failures in range(40)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] == PIECE_BYTES // 2
    assert sizes[-1] == SMALLEST_PIECE_BYTES


def test_of_binary_noise_little_is_taken_at_once() -> None:
    noise, text = b"\xff\0" * 100_000, "zażółć gęślą jaźń ".encode() * 20_000

    assert noise.startswith(bearable(noise))
    assert 0 < len(bearable(noise)) < len(noise)
    assert bearable(text[:-1]) == text[:-1]
    assert bearable(noise[:100]) == noise[:100]


def test_of_text_full_of_secrets_little_is_taken_at_once() -> None:
    full, few = b"Bearer x\n" * 50_000, b"password: hunter2, and a lot of other words around it\n" * 4_000

    assert 0 < len(bearable(full)) < len(full)
    assert full.startswith(bearable(full))
    assert bearable(few) == few
