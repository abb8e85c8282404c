"""The sequence that numbers workers. Numbers fit the second half of a two-part advisory lock key."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("boxes", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "create sequence worker_numbers as integer cycle", reverse_sql="drop sequence worker_numbers"
        ),
        migrations.RunSQL(
            "create sequence fanout_queue_sequence as bigint", reverse_sql="drop sequence fanout_queue_sequence"
        ),
    ]
