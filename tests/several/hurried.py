"""`python -m tests.several.hurried`: `manage.py run_worker` with leases of seconds, so that a test need not wait for a minute.

Nothing that is called here takes as long: a look at a command that prints nothing would.
"""

from __future__ import annotations

from django.core.management import execute_from_command_line

LEASE_SECONDS = 6


def main() -> None:
    import django

    django.setup()
    from openagents_site import worker
    from runs.driver import claim

    worker.LEASE_SECONDS = claim.LONGEST_CALL_SECONDS = LEASE_SECONDS
    execute_from_command_line(["manage.py", "run_worker"])


if __name__ == "__main__":
    main()
