"""A process that delivers what is due, once; for tests that kill it. `python -m tests.webhooks.killed`."""

from __future__ import annotations

import django


def main() -> None:
    from base import leases, notify, pump
    from base.pump import Holder
    from openagents_site.webhooks.driver import DeliveryDriver
    from openagents_site.webhooks.fan_out import fan_out

    link = notify.own_connection()
    fan_out()
    pump.run_once([DeliveryDriver()], Holder(owner=leases.new_worker(link)))


if __name__ == "__main__":
    django.setup()
    main()
