from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_bridge', '0009_wall'),
    ]

    operations = [
        migrations.AlterField(
            model_name='extractionjob',
            name='batch',
            field=models.CharField(blank=True, db_default='', help_text="The provider's batch that it waits for.", max_length=64),
        ),
        migrations.AlterField(
            model_name='extractionjob',
            name='cost',
            field=models.DecimalField(db_default=0, decimal_places=6, default=0, help_text='Of all tries, at the prices of their day.', max_digits=12),
        ),
        migrations.AlterField(
            model_name='extractionjob',
            name='reserved_tokens',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Counted as spent until its batch answers.'),
        ),
    ]
