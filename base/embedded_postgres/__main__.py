"""The supervisor of a detached server; started by `Cluster.start_detached`, with its request as the only argument."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .binaries import Binaries
from .cluster import Cluster
from .detached import become_supervisor

if __name__ == "__main__":
    folder, max_connections, settings, programs, seconds = json.loads(sys.argv[1])
    cluster = Cluster(
        Path(folder), max_connections=max_connections, settings=settings, binaries=Binaries(Path(programs))
    )
    become_supervisor(cluster, seconds)
