import django.contrib.postgres.fields
import django.db.models.deletion
import memory_portal.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Customer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("profile", models.CharField(max_length=32)),
                ("subject_id", models.CharField(max_length=128)),
                ("display_name", models.CharField(blank=True, max_length=80)),
                ("email", models.EmailField(blank=True, max_length=254)),
                (
                    "region",
                    models.CharField(blank=True, help_text="Country, for reading local phone numbers.", max_length=2),
                ),
                ("purge_generation", models.PositiveIntegerField(default=0)),
                ("cleared_at", models.DateTimeField(blank=True, null=True)),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("salt", models.BinaryField(default=memory_portal.models.new_salt, max_length=16)),
                ("learning_paused_at", models.DateTimeField(blank=True, null=True)),
                ("using_paused_at", models.DateTimeField(blank=True, null=True)),
                (
                    "no_learn_categories",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "no_use_categories",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "no_learn_agents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                (
                    "no_use_agents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                (
                    "never_words",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="customer",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "customer",
                "verbose_name_plural": "customers",
            },
        ),
        migrations.CreateModel(
            name="Consent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("purpose", models.CharField(max_length=32)),
                ("text_version", models.CharField(max_length=16)),
                ("channel", models.CharField(max_length=16)),
                ("language", models.CharField(blank=True, max_length=10)),
                ("given_at", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="consents",
                        to="memory_portal.customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "consent",
                "verbose_name_plural": "consents",
            },
        ),
        migrations.CreateModel(
            name="FactEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("learned", "Learned"),
                            ("added", "Added"),
                            ("corrected", "Corrected"),
                            ("updated", "Updated"),
                            ("renewed", "Heard again"),
                            ("forgotten", "Forgotten"),
                            ("cleared", "Forgot everything"),
                            ("expired", "Reached its end date"),
                            ("frozen", "Frozen"),
                            ("thawed", "In use again"),
                            ("proposed", "Suggested"),
                            ("accepted", "Suggestion kept"),
                            ("dismissed", "Suggestion dismissed"),
                            ("proposal_expired", "Suggestion went away"),
                            ("refused", "Refused"),
                            ("lifted", "May be learned again"),
                            ("learning_paused", "Learning paused"),
                            ("learning_resumed", "Learning resumed"),
                            ("using_paused", "Using paused"),
                            ("using_resumed", "Using resumed"),
                            ("choices_changed", "Choices changed"),
                            ("consent_given", "Consent given"),
                            ("consent_withdrawn", "Consent withdrawn"),
                            ("kept_longer", "Kept longer"),
                            ("reviewed", "Checked by you"),
                            ("revealed", "Looked at by staff"),
                            ("exported", "Taken with you"),
                            ("imported", "Imported"),
                            ("signed_in", "Signed in"),
                        ],
                        max_length=20,
                    ),
                ),
                ("fact_id", models.BigIntegerField(null=True)),
                ("key", models.CharField(blank=True, max_length=64)),
                ("code", models.CharField(blank=True, help_text="A reason or purpose code.", max_length=32)),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("customer", "you"),
                            ("staff", "our staff"),
                            ("agent", "an agent"),
                            ("job", "an agent"),
                            ("system", "this site"),
                        ],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(blank=True, max_length=64)),
                ("agent", models.CharField(blank=True, max_length=64)),
                (
                    "customer",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="events",
                        to="memory_portal.customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "event",
                "verbose_name_plural": "events",
            },
        ),
        migrations.CreateModel(
            name="FactRead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("agent", models.CharField(max_length=64)),
                ("key_id", models.BigIntegerField(null=True)),
                ("layer", models.PositiveSmallIntegerField()),
                ("source_session_id", models.CharField(blank=True, max_length=12)),
                ("fact_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                (
                    "customer",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="reads",
                        to="memory_portal.customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "read",
                "verbose_name_plural": "reads",
            },
        ),
        migrations.CreateModel(
            name="MemoryFact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("value", models.CharField(max_length=200)),
                ("category", models.CharField(max_length=32)),
                (
                    "topics",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), blank=True, default=list, size=None
                    ),
                ),
                ("source_quote", models.CharField(blank=True, max_length=1000)),
                ("source_session_id", models.CharField(blank=True, max_length=12)),
                ("agent", models.CharField(blank=True, max_length=64)),
                ("extractor", models.CharField(blank=True, max_length=64)),
                ("said_at", models.DateTimeField()),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("agent", "An agent suggested it"),
                            ("extraction", "You said it"),
                            ("staff", "Our staff noted it"),
                            ("customer", "You wrote it"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("active", "In use"), ("frozen", "Frozen")], default="active", max_length=8
                    ),
                ),
                (
                    "freeze_reason",
                    models.CharField(
                        blank=True,
                        choices=[("wrong", "This is wrong"), ("not_me", "This isn’t about me")],
                        max_length=8,
                    ),
                ),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                ("locked", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("review_at", models.DateTimeField(blank=True, null=True)),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "customer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="facts",
                        to="memory_portal.customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "fact",
                "verbose_name_plural": "facts",
            },
        ),
        migrations.CreateModel(
            name="FactRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("value", models.CharField(max_length=200)),
                ("category", models.CharField(max_length=32)),
                ("source_quote", models.CharField(blank=True, max_length=1000)),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("agent", "An agent suggested it"),
                            ("extraction", "You said it"),
                            ("staff", "Our staff noted it"),
                            ("customer", "You wrote it"),
                        ],
                        max_length=12,
                    ),
                ),
                ("said_at", models.DateTimeField()),
                ("replaced_at", models.DateTimeField()),
                (
                    "fact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="memory_portal.memoryfact",
                    ),
                ),
            ],
            options={
                "verbose_name": "former version",
                "verbose_name_plural": "former versions",
            },
        ),
        migrations.CreateModel(
            name="Proposal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("value", models.CharField(max_length=200)),
                ("category", models.CharField(max_length=32)),
                (
                    "topics",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), blank=True, default=list, size=None
                    ),
                ),
                ("source_quote", models.CharField(blank=True, max_length=1000)),
                ("source_session_id", models.CharField(blank=True, max_length=12)),
                ("agent", models.CharField(blank=True, max_length=64)),
                ("extractor", models.CharField(blank=True, max_length=64)),
                ("said_at", models.DateTimeField()),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("agent", "An agent suggested it"),
                            ("extraction", "You said it"),
                            ("staff", "Our staff noted it"),
                            ("customer", "You wrote it"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[("remember", "remember"), ("forget", "forget")], default="remember", max_length=8
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("empty", "Nothing is left of it once invisible characters are taken out."),
                            ("too_long", "It is longer than we keep."),
                            ("bad_key", "That name cannot be used."),
                            ("unknown_category", "That kind is not kept here."),
                            ("memory_off", "Memory is switched off here."),
                            ("learning_paused", "Learning is paused."),
                            ("category_off", "This kind is not remembered."),
                            ("agent_off", "This assistant may not learn."),
                            ("key_not_allowed", "Facts of this name are not kept."),
                            ("blocked_pattern", "It contains something this company never keeps."),
                            ("never_word", "It contains one of your words never to remember."),
                            ("too_many_facts", "There is no room for another fact."),
                            ("too_many_today", "Enough new facts for one day."),
                            ("too_many_in_job", "Enough new facts from one conversation."),
                            ("card", "It looks like a payment card number."),
                            ("iban", "It looks like a bank account number."),
                            ("national_id", "It looks like an identity number."),
                            ("phone", "It looks like a phone number."),
                            ("email", "It looks like an e-mail address."),
                            ("secret", "It looks like a password or a secret key."),
                            ("link", "It contains a web address."),
                            ("markup", "It contains markup or code."),
                            ("filter_failed", "It could not be checked, so it is not kept."),
                            ("no_quote", "The quoted words do not stand in what the customer said."),
                            ("bare_assent", "A bare yes proves nothing."),
                            ("ungrounded_value", "Numbers or negations of the value are not in the quoted words."),
                            ("echo", "It repeats our own memory."),
                            ("unknown_key", "There is no fact of that name."),
                            ("already_known", "It is known already."),
                            ("stale", "It was said before what is kept now."),
                            ("stale_generation", "Everything was forgotten since."),
                            ("forgotten_before", "It was forgotten after this was said."),
                            ("dismissed_before", "It was suggested before and dismissed."),
                            ("frozen", "The fact is frozen."),
                            ("not_allowed", "Only the customer may do this."),
                            ("after_forgetting", "You had us forget this and have mentioned it again since."),
                            ("differs_from_correction", "It differs from what you wrote yourself."),
                            ("lower_rank", "It differs from what somebody with a better right wrote."),
                            ("weakens_safety", "It would change something important for your safety."),
                            ("needs_consent", "It is about health or safety. We keep such things only if you agree."),
                            ("instruction_shaped", "It reads like an instruction rather than a fact."),
                            ("quoted_text", "It stands in text that you quoted or pasted."),
                            ("agent_suggestion", "An agent suggested it."),
                            ("conflicts", "It seems to contradict something we remember."),
                            ("imported", "It comes from a file that you brought."),
                        ],
                        max_length=32,
                    ),
                ),
                ("value_mac", models.CharField(max_length=32)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposals",
                        to="memory_portal.customer",
                    ),
                ),
                (
                    "fact",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposals",
                        to="memory_portal.memoryfact",
                    ),
                ),
            ],
            options={
                "verbose_name": "suggestion",
                "verbose_name_plural": "suggestions",
            },
        ),
        migrations.CreateModel(
            name="Tombstone",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("value_mac", models.CharField(max_length=32)),
                ("quote_mac", models.CharField(blank=True, max_length=32)),
                ("source_session_id", models.CharField(blank=True, max_length=12)),
                ("watermark", models.DateTimeField()),
                (
                    "reason",
                    models.CharField(
                        choices=[("forgotten", "You had us forget it"), ("dismissed", "You dismissed it")],
                        max_length=12,
                    ),
                ),
                (
                    "customer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tombstones",
                        to="memory_portal.customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "won’t be learned again",
                "verbose_name_plural": "won’t be learned again",
            },
        ),
        migrations.AddIndex(
            model_name="customer",
            index=models.Index(
                condition=models.Q(("email", ""), _negated=True), fields=["email"], name="customer_email"
            ),
        ),
        migrations.AddConstraint(
            model_name="customer",
            constraint=models.UniqueConstraint(fields=("profile", "subject_id"), name="one_customer_per_subject"),
        ),
        migrations.AddConstraint(
            model_name="consent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("withdrawn_at", None)),
                fields=("customer", "purpose"),
                name="one_consent_in_force_per_purpose",
            ),
        ),
        migrations.AddIndex(
            model_name="factevent",
            index=models.Index(fields=["customer", "-at", "-id"], name="event_by_customer"),
        ),
        migrations.AddIndex(
            model_name="factread",
            index=models.Index(fields=["customer", "-at", "-id"], name="read_by_customer"),
        ),
        migrations.AddConstraint(
            model_name="memoryfact",
            constraint=models.UniqueConstraint(fields=("customer", "key"), name="one_fact_per_key"),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.UniqueConstraint(
                fields=("customer", "action", "key", "value_mac"), name="one_proposal_per_statement"
            ),
        ),
        migrations.AddConstraint(
            model_name="tombstone",
            constraint=models.UniqueConstraint(fields=("customer", "key", "value_mac"), name="one_tombstone_per_value"),
        ),
        # Room on each page keeps updates of a fact on the page it is on, so that no index has to be touched.
        migrations.RunSQL(
            "ALTER TABLE memory_portal_memoryfact SET (fillfactor = 85)",
            "ALTER TABLE memory_portal_memoryfact RESET (fillfactor)",
        ),
    ]
