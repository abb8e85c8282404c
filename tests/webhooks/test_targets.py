"""Where deliveries may go, whatever an address, a name or a receiver does."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from base import http
from openagents_site.webhooks import posting
from openagents_site.webhooks.errors import InvalidTarget
from openagents_site.webhooks.targets import checked_url, is_public
from tests.certificates import certificate_in
from tests.webhooks.receiver import Receiver, Reply

PRIVATE = [
    "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0",
    "fc00::1", "fd12:3456::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:db8::1",
    "100::1", "5f00::1", "fec0::1", "", "nonsense", "1.2.3",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.215.14", "100.63.255.255", "172.32.0.1", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8",
          "64:ff9b::808:808", "2002:808:808::1"]  # fmt: skip


@pytest.fixture
def careful(settings: Any) -> None:
    """The product's defaults."""
    settings.WEBHOOKS = {}


@pytest.fixture
def only_addresses(settings: Any) -> None:
    """http is allowed, private addresses are not."""
    settings.WEBHOOKS = {"allow_http": True}


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """The resolver gives these addresses for every name, one list after the other. What was asked is noted."""
    left, asked, real = list(answers), [], socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(host, str) and host.endswith(".test"):
            asked.append(host)
            found = left.pop(0) if len(left) > 1 else left[0]
            return [entry for address in found for entry in real(address, port, *args, **kwargs)]
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_known_in_every_disguise(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("url", [
    "http://example.com/", "ftp://example.com/", "//example.com/", "example.com", "https://", "https:///x", "",
    "https://user:secret@example.com/", "https://user@example.com/", "https://example.com/#part",
    "https://example.com/\r\nHost: evil", "https://example.com/\nx", "https://example.com/a b", "https://exämple.com/",
    "https://example.com\\@127.0.0.1/", "https://example.com:0/", "https://example.com:99999/", "https://[::1/",
    "https://127.0.0.1/", "https://[::1]/", "https://localhost/", "https://LOCALHOST./", "https://a.localhost/",
    "https://10.0.0.1:8443/", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest/meta-data/",
    "https://example.com/\x00", "https://example.com/{x}", "javascript:alert(1)", "file:///etc/passwd",
    "https://example.com/" + "x" * 2000, "https://a..example.com/", "https://.example.com/", "https://./",
    "https://" + "a" * 64 + ".example.com/", "https://" + "a." * 130 + "com/",
])  # fmt: skip
@pytest.mark.usefixtures("careful")
def test_what_is_no_address_for_a_webhook_is_refused(url: str) -> None:
    with pytest.raises(InvalidTarget):
        checked_url(url)


@pytest.mark.parametrize("url", [
    "https://example.com/", "https://example.com:8443/a/b?token=x%20y", "https://xn--exmple-cua.com/hook", "https://8.8.8.8/x",
    "https://[2606:2800:21f:cb07::1]/", "https://example.com./x",
])  # fmt: skip
@pytest.mark.usefixtures("careful")
def test_public_https_addresses_are_taken_as_they_are(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.usefixtures("only_addresses")
@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f000001", "017700000001", "0", "[::ffff:127.0.0.1]", "inside.test"]
)
def test_a_name_for_a_private_address_is_refused_when_it_is_used(
    host: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ["127.0.0.1"])

    answer = posting.post(f"http://{host}:{receiver.port}/hook", "{}", {})

    assert answer.error in {"address_refused", "url_refused", "name_not_found"}
    assert not receiver.received


@pytest.mark.usefixtures("only_addresses")
def test_a_name_that_changes_its_address_is_looked_up_once(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "permitted", lambda address: address == "127.0.0.1")
    asked = resolving(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])

    answer = posting.post(f"http://rebound.test:{receiver.port}/hook", "{}", {})

    assert answer.status == 200
    assert asked == ["rebound.test"]
    assert receiver.received[0].headers["host"] == f"rebound.test:{receiver.port}"


@pytest.mark.usefixtures("only_addresses")
def test_of_several_addresses_only_permitted_ones_are_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "permitted", lambda address: address == "127.0.0.1")
    resolving(monkeypatch, ["127.0.0.2", "127.0.0.1"])

    assert posting.post(f"http://both.test:{receiver.port}/hook", "{}", {}).status == 200


@pytest.mark.usefixtures("only_addresses")
def test_an_open_connection_to_a_private_address_is_not_used(receiver: Receiver) -> None:
    assert (
        http.call("POST", receiver.url, deadline_seconds=5, body=b"").status == 200
    )  # the product's own call

    answer = posting.post(receiver.url, "{}", {})

    assert answer.error == "url_refused"
    assert len(receiver.received) == 1


def test_an_address_that_is_not_allowed_any_more_is_not_used(receiver: Receiver, settings: Any) -> None:
    settings.WEBHOOKS = {}

    assert posting.post(receiver.url, "{}", {}).error == "url_refused"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with Receiver() as elsewhere:
        receiver.answers(Reply(307, {"Location": elsewhere.url}))

        assert posting.post(receiver.url, "{}", {}).status == 307
        assert not elsewhere.received


def test_of_a_huge_answer_next_to_nothing_is_read(receiver: Receiver) -> None:
    receiver.answers(Reply(200, size=1 << 30))

    assert posting.post(receiver.url, "{}", {}).status == 200
    assert receiver.sent_bytes < 64 << 20


def test_a_packed_answer_is_not_unpacked(receiver: Receiver) -> None:
    receiver.answers(Reply(200, {"Content-Encoding": "gzip"}, size=4096))

    assert posting.post(receiver.url, "{}", {}).error in {None, "connection_failed"}


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(drip=True)], ids=["hangs", "drips"])
def test_a_receiver_that_does_not_answer_is_left(
    reply: Reply, receiver: Receiver, webhook_settings: Callable[..., None]
) -> None:
    webhook_settings(timeout_ms=300)
    receiver.answers(reply)

    assert posting.post(receiver.url, "{}", {}).error == "timeout"


def test_nobody_there(webhook_settings: Callable[..., None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert posting.post(f"http://127.0.0.1:{port}/", "{}", {}).error == "connection_failed"


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    assert posting.post("http://nowhere.test/", "{}", {}).error == "name_not_found"


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with Receiver(tls=certificate_in(tmp_path).for_a_server()) as receiver:
        assert posting.post(receiver.url, "{}", {}).error == "tls_failed"
        assert not receiver.received


def test_a_certificate_of_a_known_authority_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certificate_in(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    monkeypatch.setattr(http, "_context", None)
    with Receiver(tls=certificate.for_a_server()) as receiver:
        assert posting.post(receiver.url, "{}", {}).status == 200


def test_no_proxy_and_no_netrc_of_the_surroundings_is_used(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert posting.post(receiver.url, "{}", {}).status == 200
    assert "authorization" not in receiver.received[0].headers
