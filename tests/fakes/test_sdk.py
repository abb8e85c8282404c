"""The fake provider's answers are so close to the real thing that the vendor's own SDK takes them."""

from __future__ import annotations

import pytest
from ascii_box_sdk import ApiClient, Configuration
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.exceptions import NotFoundException, UnauthorizedException
from ascii_box_sdk.models.command_request import CommandRequest
from ascii_box_sdk.models.create_box_request import CreateBoxRequest
from ascii_box_sdk.models.update_box_request import UpdateBoxRequest

from tests.fakes.provider import FakeProvider


def sdk(fake: FakeProvider, key: str | None = None) -> BoxApi:
    return BoxApi(ApiClient(Configuration(host=fake.url, access_token=key or fake.key)))


def test_the_sdk_takes_a_box_through_its_life(fake: FakeProvider) -> None:
    api = sdk(fake)
    made = api.create("key-1", create_box_request=CreateBoxRequest(ttl_seconds=900))
    fake.on_command(lambda _box, _command: (3, "out"))

    assert api.get(made.box.id).box.state == "ready"
    assert api.update(made.box.id, UpdateBoxRequest(name="marker")).box.name == "marker"
    assert [box.name for box in api.boxes().boxes] == ["marker"]
    finished = api.command(made.box.id, CommandRequest(command="true")).actual_instance
    assert (finished.exit_code, finished.stdout) == (3, "out")
    assert api.stop(made.box.id).status == "archiving"
    assert api.usage(made.box.id).running is False
    assert api.delete_box(made.box.id, made.box.id).operation.status == "completed"


def test_the_sdk_takes_a_detached_command(fake: FakeProvider) -> None:
    api, box = sdk(fake), fake.add_box()
    started = api.command(box.id, CommandRequest(command="sleep 9", detached=True)).actual_instance

    assert api.command_status(box.id, started.process_id).status == "running"


def test_the_sdk_reads_errors_limits_and_the_account(fake: FakeProvider) -> None:
    assert sdk(fake).limits().max_active_boxes > 0
    assert sdk(fake).me().user.login == "fake"
    with pytest.raises(NotFoundException) as missing:
        sdk(fake).get("bx_22222222")
    with pytest.raises(UnauthorizedException):
        sdk(fake, key="wrong").boxes()

    assert missing.value.data.code == "not_found"
