"""Which tests are long: measured, not guessed. The tests named in long_tests.txt are slow ones (`make verify`).

    COSTS=costs.jsonl pytest -n 2 -m "slow or not slow"     # conftest.py writes the CPU seconds of each test
    python tests/long_tests.py costs.jsonl                  # writes long_tests.txt

A test is long if it takes over LIMIT CPU seconds, fixtures and children included. Of a test with parameters the
cheapest case stays a quick one up to MOST; so do the tests of tests/hostile, which guard users' data. What is the first
to need a module's fixture or to compile a program pays for the others: measure again after a change of the list.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

LIMIT, MOST = 5.0, 5.0
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
    least = [min(names, key=lambda name: (costs[name], name)) for names in cases.values() if "[" in names[0]]
    kept = {name for name in least if costs[name] <= MOST}
    over = {name for name, cost in costs.items() if cost > LIMIT and not name.startswith(ALWAYS_QUICK)}
    return sorted(over - kept)


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    costs = dict(rows)
    found = sorted({*choose(costs), *(long_tests() - costs.keys())})  # what was not measured stays
    head = f"# tests of over {LIMIT} CPU seconds: made by tests/long_tests.py, do not edit"
    NAMES.write_text("\n".join([head, *found]) + "\n")
    rest = sum(cost for name, cost in costs.items() if name not in set(found))
    print(f"{len(found)} tests are long; the others of {len(costs)} measured take {rest:.0f} CPU seconds")


if __name__ == "__main__":
    main()
