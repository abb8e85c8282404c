import base.migrations
import django.core.serializers.json
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import pgtrigger.compiler
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('work', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='MachineFrame',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('seq', models.BigIntegerField(blank=True, null=True)),
                ('kind', models.CharField(max_length=16)),
                ('body', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': 'machine_frames',
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='MachineRequest',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=16)),
                ('answer', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'machine_requests',
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Delegation',
            fields=[
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='on_machine', serialize=False, to='work.job')),
                ('attempt', models.PositiveIntegerField(default=1, help_text='how often it was offered')),
                ('offered_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='first offer; the time that it may take counts from here')),
                ('accepted_at', models.DateTimeField(blank=True, help_text='when the machine took this attempt', null=True)),
                ('absent_until', models.DateTimeField(blank=True, help_text='until when a machine that is gone is waited for', null=True)),
                ('closed_at', models.DateTimeField(blank=True, help_text='when it ended and the machine knows, or will hear it', null=True)),
                ('session_id', models.CharField(blank=True, default='', max_length=512)),
                ('model', models.CharField(blank=True, default='', max_length=128)),
                ('reasoning', models.CharField(blank=True, default='', max_length=128)),
                ('mode', models.CharField(blank=True, default='', max_length=128)),
                ('tool_calls', models.PositiveIntegerField(default=0)),
                ('refused_permissions', models.PositiveIntegerField(default=0)),
                ('permissions', models.JSONField(blank=True, default=list, help_text='the last ones the agent asked for')),
                ('machine', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='delegations', to='work.machine')),
            ],
            options={
                'db_table': 'work_delegations',
                'ordering': ['-offered_at'],
                'indexes': [models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['machine'], name='work_delegations_open_index')],
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((attempt >= 1), false)', (), output_field=models.BooleanField()), name='work_delegations_counting_check'), models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((permissions is null or octet_length(permissions::text) <= 16384), false)', (), output_field=models.BooleanField()), name='work_delegations_permissions_check')],
            },
        ),
        migrations.CreateModel(
            name='MachineChannel',
            fields=[
                ('machine', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='channel', serialize=False, to='work.machine')),
                ('epoch', models.BigIntegerField(default=0, help_text='grows with each connection; older ones are refused')),
                ('received_seq', models.BigIntegerField(default=0, help_text='the last frame of the machine that was taken')),
                ('sent_seq', models.BigIntegerField(default=0, help_text='the last number given to a frame for the machine')),
                ('connected_at', models.DateTimeField(blank=True, null=True)),
                ('closed_at', models.DateTimeField(blank=True, help_text='when the machine said goodbye', null=True)),
            ],
            options={
                'db_table': 'machine_channels',
                'constraints': [models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((epoch >= 0 and received_seq >= 0 and sent_seq >= 0), false)', (), output_field=models.BooleanField()), name='machine_channels_numbers_check')],
            },
        ),
        base.migrations.AddTrigger(
            model_name='machinechannel',
            trigger=pgtrigger.compiler.Trigger(name='channel_epoch', sql=pgtrigger.compiler.UpsertTriggerSql(func="if NEW.epoch < OLD.epoch then raise exception 'epoch of a machine channel never decreases'; end if; return NEW;", hash='707e0a08ec2d16fcba6353160e236c7c7c384dea', operation='UPDATE', pgid='pgtrigger_channel_epoch_c95fa', table='machine_channels', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machinechannel',
            trigger=pgtrigger.compiler.Trigger(name='channel_received_seq', sql=pgtrigger.compiler.UpsertTriggerSql(func="if NEW.received_seq < OLD.received_seq then raise exception 'received_seq of a machine channel never decreases'; end if; return NEW;", hash='f8c418e03edc8914b7a41a0bc521447c16296ffe', operation='UPDATE', pgid='pgtrigger_channel_received_seq_9bc7d', table='machine_channels', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='machinechannel',
            trigger=pgtrigger.compiler.Trigger(name='channel_sent_seq', sql=pgtrigger.compiler.UpsertTriggerSql(func="if NEW.sent_seq < OLD.sent_seq then raise exception 'sent_seq of a machine channel never decreases'; end if; return NEW;", hash='57a50b7c482f6173b34188bd3665e50b3ade275a', operation='UPDATE', pgid='pgtrigger_channel_sent_seq_0de8e', table='machine_channels', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='machineframe',
            name='machine',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='frames', to='work.machine'),
        ),
        migrations.AddField(
            model_name='machinerequest',
            name='machine',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='work.machine'),
        ),
        base.migrations.AddTrigger(
            model_name='delegation',
            trigger=pgtrigger.compiler.Trigger(name='delegation_1_identity', sql=pgtrigger.compiler.UpsertTriggerSql(func='if new."job_id" is distinct from old."job_id" or new."machine_id" is distinct from old."machine_id" or new."offered_at" is distinct from old."offered_at" then raise exception \'work delegation identity is immutable\'; end if; return new;', hash='01e99c2595424c9c478ddf60fd1a8eb69985d5b1', operation='UPDATE', pgid='pgtrigger_delegation_1_identity_4e9a2', table='work_delegations', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='delegation',
            trigger=pgtrigger.compiler.Trigger(name='delegation_2_attempt', sql=pgtrigger.compiler.UpsertTriggerSql(func="if NEW.attempt < OLD.attempt then raise exception 'work delegation attempt never decreases'; end if; return NEW;", hash='041076b20746bd01e4524151597eb3e74288b3e0', operation='UPDATE', pgid='pgtrigger_delegation_2_attempt_2ace1', table='work_delegations', when='BEFORE')),
        ),
        base.migrations.AddTrigger(
            model_name='delegation',
            trigger=pgtrigger.compiler.Trigger(name='delegation_3_closed', sql=pgtrigger.compiler.UpsertTriggerSql(func='if (old."closed_at" is not null and new."closed_at" is distinct from old."closed_at") then raise exception \'a closed work delegation stays closed\'; end if; return new;', hash='8aefb1aa42c3b65af6f3e842ccd06f1d17353a2e', operation='UPDATE', pgid='pgtrigger_delegation_3_closed_709ee', table='work_delegations', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='machineframe',
            index=models.Index(fields=['machine', 'id'], name='machine_frames_machine_index'),
        ),
        migrations.AddConstraint(
            model_name='machineframe',
            constraint=models.UniqueConstraint(fields=('machine', 'seq'), name='machine_frames_seq_index'),
        ),
        migrations.AddConstraint(
            model_name='machineframe',
            constraint=models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((body is null or octet_length(body::text) <= 65536), false)', (), output_field=models.BooleanField()), name='machine_frames_body_check'),
        ),
        migrations.AddIndex(
            model_name='machinerequest',
            index=models.Index(fields=['created_at'], name='machine_requests_age_index'),
        ),
        migrations.AddConstraint(
            model_name='machinerequest',
            constraint=models.CheckConstraint(condition=django.db.models.expressions.RawSQL('coalesce((answer is null or octet_length(answer::text) <= 65536), false)', (), output_field=models.BooleanField()), name='machine_requests_answer_check'),
        ),
        migrations.AddConstraint(
            model_name='machinerequest',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('answer__isnull', True), ('answered_at__isnull', True)), models.Q(('answer__isnull', False), ('answered_at__isnull', False)), _connector='OR'), name='machine_requests_shape_check'),
        ),
    ]
