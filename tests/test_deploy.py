"""What lies in deploy/ and is said about it: every path, command, variable and metric that is named there exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory_portal import postgres
from tests.figures import Figure
from tests.test_settings import SAFE, load

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
SETTINGS = (ROOT / "memory_portal" / "settings.py").read_text("utf-8")
VARIABLES = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS)) | set(re.findall(r'secret\("([A-Z_]+)"\)', SETTINGS))
UNITS = sorted((DEPLOY / "systemd").glob("*"))


def named(text: str) -> set[str]:
    """The variables a file sets, a secret's file standing for the secret."""
    return {
        name.removesuffix("_FILE") for name in re.findall(r"^\s*#? ?([A-Z][A-Z_]{3,})(?:=|:\s)", text, re.MULTILINE)
    }


def compose() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return told


def test_the_deployment_check_has_no_warning(figure: Figure) -> None:
    ran = subprocess.run([DEPLOY / "check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "no issues" in ran.stdout
    figure("W8", "check --deploy --fail-level WARNING on production settings: 0 warnings")


def test_every_variable_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert sorted(name for name in VARIABLES if f"`{name}`" not in readme) == []


def test_deploy_names_no_variable_that_the_settings_do_not_read() -> None:
    assert named((DEPLOY / "environment.example").read_text("utf-8")) <= VARIABLES
    environment = set(compose()["x-portal"]["environment"])
    assert {name.removesuffix("_FILE") for name in environment} <= VARIABLES
    image = (DEPLOY / "Dockerfile").read_text("utf-8")
    set_there = set(re.findall(r"\b([A-Z_]{5,})=", image)) - {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    assert set_there <= VARIABLES


def test_the_example_of_an_environment_starts_in_production(tmp_path: Path) -> None:
    subprocess.run([DEPLOY / "make-secrets", tmp_path], check=True, capture_output=True)
    text = (DEPLOY / "environment.example").read_text("utf-8").replace("/etc/memory-portal/secrets", str(tmp_path))
    text = text.replace("/run/memory-portal", str(tmp_path / "run")).replace(
        "/var/lib/memory-portal", str(tmp_path / "var")
    )
    told = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z_]+=", line))
    assert load(**{**dict.fromkeys(SAFE), **told}).stdout.strip() == "started True"


def test_what_compose_gives_starts_in_production(tmp_path: Path) -> None:
    subprocess.run([DEPLOY / "make-secrets", tmp_path], check=True, capture_output=True)
    told = {
        name: str(value).replace("/run/secrets", str(tmp_path)).replace("${SITE}", "memory.example.com")
        for name, value in compose()["x-portal"]["environment"].items()
    }
    told |= {"ENVIRONMENT": "production", "ALLOWED_HOSTS": "memory.example.com", "VAR_DIR": str(tmp_path / "var")}
    started = load(**{**dict.fromkeys(SAFE), **told})
    assert started.stdout.strip() == "started True", started.stderr


def test_secrets_are_made_once_differ_and_are_nobody_elses(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([DEPLOY / "make-secrets", tmp_path / "s"], check=True, capture_output=True)
        made = {path.name: path.read_text() for path in (tmp_path / "s").iterdir()}
    assert set(made) == set(compose()["secrets"])
    assert len({text for name, text in made.items() if not name.endswith("_url")}) == 10
    assert min(len(text) for name, text in made.items() if not name.endswith("_url")) >= 50, "Django asks for 50"
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_compose_is_whole() -> None:
    told = compose()
    services = told["services"]
    assert set(services) == {"proxy", "migrate", "web", "worker", "scheduler", "database", "broker"}
    for name in ("migrate", "web", "worker", "scheduler"):
        mine = services[name]
        assert mine["read_only"]
        assert mine["cap_drop"] == ["ALL"]
        assert set(mine["secrets"]) <= set(told["secrets"])
        assert {volume.partition(":")[0] for volume in mine["volumes"]} <= set(told["volumes"])
    for service in services.values():
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            assert source in told["volumes"] or (DEPLOY / source).exists(), mount
    asked = " ".join(services["database"]["command"].split())
    given = dict(re.findall(r"-c (\w+)=(\S+)", asked))
    assert {name: given.get(name) for name in postgres.QUIET if name != "log_min_duration_sample"} == {
        name: value for name, value in postgres.QUIET.items() if name != "log_min_duration_sample"
    }
    assert [name for name, service in services.items() if service.get("ports")] == ["proxy"]


def commands() -> Iterator[tuple[str, list[str]]]:
    for name in ("migrate", "worker", "scheduler"):
        command = compose()["services"][name]["command"]
        if command[0] == "sh":
            for number, part in enumerate(command[2].split(" && ")):
                yield f"compose {name} {number}", part.split()
        else:
            yield f"compose {name}", command
    image = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text("utf-8"))
    yield "image", json.loads(image.rpartition("\nCMD ")[2])
    for unit in UNITS:
        if found := re.search(r"^ExecStart=(.+)$", unit.read_text("utf-8"), re.MULTILINE):
            yield unit.name, found[1].split()


COMMANDS = list(commands())


@pytest.mark.parametrize(("where", "command"), COMMANDS, ids=[where for where, _ in COMMANDS])
def test_every_command_exists_with_its_options(where: str, command: list[str]) -> None:
    program = Path(command[0].replace("/opt/memory-portal", str(ROOT)))
    path = program if program.is_absolute() else Path(shutil.which(command[0], path=f"{ROOT}/.venv/bin") or "")
    assert path.is_file(), command[0]
    assert os.access(path, os.X_OK)
    if path.name in ("granian", "celery"):
        subcommand = [word for word in command[1:] if word in ("worker", "beat")]
        helps = subprocess.run([path, *subcommand, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
        options = {word.partition("=")[0] for word in command[1:] if word.startswith("--")}
        assert options <= set(re.findall(r"--[\w-]+", helps.stdout)), options
    if "manage.py" in command:
        assert (
            subprocess.run([path, *command[1:], "--help"], cwd=ROOT, capture_output=True, check=False).returncode == 0
        )


def test_the_image_copies_what_is_there_and_runs_as_nobody() -> None:
    image = (DEPLOY / "Dockerfile").read_text("utf-8")
    let_in = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"
    }
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", image, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert name in let_in, name
    assert re.findall(r"^USER (\S+)", image, re.MULTILINE) == ["10001"]
    assert "--require-hashes" in image
    assert "HEALTHCHECK" in image
    assert not re.search(r"(?i)secret_key=|password=", image)
    assert re.findall(r"^FROM (\S+)", image, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_the_static_files_of_the_image_can_be_collected(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "STATIC_ROOT": str(tmp_path / "static"),
        "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}",
    }
    command = [DEPLOY / "with-throw-away-secrets", "python", "manage.py", "collectstatic", "--no-input", "-v0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert (tmp_path / "static" / "staticfiles.json").is_file()


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd here")
    for unit in UNITS:
        text = unit.read_text("utf-8").replace("/opt/memory-portal", str(ROOT))
        (tmp_path / unit.name).write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))
    for unit in UNITS:
        for wanted in re.findall(r"memory-portal[\w-]*\.(?:service|timer|target)", unit.read_text("utf-8")):
            assert (DEPLOY / "systemd" / wanted).exists(), wanted
    ran = subprocess.run(
        [program, "verify", "--recursive-errors=no", *(tmp_path / unit.name for unit in UNITS)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    mine = [line for line in ran.stderr.splitlines() if "memory-portal" in line]
    assert mine == [], ran.stderr


# --- dashboard and alerts ---------------------------------------------------------------------------------------------


@pytest.fixture
def metrics_there(db: None) -> dict[str, set[str]]:
    """Each metric with its labels, as /metrics tells them."""
    from prometheus_client import REGISTRY

    from agent_bridge import tasks, vitals
    from memory_portal import metrics

    tasks.sweep()
    metrics.answered("facts", "GET", 200, 0.1, "not_found")
    metrics.task_ended("agent_bridge.sweep", "success", 0.1)
    there: dict[str, set[str]] = {"up": {"job"}, "portal_database_up": set()}
    for family in REGISTRY.collect():
        for sample in family.samples:
            there.setdefault(sample.name, set()).update(sample.labels)
    for name, _, label, _ in vitals.gauges():
        there[name] = {label} - {""}
    return there


def expressions() -> list[str]:
    board = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return asked + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_every_metric_of_the_dashboard_and_the_alerts_exists(metrics_there: dict[str, set[str]]) -> None:
    asked = expressions()
    assert len(asked) > 20
    for text in asked:
        names = set(re.findall(r"\b(portal_\w+|up)\b", text))
        assert names, text
        assert names <= set(metrics_there), text
        labels = set(re.findall(r'(\w+)=~?"', text)) | set(
            re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", text)))
        )
        assert labels <= set().union(*(metrics_there[name] for name in names)), text


def test_the_dashboard_is_one_page_without_gaps() -> None:
    panels = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(panels) == len(set(places)) <= 12
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_each_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert f"`{rule['alert']}`" in text, rule["alert"]
