"""A hook calls everything registered and never raises into its caller."""

from __future__ import annotations

from base.hooks import ALL, Hook


def test_it_calls_all_in_order_and_survives_the_one_that_fails():
    hook: Hook[[int]] = Hook("tests", "a hook of these tests")
    hook.register(lambda n: n + 1)
    hook.register(lambda n: 1 // 0)
    hook.register(lambda n: n + 2)

    assert hook(1) == [2, 3]


def test_registering_twice_is_registering_once():
    hook: Hook[[]] = Hook("tests", "a hook of these tests")

    def function() -> int:
        return 1

    hook.register(function)
    hook.register(function)

    assert hook() == [1]
    assert hook.registered() == [f"{__name__}.{function.__qualname__}"]


def test_every_hook_has_a_name_and_a_meaning():
    assert len({hook.name for hook in ALL}) == len(ALL)
    assert all(hook.meaning for hook in ALL)
