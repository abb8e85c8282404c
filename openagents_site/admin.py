"""Staff pages of what django-q2 keeps, and of what staff did. django-q2's rows are never edited: the ledger says what is due."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success, Task
from unfold.decorators import display

from base.admin import ReadOnlyAdmin, seconds_between, span
from base.redaction import redact

LONGEST_ERROR = 4_000

for model in (Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    list_display = ("name", "func", "minutes", "next_run")
    ordering = ("name",)
    fields = ("name", "func", "schedule_type", "minutes", "next_run")


@admin.register(Success, Failure)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("name", "func", "started", "took")
    search_fields = ("^id",)
    search_help_text = "Id of the task"
    fields = ("id", "name", "func", "started", "stopped", "attempt_count", "error")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """A list needs nothing of what is pickled."""
        rows: QuerySet[Task] = super().get_queryset(request)
        return rows.defer("args", "kwargs", "result")

    @display(description="took")
    def took(self, task: Success | Failure) -> str | None:
        return span(seconds_between(task.started, task.stopped))

    @display(description="error")
    def error(self, task: Success | Failure) -> str:
        return "" if task.success else redact(str(task.result or ""))[:LONGEST_ERROR]


@admin.register(OrmQ)
class QueuedTaskAdmin(ReadOnlyAdmin):
    list_display = ("id", "key", "name", "func", "lock")
    ordering = ("-id",)
    fields = ("key", "lock", "task_id", "name", "func")


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """What staff did, and what became of it."""

    list_display = ("action_time", "user", "kind", "object_repr", "change_message")
    list_filter = ("action_flag",)
    list_select_related = ("user", "content_type")
    search_fields = ("object_id", "user__username")
    search_help_text = "Id of the row, or user name"
    fields = ("action_time", "user", "content_type", "object_id", "object_repr", "change_message")
    ordering = ("-id",)

    @display(description="what")
    def kind(self, entry: LogEntry) -> str:
        return str(entry.content_type.name) if entry.content_type else ""
