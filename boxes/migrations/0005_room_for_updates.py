"""Room for the next version of a row on its own page: each pass writes every live row, and touches no index then."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("boxes", "0004_provider_deliveries")]
    operations = [
        migrations.RunSQL(
            "alter table conversation_boxes set (fillfactor = 60)",
            reverse_sql="alter table conversation_boxes reset (fillfactor)",
        )
    ]
