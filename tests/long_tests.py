"""Which tests are long: measured, not guessed. The tests named in long_tests.txt are slow ones (`make verify`).

    COSTS=costs.jsonl pytest -n 2 -m "slow or not slow"     # conftest.py writes the CPU seconds of each test
    python tests/long_tests.py costs.jsonl                  # writes long_tests.txt

A test is long if its call takes over LIMIT CPU seconds, children included. Of a test with parameters the cheapest case
stays a quick one, whatever it takes; so do the tests of tests/hostile, which guard users' data.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

LIMIT = 4.0
NAMES = Path(__file__).with_name("long_tests.txt")
ALWAYS_QUICK = ("tests/hostile/",)


def long_tests() -> frozenset[str]:
    """The stored names."""
    return frozenset(NAMES.read_text().splitlines()[1:])


def choose(costs: dict[str, float]) -> list[str]:
    """The names of the tests that are long."""
    cases = defaultdict(list)
    for name in costs:
        cases[name.split("[")[0]].append(name)
    kept = {min(names, key=lambda name: (costs[name], name)) for names in cases.values() if "[" in names[0]}
    over = {name for name, cost in costs.items() if cost > LIMIT and not name.startswith(ALWAYS_QUICK)}
    return sorted(over - kept)


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    found = choose({name: call for name, call in rows})
    head = f"# tests of over {LIMIT} CPU seconds: made by tests/long_tests.py, do not edit"
    NAMES.write_text("\n".join([head, *found]) + "\n")
    rest = sum(call for name, call in rows if name not in set(found))
    print(f"{len(found)} of {len(rows)} tests are long; the others' calls take {rest:.0f} CPU seconds")


if __name__ == "__main__":
    main()
