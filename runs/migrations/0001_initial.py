import base.migrations
import base.sql
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.lookups
import pghistory.utils
import pgtrigger.compiler
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('boxes', '0002_worker_numbers'),
        ('conversations', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Run',
            fields=[
                ('lease_owner', models.IntegerField(blank=True, editable=False, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('requesting_principal', models.JSONField(help_text='type (user, agent or assignment) and id')),
                ('command', models.TextField()),
                ('idempotency_key', models.CharField(max_length=256)),
                ('state', models.CharField(choices=[('admitted', 'accepted'), ('dispatched', 'started on the box'), ('running', 'running'), ('completed', 'ended with exit status 0'), ('failed', 'ended with another exit status, or never started'), ('cancelled', 'cancelled'), ('timed_out', 'ran past its deadline'), ('lost', 'its end is not known')], default='admitted', max_length=10)),
                ('failure_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('exit_status', models.IntegerField(blank=True, null=True)),
                ('exit_signal', models.CharField(blank=True, help_text='name of the signal it died by', max_length=16, null=True)),
                ('timed_out', models.BooleanField(default=False)),
                ('kill_confirmed', models.BooleanField(blank=True, help_text='whether its processes are known to be gone; null where no kill was sent', null=True)),
                ('run_directory', models.CharField(max_length=500)),
                ('pid', models.IntegerField(blank=True, help_text='leader of its process group, as the box sees it', null=True)),
                ('output', models.TextField(blank=True, default='', help_text='redacted tail, at most 24,576 bytes')),
                ('output_base_offset', models.BigIntegerField(default=0, help_text='raw log offset where the tail begins')),
                ('last_output_offset', models.BigIntegerField(default=0, help_text='raw log offset up to which it can be read')),
                ('received_offset', models.BigIntegerField(default=0, help_text='raw log bytes received; what could still become a secret is held back from readers')),
                ('output_state', models.JSONField(blank=True, editable=False, null=True)),
                ('log_size', models.BigIntegerField(default=0, help_text='raw log bytes on the box when last seen')),
                ('dropped_bytes', models.BigIntegerField(default=0, help_text='raw log bytes that are not in the kept log')),
                ('admitted_at', models.DateTimeField()),
                ('deadline_at', models.DateTimeField()),
                ('dispatch_attempted_at', models.DateTimeField(blank=True, null=True)),
                ('dispatched_at', models.DateTimeField(blank=True, null=True)),
                ('probe_attempted_at', models.DateTimeField(blank=True, null=True)),
                ('probe_attempts', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('cancellation_requested_at', models.DateTimeField(blank=True, null=True)),
                ('cancellation_effective_at', models.DateTimeField(blank=True, null=True)),
                ('next_step_at', models.DateTimeField(blank=True, db_default=django.db.models.functions.datetime.Now(), help_text='when the worker looks at it next; null: never again', null=True)),
                ('calls_resume_at', models.DateTimeField(blank=True, help_text='the provider asked not to be called for it before', null=True)),
                ('step_failures', models.PositiveIntegerField(default=0, help_text='steps in a row without a usable answer')),
                ('dead_sightings', models.PositiveIntegerField(default=0, help_text='polls in a row: no process, no exit status')),
                ('kill_attempts', models.PositiveIntegerField(default=0)),
                ('quiet_polls', models.PositiveIntegerField(default=0, help_text='polls in a row without news')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='conversations.conversation')),
                ('conversation_box', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='boxes.box')),
            ],
            options={
                'db_table': 'box_runs',
                'ordering': ['-admitted_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('next_step_at__isnull', False)), fields=['next_step_at'], name='box_runs_due_index'), models.Index(condition=models.Q(('lease_owner__isnull', False)), fields=['lease_owner'], name='box_runs_leased_index'), models.Index(fields=['conversation_box', '-admitted_at'], name='box_runs_box_index'), models.Index(fields=['conversation', '-admitted_at', '-id'], name='box_runs_list_index'), models.Index(condition=models.Q(('kill_confirmed', False)), fields=['conversation_box'], name='box_runs_unkilled_index')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['admitted', 'dispatched', 'running'])), fields=('conversation_box',), name='box_runs_one_active_per_box_index', violation_error_code='unique', violation_error_message='has already been taken'), models.UniqueConstraint(fields=('conversation', 'idempotency_key'), name='box_runs_conversation_key_index'), models.CheckConstraint(condition=models.Q(('state__in', ['admitted', 'dispatched', 'running', 'completed', 'failed', 'cancelled', 'timed_out', 'lost'])), name='box_runs_state_check'), models.CheckConstraint(condition=models.Q(('output_base_offset__gte', 0), django.db.models.lookups.GreaterThanOrEqual(models.F('last_output_offset'), models.F('output_base_offset')), ('dropped_bytes__gte', 0)), name='box_runs_offsets_check'), models.CheckConstraint(condition=models.Q(django.db.models.lookups.GreaterThanOrEqual(base.sql.OctetLength('command'), 1), django.db.models.lookups.LessThanOrEqual(base.sql.OctetLength('command'), 8000)), name='box_runs_command_check'), models.CheckConstraint(condition=models.Q(django.db.models.lookups.GreaterThanOrEqual(base.sql.OctetLength('idempotency_key'), 1), django.db.models.lookups.LessThanOrEqual(base.sql.OctetLength('idempotency_key'), 256)), name='box_runs_idempotency_key_check')],
            },
        ),
        migrations.CreateModel(
            name='RunHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('state', models.CharField(choices=[('admitted', 'accepted'), ('dispatched', 'started on the box'), ('running', 'running'), ('completed', 'ended with exit status 0'), ('failed', 'ended with another exit status, or never started'), ('cancelled', 'cancelled'), ('timed_out', 'ran past its deadline'), ('lost', 'its end is not known')], default='admitted', max_length=10)),
                ('exit_status', models.IntegerField(blank=True, null=True)),
                ('exit_signal', models.CharField(blank=True, help_text='name of the signal it died by', max_length=16, null=True)),
                ('failure_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('kill_confirmed', models.BooleanField(blank=True, help_text='whether its processes are known to be gone; null where no kill was sent', null=True)),
                ('cancellation_requested_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='runs.run')),
            ],
            options={
                'db_table': 'box_runs_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RunLogChunk',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('raw_start', models.BigIntegerField()),
                ('raw_end', models.BigIntegerField()),
                ('text_bytes', models.PositiveIntegerField(help_text='length of the text before compression')),
                ('pieces', models.JSONField(help_text='mapping of raw ranges to text lengths inside the chunk')),
                ('data', models.BinaryField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='log_chunks', to='runs.run')),
            ],
            options={
                'db_table': 'box_run_log_chunks',
                'ordering': ['run_id', 'raw_start'],
                'constraints': [models.UniqueConstraint(fields=('run', 'raw_start'), name='box_run_log_chunks_start_index'), models.CheckConstraint(condition=models.Q(django.db.models.lookups.GreaterThan(models.F('raw_end'), models.F('raw_start')), models.Q(('raw_start__gte', 0))), name='box_run_log_chunks_range_check')],
            },
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."conversation_id" is distinct from old."conversation_id" or new."conversation_box_id" is distinct from old."conversation_box_id" or new."requesting_principal" is distinct from old."requesting_principal" or new."command" is distinct from old."command" or new."idempotency_key" is distinct from old."idempotency_key" or new."run_directory" is distinct from old."run_directory" or new."admitted_at" is distinct from old."admitted_at" then raise exception \'run identity is immutable\'; end if; return new;', hash='ccbe2a48fca4c819763668952a6c6a44451cac95', operation='UPDATE', pgid='pgtrigger_run_1_identity_1eefd', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_2_terminal', sql=pgtrigger.compiler.UpsertTriggerSql(func='if old."state" in (\'cancelled\', \'completed\', \'failed\', \'lost\', \'timed_out\') and (new."state" is distinct from old."state" or new."exit_status" is distinct from old."exit_status" or new."exit_signal" is distinct from old."exit_signal" or new."timed_out" is distinct from old."timed_out" or new."failure_reason" is distinct from old."failure_reason" or new."output" is distinct from old."output" or new."output_base_offset" is distinct from old."output_base_offset" or new."last_output_offset" is distinct from old."last_output_offset" or new."received_offset" is distinct from old."received_offset" or new."dropped_bytes" is distinct from old."dropped_bytes" or new."pid" is distinct from old."pid" or new."dispatch_attempted_at" is distinct from old."dispatch_attempted_at" or new."probe_attempted_at" is distinct from old."probe_attempted_at" or new."dispatched_at" is distinct from old."dispatched_at" or new."started_at" is distinct from old."started_at" or new."finished_at" is distinct from old."finished_at" or new."cancellation_requested_at" is distinct from old."cancellation_requested_at" or new."cancellation_effective_at" is distinct from old."cancellation_effective_at") then raise exception \'terminal run is immutable\'; end if; return new;', hash='df6f9dfeb3c5610af3046b58e5884523f2d321a7', operation='UPDATE', pgid='pgtrigger_run_2_terminal_2a014', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_3_moves', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."state" is distinct from old."state" and (old."state", new."state") not in ((\'admitted\', \'cancelled\'), (\'admitted\', \'completed\'), (\'admitted\', \'dispatched\'), (\'admitted\', \'failed\'), (\'admitted\', \'lost\'), (\'admitted\', \'running\'), (\'admitted\', \'timed_out\'), (\'dispatched\', \'cancelled\'), (\'dispatched\', \'completed\'), (\'dispatched\', \'failed\'), (\'dispatched\', \'lost\'), (\'dispatched\', \'running\'), (\'dispatched\', \'timed_out\'), (\'running\', \'cancelled\'), (\'running\', \'completed\'), (\'running\', \'failed\'), (\'running\', \'lost\'), (\'running\', \'timed_out\')) then raise exception \'invalid % run transition\', old."state"; end if; return new;', hash='625c1e138f5702674f1557cc91346bdff4d52348', operation='UPDATE', pgid='pgtrigger_run_3_moves_fc430', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_4_once', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."cancellation_requested_at" is not null and new."cancellation_requested_at" is distinct from old."cancellation_requested_at") or (old."dispatched_at" is not null and new."dispatched_at" is distinct from old."dispatched_at") or (old."started_at" is not null and new."started_at" is distinct from old."started_at") then raise exception \'run identity is immutable\'; end if; return new;', hash='6fd73df51ca64e13d807cf7b7bddc063f4fa385d', operation='UPDATE', pgid='pgtrigger_run_4_once_9b56c', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_5_kill', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."kill_confirmed" IS DISTINCT FROM (OLD."kill_confirmed") AND OLD."kill_confirmed")', func="raise exception 'a confirmed kill stays confirmed';", hash='c47792a7f82b2924d9c2fe1f4fe2c3736efe8d68', operation='UPDATE', pgid='pgtrigger_run_5_kill_3e795', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='run_6_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='59319965bb6ff6d026464e2f062cda0440c87c83', operation='DELETE', pgid='pgtrigger_run_6_kept_efc44', table='box_runs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "box_runs_history" ("cancellation_requested_at", "exit_signal", "exit_status", "failure_reason", "finished_at", "generation", "kill_confirmed", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "state") SELECT new_values."cancellation_requested_at", new_values."exit_signal", new_values."exit_status", new_values."failure_reason", new_values."finished_at", new_values."generation", new_values."kill_confirmed", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', new_values."id", new_values."state" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='48d9cd0da76ad35e459386ee5a1243413e0b1b0c', level='STATEMENT', operation='INSERT', pgid='pgtrigger_insert_insert_88a42', referencing='REFERENCING NEW TABLE AS new_values ', table='box_runs', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='run',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "box_runs_history" ("cancellation_requested_at", "exit_signal", "exit_status", "failure_reason", "finished_at", "generation", "kill_confirmed", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "state") SELECT new_values."cancellation_requested_at", new_values."exit_signal", new_values."exit_status", new_values."failure_reason", new_values."finished_at", new_values."generation", new_values."kill_confirmed", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', new_values."id", new_values."state" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cancellation_requested_at" IS DISTINCT FROM (new_values."cancellation_requested_at") OR old_values."exit_signal" IS DISTINCT FROM (new_values."exit_signal") OR old_values."exit_status" IS DISTINCT FROM (new_values."exit_status") OR old_values."failure_reason" IS DISTINCT FROM (new_values."failure_reason") OR old_values."finished_at" IS DISTINCT FROM (new_values."finished_at") OR old_values."kill_confirmed" IS DISTINCT FROM (new_values."kill_confirmed") OR old_values."state" IS DISTINCT FROM (new_values."state")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='5b209c2a07ff931ade71e996f5c55deffb3cccd8', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_update_update_aefa2', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='box_runs', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='runhistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3f336e913ea17e7da46e9dd87b045e3cab5c484e', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_18493', table='box_runs_history', when='BEFORE')),
        ),
    ]
