"""Two hundred texts that want to run: as markup, as a template, as an address, as a formula. Each sets `ran` where it succeeds."""

from __future__ import annotations

from itertools import islice, product

RUN = "window.ran=1"
MARKUP = [
    "<script>{run}</script>",
    "<img src=x onerror={run}>",
    "<svg onload={run}>",
    '"><script>{run}</script>',
    "'><img src=x onerror='{run}'>",
    '" autofocus onfocus="{run}',
    "' onmouseover='{run}",
    "</textarea><script>{run}</script>",
    "</title><script>{run}</script>",
    "</style><script>{run}</script>",
    "<iframe srcdoc='<script>parent.{run}</script>'>",
    "<body onload={run}>",
    "<details open ontoggle={run}>",
    "<a href=javascript:{run}>x</a>",
    "javascript:{run}",
    "<form action=javascript:{run}><button>",
    "<object data=javascript:{run}>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror={run}>",
    "<div hx-get=/ hx-trigger=load hx-on::load={run}>",
    "<div hx-on:click={run} data-hx-trigger=load>",
    "<meta http-equiv=refresh content='0;javascript:{run}'>",
    "<link rel=stylesheet href=//evil.example>",
    "<base href=//evil.example>",
    "]]><script>{run}</script>",
    "--><script>{run}</script>",
    "<noscript><p title='</noscript><img src onerror={run}>'>",
    "<!--<script>{run}//-->",
    "<xmp><script>{run}</script>",
]
TEMPLATE = [
    "{{{{ settings.SECRET_KEY }}}}",
    "{{% load static %}}",
    "{{0.__class__}}",
    "%(secret)s",
    "${{{run}}}",
    "{{{{7*7}}}}",
]
FORMULA = [
    "=HYPERLINK(1)", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1,1)", "\t=1", "\r=1", "=1+1;A", '"=1+1"', "'=1",
    "＝1+1", "=IMPORTXML(1)", "=DDE(1)", "+A1", "-A1", "@A1",
]  # fmt: skip
FRAMES = ["{}", "a{}", " {}", "\u200b{}", "{}\u202e", "x\u0027{}"]


def payloads() -> list[str]:
    """200, all different, each short enough for a value."""
    made = (frame.format(text) for frame, text in product(FRAMES, [text.format(run=RUN) for text in MARKUP + TEMPLATE]))
    texts = dict.fromkeys([*FORMULA, *made])
    chosen = list(islice((text for text in texts if len(text) <= 200), 200))
    assert len(chosen) == 200
    return chosen
