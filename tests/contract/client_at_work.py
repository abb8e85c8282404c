"""What a user of the generated client writes: a box, a run on it, its output, the box stopped."""

SCRIPT = """
import sys, uuid
from boxes_client import AuthenticatedClient
from boxes_client.api.boxes import boxes_create, boxes_stop_create
from boxes_client.api.me import me_retrieve
from boxes_client.api.runs import runs_create, runs_output_retrieve, runs_retrieve
from boxes_client.models import CreateBoxRequest, CreateRunRequest

url, token = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True, timeout=60) as client:
    me = me_retrieve.sync(client=client)
    box = boxes_create.sync(client=client, body=CreateBoxRequest(label="by-client", wait=25))
    wanted = CreateRunRequest(box=str(box.id), command="echo hello from a client")
    run = runs_create.sync(client=client, body=wanted, idempotency_key=str(uuid.uuid4()))
    for _ in range(20):
        run = runs_retrieve.sync(run.id, client=client, wait=5)
        if run.is_terminal:
            break
    output = runs_output_retrieve.sync(run.id, client=client)
    stopped = boxes_stop_create.sync(str(box.id), client=client)
    assert stopped.stopped_at is not None, stopped
    print(me.user.username, run.state.value, output.output.strip())
"""
