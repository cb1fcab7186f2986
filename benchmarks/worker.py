"""One caller of one contestant, a process of its own: `python -m benchmarks.worker module:name`, spoken to in lines of JSON.

In: {"n": how many, "seed": which customers}. Out: {"elapsed", "cpu", "waits"}. A contestant is a function that is given the settings once
and returns what to do for a number; it runs in whatever environment it needs, so the worker imports nothing but Python's own.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
import traceback


def main() -> None:
    place, _, name = sys.argv[1].partition(":")
    settings = json.loads(sys.argv[2])
    try:
        act = getattr(importlib.import_module(place), name)(settings)
    except Exception:
        print(json.dumps({"skipped": traceback.format_exc(limit=1).strip().splitlines()[-1][:200]}), flush=True)
        return
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        dice = random.Random(asked["seed"])
        numbers = [dice.randint(1, settings["customers"]) for _ in range(asked["n"])]
        waits = []
        spent, began = time.process_time(), time.perf_counter()
        for number in numbers:
            at = time.perf_counter()
            act(number)
            waits.append(time.perf_counter() - at)
        told = {
            "elapsed": time.perf_counter() - began,
            "cpu": time.process_time() - spent,
            "waits": waits[::3] or waits,
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
