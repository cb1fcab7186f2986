"""What the product is made of: every package pinned by its hash and named in the SBOM, nothing for bandit, no secret in a file."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agent_bridge.auth import KEY, new_key, well_formed
from tests.figures import Figure

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.txt", "requirements-dev.txt")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)
RULES = {"B703": "S308"}
"""Where ruff has bandit's rule under another number."""
HOSTS = re.compile(r"https?://(?!127\.0\.0\.1|localhost)[\w.-]+")


def entries(lock: str) -> dict[str, str]:
    """Each package's lines, by name and version."""
    text = (ROOT / lock).read_text("utf-8")
    starts = [*PINNED.finditer(text)]
    ends = [found.start() for found in starts[1:]] + [len(text)]
    return {f"{found[1]}=={found[2]}": text[found.start() : end] for found, end in zip(starts, ends, strict=True)}


def tracked() -> list[Path]:
    """The files of the repository; those of a folder without git, such as an archive, are all that are no cache."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    away = {".venv", "var", ".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
    return [path for path in ROOT.rglob("*") if path.is_file() and away.isdisjoint(path.parts)]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        try:
            found.append((path, path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_by_its_hashes_and_no_index_is_named(lock: str, figure: Figure) -> None:
    found = entries(lock)
    text = (ROOT / lock).read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith(("#", "--hash"))]
    assert len(lines) == len(found) > 50, "each is one package with one version"
    unhashed = [name for name, said in found.items() if "--hash=sha256:" not in said]
    assert unhashed == []
    assert not HOSTS.search(text)
    assert "--index" not in text
    assert "--find-links" not in text
    figure("O2", f"{lock}: {len(found)} of {len(found)} packages pinned by version and hash")


def test_both_locks_agree() -> None:
    run, dev = ({name.split("==")[0]: name for name in entries(lock)} for lock in LOCKS)
    assert {name: version for name, version in run.items() if dev.get(name, version) != version} == {}


def test_the_sbom_is_the_lock(figure: Figure) -> None:
    sbom = json.loads((ROOT / "sbom.json").read_text("utf-8"))
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    named = {f"{one['name']}=={one['version']}": one for one in sbom["components"]}
    locked = entries("requirements.txt")
    assert set(named) == set(locked)
    for name, one in named.items():
        assert {digest["content"] for digest in one["hashes"]} == set(
            re.findall(r"sha256:([0-9a-f]{64})", locked[name])
        )
        assert one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}"
    unlicensed = [name for name, one in named.items() if not one.get("licenses")]
    assert len(unlicensed) <= 6, unlicensed  # those of other systems are not installed here
    assert "distribution" not in json.dumps(sbom)
    figure(
        "O2",
        f"SBOM: {len(named)} of {len(locked)} locked packages with hashes, {len(named) - len(unlicensed)} with a licence",
    )


def test_bandit_finds_nothing_that_has_no_reason_beside_it(figure: Figure) -> None:
    """A line may carry ruff's `noqa` of the same rule, with its reason; the numbers are the same."""
    ran = subprocess.run(
        [sys.executable, "-m", "bandit", "-q", "-c", "pyproject.toml", "-r", "memory_portal", "agent_bridge", "-f", "json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = json.loads(ran.stdout)
    assert told["errors"] == []
    left, answered = [], Counter[str]()
    for one in told["results"]:
        lines = (ROOT / one["filename"]).read_text("utf-8").splitlines()
        first, last = one["line_range"][0] - 1, one["line_range"][-1] + 1
        rule = RULES.get(one["test_id"], f"S{one['test_id'][1:]}")
        if rule in " ".join(re.findall(r"# noqa: (.*)", "\n".join(lines[first:last]))):
            answered[one["test_id"]] += 1
        else:
            left.append(f"{one['filename']}:{one['line_number']} {one['test_id']} {one['issue_text']}")
    assert left == []
    seen = told["metrics"]["_totals"]["loc"]
    figure("O2", f"bandit over {seen:,} lines: 0 findings without a reason ({answered.total()} with one)")


# --- secrets ----------------------------------------------------------------------------------------------------------

# detect-secrets had its last release in 2024; these are the published forms of what would be worth stealing.
SECRETS = {
    "private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{40}"),
    "agent key": re.compile(KEY.pattern),
    "Anthropic": re.compile(r"sk-ant-[A-Za-z0-9_-]{24,}"),
    "AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{40}"),
    "Slack": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{20,}"),
    "Stripe": re.compile(r"\b[rs]k_live_[0-9A-Za-z]{20,}"),
    "Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "web token": re.compile(r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}"),
    "assigned": re.compile(
        r"(?i)\b[a-z_]*(?:secret|password|token|api_?key|pepper)[a-z_]*[\"']?\s*[:=]\s*[\"']([A-Za-z0-9+/=_-]{20,})[\"']"
    ),
}
INVENTED = ("tests/", "docs/", "examples/", "agent_bridge/demo/")
"""Where texts are about secrets, and each is invented: only what is a key of ours to the last sign counts there."""


def bits(text: str) -> float:
    """Shannon entropy of a sign."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def secrets(path: str, text: str) -> list[str]:
    found = []
    for kind, form in SECRETS.items():
        for match in form.finditer(text):
            if kind == "agent key" and not well_formed(match[0]):
                continue
            if kind != "agent key" and path.startswith(INVENTED):
                continue
            if kind == "assigned" and bits(match[1]) < 3.7:
                continue
            found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1} {kind}")
    return found


def test_no_file_holds_a_secret(figure: Figure) -> None:
    files = texts()
    found = [one for path, text in files for one in secrets(str(path.relative_to(ROOT)), text)]
    assert found == []
    figure("O2", f"secret scan of {len(files)} files by {len(SECRETS)} patterns: 0 found")


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(new_key(), id="a key of agents"),
        "AKIA" + "Q3EGRIYK7XW2ZP4M",
        "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
        "sk-ant-" + "api03-Zk3vQ9xLw2Rt8Yb5Nc7Md4",
        "xoxb-" + "2147483647-abcdefGHIJKL",
        "SECRET_KEY = '" + "q8Zr3TvLx0pKd7WnYb2MfHc5" + "'",
        '"db_password": "' + "hV4kPz9QmX7tLw2RbN8cYd3J" + '"',
        "-----BEGIN PRIVATE" + " KEY-----\n" + "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg",
    ],
)
def test_the_scan_finds_what_is_planted(planted: str) -> None:
    assert secrets("memory_portal/settings.py", f"# a note\n{planted}\n")


def test_no_file_names_a_package_index() -> None:
    index = re.compile(
        r"(?i)pypi\.org|pythonhosted|registry\.npmjs|ghcr\.io|docker\.io|quay\.io|(?<!no-emit-)index-url|extra-index"
    )
    named = [str(path) for path, text in texts() if path.name != Path(__file__).name and index.search(text)]
    assert named == []


@pytest.mark.deep
def test_the_advisory_services_know_of_no_vulnerability(figure: Figure) -> None:
    ran = subprocess.run([sys.executable, "deploy/audit"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    figure("O2", "pip-audit: " + "; ".join(ran.stdout.strip().splitlines()))
