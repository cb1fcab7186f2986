"""Single-use links, and what a customer chose about mail and looks."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory_portal', '0005_memoryfact_vector'),
    ]

    operations = [
        migrations.AddField(
            model_name='customer',
            name='mail_notices',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='customer',
            name='mailed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='customer',
            name='theme',
            field=models.CharField(blank=True, choices=[('light', 'Light'), ('dark', 'Dark')], db_default='', max_length=5),
        ),
        migrations.CreateModel(
            name='Ticket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('purpose', models.CharField(max_length=16)),
                ('detail', models.CharField(blank=True, max_length=64)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('customer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tickets', to='memory_portal.customer')),
            ],
            options={
                'verbose_name': 'single-use link',
                'verbose_name_plural': 'single-use links',
            },
        ),
    ]
