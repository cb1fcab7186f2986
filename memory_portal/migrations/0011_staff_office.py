"""Requests by hand and alarms about staff: new tables; and what may be permitted about a fact."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory_portal', '0010_months'),
    ]

    operations = [
        migrations.CreateModel(
            name='PrivacyRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('access', 'Access'), ('correction', 'Correction'), ('erasure', 'Erasure'), ('objection', 'Objection'), ('complaint', 'Complaint')], max_length=10, verbose_name='asks for')),
                ('regime', models.CharField(choices=[('gdpr', 'GDPR'), ('ccpa', 'CCPA'), ('uk', 'UK GDPR')], max_length=4, verbose_name='law')),
                ('channel', models.CharField(choices=[('letter', 'Letter'), ('mail', 'E-mail'), ('phone', 'Phone'), ('form', 'Form'), ('in_person', 'In person')], max_length=9, verbose_name='came by')),
                ('received_at', models.DateTimeField(verbose_name='received')),
                ('acknowledged_at', models.DateTimeField(blank=True, null=True, verbose_name='acknowledged')),
                ('asked_back_at', models.DateTimeField(blank=True, null=True, verbose_name='asked back')),
                ('paused_days', models.PositiveSmallIntegerField(default=0, verbose_name='days stood still')),
                ('extended_at', models.DateTimeField(blank=True, null=True, verbose_name='extended')),
                ('extension_reason', models.CharField(blank=True, choices=[('complex', 'It is complex'), ('numerous', 'There are many requests')], max_length=8, verbose_name='why extended')),
                ('answered_at', models.DateTimeField(blank=True, null=True, verbose_name='answered')),
                ('outcome', models.CharField(blank=True, choices=[('done', 'Done'), ('nothing_held', 'Nothing is held'), ('who_unknown', 'Refused: it could not be told who asks'), ('unfounded', 'Refused: unfounded or excessive'), ('withdrawn', 'Withdrawn')], max_length=12, verbose_name='outcome')),
                ('staff_id', models.BigIntegerField(help_text='The number of the member of staff.', verbose_name='entered by')),
            ],
            options={
                'verbose_name': 'request by hand',
                'verbose_name_plural': 'requests by hand',
            },
        ),
        migrations.CreateModel(
            name='StaffAlert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('staff_id', models.BigIntegerField(verbose_name='member of staff')),
                ('code', models.CharField(default='many_customers', max_length=32)),
                ('at', models.DateTimeField(verbose_name='at')),
                ('customers', models.PositiveIntegerField(verbose_name='customers')),
                ('seen_at', models.DateTimeField(blank=True, null=True, verbose_name='seen')),
                ('seen_by', models.BigIntegerField(blank=True, null=True, verbose_name='seen by')),
            ],
            options={
                'verbose_name': 'alarm about staff',
                'verbose_name_plural': 'alarms about staff',
            },
        ),
        migrations.AlterModelOptions(
            name='memoryfact',
            options={'permissions': [('reveal_memoryfact', 'Can look at a value'), ('view_policy', 'Can read the policy')], 'verbose_name': 'fact', 'verbose_name_plural': 'facts'},
        ),
        migrations.AddField(
            model_name='privacyrequest',
            name='customer',
            field=models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='requests', to='memory_portal.customer', verbose_name='customer'),
        ),
        migrations.AddIndex(
            model_name='staffalert',
            index=models.Index(fields=['staff_id', '-at'], name='alert_by_staff'),
        ),
        migrations.AddIndex(
            model_name='privacyrequest',
            index=models.Index(condition=models.Q(('answered_at', None)), fields=['received_at'], name='request_open'),
        ),
        migrations.AddIndex(
            model_name='privacyrequest',
            index=models.Index(condition=models.Q(('answered_at__isnull', False)), fields=['answered_at'], name='request_ended'),
        ),
    ]
