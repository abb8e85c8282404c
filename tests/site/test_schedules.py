"""Scheduled tasks are rows by name; each is safe to lose and safe to run twice."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from boxes import heartbeats
from boxes.models import ScheduleSlot
from openagents_site import schedules, tasks

pytestmark = pytest.mark.django_db


def test_it_makes_every_schedule_once_however_often_it_runs():
    first = schedules.install()
    again = schedules.install()

    assert first["made"] == len(schedules.SCHEDULES)
    assert again == {"made": 0, "changed": 0, "deleted": 0}
    assert Schedule.objects.count() == len(schedules.SCHEDULES)


def test_it_mends_what_was_changed_doubled_or_left_from_an_older_release():
    schedules.install()
    Schedule.objects.filter(name="heartbeat").update(minutes=7, func="nothing.at_all", args="(")
    Schedule.objects.create(name="heartbeat", func="x", schedule_type=Schedule.MINUTES, minutes=1)
    Schedule.objects.create(name="stranger", func="x", schedule_type=Schedule.DAILY)

    counts = schedules.install()

    assert counts["changed"] == 1
    row = Schedule.objects.get(name="heartbeat")
    assert (row.minutes, row.func, row.args) == (1, "openagents_site.tasks.heartbeat", None)
    assert not Schedule.objects.filter(name="stranger").exists()


def test_a_row_that_is_right_keeps_its_next_time():
    schedules.install()
    moment = timezone.now()
    Schedule.objects.filter(name="heartbeat").update(next_run=moment)

    schedules.install()

    assert Schedule.objects.get(name="heartbeat").next_run == moment


@pytest.mark.parametrize("wanted", schedules.SCHEDULES, ids=lambda wanted: wanted.name)
def test_every_task_can_be_imported_and_called_without_arguments_twice(wanted, box_api):
    box_api(api_key="")  # nobody outside is asked
    task = import_string(wanted.function)

    assert task() is None
    assert task() is None


def test_the_heartbeat_is_written_by_the_task_itself():
    assert heartbeats.age_seconds(tasks.SCHEDULER) is None

    tasks.heartbeat()

    assert heartbeats.age_seconds(tasks.SCHEDULER) < 60


def test_the_command_makes_schedules_and_slots_and_says_so(capsys):
    call_command("setup_schedules")

    assert f"{len(schedules.SCHEDULES)} schedules: {len(schedules.SCHEDULES)} made" in capsys.readouterr().out
    assert ScheduleSlot.objects.filter(name="reconcile").exists()
