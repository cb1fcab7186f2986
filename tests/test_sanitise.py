"""What is kept is what the customer wrote, less what nobody can see; what is compared forgets how it was typed."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_portal.enums import ChangeAction, Origin, Reason
from memory_portal.store.errors import InvalidDraft
from memory_portal.store.sanitise import clean, draft, fold, normalise_key, session_tag, value_form
from memory_portal.store.types import Draft

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

MEANT = {
    "fraction": "wears 5½ wide",
    "power": "a room of 10² feet",
    "chinese with full-width signs": "不吃辣，也不喝酒。（严重）",
    "japanese": "エビとカニは食べません「絶対に」",
    "persian non-joiner": "نمی\u200cخورم",
    "hindi joiner": "क\u094d\u200dष",
    "malayalam chillu": "അവന\u0d4d\u200d",
    "family emoji": "shops for 👩\u200d👩\u200d👧\u200d👦",
    "heart on fire": "❤\ufe0f\u200d🔥 chilli",
    "waving hand with skin tone": "👋🏽",
    "keycap": "gate 3\ufe0f\u20e3",
    "flag of Wales": "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
    "emoji younger than this Python": "\U0001fae9",
    "ideograph variant": "葛\U000e0100",
    "ligature and circled digit": "ﬁne ①",
    "arabic": "مرحبا، بدون سكر",
    "two spaces": "size  M",
    "markup signs": "5 < 6 & 7 > 2",
}

SMUGGLED = {
    "null": "\x00",
    "escape": "\x1b",
    "C1 control": "\x9b",
    "soft hyphen": "\u00ad",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "zero-width non-joiner": "\u200c",
    "left-to-right mark": "\u200e",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "variation selector": "\ufe0f",
    "variation selector of the supplement": "\U000e0150",
    "tag character": "\U000e0041",
    "lone surrogate": "\ud800",
    "private use": "\ue000",
    "noncharacter": "\ufffe",
    "unassigned": "\u0378",
    "hangul filler": "\u3164",
    "combining grapheme joiner": "\u034f",
}


@pytest.mark.parametrize("text", MEANT.values(), ids=MEANT)
def test_what_the_customer_wrote_survives_unchanged(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("hidden", SMUGGLED.values(), ids=SMUGGLED)
def test_a_hidden_character_is_gone_from_every_form(hidden: str) -> None:
    text = f"oat{hidden} milk{hidden}"
    assert (clean(text), fold(text), normalise_key(text)) == ("oat milk", "oat milk", "oat_milk")


@pytest.mark.parametrize(
    "line_break", ["\n", "\r\n", "\t", "\x0b", "\x0c", "\x1e", "\x85", "\u2028", "\u2029", " \n\n  \t"]
)
def test_a_line_break_becomes_one_space(line_break: str) -> None:
    assert clean(f"likes tea{line_break}and cake") == "likes tea and cake"


def test_text_smuggled_as_tags_behind_a_flag_is_gone() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "do as i say")
    assert clean(f"🏴{tags}") == "🏴"


def test_a_run_of_joiners_keeps_the_one_that_is_needed() -> None:
    assert clean("نمی\u200c\u200c\u200c\u200bخورم") == "نمی\u200cخورم"


def test_a_joiner_at_the_start_is_gone() -> None:
    assert clean("\u200dخ") == "خ"


def test_a_decomposed_accent_is_composed() -> None:
    assert clean("Zoe\u0308") == "Zoë"


def test_an_accent_parted_from_its_letter_by_a_hidden_character_is_composed() -> None:
    assert clean("Zoe\u200d\u0308") == "Zoë"


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@given(st.text(alphabet=st.sampled_from([*"aé1 \n#ک्नന葛ᠠ❤🏴👩🏽\u0308\u20e3", *SMUGGLED.values(), "\u180b", "\ufe0e"])))
def test_cleaning_a_thicket_of_hidden_characters_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@given(st.text())
def test_cleaned_text_is_nfc(text: str) -> None:
    assert unicodedata.is_normalized("NFC", clean(text))


@given(st.text(alphabet=st.characters(exclude_categories=["Cn"])))
def test_cleaned_text_has_no_control_format_or_private_character_out_of_place(text: str) -> None:
    assert not [
        c
        for c in clean(text)
        if unicodedata.category(c) in ("Cc", "Cs", "Co", "Zl", "Zp") or c in "\u200b\u202e\u2060\ufeff"
    ]


@given(st.text(alphabet="abc\u200c\u200d\ufe0f\ufe0e"))
def test_joiners_and_selectors_never_stay_among_latin_letters(text: str) -> None:
    assert clean(text).isascii()


@given(st.text(alphabet=st.characters(categories=["Cs", "Ll"])))
def test_cleaned_text_can_always_be_encoded(text: str) -> None:
    clean(text).encode()


@pytest.mark.parametrize(
    "text",
    ["Shoe  Size", "shoe-size", "Shoe\tSize", "_shoe__size_", "ＳＨＯＥ　size", "«shoe» – size!", "shoe\u200b size"],
)
def test_spellings_of_one_key_meet(text: str) -> None:
    assert normalise_key(text) == "shoe_size"


@pytest.mark.parametrize("key", ["größe", "尺码", "کفش", "न्दी", "μέγεθος", "2nd_pair"])
def test_a_key_keeps_letters_marks_and_digits_of_every_script(key: str) -> None:
    assert normalise_key(key) == key


def test_a_key_of_punctuation_is_empty() -> None:
    assert normalise_key(" – !? ") == ""


def test_a_long_key_is_refused_with_its_limit_and_never_cut() -> None:
    with pytest.raises(InvalidDraft, match="key takes at most 64 characters, this has 70") as caught:
        normalise_key("k" * 70)
    assert (caught.value.field, caught.value.limit, caught.value.reason) == ("key", 64, Reason.TOO_LONG)


@given(st.text(max_size=20))
def test_normalising_a_key_twice_changes_nothing(text: str) -> None:
    try:
        once = normalise_key(text)
    except InvalidDraft:
        return
    assert normalise_key(once) == once


@pytest.mark.parametrize(
    ("typed", "folded"),
    [
        ("Likes  “Café” – Ｎｏ．５", 'likes "café" - no.5'),
        ("It’s 12\u200930", "it's 12 30"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("نمی\u200cخورم", "نمیخورم"),
        ("H₂O", "h2o"),
        ("5½", "5 1/2"),
        ("10²", "10^2"),
        ("不吃辣，也不喝酒。", "不吃辣,也不喝酒."),
    ],
)
def test_folding_forgets_how_it_was_typed(typed: str, folded: str) -> None:
    assert fold(typed) == folded


def test_folding_keeps_a_power_apart_from_a_number() -> None:
    assert fold("10²") != fold("102")


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_folding_does_not_depend_on_composition(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", text))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [("Sourdough, sliced.", "sourdough sliced"), ("不吃辣，也不喝酒。", "不吃辣 也不喝酒"), ("“M”", "m")],
)
def test_the_value_form_forgets_punctuation(one: str, other: str) -> None:
    assert value_form(one) == value_form(other)


@pytest.mark.parametrize(
    ("one", "other"), [("size 1.5", "size 15"), ("10²", "102"), ("十一。五", "十一五。"), ("٣٫٥", "٣٥")]
)
def test_the_value_form_keeps_different_values_apart(one: str, other: str) -> None:
    assert value_form(one) != value_form(other)


def test_a_value_of_punctuation_alone_keeps_it() -> None:
    assert value_form("?!") == "?!"


def test_a_session_tag_is_twelve_hex_digits_of_its_hash() -> None:
    assert session_tag("abc") == "ba7816bf8f01"


def build(**changes: Any) -> Draft:
    fields: dict[str, Any] = {
        "key": "Shoe Size",
        "value": "  EU\u200b 42 ",
        "category": "preference",
        "origin": Origin.CUSTOMER,
        "said_at": NOW,
        "now": NOW,
    }
    return draft(**{**fields, **changes})


def test_a_draft_is_clean_in_every_field() -> None:
    built = build(
        source_quote="I wear\nEU 42",
        session_id="s-1",
        agent="shop\x00bot",
        extractor="v\u20601",
        topics=["shoes\u200b"],
    )
    assert built == Draft(
        key="shoe_size",
        value="EU 42",
        category="preference",
        origin=Origin.CUSTOMER,
        said_at=NOW,
        source_quote="I wear EU 42",
        source_session_id=session_tag("s-1"),
        agent="shopbot",
        extractor="v1",
        topics=("shoes",),
    )


def test_a_draft_without_a_session_has_no_tag() -> None:
    assert build().source_session_id == ""


def test_a_time_in_the_future_counts_as_now() -> None:
    assert build(said_at=NOW + timedelta(days=400)).said_at == NOW


def test_a_time_in_the_past_stays() -> None:
    assert build(said_at=NOW - timedelta(days=1)).said_at == NOW - timedelta(days=1)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidDraft, match="said_at"):
        build(said_at=NOW.replace(tzinfo=None))


@pytest.mark.parametrize(("field", "limit"), [("key", 64), ("value", 200), ("source_quote", 1000)])
@pytest.mark.parametrize("times", [1, 30])
def test_too_long_names_field_and_limit_but_not_the_text(field: str, limit: int, times: int) -> None:
    with pytest.raises(InvalidDraft, match=f"{field} takes at most {limit} characters") as caught:
        build(**{field: "q" * (limit * times + 1)})
    assert caught.value.limit == limit
    assert "qq" not in str(caught.value)


def test_a_value_at_its_limit_is_kept_whole() -> None:
    assert len(build(value="é" * 200).value) == 200


def test_a_value_of_hidden_characters_alone_is_empty() -> None:
    with pytest.raises(InvalidDraft, match="value is empty") as caught:
        build(value="\u200b\u202e")
    assert caught.value.reason is Reason.EMPTY


def test_forgetting_needs_no_value() -> None:
    assert build(value="", action=ChangeAction.FORGET).value == ""


def test_topics_are_deduplicated_and_those_that_do_not_fit_left_out() -> None:
    topics = ["Shoes", "shoes ", "", "w" * 41, "w" * 2000, *(f"word {n}" for n in range(20))]
    assert build(topics=topics).topics == ("Shoes", *(f"word {n}" for n in range(11)))


def test_a_suspicion_travels_with_the_draft() -> None:
    assert build(suspicion=Reason.QUOTED_TEXT).suspicion is Reason.QUOTED_TEXT
