import base.sql
import django.db.models.deletion
import django.db.models.lookups
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Visitor',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('browser_key_hash', models.BinaryField(max_length=32, null=True, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='visitor', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'visitors',
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('browser_key_hash__isnull', True), ('user__isnull', False)), models.Q(('browser_key_hash__isnull', False), ('user__isnull', True)), _connector='OR'), name='visitors_identity_source_check')],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('visitor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='conversations', to='conversations.visitor')),
            ],
            options={
                'db_table': 'conversations',
                'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at__isnull', True)), fields=('visitor',), name='conversations_visitor_index')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant'), ('system', 'System')], max_length=9)),
                ('content', models.TextField(blank=True, default='')),
                ('status', models.CharField(choices=[('streaming', 'Streaming'), ('complete', 'Complete'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='complete', max_length=9)),
                ('work_job_id', models.UUIDField(blank=True, help_text='The job whose report this is.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='conversations.conversation')),
            ],
            options={
                'db_table': 'messages',
                'indexes': [models.Index(fields=['conversation', 'created_at', 'id'], name='messages_history_index'), models.Index(condition=models.Q(('work_job_id__isnull', False)), fields=['work_job_id'], name='messages_work_job_index')],
                'constraints': [models.UniqueConstraint(fields=('id', 'conversation'), name='messages_id_conversation_index'), models.CheckConstraint(condition=models.Q(('role__in', ['user', 'assistant', 'system'])), name='messages_role_check'), models.CheckConstraint(condition=models.Q(('status__in', ['streaming', 'complete', 'failed', 'cancelled'])), name='messages_status_check'), models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(base.sql.OctetLength('content'), 1048576), name='messages_content_hard_bound')],
            },
        ),
    ]
