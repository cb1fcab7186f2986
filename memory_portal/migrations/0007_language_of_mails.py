"""In which language a customer is written to."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory_portal', '0006_taking_along'),
    ]

    operations = [
        migrations.AddField(
            model_name='customer',
            name='language',
            field=models.CharField(blank=True, db_default='', help_text='Of mails.', max_length=10),
        ),
    ]
