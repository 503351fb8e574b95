"""Mutation testing of the modules of trained networks: do the quick tests notice a change of the code?

    make mutants                                                    # what is stored, tried again
    python tests/mutation/run.py --sample 400 --seed 17             # a sample, stratified by module; resumes
    python tests/mutation/run.py --all                              # every mutant (hours)
    python tests/mutation/run.py --survivors                        # only those that survived, after a new test
    python tests/mutation/run.py --page                             # writes docs/mutation.md from what is stored

A mutant meets the tests that execute its line, cheapest file first, then the other tests of those files up to a limit;
it is killed by the first failure. Results are in results.json, by mutant; one whose function has changed since is tried
again. `--show KEY` prints the changed module's difference.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fcntl
import hashlib
import json
import random
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from operators import Mutant, mutants, mutated  # noqa: E402
from reach import REACH, ROOT, modules  # noqa: E402

RESULTS = HERE / "results.json"
REASONS = HERE / "survivors.toml"
"""Why each survivor is no missing test, by its key."""
DOCUMENT = ROOT / "docs" / "mutation.md"
MORE, MOST = 2.0, 6.0
"""CPU seconds of tests that a mutant meets beyond those which execute its line, and at all; --patience raises both."""


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def _functions(file: str) -> dict[str, tuple[int, int, str]]:
    """First line, last line and fingerprint of each function and class, by qualified name; "" is the module."""
    found = {}

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                own = f"{name}.{child.name}".lstrip(".")
                print_ = hashlib.sha256(ast.dump(child).encode()).hexdigest()[:12]
                found[own] = (child.lineno, child.end_lineno or child.lineno, print_)
                walk(child, own)
            else:  # a function may stand inside of a condition or a loop
                walk(child, name)

    tree = ast.parse(source(file))
    found[""] = (1, len(source(file).splitlines()), hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12])
    walk(tree, "")
    return found


@cache
def _statement(file: str, line: int) -> range:
    """The lines of the smallest statement that holds a line (of compound ones: the head)."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(source(file))):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or line
            if line <= last:
                best = range(node.lineno, last + 1)
    return best


@cache
def _reach() -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
    if not REACH.exists():
        sys.exit("First measure which tests reach which lines: python tests/mutation/reach.py")
    stored = json.loads(REACH.read_text())
    lines = {file: {int(k): v for k, v in by_line.items()} for file, by_line in stored["lines"].items()}
    return stored["cost"], lines


def tests_of(mutant: Mutant, patience: float = 1.0) -> list[str]:
    """The tests that a mutant meets, in order."""
    cost, lines = _reach()
    by_line = lines.get(mutant.file, {})
    first, last, _ = _functions(mutant.file)[mutant.function]
    at_line = {t for line in _statement(mutant.file, mutant.line) for t in by_line.get(line, ())} & cost.keys()
    in_function = {t for line in range(first, last + 1) for t in by_line.get(line, ())} & cost.keys()
    in_module = {t for tests in by_line.values() for t in tests} & cost.keys()
    own = at_line or in_function or in_module
    near = {t.split("::")[0] for t in in_function or in_module}
    others = (in_function | {t for t in in_module if t.split("::")[0] in near}) - own
    chosen = _cheapest(own, cost, MOST * patience)
    spent = sum(cost[t] for t in chosen)
    return chosen + _cheapest(others, cost, min(MORE * patience, max(MOST * patience - spent, 0.0)))


def _cheapest(tests: Iterable[str], cost: dict[str, float], limit: float) -> list[str]:
    """Tests file by file, the file with the cheapest tests first, as many as the limit allows."""
    files = defaultdict(list)
    for test in sorted(tests, key=lambda t: (cost[t], t)):
        files[test.split("::")[0]].append(test)
    order = sorted(files.values(), key=lambda group: (sum(cost[t] for t in group) / len(group), group))
    chosen, spent = [], 0.0
    for group in order:
        for test in group:
            if spent + cost[test] <= limit or not chosen:
                chosen.append(test)
                spent += cost[test]
    return chosen


def all_mutants() -> dict[str, Mutant]:
    return {m.key: m for file in modules() for m in mutants(source(file), file)}


def sample(count: int, seed: int) -> list[Mutant]:
    """`count` mutants, from each module in proportion to how many it has (rounded at random)."""
    generator, everything = random.Random(seed), all_mutants()
    chosen = []
    for file in modules():
        own = [m for m in everything.values() if m.file == file]
        share = count * len(own) / len(everything)
        take = int(share) + (generator.random() < share - int(share))
        chosen += generator.sample(own, min(take, len(own)))
    generator.shuffle(chosen)
    return chosen


