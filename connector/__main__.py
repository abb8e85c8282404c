"""`python -m connector`."""

from __future__ import annotations

import sys

from connector.cli import main

if __name__ == "__main__":
    sys.exit(main())
