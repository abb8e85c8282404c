"""Staff pages of what django-q2 keeps: shown, and never edited, since the rows say what is due."""

from __future__ import annotations

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from base.admin import ReadOnlyAdmin

for model in (Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    list_display = ("name", "func", "minutes", "next_run")
    fields = ("name", "func", "schedule_type", "minutes", "next_run")


@admin.register(Success, Failure)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("name", "func", "started", "stopped")
    search_fields = ("id", "name", "func")
    fields = ("id", "name", "func", "started", "stopped", "success", "attempt_count")


@admin.register(OrmQ)
class QueuedTaskAdmin(ReadOnlyAdmin):
    list_display = ("id", "key", "name", "func", "lock")
    fields = ("key", "lock", "task_id", "name", "func")
    readonly_fields = ("task_id", "name", "func")
