"""The groups of staff. Permissions that are there already are given to them here; those to come when they come into being."""

from django.conf import settings
from django.db import migrations

from openagents_site.staff.roles import grant, make_groups


def install(apps, schema_editor):
    groups = apps.get_model("auth", "Group")
    make_groups(groups)
    grant(groups, apps.get_model("auth", "Permission").objects.select_related("content_type"))


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
