"""`python -m connector`."""

from __future__ import annotations

import sys

try:
    from connector.cli import main
except ModuleNotFoundError as missing:
    sys.exit(
        f"connector: {missing.name} is not installed: pip install ./connector installs all that it needs"
    )

if __name__ == "__main__":
    sys.exit(main())
