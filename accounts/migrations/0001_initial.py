import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(help_text="Namespace of the user's repositories; never changes.", max_length=64, unique=True)),
                ('github_id', models.BigIntegerField(blank=True, null=True, unique=True)),
                ('github_login', models.CharField(blank=True, default='', max_length=255)),
                ('github_avatar_url', models.URLField(blank=True, default='', max_length=500)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'db_table': 'users',
                'abstract': False,
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('slug'), name='users_slug_index'), models.CheckConstraint(condition=models.Q(('deleted_at__isnull', True), models.Q(('is_active', False), ('github_id__isnull', True)), _connector='OR'), name='users_deleted_cannot_sign_in_check')],
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('digest', models.CharField(max_length=128, primary_key=True, serialize=False)),
                ('token_key', models.CharField(db_index=True, max_length=25)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('expiry', models.DateTimeField(blank=True, null=True)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.CharField(blank=True, default='', max_length=80)),
                ('scopes', models.JSONField(default=list, help_text='What the token may do: read, box:control, computer:control, forge:write, work:control')),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='auth_token_set', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'api_tokens',
                'constraints': [models.UniqueConstraint(models.F('digest'), models.F('user'), name='api_tokens_digest_user_index')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('route', models.CharField(max_length=200)),
                ('key_digest', models.BinaryField(max_length=32)),
                ('body_digest', models.BinaryField(max_length=32)),
                ('status', models.PositiveSmallIntegerField(help_text='null while the first request is still at work', null=True)),
                ('answer', models.JSONField(null=True)),
                ('created_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(help_text='until when the first request may still be at work')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'api_idempotency_keys',
                'indexes': [models.Index(fields=['created_at'], name='api_idempotency_keys_age_index')],
                'constraints': [models.UniqueConstraint(fields=('user', 'route', 'key_digest'), name='api_idempotency_keys_key_index')],
            },
        ),
        migrations.CreateModel(
            name='RateWindow',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('principal', models.CharField(max_length=100)),
                ('operation', models.CharField(max_length=40)),
                ('window_start', models.DateTimeField()),
                ('count', models.PositiveIntegerField(default=0)),
            ],
            options={
                'db_table': 'rate_windows',
                'indexes': [models.Index(fields=['window_start'], name='rate_windows_age_index')],
                'constraints': [models.UniqueConstraint(fields=('principal', 'operation', 'window_start'), name='rate_windows_window_index')],
            },
        ),
    ]
