"""`python -m tests.contract.prepare`: an owner, a member of staff and a stranger with tokens, printed as JSON.

Run with an installation's environment.
"""

from __future__ import annotations

import json

import django


def main() -> None:
    django.setup()
    from accounts.models import User
    from accounts.scopes import Scope
    from accounts.services import create_token

    known = {}
    for name in ("owner", "staff", "stranger"):
        user = User.objects.create_user(
            username=name, slug=name, is_staff=name == "staff", is_superuser=name == "staff"
        )
        known[name] = create_token(user, name="main", scopes=Scope.values)[1]
        if name == "owner":
            known["reader"] = create_token(user, name="reader", scopes=["read"])[1]
    print(json.dumps(known))


if __name__ == "__main__":
    main()
