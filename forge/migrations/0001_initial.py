import base.migrations
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.text
import pghistory.utils
import pgtrigger.compiler
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('boxes', '0005_room_for_updates'),
        ('conversations', '0001_initial'),
        ('runs', '0001_initial'),
        ('work', '0004_job_boxes'),
    ]

    operations = [
        migrations.CreateModel(
            name='Repository',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('description', models.CharField(blank=True, default='', max_length=350)),
                ('visibility', models.CharField(choices=[('public', 'everybody may read it'), ('private', 'members may read it')], default='private', max_length=7)),
                ('default_branch', models.CharField(default='main', max_length=255)),
                ('protected_branches', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), blank=True, default=list, help_text='besides the default branch, main and master', size=None)),
                ('lifecycle_state', models.CharField(choices=[('provisioning', 'being made on disk'), ('ready', 'in service'), ('failed', 'could not be made')], default='provisioning', max_length=12)),
                ('ready_at', models.DateTimeField(blank=True, null=True)),
                ('storage_key', models.CharField(editable=False, max_length=64, unique=True)),
                ('last_issue_number', models.PositiveIntegerField(default=0, editable=False)),
                ('pushed_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('owner', models.ForeignKey(help_text='its namespace', on_delete=django.db.models.deletion.PROTECT, related_name='repositories', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'forge_repositories',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['owner', '-created_at', '-id'], name='forge_repositories_list_index')],
                'constraints': [models.UniqueConstraint(models.F('owner'), django.db.models.functions.text.Lower('name'), name='forge_repositories_name_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((name ~ '^[a-z0-9][a-z0-9._-]{0,63}$' and name !~ '[.][.]|[.]$|[.]git$'), false)", (), output_field=models.BooleanField()), name='forge_repositories_name_check'), models.CheckConstraint(condition=models.Q(('visibility__in', ['public', 'private'])), name='forge_repositories_visibility_check'), models.CheckConstraint(condition=models.Q(('lifecycle_state__in', ['provisioning', 'ready', 'failed'])), name='forge_repositories_lifecycle_check'), models.CheckConstraint(condition=models.Q(models.Q(('lifecycle_state', 'ready'), _negated=True), ('ready_at__isnull', False), _connector='OR'), name='forge_repositories_ready_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(default_branch) between 1 and 255), false)', (), output_field=models.BooleanField()), name='forge_repositories_branch_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((storage_key ~ '^[0-9a-f]{32,64}$'), false)", (), output_field=models.BooleanField()), name='forge_repositories_storage_key_check')],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('lease_owner', models.IntegerField(blank=True, editable=False, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('generation', models.BigIntegerField(default=0, editable=False)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('target_kind', models.CharField(choices=[('box', 'a run on a box'), ('computer', 'an agent on a paired machine')], default='box', max_length=8)),
                ('requesting_principal', models.JSONField(help_text='type, id, actor_type and actor_id')),
                ('creation_key', models.CharField(blank=True, editable=False, max_length=256, null=True)),
                ('branch', models.CharField(max_length=255)),
                ('command', models.TextField(blank=True, help_text='what a box is to run in the cloned repository', null=True)),
                ('prompt', models.TextField(blank=True, help_text='what the agent on a computer is told', null=True)),
                ('agent_id', models.CharField(blank=True, max_length=64, null=True)),
                ('cwd', models.CharField(blank=True, max_length=500, null=True)),
                ('state', models.CharField(choices=[('admitted', 'accepted, to be started'), ('running', 'at work'), ('completed', 'done'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='admitted', max_length=9)),
                ('terminal_branch', models.CharField(blank=True, max_length=255, null=True)),
                ('terminal_commit', models.CharField(blank=True, max_length=64, null=True)),
                ('failure_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('credential_delivery_status', models.CharField(choices=[('not_applicable', 'goes with the run'), ('pending', 'not handed over yet'), ('enabled', 'handed over'), ('refused', 'not handed over')], default='not_applicable', max_length=14)),
                ('credential_delivery_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('admitted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('deadline_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('next_step_at', models.DateTimeField(blank=True, help_text='when the worker starts it, lets it expire, or stops what it started; null: never again', null=True)),
                ('step_failures', models.PositiveIntegerField(default=0, help_text='failed steps in a row')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='conversations.conversation')),
                ('conversation_box', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='boxes.box')),
                ('machine', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='work.machine')),
                ('run', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
                ('work_job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='work.job')),
            ],
            options={
                'db_table': 'forge_assignments',
                'ordering': ['-admitted_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('next_step_at__isnull', False)), fields=['next_step_at'], name='forge_assignments_due_index'), models.Index(condition=models.Q(('state__in', ['admitted', 'running'])), fields=['deadline_at'], name='forge_assignments_live_index'), models.Index(fields=['conversation', '-admitted_at', '-id'], name='forge_assignments_list_index'), models.Index(condition=models.Q(('run__isnull', False)), fields=['run'], name='forge_assignments_run_index')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['admitted', 'running'])), fields=('conversation_box',), name='forge_assignments_one_active_box_index'), models.UniqueConstraint(condition=models.Q(('state__in', ['admitted', 'running'])), fields=('machine',), name='forge_assignments_one_active_machine_index'), models.UniqueConstraint(fields=('conversation', 'creation_key'), name='forge_assignments_creation_key_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case target_kind when 'box' then conversation_box_id is not null and machine_id is null when 'computer' then machine_id is not null and conversation_box_id is null else false end), false)", (), output_field=models.BooleanField()), name='forge_assignments_target_check'), models.CheckConstraint(condition=models.Q(('state__in', ['admitted', 'running', 'completed', 'failed', 'cancelled'])), name='forge_assignments_state_check'), models.CheckConstraint(condition=models.Q(('credential_delivery_status__in', ['not_applicable', 'pending', 'enabled', 'refused'])), name='forge_assignments_delivery_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce(((state in ('completed', 'failed', 'cancelled')) = (finished_at is not null)), false)", (), output_field=models.BooleanField()), name='forge_assignments_finished_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(branch) between 1 and 255), false)', (), output_field=models.BooleanField()), name='forge_assignments_branch_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((terminal_commit is null or terminal_commit ~ '^[0-9a-f]{40}([0-9a-f]{24})?$'), false)", (), output_field=models.BooleanField()), name='forge_assignments_commit_check')],
            },
        ),
        migrations.CreateModel(
            name='AssignmentHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('state', models.CharField(choices=[('admitted', 'accepted, to be started'), ('running', 'at work'), ('completed', 'done'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='admitted', max_length=9)),
                ('failure_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('terminal_commit', models.CharField(blank=True, max_length=64, null=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='forge.assignment')),
            ],
            options={
                'db_table': 'forge_assignments_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Issue',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('title', models.CharField(max_length=256)),
                ('body', models.TextField(blank=True, default='')),
                ('state', models.CharField(choices=[('open', 'to be done'), ('closed', 'done, or not to be done')], default='open', max_length=6)),
                ('state_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('labels', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, default=list, size=None)),
                ('comment_count', models.PositiveIntegerField(default=0)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='issues', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_issues',
                'ordering': ['-number'],
                'indexes': [models.Index(fields=['repository', 'state', '-number'], name='forge_issues_state_index'), django.contrib.postgres.indexes.GinIndex(fields=['labels'], name='forge_issues_labels_index')],
                'constraints': [models.UniqueConstraint(fields=('repository', 'number'), name='forge_issues_number_index'), models.UniqueConstraint(fields=('id', 'repository'), name='forge_issues_id_repository_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((number >= 1), false)', (), output_field=models.BooleanField()), name='forge_issues_first_number_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((btrim(title) <> ''), false)", (), output_field=models.BooleanField()), name='forge_issues_title_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(body) <= 65536), false)', (), output_field=models.BooleanField()), name='forge_issues_body_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case state when 'open' then closed_at is null when 'closed' then closed_at is not null else false end), false)", (), output_field=models.BooleanField()), name='forge_issues_state_check')],
            },
        ),
        migrations.AddField(
            model_name='assignment',
            name='issue',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='forge.issue'),
        ),
        migrations.CreateModel(
            name='IssueHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('state', models.CharField(choices=[('open', 'to be done'), ('closed', 'done, or not to be done')], default='open', max_length=6)),
                ('state_reason', models.CharField(blank=True, max_length=128, null=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='forge.issue')),
            ],
            options={
                'db_table': 'forge_issues_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='PushIntent',
            fields=[
                ('repository', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='push_intent', serialize=False, to='forge.repository')),
                ('principal', models.CharField(max_length=100)),
                ('updates', models.JSONField(help_text='ref -> {old, new} as they are to become')),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': 'forge_push_intents',
            },
        ),
        migrations.CreateModel(
            name='Push',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('sequence', models.PositiveIntegerField(help_text='from 0, without gaps, in each repository')),
                ('principal', models.CharField(help_text='user:<id>, assignment:<id>, machine:<id> or operator:<what>', max_length=100)),
                ('refs', models.JSONField(help_text='ref -> {old, new}; null where it was created or deleted')),
                ('duration_ms', models.PositiveIntegerField()),
                ('recovered', models.BooleanField(default=False, help_text='written after the fact: the process that took the push had died')),
                ('recorded_at', models.DateTimeField()),
                ('previous_link', models.BinaryField(max_length=32)),
                ('link', models.BinaryField(max_length=32)),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pushes', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_pushes',
                'ordering': ['-sequence'],
                'indexes': [models.Index(fields=['principal', '-id'], name='forge_pushes_principal_index')],
                'constraints': [models.UniqueConstraint(fields=('repository', 'sequence'), name='forge_pushes_sequence_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(previous_link) = 32 and octet_length(link) = 32), false)', (), output_field=models.BooleanField()), name='forge_pushes_links_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((case when jsonb_typeof(refs) = 'object' then refs <> '{}'::jsonb else false end), false)", (), output_field=models.BooleanField()), name='forge_pushes_refs_check')],
            },
        ),
        migrations.CreateModel(
            name='MembershipHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('role', models.CharField(choices=[('owner', 'may do everything'), ('maintainer', 'may push and change the repository'), ('contributor', 'may push'), ('viewer', 'may read')], max_length=11)),
                ('user', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL)),
                ('repository', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_memberships_history',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('owner', 'may do everything'), ('maintainer', 'may push and change the repository'), ('contributor', 'may push'), ('viewer', 'may read')], max_length=11)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='repository_memberships', to=settings.AUTH_USER_MODEL)),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_memberships',
                'ordering': ['created_at', 'id'],
                'constraints': [models.UniqueConstraint(fields=('repository', 'user'), name='forge_memberships_member_index'), models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'maintainer', 'contributor', 'viewer'])), name='forge_memberships_role_check')],
            },
        ),
        migrations.CreateModel(
            name='MachineGrant',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('operations', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'fetch'), ('write', 'push')], max_length=5), size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('machine', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='repository_grants', to='work.machine')),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='machine_grants', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_machine_grants',
                'ordering': ['created_at', 'id'],
                'constraints': [models.UniqueConstraint(fields=('repository', 'machine'), name='forge_machine_grants_machine_index'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((cardinality(operations) > 0 and operations <@ array['read', 'write']::varchar[]), false)", (), output_field=models.BooleanField()), name='forge_machine_grants_operations_check')],
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('body', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('issue', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='forge.issue')),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_comments',
                'ordering': ['created_at', 'id'],
                'indexes': [models.Index(fields=['issue', 'created_at', 'id'], name='forge_comments_list_index')],
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL("coalesce((btrim(body, E' \\t\\r\\n') <> '' and octet_length(body) <= 65536), false)", (), output_field=models.BooleanField()), name='forge_comments_body_check')],
            },
        ),
        migrations.CreateModel(
            name='AssignmentCredential',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('token_digest', models.BinaryField(max_length=32, unique=True)),
                ('last_four', models.CharField(max_length=4)),
                ('branch', models.CharField(max_length=255)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('minted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('deliveries', models.PositiveIntegerField(default=0, help_text='how often a new secret was handed over')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='credential', to='forge.assignment')),
                ('repository', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_assignment_credentials',
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((octet_length(token_digest) = 32), false)', (), output_field=models.BooleanField()), name='forge_assignment_credentials_digest_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((length(last_four) = 4), false)', (), output_field=models.BooleanField()), name='forge_assignment_credentials_last_four_check')],
            },
        ),
        migrations.AddField(
            model_name='assignment',
            name='repository',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='forge.repository'),
        ),
        migrations.CreateModel(
            name='RepositoryHistory',
            fields=[
                ('pgh_id', models.AutoField(primary_key=True, serialize=False)),
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('pgh_context_id', models.UUIDField(null=True)),
                ('visibility', models.CharField(choices=[('public', 'everybody may read it'), ('private', 'members may read it')], default='private', max_length=7)),
                ('default_branch', models.CharField(default='main', max_length=255)),
                ('protected_branches', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), blank=True, default=list, help_text='besides the default branch, main and master', size=None)),
                ('lifecycle_state', models.CharField(choices=[('provisioning', 'being made on disk'), ('ready', 'in service'), ('failed', 'could not be made')], default='provisioning', max_length=12)),
                ('pgh_obj', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='history', to='forge.repository')),
            ],
            options={
                'db_table': 'forge_repositories_history',
                'abstract': False,
            },
        ),
        base.migrations.AddTrigger(
            model_name='assignmenthistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='6b465c847613627300ed517b5e788a67869febf6', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_46ea6', table='forge_assignments_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='issuehistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='b141eb24bf447c6770df91a626a60bc3fc9ab0f9', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_e6e36', table='forge_issues_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='repository',
            trigger=pgtrigger.compiler.Trigger(name='repository_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."owner_id" is distinct from old."owner_id" or new."name" is distinct from old."name" or new."storage_key" is distinct from old."storage_key" or new."created_at" is distinct from old."created_at" then raise exception \'repository identity is immutable\'; end if; return new;', hash='0504e58b69d8715f0d6e35f33936c302d1f3cb04', operation='UPDATE', pgid='pgtrigger_repository_1_identity_298df', table='forge_repositories', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='repository',
            trigger=pgtrigger.compiler.Trigger(name='repository_2_numbers', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."last_issue_number" < (OLD."last_issue_number"))', func="raise exception 'issue numbers are never reused';", hash='4726aaaf80c7f01ee639e3e2d8fd7f4e39d4a3ba', operation='UPDATE', pgid='pgtrigger_repository_2_numbers_f733d', table='forge_repositories', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='repository',
            trigger=pgtrigger.compiler.Trigger(name='repository_3_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='06c7077d2b15ab0f8df59702897d2ada3460442c', operation='DELETE', pgid='pgtrigger_repository_3_kept_75829', table='forge_repositories', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='repository',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "forge_repositories_history" ("default_branch", "lifecycle_state", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "protected_branches", "visibility") VALUES (NEW."default_branch", NEW."lifecycle_state", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', NEW."id", NEW."protected_branches", NEW."visibility"); RETURN NULL;', hash='6add83ba41246a6e484734f998726c8b6919157c', operation='INSERT', pgid='pgtrigger_insert_insert_a9dba', table='forge_repositories', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='repository',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."default_branch" IS DISTINCT FROM (NEW."default_branch") OR OLD."lifecycle_state" IS DISTINCT FROM (NEW."lifecycle_state") OR OLD."protected_branches" IS DISTINCT FROM (NEW."protected_branches") OR OLD."visibility" IS DISTINCT FROM (NEW."visibility"))', func='INSERT INTO "forge_repositories_history" ("default_branch", "lifecycle_state", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "protected_branches", "visibility") VALUES (NEW."default_branch", NEW."lifecycle_state", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', NEW."id", NEW."protected_branches", NEW."visibility"); RETURN NULL;', hash='49c09f0b90a86ac9908dba8b9b32c8cc3d0e117a', operation='UPDATE', pgid='pgtrigger_update_update_dd1d4', table='forge_repositories', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='push',
            trigger=pgtrigger.compiler.Trigger(name='push_1_chain', sql=pgtrigger.compiler.UpsertTriggerSql(func="if not coalesce(case when new.sequence = 0 then new.previous_link = decode(repeat('00', 32), 'hex')\n            else new.previous_link = (select link from forge_pushes\n                where repository_id = new.repository_id and sequence = new.sequence - 1) end, false)\n            then raise exception 'push receipt does not follow the one before it'; end if; return new;", hash='b044244b2b8a2ab29996adcaa3b67eb1362454e3', operation='INSERT', pgid='pgtrigger_push_1_chain_0fa17', table='forge_pushes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='push',
            trigger=pgtrigger.compiler.Trigger(name='push_2_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='aea75e242c8a60d254a814932e159641b8d7186f', operation='UPDATE OR DELETE', pgid='pgtrigger_push_2_kept_a08c7', table='forge_pushes', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='membershiphistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3e6218f41cb685ea45fee0205d09c549cbe1c57a', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_c0d89', table='forge_memberships_history', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "forge_memberships_history" ("pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "repository_id", "role", "user_id") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', NEW."repository_id", NEW."role", NEW."user_id"); RETURN NULL;', hash='dc72bd49c6b52064fd1d5afb30ae0b3a8fab0bc5', operation='INSERT', pgid='pgtrigger_insert_insert_17a87', table='forge_memberships', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."role" IS DISTINCT FROM (NEW."role"))', func='INSERT INTO "forge_memberships_history" ("pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "repository_id", "role", "user_id") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', NEW."repository_id", NEW."role", NEW."user_id"); RETURN NULL;', hash='741b95eb3f2e306204770433dbb3e5a939c81c21', operation='UPDATE', pgid='pgtrigger_update_update_a6bc4', table='forge_memberships', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='delete_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "forge_memberships_history" ("pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "repository_id", "role", "user_id") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'delete\', OLD."repository_id", OLD."role", OLD."user_id"); RETURN NULL;', hash='6af44ea0300326d83f9f08f1b558028289e1259b', operation='DELETE', pgid='pgtrigger_delete_delete_ce6f3', table='forge_memberships', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='issue',
            trigger=pgtrigger.compiler.Trigger(name='issue_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."repository_id" is distinct from old."repository_id" or new."number" is distinct from old."number" or new."author_id" is distinct from old."author_id" or new."created_at" is distinct from old."created_at" then raise exception \'issue identity is immutable\'; end if; return new;', hash='cbd4a370429214df0df90f14bfb88491f6f7868f', operation='UPDATE', pgid='pgtrigger_issue_1_identity_6a80f', table='forge_issues', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='issue',
            trigger=pgtrigger.compiler.Trigger(name='issue_2_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='0db199fcee054bd954c3084dc8e055bccbbd7675', operation='DELETE', pgid='pgtrigger_issue_2_kept_9962d', table='forge_issues', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='issue',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "forge_issues_history" ("closed_at", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "state", "state_reason") VALUES (NEW."closed_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', NEW."id", NEW."state", NEW."state_reason"); RETURN NULL;', hash='943d224a66262e2d265aac7aa3fd7d7c549f5cd7', operation='INSERT', pgid='pgtrigger_insert_insert_18a4c', table='forge_issues', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='issue',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."state" IS DISTINCT FROM (NEW."state") OR OLD."state_reason" IS DISTINCT FROM (NEW."state_reason"))', func='INSERT INTO "forge_issues_history" ("closed_at", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "state", "state_reason") VALUES (NEW."closed_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', NEW."id", NEW."state", NEW."state_reason"); RETURN NULL;', hash='f3643268e9b526288d5aa6037126386e9f1e84d4', operation='UPDATE', pgid='pgtrigger_update_update_8db18', table='forge_issues', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='comment',
            trigger=pgtrigger.compiler.Trigger(name='comment_1_repository', sql=pgtrigger.compiler.UpsertTriggerSql(func="if new.repository_id is distinct from (select repository_id from forge_issues where id = new.issue_id)\n                    then raise exception 'comment belongs to another repository'; end if; return new;", hash='3be83e0d960db7913a6d253fefef29d8f422be08', operation='INSERT OR UPDATE', pgid='pgtrigger_comment_1_repository_b22bc', table='forge_comments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='comment',
            trigger=pgtrigger.compiler.Trigger(name='comment_2_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='7a7c62dc098dfc2af86d3ac9f233a13fcf0ab421', operation='DELETE', pgid='pgtrigger_comment_2_kept_5d101', table='forge_comments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignmentcredential',
            trigger=pgtrigger.compiler.Trigger(name='credential_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."assignment_id" is distinct from old."assignment_id" or new."repository_id" is distinct from old."repository_id" or new."branch" is distinct from old."branch" or new."expires_at" is distinct from old."expires_at" or new."created_at" is distinct from old."created_at" then raise exception \'credential identity is immutable\'; end if; return new;', hash='ff31944278a99bc440a4676b53bb2bb4a14f9b28', operation='UPDATE', pgid='pgtrigger_credential_1_identity_31fa2', table='forge_assignment_credentials', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignmentcredential',
            trigger=pgtrigger.compiler.Trigger(name='credential_2_revoked', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."revoked_at" is not null and new."revoked_at" is distinct from old."revoked_at") then raise exception \'a revoked credential stays revoked\'; end if; return new;', hash='e41e50d404eaa50fd1ce3fc1634e10dd6f6efa79', operation='UPDATE', pgid='pgtrigger_credential_2_revoked_c34ed', table='forge_assignment_credentials', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignmentcredential',
            trigger=pgtrigger.compiler.Trigger(name='credential_3_dead', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."revoked_at" IS NOT NULL AND NEW."token_digest" IS DISTINCT FROM (OLD."token_digest"))', func="raise exception 'a revoked credential gets no new secret';", hash='d9fc8e788437062a98c798f5a2d18cf4251f3f7e', operation='UPDATE', pgid='pgtrigger_credential_3_dead_cbf84', table='forge_assignment_credentials', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignmentcredential',
            trigger=pgtrigger.compiler.Trigger(name='credential_4_attempt', sql=pgtrigger.compiler.UpsertTriggerSql(func="if new.revoked_at is not null and exists (select 1 from forge_assignments\n            where id = new.assignment_id and state in ('admitted', 'running'))\n            then raise exception 'live assignment with a revoked credential'; end if; return null;", hash='40dc226c720acf7645b78b09828b31a9b128ff26', operation='INSERT OR UPDATE', pgid='pgtrigger_credential_4_attempt_6a9c3', table='forge_assignment_credentials', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='assignmentcredential',
            trigger=pgtrigger.compiler.Trigger(name='credential_5_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='70dcaf799e9d24bcd733deefe6ddb475cfbe9280', operation='DELETE', pgid='pgtrigger_credential_5_kept_13846', table='forge_assignment_credentials', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['issue', 'admitted_at', 'id'], name='forge_assignments_issue_index'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['admitted', 'running'])), fields=('issue',), name='forge_assignments_one_active_issue_index'),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."target_kind" is distinct from old."target_kind" or new."conversation_id" is distinct from old."conversation_id" or new."conversation_box_id" is distinct from old."conversation_box_id" or new."machine_id" is distinct from old."machine_id" or new."repository_id" is distinct from old."repository_id" or new."issue_id" is distinct from old."issue_id" or new."requesting_principal" is distinct from old."requesting_principal" or new."creation_key" is distinct from old."creation_key" or new."branch" is distinct from old."branch" or new."command" is distinct from old."command" or new."prompt" is distinct from old."prompt" or new."agent_id" is distinct from old."agent_id" or new."cwd" is distinct from old."cwd" or new."admitted_at" is distinct from old."admitted_at" or new."deadline_at" is distinct from old."deadline_at" then raise exception \'assignment identity is immutable\'; end if; return new;', hash='eb4f5ef3b22bbae36198978658629b684dc43799', operation='UPDATE', pgid='pgtrigger_assignment_1_identity_21caa', table='forge_assignments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_2_terminal', sql=pgtrigger.compiler.UpsertTriggerSql(func='if old."state" in (\'cancelled\', \'completed\', \'failed\') and (new."state" is distinct from old."state" or new."run_id" is distinct from old."run_id" or new."work_job_id" is distinct from old."work_job_id" or new."terminal_branch" is distinct from old."terminal_branch" or new."terminal_commit" is distinct from old."terminal_commit" or new."failure_reason" is distinct from old."failure_reason" or new."started_at" is distinct from old."started_at" or new."finished_at" is distinct from old."finished_at" or new."credential_delivery_status" is distinct from old."credential_delivery_status" or new."credential_delivery_reason" is distinct from old."credential_delivery_reason") then raise exception \'terminal assignment is immutable\'; end if; return new;', hash='310f49690ca84458a7b91b049e5c9061db2113c4', operation='UPDATE', pgid='pgtrigger_assignment_2_terminal_383ba', table='forge_assignments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_3_credential', sql=pgtrigger.compiler.UpsertTriggerSql(func="if new.state in ('admitted', 'running') and exists (select 1 from forge_assignment_credentials\n            where assignment_id = new.id and revoked_at is not null)\n            then raise exception 'live assignment with a revoked credential'; end if; return null;", hash='d379cc3a4da5defb80da13387761b8fe9f9170b5', operation='INSERT OR UPDATE', pgid='pgtrigger_assignment_3_credential_31249', table='forge_assignments', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_4_once', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."finished_at" is not null and new."finished_at" is distinct from old."finished_at") then raise exception \'an assignment ends once\'; end if; return new;', hash='ce49a566dce8beef3216b4aee36f954fafb33869', operation='UPDATE', pgid='pgtrigger_assignment_4_once_18c12', table='forge_assignments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='assignment_5_kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='f2f6e0ac5057487d91356ebc4db4fb25a82320ac', operation='DELETE', pgid='pgtrigger_assignment_5_kept_a7780', table='forge_assignments', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='insert_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "forge_assignments_history" ("failure_reason", "finished_at", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "started_at", "state", "terminal_commit") VALUES (NEW."failure_reason", NEW."finished_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'insert\', NEW."id", NEW."started_at", NEW."state", NEW."terminal_commit"); RETURN NULL;', hash='026f972d691eabbb272ee9db5652a6405bdd2b0d', operation='INSERT', pgid='pgtrigger_insert_insert_6bd87', table='forge_assignments', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='assignment',
            trigger=pgtrigger.compiler.Trigger(name='update_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."failure_reason" IS DISTINCT FROM (NEW."failure_reason") OR OLD."state" IS DISTINCT FROM (NEW."state") OR OLD."terminal_commit" IS DISTINCT FROM (NEW."terminal_commit"))', func='INSERT INTO "forge_assignments_history" ("failure_reason", "finished_at", "pgh_context", "pgh_context_id", "pgh_created_at", "pgh_label", "pgh_obj_id", "started_at", "state", "terminal_commit") VALUES (NEW."failure_reason", NEW."finished_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_id\', TRUE), \'\'), NULL)::UUID, NOW(), \'update\', NEW."id", NEW."started_at", NEW."state", NEW."terminal_commit"); RETURN NULL;', hash='a330b387466c3a24012b05e03e5c7beee9e0982c', operation='UPDATE', pgid='pgtrigger_update_update_8068b', table='forge_assignments', when='AFTER')),
        ),
        base.migrations.AddTrigger(
            model_name='repositoryhistory',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='0d4d2c7cf918b74eee343dac32686e1a8cfa031a', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_656fd', table='forge_repositories_history', when='BEFORE')),
        ),
    ]