def load() -> dict:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"mutants": {}}


def save(rows: dict[str, dict], about: dict | None = None) -> None:
    """Add rows to what is stored; several processes may do so."""
    with open(HERE / "_lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = load()
        stored |= about or {}
        merged = stored.pop("mutants") | rows
        order = sorted(merged.items(), key=lambda x: (x[1]["file"], x[1]["line"], x[0]))
        head = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in stored.items())
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in order)
        new = RESULTS.with_suffix(".tmp")
        new.write_text(f'{{\n{head} "mutants": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
        new.replace(RESULTS)


def try_mutants(chosen: list[Mutant], again: bool, patience: float, seed: int | None = None) -> None:
    """Try each and store its outcome; those that are stored and whose function is the same are left, unless `again`.

    `first` has the outcome of each sample (by its seed) that a mutant was drawn with, when it was drawn; "all" when all
    were tried.
    """
    from warm import attempt, importers, warm_up

    known, new = load()["mutants"], {}
    todo = [m for m in chosen if again or known.get(m.key, {}).get("of") != _functions(m.file)[m.function][2]]
    print(f"{len(chosen)} mutants, {len(todo)} to try", flush=True)
    if seed is not None:
        drawn = {m.key: known[m.key] for m in chosen if m not in todo}
        save({key: row | {"first": {str(seed): row["outcome"]} | row["first"]} for key, row in drawn.items()})
    if not todo:
        return
    warm_up()
    cost, users = _reach()[0], {}
    for place, mutant in enumerate(todo):
        name = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        users.setdefault(name, importers(name))
        tests = tests_of(mutant, patience)
        limit = 60 + 4 * sum(cost[t] for t in tests)
        if tests:
            outcome, test, used = attempt(
                mutant.file, mutated(source(mutant.file), mutant.number), users[name], tests, limit
            )
        else:
            outcome, test, used = "survived", "no test reaches it", 0.0
        row = {k: v for k, v in asdict(mutant).items() if k not in ("number", "key")}
        first = {"all" if seed is None else str(seed): outcome}
        new[mutant.key] = row | {
            "outcome": outcome,
            "first": first | known.get(mutant.key, {}).get("first", {}),
            "test": test,
            "seconds": used,
            "of": _functions(mutant.file)[mutant.function][2],
        }
        print(
            f"{place + 1}/{len(todo)} {outcome} {mutant.file}:{mutant.line} {mutant.before} -> {mutant.after} "
            f"[{test}] {used:.1f} s, {len(tests)} tests",
            flush=True,
        )
        if place % 4 == 3 or place == len(todo) - 1:
            save(new)
            new.clear()  # another process may try the same mutant later


def summary() -> None:
    rows = load()["mutants"].values()
    caught = sum(row["outcome"] != "survived" for row in rows)
    share = caught / max(len(rows), 1)
    error = (share * (1 - share) / max(len(rows), 1)) ** 0.5
    late = sum(row["outcome"] == "timeout" for row in rows)
    print(f"{caught} of {len(rows)} killed ({late} by the time limit): {100 * share:.1f} ± {100 * error:.1f} %")


def page() -> str:
    """docs/mutation.md: what was tried, and every survivor with its reason."""
    stored = load()
    rows, reasons = stored["mutants"], tomllib.loads(REASONS.read_text(encoding="utf-8"))
    survivors = {key: row for key, row in rows.items() if row["outcome"] == "survived"}
    caught, late = len(rows) - len(survivors), sum(row["outcome"] == "timeout" for row in rows.values())
    table = "".join(
        f"| `{row['file']}:{row['line']}` | `{row['function']}` | `{_cell(row['before'])}` | `{_cell(row['after'])}` | "
        f"{reasons[key]} |\n"
        for key, row in survivors.items()
    )
    return PAGE.format(
        count=len(rows),
        population=len(all_mutants()),
        caught=caught,
        late=late,
        share=f"{100 * caught / len(rows):.1f}",
        samples=_samples(stored),
        table=table,
    )


def _samples(stored: dict) -> str:
    """A row for each sample: its score before any test was written for it, and now.

    `drawn` keeps how many a sample had and how many of them were killed at first, whatever becomes of the code.
    """
    by_seed = defaultdict(list)
    for row in stored["mutants"].values():
        for seed, outcome in row["first"].items():
            by_seed[seed].append((outcome != "survived", row["outcome"] != "survived"))
    told, drawn, lines = stored.get("about", {}), stored.get("drawn", {}), []
    for seed in sorted({*by_seed, *drawn}, key=lambda name: (name == "all", len(name), name)):
        pairs = by_seed.get(seed, [])
        count, first = drawn.get(seed, (len(pairs), sum(first for first, _ in pairs)))
        now = f"{sum(now for _, now in pairs)} of {len(pairs)}" if pairs else "not tried again"
        lines.append(f"| {seed} | {count} | {first}, {_percent(first, count)} | {now} | {told.get(seed, '')} |\n")
    return "".join(lines)


def _percent(killed: int, count: int) -> str:
    """A share with its standard error."""
    share = killed / count
    return f"{100 * share:.1f} ± {100 * (share * (1 - share) / count) ** 0.5:.1f} %"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


PAGE = """# Do the tests notice? Mutation testing of trained networks

A test that passes whatever the code does proves nothing. `make mutants` (part of `make verify`) makes small changes in
the modules of trained networks, `numeric/trained`, `derive/training` and `numeric/ensemble/training.py`, one at a time,
and runs the tests that execute the changed line, quick ones first: at least one must fail.
`tests/mutation/operators.py` says what is changed (signs, factors, comparisons, numbers, arguments, transposes, removed
statements, ...) and what is left out by rule (wording, type hints, cosmetics of drawings, tolerances).
`numeric/trained/sampled` is left out: its tests judge random estimates by their standard errors.

**Of {population} mutants {count} were tried, and {caught} are killed, {share} %**, {late} of them by the time limit.
Each of the others has its reason below: it changes nothing that could be seen, or only memory, speed or rounding.

How the tests came to be: samples, stratified by module, were drawn and tried before any test was written for them, so
that a score at first is an estimate for all mutants of that day, with its standard error; then all were tried.
Afterwards the survivors got tests or reasons, or the code that nothing needed was removed.

| sample (seed) | mutants | killed at first | killed now, of those whose code is still there | |
| --- | --- | --- | --- | --- |
{samples}
`make mutants MUTANTS="--all --again"` tries all of them again (hours), `MUTANTS="--sample 400 --seed 1"` a new sample.
A mutant meets some six CPU seconds of tests (`--patience` raises this), those that execute its line and cheap ones of
the same files: longer tests, which `make verify` runs, kill more. A mutant in code that was changed since is tried
again with that code.

Changes that once passed all tests (a loss that ignores κ, and others) are tried by name, `tests/mutation/named.py`.

Why a runner of our own: mutmut 3.8, by its source, skips functions with decorators (`cached_property`, `cache`,
`jax.jit`), which is where much of this code lives. cosmic-ray was not tried: a new process for every mutant has to
import JAX and SymPy, some ten CPU seconds. The runner here forks a warm process: a third of a second for a mutant that
is killed at once.

## The survivors, each with its reason

| where | function | code | mutant | why no test fails |
| --- | --- | --- | --- | --- |
{table}"""


def show(key: str) -> None:
    mutant = all_mutants()[key]
    before = ast.unparse(ast.parse(source(mutant.file)))
    after = mutated(source(mutant.file), mutant.number)
    print("\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), mutant.file, "mutant", lineterm="")))
    print("\n".join(tests_of(mutant)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--again", action="store_true", help="try those that are stored too")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument(
        "--patience", type=float, default=1.0, help="times the CPU seconds of tests that a mutant meets"
    )
    parser.add_argument("--show", metavar="KEY")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--part", default="0/1", metavar="I/K", help="every K-th of them, from the I-th")
    parser.add_argument("--backwards", action="store_true", help="from the last one on")
    parser.add_argument("--without", action="append", default=[], help="leave out modules whose path holds this")
    given = parser.parse_args()
    if given.show:
        return show(given.show)
    if given.page:
        DOCUMENT.write_text(page(), encoding="utf-8")
        return None
    everything = all_mutants()
    if given.sample:
        chosen = sample(given.sample, given.seed)
    elif given.all:
        chosen = list(everything.values())
    elif given.key:
        chosen = [everything[key] for key in given.key]
    else:
        rows = load()["mutants"]
        wanted = [k for k, row in rows.items() if not given.survivors or row["outcome"] == "survived"]
        chosen = [everything[key] for key in wanted if key in everything]
    chosen = [m for m in chosen if not any(part in m.file for part in given.without)]
    own, parts = map(int, given.part.split("/"))
    chosen = chosen[own::parts][:: -1 if given.backwards else 1]
    again = given.again or given.survivors or bool(given.key)
    try_mutants(chosen, again, given.patience, given.seed if given.sample else None)
    summary()


if __name__ == "__main__":
    main()
