import base.migrations
import boxes.models.labels
import django.db.models.deletion
import django.utils.timezone
import pghistory.utils
import pgtrigger.compiler
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('conversations', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProcessHeartbeat',
            fields=[
                ('name', models.CharField(max_length=80, primary_key=True, serialize=False)),
                ('stamped_at', models.DateTimeField()),
                ('details', models.JSONField(default=dict)),
            ],
            options={
                'db_table': 'process_heartbeats',
            },
        ),
        migrations.CreateModel(
            name='Box',
            fields=[
                ('lease_owner', models.IntegerField(blank=True, editable=False, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('box_id', models.CharField(blank=True, max_length=200, null=True, unique=True, verbose_name='provider id')),
                ('label', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('init', 'being created'), ('provisioning', 'starting'), ('provisioned', 'started'), ('cloning', 'being copied'), ('ready', 'ready'), ('idle', 'ready, idle'), ('running', 'ready, at work'), ('archiving', 'stopping'), ('archived', 'stopped'), ('error', 'failed')], default='provisioning', max_length=12)),
                ('setup_status', models.CharField(choices=[('pending', 'setup pending'), ('running', 'setting up'), ('done', 'set up'), ('failed', 'setup failed')], default='pending', max_length=7)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('budgeted', models.BooleanField(default=False)),
                ('estimated_burn_rate_microusd', models.BigIntegerField(default=0, help_text='An admission figure, never spending.')),
                ('create_key', models.CharField(blank=True, editable=False, max_length=255, null=True, unique=True)),
                ('create_body', models.JSONField(blank=True, editable=False, null=True)),
                ('create_attempted_at', models.DateTimeField(blank=True, help_text='first attempt', null=True)),
                ('create_attempts', models.PositiveIntegerField(default=0)),
                ('create_error', models.CharField(blank=True, help_text='code of the last trouble with it', max_length=128, null=True)),
                ('create_unknown', models.BooleanField(default=False, help_text='an attempt may have succeeded without an answer')),
                ('marked_at', models.DateTimeField(blank=True, help_text='when our name was given to it', null=True)),
                ('ready_checks', models.PositiveIntegerField(default=0, help_text='looks at it until it was ready')),
                ('provision_failures', models.PositiveIntegerField(default=0, help_text='steps in a row without success')),
                ('next_provision_at', models.DateTimeField(blank=True, help_text='when the worker goes on with its creation or with a stop that was asked for', null=True)),
                ('last_activity_at', models.DateTimeField(blank=True, help_text='last synchronous command', null=True)),
                ('extended_until', models.DateTimeField(blank=True, null=True)),
                ('stop_requested_at', models.DateTimeField(blank=True, help_text='the stop claim', null=True)),
                ('stop_requested_reason', models.CharField(blank=True, choices=[('user_requested', 'stopped by its owner'), ('ttl_expired', 'its time was up'), ('idle_timeout', 'idle for too long'), ('provider_missing', 'gone at the provider'), ('provider_terminal', 'ended by the provider'), ('owner_deleted', 'its owner was deleted'), ('budget_reached', 'the budget was reached'), ('forgotten', 'closed by staff without a stop'), ('create_abandoned', 'its creation was never answered')], max_length=20, null=True)),
                ('stopped_at', models.DateTimeField(blank=True, null=True)),
                ('stop_reason', models.CharField(blank=True, choices=[('user_requested', 'stopped by its owner'), ('ttl_expired', 'its time was up'), ('idle_timeout', 'idle for too long'), ('provider_missing', 'gone at the provider'), ('provider_terminal', 'ended by the provider'), ('owner_deleted', 'its owner was deleted'), ('budget_reached', 'the budget was reached'), ('forgotten', 'closed by staff without a stop'), ('create_abandoned', 'its creation was never answered')], max_length=20, null=True)),
                ('lifetime_seconds', models.BigIntegerField(blank=True, null=True)),
                ('settled_cost_microusd', models.BigIntegerField(blank=True, null=True)),
                ('usage_settled_at', models.DateTimeField(blank=True, null=True)),
                ('next_settlement_at', models.DateTimeField(blank=True, null=True)),
                ('last_reconciled_at', models.DateTimeField(blank=True, null=True)),
                ('reconciliation_failures', models.IntegerField(default=0)),
                ('reconciliation_error', models.CharField(blank=True, max_length=128, null=True)),
                ('next_reconciliation_at', models.DateTimeField(blank=True, null=True)),
                ('undone_sightings', models.PositiveIntegerField(default=0, help_text='listings that show it up although stopped')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='boxes', to='conversations.conversation')),
            ],
            options={
                'verbose_name_plural': 'boxes',
                'db_table': 'conversation_boxes',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('stopped_at__isnull', True), ('usage_settled_at__isnull', True), _connector='OR'), fields=['created_at'], name='conversation_boxes_open_index'), models.Index(condition=models.Q(('stopped_at__isnull', True)), fields=['conversation'], name='conversation_boxes_live_index'), models.Index(condition=models.Q(('next_provision_at__isnull', False)), fields=['next_provision_at'], name='conversation_boxes_due_index'), models.Index(condition=models.Q(('next_settlement_at__isnull', False)), fields=['next_settlement_at'], name='conversation_boxes_unset_index'), models.Index(fields=['conversation', '-created_at'], name='conversation_boxes_list_index'), models.Index(models.F('conversation'), boxes.models.labels.LabelNumber('label'), name='conversation_boxes_number_idx'), models.Index(condition=models.Q(('stopped_at__isnull', False)), fields=['stopped_at'], name='conversation_boxes_month_index')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('stopped_at__isnull', True)), fields=('conversation', 'label'), name='conversation_boxes_active_label_index'), models.CheckConstraint(condition=models.Q(('state__in', ['init', 'provisioning', 'provisioned', 'cloning', 'ready', 'idle', 'running', 'archiving', 'archived', 'error'])), name='conversation_boxes_state_check'), models.CheckConstraint(condition=models.Q(('setup_status__in', ['pending', 'running', 'done', 'failed'])), name='conversation_boxes_setup_status_check'), models.CheckConstraint(condition=models.Q(('stop_reason__isnull', True), ('stop_reason__in', ['user_requested', 'ttl_expired', 'idle_timeout', 'provider_missing', 'provider_terminal', 'owner_deleted', 'budget_reached', 'forgotten', 'create_abandoned']), _connector='OR'), name='conversation_boxes_stop_reason_check'), models.CheckConstraint(condition=models.Q(('reconciliation_failures__gte', 0), ('estimated_burn_rate_microusd__gte', 0), models.Q(('lifetime_seconds__isnull', True), ('lifetime_seconds__gte', 0), _connector='OR'), models.Q(('settled_cost_microusd__isnull', True), ('settled_cost_microusd__gte', 0), _connector='OR')), name='conversation_boxes_usage_check'), models.CheckConstraint(condition=models.Q(('label', ''), _negated=True), name='conversation_boxes_label_check')],
            },
        ),
        migrations.CreateModel(
            name='BoxHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('box_id', models.CharField(blank=True, max_length=200, null=True, verbose_name='provider id')),
                ('label', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('init', 'being created'), ('provisioning', 'starting'), ('provisioned', 'started'), ('cloning', 'being copied'), ('ready', 'ready'), ('idle', 'ready, idle'), ('running', 'ready, at work'), ('archiving', 'stopping'), ('archived', 'stopped'), ('error', 'failed')], default='provisioning', max_length=12)),
                ('setup_status', models.CharField(choices=[('pending', 'setup pending'), ('running', 'setting up'), ('done', 'set up'), ('failed', 'setup failed')], default='pending', max_length=7)),
                ('stop_requested_at', models.DateTimeField(blank=True, help_text='the stop claim', null=True)),
                ('stopped_at', models.DateTimeField(blank=True, null=True)),
                ('stop_reason', models.CharField(blank=True, choices=[('user_requested', 'stopped by its owner'), ('ttl_expired', 'its time was up'), ('idle_timeout', 'idle for too long'), ('provider_missing', 'gone at the provider'), ('provider_terminal', 'ended by the provider'), ('owner_deleted', 'its owner was deleted'), ('budget_reached', 'the budget was reached'), ('forgotten', 'closed by staff without a stop'), ('create_abandoned', 'its creation was never answered')], max_length=20, null=True)),
                ('lifetime_seconds', models.BigIntegerField(blank=True, null=True)),
                ('settled_cost_microusd', models.BigIntegerField(blank=True, null=True)),
                ('usage_settled_at', models.DateTimeField(blank=True, null=True)),
                ('extended_until', models.DateTimeField(blank=True, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='boxes.box')),
            ],
            options={
                'db_table': 'conversation_boxes_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='BudgetNotice',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('subject', models.CharField(help_text='the id of the owner, or `installation`', max_length=64)),
                ('day', models.DateField()),
            ],
            options={
                'db_table': 'box_budget_notices',
                'constraints': [models.UniqueConstraint(fields=('subject', 'day'), name='box_budget_notices_day_index')],
            },
        ),
        migrations.CreateModel(
            name='FanoutRequest',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('requesting_principal', models.JSONField()),
                ('requested_count', models.PositiveIntegerField()),
                ('budgeted', models.BooleanField(default=False)),
                ('effective_limits', models.JSONField()),
                ('state', models.CharField(choices=[('admitted', 'everything admitted'), ('queued', 'something is queued')], default='queued', max_length=8)),
                ('admitted_count', models.PositiveIntegerField(default=0)),
                ('queued_count', models.PositiveIntegerField(default=0)),
                ('cancelled_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='fanouts', to='conversations.conversation')),
            ],
            options={
                'db_table': 'box_fanout_requests',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['conversation', '-created_at'], name='box_fanout_requests_list_index')],
                'constraints': [models.CheckConstraint(condition=models.Q(('requested_count__gt', 0), ('admitted_count__gte', 0), ('queued_count__gte', 0)), name='box_fanout_requests_counts_check'), models.CheckConstraint(condition=models.Q(('state__in', ['admitted', 'queued'])), name='box_fanout_requests_state_check')],
            },
        ),
        migrations.CreateModel(
            name='FanoutItem',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('position', models.PositiveIntegerField()),
                ('queue_sequence', models.BigIntegerField(help_text='global order of asking; kept over retries', unique=True)),
                ('label', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('admitted', 'admitted'), ('queued', 'queued'), ('refused', 'refused')], default='queued', max_length=8)),
                ('queue_reason', models.CharField(blank=True, max_length=64, null=True)),
                ('estimated_burn_rate_microusd', models.BigIntegerField(default=0)),
                ('requesting_principal', models.JSONField()),
                ('admitted_at', models.DateTimeField(blank=True, null=True)),
                ('queued_at', models.DateTimeField(blank=True, help_text='since when it waits; kept over retries', null=True)),
                ('released_at', models.DateTimeField(blank=True, help_text='when its box stopped and freed the label', null=True)),
                ('refusals', models.PositiveIntegerField(default=0, help_text='refusals by the provider')),
                ('next_attempt_at', models.DateTimeField(blank=True, help_text='not tried again before; null: any time', null=True)),
                ('box', models.OneToOneField(blank=True, db_column='conversation_box_id', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='fanout_item', to='boxes.box')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.conversation')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='boxes.fanoutrequest')),
            ],
            options={
                'db_table': 'box_fanout_items',
                'ordering': ['queue_sequence'],
                'indexes': [models.Index(models.F('queue_sequence'), condition=models.Q(('state', 'queued')), name='box_fanout_items_queue_index'), models.Index(models.F('conversation'), boxes.models.labels.LabelNumber('label'), name='box_fanout_items_number_index')],
                'constraints': [models.UniqueConstraint(fields=('request', 'position'), name='box_fanout_items_position_index'), models.UniqueConstraint(condition=models.Q(('released_at__isnull', True), ('state__in', ['admitted', 'queued'])), fields=('conversation', 'label'), name='box_fanout_items_active_label_index'), models.CheckConstraint(condition=models.Q(('state__in', ['admitted', 'queued', 'refused'])), name='box_fanout_items_state_check'), models.CheckConstraint(condition=models.Q(('estimated_burn_rate_microusd__gte', 0)), name='box_fanout_items_estimate_check')],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('ownership_marker', models.CharField(max_length=120)),
            ],
            options={
                'db_table': 'installation',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='installation_single_row_check')],
            },
        ),
        migrations.CreateModel(
            name='ReconciliationEvent',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('provider_box_id', models.CharField(max_length=200)),
                ('event_type', models.CharField(choices=[('leak', 'a box at the provider that no row claims'), ('malformed_id', 'an id that cannot be asked about'), ('unknown_state', 'a state that the product does not know'), ('marker_missing', 'a box of ours under another name'), ('stop_undone', 'a stopped box that came up again'), ('create_abandoned', 'a creation that was never answered')], max_length=20)),
                ('reason', models.CharField(max_length=128)),
                ('details', models.JSONField(default=dict, help_text="the provider's list entry, secrets struck out")),
                ('owned', models.BooleanField(default=False, help_text="it carries this installation's name")),
                ('observed_at', models.DateTimeField(help_text='first sighting')),
                ('last_seen_at', models.DateTimeField(blank=True, null=True)),
                ('reopened_at', models.DateTimeField(blank=True, help_text='when it came back after being handled', null=True)),
                ('stop_attempted_at', models.DateTimeField(blank=True, null=True)),
                ('handled_at', models.DateTimeField(blank=True, null=True)),
                ('resolution', models.CharField(blank=True, choices=[('stopped', 'stopped'), ('adopted', 'adopted into a conversation'), ('dismissed', 'dismissed'), ('gone', 'not there any more')], max_length=9, null=True)),
                ('box', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='boxes.box')),
                ('handled_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'box_reconciliation_events',
                'ordering': ['-observed_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('handled_at__isnull', True)), fields=['event_type', 'observed_at'], name='box_events_open_index')],
                'constraints': [models.UniqueConstraint(fields=('provider_box_id', 'event_type'), name='box_reconciliation_events_provider_box_id_event_type_index'), models.CheckConstraint(condition=models.Q(('event_type__in', ['leak', 'malformed_id', 'unknown_state', 'marker_missing', 'stop_undone', 'create_abandoned'])), name='box_reconciliation_events_type_check'), models.CheckConstraint(condition=models.Q(('resolution__isnull', True), ('handled_at__isnull', False), _connector='OR'), name='box_reconciliation_events_handled_check')],
            },
        ),
        migrations.CreateModel(
            name='ScheduleSlot',
            fields=[
                ('lease_owner', models.IntegerField(blank=True, editable=False, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('name', models.CharField(max_length=40, primary_key=True, serialize=False)),
                ('interval_ms', models.BigIntegerField()),
                ('initial_delay_ms', models.BigIntegerField()),
                ('next_at', models.DateTimeField()),
                ('failures', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('outcome', models.JSONField(blank=True, help_text='what the last pass counted, or its error code', null=True)),
            ],
            options={
                'db_table': 'schedule_slots',
                'constraints': [models.CheckConstraint(condition=models.Q(('interval_ms__gt', 0), ('initial_delay_ms__gte', 0)), name='schedule_slots_times_check')],
            },
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."conversation_id" is distinct from old."conversation_id" then raise exception \'box identity is immutable\'; end if; return new;', hash='8313143883e3884f7d0d4a738ce9667518379b1d', operation='UPDATE', pgid='pgtrigger_box_1_identity_b92ba', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_1_once', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."box_id" is not null and new."box_id" is distinct from old."box_id") or (old."create_key" is not null and new."create_key" is distinct from old."create_key") then raise exception \'box identity is immutable\'; end if; return new;', hash='07c9a5437f9517895c4103355bcffa3fb6a09482', operation='UPDATE', pgid='pgtrigger_box_1_once_e0931', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_2_stopped', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."stopped_at" is not null and new."stopped_at" is distinct from old."stopped_at") or (old."stop_reason" is not null and new."stop_reason" is distinct from old."stop_reason") or (old."lifetime_seconds" is not null and new."lifetime_seconds" is distinct from old."lifetime_seconds") then raise exception \'stopped box is immutable\'; end if; return new;', hash='7776025fd0902dad22cd8e4a6d93f1cbee19687d', operation='UPDATE', pgid='pgtrigger_box_2_stopped_d31c6', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_3_settled', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."settled_cost_microusd" is not null and new."settled_cost_microusd" is distinct from old."settled_cost_microusd") or (old."usage_settled_at" is not null and new."usage_settled_at" is distinct from old."usage_settled_at") then raise exception \'settled usage is immutable\'; end if; return new;', hash='10c20e912d8fd807cdc18f697a22e5e262dd5d3a', operation='UPDATE', pgid='pgtrigger_box_3_settled_73bea', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_4_stays_down', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."state" IS DISTINCT FROM (NEW."state") AND OLD."stopped_at" IS NOT NULL)', func="if new.state not in ('archiving', 'archived', 'error') then raise exception 'stopped box is immutable'; end if; return new;", hash='8bc0ce2208398d34dc54b8e0e9daa64f39c49471', operation='UPDATE', pgid='pgtrigger_box_4_stays_down_3b1da', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_5_kept', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."box_id" IS NOT NULL OR OLD."stopped_at" IS NOT NULL)', func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='7485acd4f141ad79e58b807688053c6c3383bbe0', operation='DELETE', pgid='pgtrigger_box_5_kept_3cedd', table='conversation_boxes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='box_6_frees_label', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."stopped_at" IS NOT NULL AND OLD."stopped_at" IS NULL)', func='update box_fanout_items set released_at = new.stopped_at where conversation_box_id = new.id and released_at is null; return null;', hash='2d72f793fb3a1469123a3cbaee42621a5c9fca2b', operation='UPDATE', pgid='pgtrigger_box_6_frees_label_e46ba', table='conversation_boxes', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "conversation_boxes_history" ("box_id", "extended_until", "generation", "label", "lifetime_seconds", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "settled_cost_microusd", "setup_status", "state", "stop_reason", "stop_requested_at", "stopped_at", "usage_settled_at") SELECT new_values."box_id", new_values."extended_until", new_values."generation", new_values."label", new_values."lifetime_seconds", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', new_values."id", new_values."settled_cost_microusd", new_values."setup_status", new_values."state", new_values."stop_reason", new_values."stop_requested_at", new_values."stopped_at", new_values."usage_settled_at" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='ebdb31c27f4be7fc53de533d3b2dc6a0f95338f0', level='STATEMENT', operation='INSERT', pgid='pgtrigger_insert_insert_5887b', referencing='REFERENCING NEW TABLE AS new_values ', table='conversation_boxes', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='box',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "conversation_boxes_history" ("box_id", "extended_until", "generation", "label", "lifetime_seconds", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "settled_cost_microusd", "setup_status", "state", "stop_reason", "stop_requested_at", "stopped_at", "usage_settled_at") SELECT new_values."box_id", new_values."extended_until", new_values."generation", new_values."label", new_values."lifetime_seconds", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', new_values."id", new_values."settled_cost_microusd", new_values."setup_status", new_values."state", new_values."stop_reason", new_values."stop_requested_at", new_values."stopped_at", new_values."usage_settled_at" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."box_id" IS DISTINCT FROM (new_values."box_id") OR old_values."extended_until" IS DISTINCT FROM (new_values."extended_until") OR old_values."label" IS DISTINCT FROM (new_values."label") OR old_values."lifetime_seconds" IS DISTINCT FROM (new_values."lifetime_seconds") OR old_values."settled_cost_microusd" IS DISTINCT FROM (new_values."settled_cost_microusd") OR old_values."setup_status" IS DISTINCT FROM (new_values."setup_status") OR old_values."state" IS DISTINCT FROM (new_values."state") OR old_values."stop_reason" IS DISTINCT FROM (new_values."stop_reason") OR old_values."stop_requested_at" IS DISTINCT FROM (new_values."stop_requested_at") OR old_values."stopped_at" IS DISTINCT FROM (new_values."stopped_at") OR old_values."usage_settled_at" IS DISTINCT FROM (new_values."usage_settled_at")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='d25759c70ea1de2c6132ebb2da4e708128406bbe', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_update_update_f81c8', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='conversation_boxes', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='boxhistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='390512c5dc070a2f9fbbd5fde8bcbe529aaf5b33', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_d64c7', table='conversation_boxes_history', when='BEFORE')),
        ),
    ]
