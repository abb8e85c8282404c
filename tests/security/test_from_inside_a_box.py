"""What a command in a box reaches of the machine that holds it: nothing but the doors that ask for a credential."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from base.embedded_postgres import Connection
from tests.localbox.client import ready_box, run, sdk
from tests.localbox.server import LocalboxServer
from tests.postgres import ensure_test_cluster, own_cluster


class Inside:
    """A box of the provider, and commands in it."""

    def __init__(self, provider: LocalboxServer) -> None:
        self.provider, self.api = provider, sdk(provider)
        self.box = ready_box(self.api)

    def output(self, command: str) -> str:
        """Everything that the command wrote, errors included."""
        told = run(self.api, self.box.id, f"exec 2>&1; {command}")
        return str(told.stdout)


@pytest.fixture(scope="module", params=["bwrap", "plain"])
def inside(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """One box of each kind that has walls: every kind but an ordinary user's plain one."""
    if request.param == "plain" and os.geteuid() != 0:
        pytest.skip("plain boxes of an ordinary user are not walled off from the machine")
    with LocalboxServer(sandbox=request.param) as provider:
        yield Inside(provider)


@pytest.fixture
def cluster() -> Connection:
    return ensure_test_cluster()


def test_the_database_has_no_door_to_a_box(inside: Inside, cluster: Connection) -> None:
    socket = f"{cluster.host}/.s.PGSQL.{cluster.port}"

    told = inside.output(
        f"ls {cluster.host} && echo seen; "
        f'perl -MSocket -e \'socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, sockaddr_un("{socket}")) ? "in" : "out"\''
    )

    assert "seen" not in told
    assert told.endswith("out")


def test_the_databases_files_are_out_of_reach(inside: Inside) -> None:
    told = inside.output(f"find {own_cluster().layout.data} -type f | head -1; echo looked")

    assert told.splitlines()[-1] == "looked"
    assert "PG_VERSION" not in told
    assert not any(line.startswith("/") for line in told.splitlines())


def test_the_provider_answers_a_box_only_to_say_that_it_needs_the_key(inside: Inside) -> None:
    port = urlsplit(inside.provider.origin).port

    told = inside.output(
        f"exec 3<>/dev/tcp/127.0.0.1/{port} || exit; "
        'printf "GET /api/box/v1/boxes HTTP/1.0\\r\\n\\r\\n" >&3; head -1 <&3'
    )

    assert "401" in told or "refused" in told or "unreachable" in told, told


def test_the_key_is_in_nothing_that_a_box_can_read(inside: Inside) -> None:
    told = inside.output(
        f"env; cat /proc/*/environ /proc/*/cmdline; grep -rsF {inside.provider.key[:20]} /tmp /home /etc /run /var/tmp; "
        f"cat {inside.provider.state_dir}/private/*; cat {inside.provider.state_dir}/*"
    )

    assert inside.provider.key not in told


def test_a_box_cannot_signal_or_trace_the_provider(inside: Inside) -> None:
    assert inside.provider.process is not None
    pid = inside.provider.process.pid

    told = inside.output(f"kill -STOP {pid} && echo stopped; cat /proc/{pid}/maps && echo read; echo tried")

    assert told.splitlines()[-1] == "tried"
    assert not {"stopped", "read"} & set(told.splitlines())
