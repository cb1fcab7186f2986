"""Every address of the site. Of allauth only the routes for a code by e-mail exist."""

from django.contrib import admin
from django.urls import include, path
from django.views.i18n import set_language

from memory_portal.views import activity, assistant, entry, facts, privacy, stepup, suggestions, take

urlpatterns = [
    path("", facts.facts, name="facts"),
    path("facts/add", facts.add, name="add"),
    path("facts/forget", facts.forget_several, name="forget_several"),
    path("facts/keep", facts.keep_several, name="keep_several"),
    path("facts/undo", facts.undo, name="undo"),
    path("facts/<int:fact_id>", facts.fact, name="fact"),
    path("facts/<int:fact_id>/correct", facts.correct, name="correct"),
    path("facts/<int:fact_id>/forget", facts.forget, name="forget"),
    path("facts/<int:fact_id>/conversation", facts.forget_conversation, name="forget_conversation"),
    path("facts/<int:fact_id>/wrong", facts.freeze, {"why": "wrong"}, name="wrong"),
    path("facts/<int:fact_id>/not-me", facts.freeze, {"why": "not_me"}, name="not_me"),
    path("facts/<int:fact_id>/right", facts.thaw, name="thaw"),
    path("facts/<int:fact_id>/keep", facts.keep, name="keep"),
    path("facts/<int:fact_id>/checked", facts.reviewed, name="reviewed"),
    path("suggestions/", suggestions.suggestions, name="suggestions"),
    path("suggestions/<int:proposal_id>", suggestions.suggestion, name="suggestion"),
    path("suggestions/<int:proposal_id>/keep", suggestions.keep_suggestion, name="keep_suggestion"),
    path("suggestions/<int:proposal_id>/dismiss", suggestions.dismiss_suggestion, name="dismiss_suggestion"),
    path("activity/", activity.activity, name="activity"),
    path("assistant/", assistant.assistant, name="assistant"),
    path("control/", privacy.control, name="control"),
    path("control/pause-learning", privacy.pause, {"what": "learning"}, name="pause_learning"),
    path("control/pause-using", privacy.pause, {"what": "using"}, name="pause_using"),
    path("control/resume-learning", privacy.resume, {"what": "learning"}, name="resume_learning"),
    path("control/resume-using", privacy.resume, {"what": "using"}, name="resume_using"),
    path("control/choices", privacy.choices, name="choices"),
    path("control/agree", privacy.give_consent, name="give_consent"),
    path("control/withdraw", privacy.withdraw_consent, name="withdraw_consent"),
    path("control/allow-again", privacy.allow_again, name="allow_again"),
    path("control/notices", privacy.notices, name="notices"),
    path("control/theme", privacy.theme, name="theme"),
    path("control/words/add", privacy.add_word, name="add_word"),
    path("control/words/remove", privacy.remove_word, name="remove_word"),
    path("control/forget-everything", privacy.clear, name="clear"),
    path("control/receipt", privacy.receipt, name="receipt"),
    path("control/close-account", privacy.close, name="close"),
    path("closed", privacy.closed, name="closed"),
    path("take/", take.take, name="take"),
    path("take/bring", take.bring, name="bring"),
    path("take/<str:token>/", take.take_file, name="take_file"),
    path(".well-known/memory-portal-key", take.key, name="public_key"),
    path("confirm/", stepup.confirm, name="account_request_reauthentication_code"),
    path("confirm/code/", stepup.confirm_code, name="account_confirm_reauthentication_code"),
    path("sign-in/", entry.request_code, name="account_request_login_code"),
    path("sign-in/", entry.request_code, name="account_login"),
    path("sign-in/code/", entry.confirm_code, name="account_confirm_login_code"),
    path("sign-out/", entry.sign_out, name="account_logout"),
    path("enter/<str:token>", entry.enter, name="enter"),
    path("language", set_language, name="set_language"),
    path("admin/", admin.site.urls),
    path("bridge/", include("agent_bridge.urls")),
]

handler400 = "agent_bridge.wire.bad_request"
handler403 = "memory_portal.views.entry.forbidden"
handler404 = "memory_portal.views.entry.not_found"
