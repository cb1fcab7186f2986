"""`make eval`: the evaluation kit on the store's own rooms, every target as a gate. The kit lies beside the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KIT = ROOT.parent / "shared" / "eval" / "run.py"
TOPICS = ROOT.parent / "shared" / "data" / "prefeval_topics.json"
RECALL = ["recall", "--rank", "tests.eval_adapters:rank", "--prefetch", "tests.eval_adapters:prefetch"]
COMMANDS = [
    ["dedupe", "--judge", "tests.eval_adapters:judge"],
    ["filter", "--check", "tests.eval_adapters:check"],
    ["fence", "--render", "tests.eval_adapters:render"],
    [*RECALL, "--topics", str(TOPICS)],
]


def main() -> int:
    if not KIT.exists():
        print(f"The evaluation kit is not here ({KIT.relative_to(ROOT.parent)}); docs/recall.md says what it measures.")
        return 0
    missed = [command[0] for command in COMMANDS if measure(command, gate=True)]
    print("\nWithout topics, to compare (no gate):")
    measure(RECALL, gate=False)
    print(f"\nbelow target: {', '.join(missed)}" if missed else "\nevery target is met")
    return len(missed)


def measure(command: list[str], *, gate: bool) -> int:
    print(f"\n## {' '.join(command[:1])}", flush=True)
    extra = ["--gate", "target"] if gate else []
    return subprocess.run([sys.executable, str(KIT), *command, *extra], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
