import base.migrations
import django.core.serializers.json
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
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
            name='Incident',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('surface', models.CharField(choices=[('text', 'a written conversation'), ('voice', 'a spoken conversation'), ('job', 'a job'), ('delegation', 'a delegation'), ('controller', 'the control plane itself')], max_length=10)),
                ('origin', models.CharField(max_length=64)),
                ('correlation_ref', models.CharField(blank=True, max_length=128, null=True)),
                ('code', models.CharField(max_length=128)),
                ('severity', models.CharField(choices=[('expected', 'happens; nothing to mend'), ('degraded', 'something outside was not well'), ('anomalous', 'should not happen')], max_length=9)),
                ('summary', models.CharField(blank=True, default='', max_length=500)),
                ('context', models.JSONField(blank=True, default=dict)),
                ('status', models.CharField(choices=[('open', 'new'), ('triaged', 'looked at'), ('fixing', 'being mended'), ('resolved', 'mended'), ('wont_fix', 'stays as it is')], default='open', max_length=8)),
                ('receipt_ref', models.CharField(blank=True, max_length=256, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('conversation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.conversation')),
                ('owner_user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='incidents', to=settings.AUTH_USER_MODEL)),
                ('owner_visitor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.visitor')),
            ],
            options={
                'db_table': 'incidents',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('owner_user__isnull', False)), fields=['owner_user', '-created_at', '-id'], name='incidents_owner_index'), models.Index(fields=['code', 'owner_user', '-created_at'], name='incidents_recurrence_index'), models.Index(fields=['-created_at', '-id'], name='incidents_newest_index'), models.Index(condition=models.Q(('correlation_ref__isnull', False)), fields=['correlation_ref'], name='incidents_correlation_index')],
                'constraints': [models.CheckConstraint(condition=models.Q(('surface__in', ['text', 'voice', 'job', 'delegation', 'controller'])), name='incidents_surface_check'), models.CheckConstraint(condition=models.Q(('severity__in', ['expected', 'degraded', 'anomalous'])), name='incidents_severity_check'), models.CheckConstraint(condition=models.Q(('status__in', ['open', 'triaged', 'fixing', 'resolved', 'wont_fix'])), name='incidents_status_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((code <> ''), false)", (), output_field=models.BooleanField()), name='incidents_code_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((context is null or octet_length(context::text) <= 16384), false)', (), output_field=models.BooleanField()), name='incidents_context_check')],
            },
        ),
        migrations.CreateModel(
            name='IncidentHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('status', models.CharField(choices=[('open', 'new'), ('triaged', 'looked at'), ('fixing', 'being mended'), ('resolved', 'mended'), ('wont_fix', 'stays as it is')], default='open', max_length=8)),
                ('receipt_ref', models.CharField(blank=True, max_length=256, null=True)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='work.incident')),
            ],
            options={
                'db_table': 'incidents_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('lease_owner', models.IntegerField(blank=True, editable=False, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('surface', models.CharField(choices=[('text', 'written'), ('voice', 'spoken')], max_length=5)),
                ('goal', models.TextField()),
                ('context_hint', models.TextField(blank=True, null=True)),
                ('requesting_tool_step_ref', models.CharField(blank=True, max_length=256, null=True)),
                ('kind', models.CharField(choices=[('deep_work', 'work with tools on the server'), ('delegation', 'work of an agent on a paired machine')], default='deep_work', max_length=10)),
                ('delegation', models.JSONField(blank=True, encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='what is delegated, and its session', null=True)),
                ('authority_snapshot', models.JSONField(blank=True, encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='what the machine allowed then', null=True)),
                ('budget_snapshot', models.JSONField(blank=True, null=True)),
                ('token_budget', models.PositiveBigIntegerField(blank=True, null=True)),
                ('cost_budget_microusd', models.PositiveBigIntegerField(blank=True, null=True)),
                ('keep_boxes', models.BooleanField(default=False, help_text='whether the boxes it made outlive it')),
                ('status', models.CharField(choices=[('queued', 'waiting for a worker'), ('running', 'at work'), ('completed', 'done'), ('failed', 'failed'), ('interrupted', 'interrupted'), ('budget_exhausted', 'stopped at a limit'), ('cancelled', 'cancelled')], default='queued', max_length=16)),
                ('report', models.TextField(blank=True, help_text='while it runs: the text so far', null=True)),
                ('error_code', models.CharField(blank=True, max_length=128, null=True)),
                ('model_id', models.CharField(blank=True, max_length=200, null=True)),
                ('instruction_digest', models.CharField(blank=True, max_length=64, null=True)),
                ('tool_catalog_digest', models.CharField(blank=True, max_length=64, null=True)),
                ('memory_snapshot_ref', models.CharField(blank=True, max_length=256, null=True)),
                ('tool_call_count', models.PositiveIntegerField(default=0)),
                ('continuation_count', models.PositiveIntegerField(default=0)),
                ('usage', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(blank=True, help_text='first start; kept when it is taken over', null=True)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('cancel_requested_at', models.DateTimeField(blank=True, null=True)),
                ('cancel_code', models.CharField(blank=True, max_length=128, null=True)),
                ('next_step_at', models.DateTimeField(blank=True, db_default=django.db.models.functions.datetime.Now(), help_text='when a worker takes it up next; null: never again', null=True)),
                ('attempts', models.PositiveIntegerField(default=0, help_text='claims since a step was last committed')),
                ('failures', models.PositiveIntegerField(default=0, help_text='failures in a row with the same code')),
                ('failure_code', models.CharField(blank=True, max_length=128, null=True)),
                ('start_failures', models.PositiveIntegerField(default=0, help_text='failed starts in a row after a restart')),
                ('recovered_generation', models.BigIntegerField(blank=True, help_text='the generation whose interruption was last written down', null=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='conversations.conversation')),
                ('owner_visitor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='conversations.visitor')),
                ('report_message', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='conversations.message')),
            ],
            options={
                'db_table': 'work_jobs',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('next_step_at__isnull', False)), fields=['next_step_at'], name='work_jobs_due_index'), models.Index(condition=models.Q(('lease_owner__isnull', False)), fields=['lease_owner'], name='work_jobs_leased_index'), models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['created_at'], name='work_jobs_active_index'), models.Index(fields=['conversation', '-created_at', '-id'], name='work_jobs_list_index')],
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case when status in ('completed', 'failed', 'interrupted', 'budget_exhausted', 'cancelled') then completed_at is not null and btrim(report, E' \\t\\r\\n') <> '' else completed_at is null end), false)", (), output_field=models.BooleanField()), name='work_jobs_terminal_report_check'), models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'running', 'completed', 'failed', 'interrupted', 'budget_exhausted', 'cancelled'])), name='work_jobs_status_check'), models.CheckConstraint(condition=models.Q(('kind__in', ['deep_work', 'delegation'])), name='work_jobs_kind_check'), models.CheckConstraint(condition=models.Q(('surface__in', ['text', 'voice'])), name='work_jobs_surface_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(goal) between 1 and 2000), false)', (), output_field=models.BooleanField()), name='work_jobs_goal_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((context_hint is null or octet_length(context_hint::text) <= 2000), false)', (), output_field=models.BooleanField()), name='work_jobs_context_hint_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((requesting_tool_step_ref is null or octet_length(requesting_tool_step_ref::text) <= 256), false)', (), output_field=models.BooleanField()), name='work_jobs_step_ref_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((report is null or octet_length(report::text) <= 8000), false)', (), output_field=models.BooleanField()), name='work_jobs_report_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((error_code is null or octet_length(error_code::text) <= 128), false)', (), output_field=models.BooleanField()), name='work_jobs_error_code_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((delegation is null or octet_length(delegation::text) <= 32768), false)', (), output_field=models.BooleanField()), name='work_jobs_delegation_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((authority_snapshot is null or octet_length(authority_snapshot::text) <= 32768), false)', (), output_field=models.BooleanField()), name='work_jobs_authority_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((budget_snapshot is null or octet_length(budget_snapshot::text) <= 4096), false)', (), output_field=models.BooleanField()), name='work_jobs_budget_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((jsonb_typeof(usage) = 'object' and (usage is null or octet_length(usage::text) <= 16384)), false)", (), output_field=models.BooleanField()), name='work_jobs_usage_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce(((instruction_digest is null or instruction_digest ~ '^[0-9a-f]{64}$') and (tool_catalog_digest is null or tool_catalog_digest ~ '^[0-9a-f]{64}$')), false)", (), output_field=models.BooleanField()), name='work_jobs_digests_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((generation >= 0), false)', (), output_field=models.BooleanField()), name='work_jobs_generation_check')],
            },
        ),
        migrations.AddField(
            model_name='incident',
            name='fixer_job',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='work.job'),
        ),
        migrations.CreateModel(
            name='JobHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('status', models.CharField(choices=[('queued', 'waiting for a worker'), ('running', 'at work'), ('completed', 'done'), ('failed', 'failed'), ('interrupted', 'interrupted'), ('budget_exhausted', 'stopped at a limit'), ('cancelled', 'cancelled')], default='queued', max_length=16)),
                ('error_code', models.CharField(blank=True, max_length=128, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('cancel_requested_at', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(blank=True, help_text='first start; kept when it is taken over', null=True)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='work.job')),
            ],
            options={
                'db_table': 'work_jobs_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='JobStep',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('sequence', models.PositiveSmallIntegerField()),
                ('provider_call_id', models.CharField(max_length=256)),
                ('provider_item_id', models.CharField(blank=True, max_length=256, null=True)),
                ('provider_response_id', models.CharField(blank=True, max_length=256, null=True)),
                ('tool_name', models.CharField(max_length=128)),
                ('tool_version', models.CharField(blank=True, max_length=64, null=True)),
                ('module_id', models.CharField(blank=True, max_length=128, null=True)),
                ('module_artifact_digest', models.CharField(blank=True, max_length=64, null=True)),
                ('catalog_digest', models.CharField(blank=True, max_length=64, null=True)),
                ('arguments', models.TextField(blank=True, default='', help_text='as the model wrote them')),
                ('argument_digest', models.CharField(max_length=64)),
                ('report_offset', models.PositiveIntegerField(default=0, help_text="bytes of the job's text that came before this call")),
                ('status', models.CharField(choices=[('requested', 'asked for by the model'), ('running', 'at work'), ('succeeded', 'done'), ('failed', 'failed'), ('refused', 'refused'), ('cancelled', 'cancelled'), ('unavailable', 'its tool was not there'), ('interrupted', 'interrupted; whether it took effect is not known')], default='requested', max_length=11)),
                ('outcome_digest', models.CharField(blank=True, max_length=64, null=True)),
                ('result', models.JSONField(blank=True, null=True)),
                ('error', models.JSONField(blank=True, null=True)),
                ('usage', models.JSONField(blank=True, default=dict)),
                ('executor_id', models.CharField(blank=True, max_length=128, null=True)),
                ('executor_disclosure', models.JSONField(blank=True, null=True)),
                ('target_receipt_refs', models.JSONField(blank=True, default=list)),
                ('attribution_refs', models.JSONField(blank=True, default=list)),
                ('requested_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('work_job', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='work.job')),
            ],
            options={
                'db_table': 'work_job_steps',
                'ordering': ['work_job_id', 'sequence'],
                'constraints': [models.UniqueConstraint(fields=('work_job', 'sequence'), name='work_job_steps_sequence_index'), models.UniqueConstraint(fields=('work_job', 'provider_call_id'), name='work_job_steps_call_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((sequence between 1 and 64), false)', (), output_field=models.BooleanField()), name='work_job_steps_order_check'), models.CheckConstraint(condition=models.Q(('status__in', ['requested', 'running', 'succeeded', 'failed', 'refused', 'cancelled', 'unavailable', 'interrupted'])), name='work_job_steps_status_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case status\n    when 'requested' then started_at is null and completed_at is null and outcome_digest is null\n        and result is null and error is null\n    when 'running' then started_at is not null and completed_at is null and outcome_digest is null\n        and result is null and error is null\n    when 'succeeded' then completed_at is not null and outcome_digest is not null and result is not null\n        and error is null and coalesce(executor_id, '') <> ''\n    else completed_at is not null and outcome_digest is not null and error is not null\n        and result is null and coalesce(executor_id, '') <> '' end), false)", (), output_field=models.BooleanField()), name='work_job_steps_shape_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((argument_digest ~ '^[0-9a-f]{64}$' and (outcome_digest is null or outcome_digest ~ '^[0-9a-f]{64}$') and (module_artifact_digest is null or module_artifact_digest ~ '^[0-9a-f]{64}$') and (catalog_digest is null or catalog_digest ~ '^[0-9a-f]{64}$')), false)", (), output_field=models.BooleanField()), name='work_job_steps_digests_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((provider_call_id <> '' and tool_name <> ''), false)", (), output_field=models.BooleanField()), name='work_job_steps_names_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((arguments is null or octet_length(arguments::text) <= 262144), false)', (), output_field=models.BooleanField()), name='work_job_steps_arguments_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((result is null or octet_length(result::text) <= 262144), false)', (), output_field=models.BooleanField()), name='work_job_steps_result_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((jsonb_typeof(target_receipt_refs) = 'array' and jsonb_typeof(attribution_refs) = 'array'), false)", (), output_field=models.BooleanField()), name='work_job_steps_lists_check')],
            },
        ),
        migrations.CreateModel(
            name='Machine',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('tier', models.CharField(choices=[('probe', 'may only say what is there'), ('curated', 'may run listed agents'), ('shell', 'may run any command')], max_length=7)),
                ('platform', models.CharField(blank=True, default='', max_length=40)),
                ('agent_version', models.CharField(blank=True, default='', max_length=40)),
                ('roots', models.JSONField(default=list, help_text='folders that agents may work in')),
                ('token_digest', models.BinaryField(max_length=32, unique=True)),
                ('token_expires_at', models.DateTimeField()),
                ('status', models.CharField(choices=[('active', 'paired'), ('revoked', 'revoked')], default='active', max_length=7)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_seen_at', models.DateTimeField(blank=True, null=True)),
                ('last_probe', models.JSONField(blank=True, null=True)),
                ('scoped_forge_credentials_enabled', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='machines', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'machines',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('status', 'active')), fields=['user'], name='machines_active_index'), models.Index(fields=['user', '-created_at', '-id'], name='machines_list_index')],
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((btrim(name) <> ''), false)", (), output_field=models.BooleanField()), name='machines_name_check'), models.CheckConstraint(condition=models.Q(('tier__in', ['probe', 'curated', 'shell'])), name='machines_tier_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((case when jsonb_typeof(roots) = \'array\' then jsonb_array_length(roots) <= 16\n    and not jsonb_path_exists(roots, \'$[*] ? (@.type() != "string")\')\n    and octet_length(roots::text) <= 49216 else false end), false)', (), output_field=models.BooleanField()), name='machines_roots_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(token_digest) = 32), false)', (), output_field=models.BooleanField()), name='machines_token_digest_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((token_expires_at > created_at), false)', (), output_field=models.BooleanField()), name='machines_token_expiry_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((last_probe is null or octet_length(last_probe::text) <= 32768), false)', (), output_field=models.BooleanField()), name='machines_probe_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce(((status = 'active' and revoked_at is null) or (status = 'revoked' and revoked_at is not null)), false)", (), output_field=models.BooleanField()), name='machines_status_check')],
            },
        ),
        migrations.AddField(
            model_name='job',
            name='machine',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='work.machine'),
        ),
        migrations.CreateModel(
            name='MachineHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('status', models.CharField(choices=[('active', 'paired'), ('revoked', 'revoked')], default='active', max_length=7)),
                ('name', models.CharField(max_length=80)),
                ('tier', models.CharField(choices=[('probe', 'may only say what is there'), ('curated', 'may run listed agents'), ('shell', 'may run any command')], max_length=7)),
                ('scoped_forge_credentials_enabled', models.BooleanField(default=False)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='work.machine')),
            ],
            options={
                'db_table': 'machines_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='MachinePairing',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('code_digest', models.BinaryField(max_length=32, unique=True)),
                ('poll_secret_digest', models.BinaryField(max_length=32)),
                ('name', models.CharField(max_length=80)),
                ('tier', models.CharField(choices=[('probe', 'may only say what is there'), ('curated', 'may run listed agents'), ('shell', 'may run any command')], max_length=7)),
                ('platform', models.CharField(blank=True, default='', max_length=40)),
                ('agent_version', models.CharField(blank=True, default='', max_length=40)),
                ('roots', models.JSONField(default=list)),
                ('status', models.CharField(choices=[('pending', 'waits for its owner'), ('approved', 'approved, its token not yet fetched'), ('claimed', 'its token was fetched'), ('expired', 'expired')], default='pending', max_length=8)),
                ('sealed_token', models.BinaryField(blank=True, max_length=256, null=True)),
                ('expires_at', models.DateTimeField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('machine', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='pairing', to='work.machine')),
            ],
            options={
                'db_table': 'machine_pairings',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('status__in', ['pending', 'approved'])), fields=['expires_at'], name='machine_pairings_open_index')],
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((btrim(name) <> ''), false)", (), output_field=models.BooleanField()), name='machine_pairings_name_check'), models.CheckConstraint(condition=models.Q(('tier__in', ['probe', 'curated', 'shell'])), name='machine_pairings_tier_check'), models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'approved', 'claimed', 'expired'])), name='machine_pairings_status_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((case when jsonb_typeof(roots) = \'array\' then jsonb_array_length(roots) <= 16\n    and not jsonb_path_exists(roots, \'$[*] ? (@.type() != "string")\')\n    and octet_length(roots::text) <= 49216 else false end), false)', (), output_field=models.BooleanField()), name='machine_pairings_roots_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(code_digest) = 32 and octet_length(poll_secret_digest) = 32), false)', (), output_field=models.BooleanField()), name='machine_pairings_digests_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((expires_at > created_at), false)', (), output_field=models.BooleanField()), name='machine_pairings_expiry_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case status when 'pending' then machine_id is null and sealed_token is null\n                   when 'approved' then machine_id is not null and sealed_token is not null\n                   when 'claimed' then machine_id is not null and sealed_token is null\n                   else sealed_token is null end), false)", (), output_field=models.BooleanField()), name='machine_pairings_shape_check')],
            },
        ),
        base.migrations.AddTrigger(
            model_name='incidenthistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='aa16df690c9573e72fe48990e563b963982a0915', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_dc84d', table='incidents_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='incident',
            trigger=pgtrigger.compiler.Trigger(name='incident_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."conversation_id" is distinct from old."conversation_id" or new."owner_user_id" is distinct from old."owner_user_id" or new."owner_visitor_id" is distinct from old."owner_visitor_id" or new."surface" is distinct from old."surface" or new."origin" is distinct from old."origin" or new."correlation_ref" is distinct from old."correlation_ref" or new."code" is distinct from old."code" or new."severity" is distinct from old."severity" or new."summary" is distinct from old."summary" or new."context" is distinct from old."context" or new."created_at" is distinct from old."created_at" then raise exception \'incident identity is immutable\'; end if; return new;', hash='0631ab8716e4023e8bc16e125882c84cc329fd57', operation='UPDATE', pgid='pgtrigger_incident_1_identity_da2f0', table='incidents', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='incident',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "incidents_history" ("pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "receipt_ref", "status") SELECT COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', new_values."id", new_values."receipt_ref", new_values."status" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."receipt_ref" IS DISTINCT FROM (new_values."receipt_ref") OR old_values."status" IS DISTINCT FROM (new_values."status")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='2cd0a1f0b1c15ab9e15962f6ccbbca1e56fd1936', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_update_update_bc89f', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='incidents', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='jobhistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e83f00d63c4e97e933d9d15b2331bf82ef3da97a', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a51b2', table='work_jobs_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='jobstep',
            trigger=pgtrigger.compiler.Trigger(name='step_1_transition', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n            if NEW."work_job_id" is distinct from OLD."work_job_id" or NEW."sequence" is distinct from OLD."sequence" or NEW."provider_call_id" is distinct from OLD."provider_call_id" or NEW."provider_item_id" is distinct from OLD."provider_item_id" or NEW."provider_response_id" is distinct from OLD."provider_response_id" or NEW."tool_name" is distinct from OLD."tool_name" or NEW."tool_version" is distinct from OLD."tool_version" or NEW."module_id" is distinct from OLD."module_id" or NEW."module_artifact_digest" is distinct from OLD."module_artifact_digest" or NEW."catalog_digest" is distinct from OLD."catalog_digest" or NEW."arguments" is distinct from OLD."arguments" or NEW."argument_digest" is distinct from OLD."argument_digest" or NEW."report_offset" is distinct from OLD."report_offset" or NEW."requested_at" is distinct from OLD."requested_at" then\n                raise exception \'work job step identity is immutable\';\n            end if;\n            \n            if OLD.status = \'requested\' and NEW.status not in (\'requested\', \'running\', \'succeeded\', \'failed\', \'refused\', \'cancelled\', \'unavailable\', \'interrupted\') then\n                raise exception \'invalid requested work job step transition\';\n            end if;\n            if OLD.status = \'running\' and NEW.status not in (\'running\', \'succeeded\', \'failed\', \'refused\', \'cancelled\', \'unavailable\', \'interrupted\') then\n                raise exception \'invalid running work job step transition\';\n            end if;\n            if OLD.status in (\'succeeded\', \'failed\', \'refused\', \'cancelled\', \'unavailable\', \'interrupted\') and (NEW."status" is distinct from OLD."status" or NEW."outcome_digest" is distinct from OLD."outcome_digest" or NEW."result" is distinct from OLD."result" or NEW."error" is distinct from OLD."error" or NEW."usage" is distinct from OLD."usage" or NEW."executor_id" is distinct from OLD."executor_id" or NEW."executor_disclosure" is distinct from OLD."executor_disclosure" or NEW."target_receipt_refs" is distinct from OLD."target_receipt_refs" or NEW."attribution_refs" is distinct from OLD."attribution_refs" or NEW."started_at" is distinct from OLD."started_at" or NEW."completed_at" is distinct from OLD."completed_at") then\n                raise exception \'terminal work job step is immutable\';\n            end if;\n            return NEW;\n        ', hash='0abb022eb2c35b50a047df96b803ff781e0ad9bb', operation='UPDATE', pgid='pgtrigger_step_1_transition_54c22', table='work_job_steps', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='jobstep',
            trigger=pgtrigger.compiler.Trigger(name='step_2_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='45a03c4e8e69b4aca9a41c4ce758dae6c5a4f292', operation='DELETE', pgid='pgtrigger_step_2_kept_a000f', table='work_job_steps', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='machine_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."user_id" is distinct from old."user_id" or new."token_digest" is distinct from old."token_digest" or new."created_at" is distinct from old."created_at" then raise exception \'machine identity is immutable\'; end if; return new;', hash='f273c7db727c9068fd2e889655d92cc8aa508cfb', operation='UPDATE', pgid='pgtrigger_machine_1_identity_85dc9', table='machines', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='machine_2_moves', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."status" is distinct from old."status" and (old."status", new."status") not in ((\'active\', \'revoked\')) then raise exception \'invalid % machine transition\', old."status"; end if; return new;', hash='02785c10ef8b579e4dd5c57f8f9a0fccd76e98db', operation='UPDATE', pgid='pgtrigger_machine_2_moves_0459b', table='machines', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='machine_3_once', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."revoked_at" is not null and new."revoked_at" is distinct from old."revoked_at") then raise exception \'a revoked machine stays revoked\'; end if; return new;', hash='8d953ef7afa740437dce07fa7d1f97f8143efa46', operation='UPDATE', pgid='pgtrigger_machine_3_once_2471f', table='machines', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='machine_4_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='8384f4dbfb622ec1dfeeaba68e7578ac72891ab2', operation='DELETE', pgid='pgtrigger_machine_4_kept_fd0f2', table='machines', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "machines_history" ("name", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "revoked_at", "scoped_forge_credentials_enabled", "status", "tier") SELECT new_values."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', new_values."id", new_values."revoked_at", new_values."scoped_forge_credentials_enabled", new_values."status", new_values."tier" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='d7ac3dbb7005d3791963d6bf0d8c16001897ecd0', level='STATEMENT', operation='INSERT', pgid='pgtrigger_insert_insert_4f205', referencing='REFERENCING NEW TABLE AS new_values ', table='machines', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='machine',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "machines_history" ("name", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "revoked_at", "scoped_forge_credentials_enabled", "status", "tier") SELECT new_values."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', new_values."id", new_values."revoked_at", new_values."scoped_forge_credentials_enabled", new_values."status", new_values."tier" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."scoped_forge_credentials_enabled" IS DISTINCT FROM (new_values."scoped_forge_credentials_enabled") OR old_values."status" IS DISTINCT FROM (new_values."status") OR old_values."tier" IS DISTINCT FROM (new_values."tier")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='645b78f390aa6d37edddf2ba3bbf141db0601203', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_update_update_09032', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='machines', when='AFTER')),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('machine__isnull', False), ('status__in', ['queued', 'running'])), fields=['machine'], name='work_jobs_machine_active_index'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((kind <> 'delegation' or case\n    when machine_id is null or jsonb_typeof(delegation) is distinct from 'object'\n        or jsonb_typeof(authority_snapshot) is distinct from 'object'\n        or jsonb_typeof(budget_snapshot) is distinct from 'object' then false\n    when not coalesce(case when jsonb_typeof(budget_snapshot -> 'wall_clock_ms') = 'number' then (budget_snapshot ->> 'wall_clock_ms')::numeric between 1 and 3600000 and (budget_snapshot ->> 'wall_clock_ms')::numeric = trunc((budget_snapshot ->> 'wall_clock_ms')::numeric) else false end, false)\n        or not coalesce(case when jsonb_typeof(budget_snapshot -> 'maximum_prompt_bytes') = 'number' then (budget_snapshot ->> 'maximum_prompt_bytes')::numeric between 1 and 8000 and (budget_snapshot ->> 'maximum_prompt_bytes')::numeric = trunc((budget_snapshot ->> 'maximum_prompt_bytes')::numeric) else false end, false)\n        or not coalesce(case when jsonb_typeof(budget_snapshot -> 'maximum_report_bytes') = 'number' then (budget_snapshot ->> 'maximum_report_bytes')::numeric between 8000 and 8000 and (budget_snapshot ->> 'maximum_report_bytes')::numeric = trunc((budget_snapshot ->> 'maximum_report_bytes')::numeric) else false end, false)\n        or jsonb_typeof(authority_snapshot -> 'roots') is distinct from 'array' then false\n    else jsonb_array_length(authority_snapshot -> 'roots') > 0\n        and authority_snapshot ->> 'machine_tier' in ('probe', 'curated', 'shell')\n        and jsonb_typeof(authority_snapshot -> 'agent_id') = 'string' and octet_length(authority_snapshot ->> 'agent_id') between 1 and 64\n        and jsonb_typeof(authority_snapshot -> 'cwd') = 'string' and octet_length(authority_snapshot ->> 'cwd') between 1 and 500\n        and jsonb_typeof(authority_snapshot -> 'machine_name') = 'string' and octet_length(authority_snapshot ->> 'machine_name') between 1 and 256\n        and jsonb_typeof(delegation -> 'prompt') = 'string' and octet_length(delegation ->> 'prompt') between 1 and 8000\n        and octet_length(delegation ->> 'prompt') <= (budget_snapshot ->> 'maximum_prompt_bytes')::numeric\n        and delegation ->> 'machine_id' = machine_id::text\n        and delegation -> 'agent_id' = authority_snapshot -> 'agent_id'\n        and delegation -> 'cwd' = authority_snapshot -> 'cwd'\n        and delegation -> 'machine_name' = authority_snapshot -> 'machine_name'\n        and delegation -> 'timeout_ms' = budget_snapshot -> 'wall_clock_ms'\n    end), false)", (), output_field=models.BooleanField()), name='work_jobs_delegation_identity'),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='job_1_scope', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n            if TG_OP = 'INSERT' or NEW.conversation_id is distinct from OLD.conversation_id\n                    or NEW.owner_visitor_id is distinct from OLD.owner_visitor_id then\n                if not exists (select 1 from conversations c\n                        where c.id = NEW.conversation_id and c.visitor_id = NEW.owner_visitor_id) then\n                    raise exception 'work job conversation owner mismatch';\n                end if;\n            end if;\n            if NEW.kind = 'delegation' and (TG_OP = 'INSERT' or NEW.kind is distinct from OLD.kind\n                    or NEW.machine_id is distinct from OLD.machine_id\n                    or NEW.owner_visitor_id is distinct from OLD.owner_visitor_id) then\n                if not exists (select 1 from machines m join visitors v on v.user_id = m.user_id\n                        where m.id = NEW.machine_id and v.id = NEW.owner_visitor_id) then\n                    raise exception 'work job machine owner mismatch';\n                end if;\n            end if;\n            if NEW.kind = 'delegation' and TG_OP = 'INSERT' then\n                if not exists (select 1 from machines m where m.id = NEW.machine_id\n                        and NEW.authority_snapshot ->> 'machine_tier' is not distinct from m.tier\n                        and NEW.authority_snapshot -> 'roots' is not distinct from m.roots\n                        and NEW.authority_snapshot ->> 'machine_name' is not distinct from m.name) then\n                    raise exception 'work job machine authority snapshot mismatch';\n                end if;\n            end if;\n            return NEW;\n        ", hash='3338c20582f36bf64ca760eb2d18211311a12b43', operation='INSERT OR UPDATE', pgid='pgtrigger_job_1_scope_38c1e', table='work_jobs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='job_2_transition', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n            if NEW."conversation_id" is distinct from OLD."conversation_id" or NEW."owner_visitor_id" is distinct from OLD."owner_visitor_id" or NEW."surface" is distinct from OLD."surface" or NEW."goal" is distinct from OLD."goal" or NEW."context_hint" is distinct from OLD."context_hint" or NEW."requesting_tool_step_ref" is distinct from OLD."requesting_tool_step_ref" or NEW."kind" is distinct from OLD."kind" or NEW."machine_id" is distinct from OLD."machine_id" or NEW."authority_snapshot" is distinct from OLD."authority_snapshot" or NEW."budget_snapshot" is distinct from OLD."budget_snapshot" or NEW."token_budget" is distinct from OLD."token_budget" or NEW."cost_budget_microusd" is distinct from OLD."cost_budget_microusd" or NEW."keep_boxes" is distinct from OLD."keep_boxes" or NEW."created_at" is distinct from OLD."created_at" or (case when jsonb_typeof(NEW.delegation) = \'object\' and jsonb_typeof(OLD.delegation) = \'object\'\n    then (NEW.delegation - \'resume_session_id\') is distinct from (OLD.delegation - \'resume_session_id\')\n    else NEW.delegation is distinct from OLD.delegation end) then\n                raise exception \'work job identity is immutable\';\n            end if;\n            \n            if OLD.status = \'queued\' and NEW.status not in (\'queued\', \'running\', \'failed\', \'interrupted\', \'cancelled\') then\n                raise exception \'invalid queued work job transition\';\n            end if;\n            if OLD.status = \'running\' and NEW.status not in (\'running\', \'completed\', \'failed\', \'interrupted\', \'budget_exhausted\', \'cancelled\') then\n                raise exception \'invalid running work job transition\';\n            end if;\n            if OLD.status in (\'completed\', \'failed\', \'interrupted\', \'budget_exhausted\', \'cancelled\') and (NEW."status" is distinct from OLD."status" or NEW."report" is distinct from OLD."report" or NEW."error_code" is distinct from OLD."error_code" or NEW."usage" is distinct from OLD."usage" or NEW."completed_at" is distinct from OLD."completed_at" or NEW."delegation" is distinct from OLD."delegation" or NEW."model_id" is distinct from OLD."model_id" or NEW."instruction_digest" is distinct from OLD."instruction_digest" or NEW."tool_catalog_digest" is distinct from OLD."tool_catalog_digest" or NEW."memory_snapshot_ref" is distinct from OLD."memory_snapshot_ref" or NEW."tool_call_count" is distinct from OLD."tool_call_count" or NEW."continuation_count" is distinct from OLD."continuation_count" or NEW."started_at" is distinct from OLD."started_at" or NEW."generation" is distinct from OLD."generation" or NEW."lease_owner" is distinct from OLD."lease_owner" or NEW."lease_expires_at" is distinct from OLD."lease_expires_at" or NEW."next_step_at" is distinct from OLD."next_step_at" or NEW."cancel_requested_at" is distinct from OLD."cancel_requested_at" or NEW."cancel_code" is distinct from OLD."cancel_code" or NEW."attempts" is distinct from OLD."attempts" or NEW."failures" is distinct from OLD."failures" or NEW."failure_code" is distinct from OLD."failure_code" or NEW."start_failures" is distinct from OLD."start_failures" or NEW."recovered_generation" is distinct from OLD."recovered_generation") then\n                raise exception \'terminal work job is immutable\';\n            end if;\n            return NEW;\n        ', hash='8cf5ad3809994668895c613638b02e80039c539e', operation='UPDATE', pgid='pgtrigger_job_2_transition_d45de', table='work_jobs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='job_3_generation', sql=pgtrigger.compiler.UpsertTriggerSql(func="if NEW.generation < OLD.generation then raise exception 'work job generation never decreases'; end if; return NEW;", hash='458d324123c9df0fdb704fd1ec3f53c5694c7839', operation='UPDATE', pgid='pgtrigger_job_3_generation_f8e98', table='work_jobs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='job_4_once', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."started_at" is not null and new."started_at" is distinct from old."started_at") or (old."cancel_requested_at" is not null and new."cancel_requested_at" is distinct from old."cancel_requested_at") then raise exception \'what happens once to a work job keeps its first time\'; end if; return new;', hash='062b90a9ad62bdad2b70686b3d9a4b879d7e6e39', operation='UPDATE', pgid='pgtrigger_job_4_once_1eabd', table='work_jobs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='job_5_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='2f40b8709d05014b2b795440f4d64ccfb5babf32', operation='DELETE', pgid='pgtrigger_job_5_kept_37fd4', table='work_jobs', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "work_jobs_history" ("cancel_requested_at", "completed_at", "error_code", "generation", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "started_at", "status") SELECT new_values."cancel_requested_at", new_values."completed_at", new_values."error_code", new_values."generation", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', new_values."id", new_values."started_at", new_values."status" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='cab90c6c414c3bf2827ed540ec83ec351ec94a20', level='STATEMENT', operation='INSERT', pgid='pgtrigger_insert_insert_c4bef', referencing='REFERENCING NEW TABLE AS new_values ', table='work_jobs', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "work_jobs_history" ("cancel_requested_at", "completed_at", "error_code", "generation", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "started_at", "status") SELECT new_values."cancel_requested_at", new_values."completed_at", new_values."error_code", new_values."generation", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', new_values."id", new_values."started_at", new_values."status" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cancel_requested_at" IS DISTINCT FROM (new_values."cancel_requested_at") OR old_values."completed_at" IS DISTINCT FROM (new_values."completed_at") OR old_values."error_code" IS DISTINCT FROM (new_values."error_code") OR old_values."started_at" IS DISTINCT FROM (new_values."started_at") OR old_values."status" IS DISTINCT FROM (new_values."status")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='42147b2f981b90b87ea0f5be4582bfdf38d6ca42', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_update_update_d004a', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='work_jobs', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='machinehistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='08c17c81461724bdf2c3908a25044f45aff61f9e', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_f2737', table='machines_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machinepairing',
            trigger=pgtrigger.compiler.Trigger(name='pairing_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."code_digest" is distinct from old."code_digest" or new."poll_secret_digest" is distinct from old."poll_secret_digest" or new."name" is distinct from old."name" or new."tier" is distinct from old."tier" or new."platform" is distinct from old."platform" or new."agent_version" is distinct from old."agent_version" or new."roots" is distinct from old."roots" or new."expires_at" is distinct from old."expires_at" or new."created_at" is distinct from old."created_at" then raise exception \'machine pairing identity is immutable\'; end if; return new;', hash='a484d54809eb07e42476874d64be7c6e6a41c3d1', operation='UPDATE', pgid='pgtrigger_pairing_1_identity_f3313', table='machine_pairings', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machinepairing',
            trigger=pgtrigger.compiler.Trigger(name='pairing_2_moves', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."status" is distinct from old."status" and (old."status", new."status") not in ((\'approved\', \'claimed\'), (\'approved\', \'expired\'), (\'pending\', \'approved\'), (\'pending\', \'expired\')) then raise exception \'invalid % machine pairing transition\', old."status"; end if; return new;', hash='38cc5da73e87a36a608d315ac04a325c096744c1', operation='UPDATE', pgid='pgtrigger_pairing_2_moves_11971', table='machine_pairings', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machinepairing',
            trigger=pgtrigger.compiler.Trigger(name='pairing_3_ended', sql=pgtrigger.compiler.UpsertTriggerSql(func='if old."status" in (\'claimed\', \'expired\') and (new."machine_id" is distinct from old."machine_id" or new."sealed_token" is distinct from old."sealed_token") then raise exception \'terminal machine pairing is immutable\'; end if; return new;', hash='b7eb4162c38be887fcabd34d2ce25c90039c8727', operation='UPDATE', pgid='pgtrigger_pairing_3_ended_352e8', table='machine_pairings', when='BEFORE')),
        ),
    ]
