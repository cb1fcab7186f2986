"""Every column of every table: of which kind of the inventory it is. One that stands nowhere fails tests/test_inventory.py."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps

EVERY = "*"
"""Every column, whatever they are: for tables of other packages that are about no person."""

STATEMENT = "key value category topics source_quote source_session_id agent extractor said_at origin"

COLUMNS: dict[str, dict[str, str]] = {
    "memory_portal.Customer": {
        "identity": "id profile subject_id user display_name email region created_at",
        "choices": "learning_paused_at using_paused_at no_learn_categories no_use_categories no_learn_agents no_use_agents"
        " never_words mail_notices mailed_at language theme",
        "memory": "purge_generation cleared_at version",
        "history": "trail_seq trail_mac trail_head",
        "buried": "salt",
    },
    "memory_portal.MemoryFact": {
        "memory": f"id {STATEMENT} customer state freeze_reason frozen_at locked created_at updated_at expires_at review_at"
        " version vector"
    },
    "memory_portal.FactRevision": {
        "memory": "id fact version value category source_quote origin said_at replaced_at"
    },
    "memory_portal.Proposal": {
        "memory": f"id {STATEMENT} customer action reason fact value_mac created_at expires_at"
    },
    "memory_portal.Tombstone": {
        "buried": "id customer key value_mac quote_mac source_session_id watermark reason"
    },
    "memory_portal.Consent": {
        "consents": "id customer purpose text_version channel language given_at withdrawn_at"
    },
    "memory_portal.FactEvent": {
        "history": "id customer at kind fact_id key category code actor_kind actor_id agent xid seq prev"
        " mac"
    },
    "memory_portal.FactRead": {
        "readers": "id customer at agent key_id layer source_session_id fact_ids"
    },
    "memory_portal.Ticket": {
        "sign_in": "id customer purpose detail digest created_at expires_at used_at"
    },
    "memory_portal.ErasureLedger": {
        "erased": "epoch kind at customer_number fact_id code profile pseudonym sealed_subject"
    },
    "memory_portal.TrailEnd": {"history": "customer_number seq mac head"},
    "memory_portal.AuditSeal": {
        "machines": "number sealed_at from_id to_id month until events chained trails digest mac"
    },
    "memory_portal.PrivacyRequest": {
        "requests": "id customer kind regime channel received_at acknowledged_at asked_back_at paused_days extended_at"
        " extension_reason answered_at outcome",
        "staff": "staff_id",
    },
    "memory_portal.StaffAlert": {"staff": "id staff_id code at customers seen_at seen_by"},
    "agent_bridge.ExtractionJob": {
        "conversations": "id customer key agent profile source_session_id turns generation state attempts run_after lease_until"
        " created_at finished_at outcome counts extractor prompt_version input_tokens output_tokens cost batch reserved_tokens"
    },
    "agent_bridge.ImportLine": {"memory": "id job line subject_id text decision reason field"},
    "agent_bridge.DaySpend": {"conversations": "id day customer tokens"},
    "agent_bridge.AgentKey": {
        "machines": "id name profile prefix digest pepper_version scopes created_at expires_at revoked_at last_used_at"
    },
    "agent_bridge.Import": {
        "machines": "id key agent profile state outcome notes lines fence lease_until created_at finished_at"
    },
    "agent_bridge.IdempotencyKey": {
        "machines": "id agent_key key request_mac status resource created_at"
    },
    "agent_bridge.Webhook": {
        "machines": "id agent profile url events pepper_version cursor active created_at next_at lease_until fence failures"
        " failing_since parked_at last_code last_delivered_at delivered"
    },
    "agent_bridge.MessageBatch": {"machines": "id created_at"},
    "agent_bridge.CallWindow": {"machines": "name started_at calls"},
    "agent_bridge.Heartbeat": {"machines": "name at"},
    "auth.User": {
        "sign_in": "id password last_login username email is_active date_joined",
        "staff": "is_superuser first_name last_name is_staff",
    },
    "sessions.Session": {"sign_in": "session_key session_data expire_date"},
    "mfa.Authenticator": {"sign_in": "id user type data created_at last_used_at"},
    "account.EmailAddress": {"staff": "id user email verified primary"},
    "account.EmailConfirmation": {"staff": "id email_address created sent key"},
    "socialaccount.SocialAccount": {"sign_in": "id user provider uid last_login date_joined extra_data"},
    "socialaccount.SocialToken": {"sign_in": "id app account token token_secret expires_at"},
    "admin.LogEntry": {"staff": "id action_time user content_type object_id object_repr action_flag change_message"},
    "auth.User_groups": {"staff": "id user group"},
    "auth.User_user_permissions": {"staff": "id user permission"},
    "auth.Permission": {"machines": EVERY},
    "auth.Group": {"machines": EVERY},
    "auth.Group_permissions": {"machines": EVERY},
    "contenttypes.ContentType": {"machines": EVERY},
    "socialaccount.SocialApp": {"machines": EVERY},
}  # fmt: skip

OUTSIDE = {
    "memory_portal_cache": ("sign_in", "counted tries by place and name, used codes; gone when their time is over"),
    "ERASURE_LEDGER, a file": ("erased", "a copy of the ledger's lines without the encrypted number"),
    "AUDIT_WITNESS, a file": ("machines", "numbers, times and digests of seals; nothing of anybody"),
    "logs": ("machines", "codes, numbers and times; no name, no address, no value"),
    "backups": ("memory", "everything above, encrypted, until they age out"),
}
"""Where personal data may be beside the tables of the models."""


def kinds_of(label: str) -> Iterator[tuple[str, str]]:
    """Each column of a model with its kind, in the order of the model. Raises KeyError for a model that is not here."""
    by_column = {column: kind for kind, names in COLUMNS[label].items() for column in names.split()}
    for field in apps.get_model(label)._meta.concrete_fields:
        yield field.name, by_column.get(field.name) or by_column[EVERY]
