#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The key from requirements to code to tests: docs/conformance.md.

    docs/conformance.txt: id, sentence, where ─┐
    tests/: tags such as [A75-42] ─────────────┴▶ docs/conformance.md: a table for each document

The house rules (tidy.py) fail on an id without a sentence, a sentence without a test, a place that does not exist, and a
stale page. `--write` writes the page. Exit status: 0 no violation, 1 violations."""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Callable, Iterator, NamedTuple

DATA, PAGE = "docs/conformance.txt", "docs/conformance.md"
COMMAND = "python3 tests/tidy/conformance.py --write"
MOST_WORDS = 30  # The longest sentence of a requirement, in words.

ID = r"(?:A\d{1,3}(?:-\d+)?|ENV-\d+|C\d)"
TAG = re.compile(rf"\[({ID}(?:, ?{ID})*)\]")
# An id without a "-" part needs two or three digits, because A1 may be the label of an invariant.
CITED = re.compile(r"(?<![\w%-])(?:A\d{1,3}-\d+|ENV-\d+|A\d{2,3})(?![\w-])")
SKIPPED = (DATA, PAGE, "tests/fuzz/corpus/", "tests/tidy/")
SOURCES = (".hpp", ".cpp", ".py")

# (path, line, what, advice)
Finding = tuple[str, int, str, str]


class Place(NamedTuple):
    path: str
    names: list[str]


class Requirement(NamedTuple):
    name: str
    sentence: str
    places: list[Place]
    line: int


class Table(NamedTuple):
    title: str
    address: str
    requirements: list[Requirement]


def place_of(text: str) -> Place:
    path, _, names = text.partition(":")
    return Place(path.strip(), [name.strip() for name in names.split(",") if name.strip()])


def read_data(text: str) -> tuple[list[Table], list[Finding]]:
    """The tables, and what is wrong with the form of the rows."""
    tables: list[Table] = []
    findings: list[Finding] = []
    for number, row in enumerate(text.splitlines(), 1):
        columns = [column.strip() for column in row.split("|")]
        if not row.strip() or row.startswith("#"):
            continue
        if row.startswith("= ") and len(columns) == 2:
            tables.append(Table(columns[0][2:], columns[1], []))
        elif tables and len(columns) == 3 and re.fullmatch(ID, columns[0]):
            places = [place_of(place) for place in columns[2].split(";") if place.strip()]
            tables[-1].requirements.append(Requirement(columns[0], columns[1], places, number))
        else:
            findings.append((DATA, number, "not a row", "write `id | sentence | path: name, name; path: name`"))
    return tables, findings


def order_of(name: str) -> list[int]:
    """A28 comes before A100, A37-2 before A37-10."""
    return [int(number) for number in re.findall(r"\d+", name)]


def check_rows(tables: list[Table]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for table in tables:
        before = None
        for name, sentence, places, line in table.requirements:
            if name in lines:
                yield DATA, line, f"{name} has a sentence already", f"line {lines[name]} has it"
            elif before is not None and order_of(before) > order_of(name):
                yield DATA, line, f"{name} stands after {before}", "put the rows of a table in order"
            lines.setdefault(name, line)
            before = name
            words = len(sentence.split())
            if not sentence.endswith("."):
                yield DATA, line, f"{name} has no whole sentence", "say it in one sentence, with its full stop"
            elif words > MOST_WORDS:
                yield DATA, line, f"the sentence of {name} has {words} words", f"say it in at most {MOST_WORDS}"
            if not places or not all(place.names for place in places):
                yield DATA, line, f"{name} has no place", "name the file and function that implement it, as `path: name`"


# --- places --------------------------------------------------------------------------------------

# For the path of a file, the names of functions, types, members and constants that it declares.
Declared = Callable[[str], set[str]]


def lacks(place: Place, declared: Declared) -> list[str]:
    """The names that are not there. `Type::function` and `on(Event)` are two names each."""
    known = declared(place.path)
    return [name for name in place.names if not known.issuperset(re.findall(r"\w+", name))]


def elsewhere(names: list[str], sources: list[str], declared: Declared) -> str:
    """Where the names may be now."""
    hints = []
    for name in names:
        found = [path for path in sources if not lacks(Place(path, [name]), declared)]
        if 0 < len(found) < 4:
            hints.append(f"{name} now in {' or '.join(found)}?")
    return f" ({' '.join(hints)})" if hints else ""


def check_places(tables: list[Table], texts: dict[str, str], declared: Declared) -> Iterator[Finding]:
    sources = [path for path in texts if path.endswith((".cpp", ".hpp")) and not path.startswith("tests/")]
    for name, _, places, line in (requirement for table in tables for requirement in table.requirements):
        for place in places:
            missing = lacks(place, declared) if place.path in texts else place.names
            if not missing:
                continue
            what = f"{place.path} declares no {', '.join(missing)}" if place.path in texts else f"{place.path} does not exist"
            yield (DATA, line, f"{name}: {what}{elsewhere(missing, sources, declared)}",
                   "name the file and function that implement it")


# --- citations -----------------------------------------------------------------------------------


class Citations(NamedTuple):
    tests: dict[str, list[str]]  # The test files with a tag of the id, by id.
    first: dict[str, tuple[str, int]]  # The path and line of the first citation, by id.


def read_citations(texts: dict[str, str]) -> Citations:
    citations = Citations(defaultdict(list), {})
    for path, text in texts.items():
        is_test = path.startswith("tests/") and not path.endswith(".md")
        if path.startswith(SKIPPED) or not (is_test or path.endswith((*SOURCES, ".md"))):
            continue
        tagged = {name for match in TAG.finditer(text) for name in re.findall(ID, match[1])} if is_test else set()
        for name in tagged:
            citations.tests[name].append(path)
        for match in CITED.finditer(text):
            # Documents may name gRFCs that signalbox does not follow, so only ids with a "-" count
            # there.
            if match[0] not in citations.first and ("-" in match[0] or path.endswith(SOURCES)):
                citations.first[match[0]] = path, text.count("\n", 0, match.start()) + 1
    return citations


def check_citations(tables: list[Table], citations: Citations) -> Iterator[Finding]:
    names = {requirement.name for table in tables for requirement in table.requirements}
    documents = {name.partition("-")[0] for name in names}
    for name, (path, line) in citations.first.items():
        if name not in names and name not in documents:
            yield path, line, f"{name} has no sentence", f"correct the id, or add a row for it to {DATA}"
    for table in tables:
        for requirement in table.requirements:
            if requirement.name not in citations.tests:
                yield (DATA, requirement.line, f"no test cites {requirement.name}",
                       f"add the tag [{requirement.name}] to the test that proves it")


# --- the page ------------------------------------------------------------------------------------

OPENING = f"""# Conformance

What signalbox takes from the documents of gRPC and Envoy: each requirement in one sentence, the code that implements it,
and the tests that cite it.

An id is a document with a number of ours: A75-42 is the 42nd requirement from gRFC A75. A test that proves it has the tag
`[A75-42]`: search for the tag in the file to find the test. The sentences are ours. Where a document leaves a choice
open, or signalbox differs, the sentence says what signalbox does; [decisions](decisions/README.md) have the reasons.

This page is generated from [conformance.txt](conformance.txt) and the tests' tags. After a change of either, run
`{COMMAND}`. The house rules fail on a requirement without code or test, and on a stale page.
"""


def link(path: str) -> str:
    return f"[{PurePosixPath(path).name}](../{path})"


def page_of(tables: list[Table], citations: Citations) -> str:
    parts = [OPENING]
    for title, address, requirements in tables:
        parts.append(f"\n## {title}\n\n[The document]({address}).\n\n| id | requirement | code | tests |\n|---|---|---|---|\n")
        for name, sentence, places, _ in requirements:
            code = "<br>".join(f"{link(path)}: {', '.join(f'`{one}`' for one in names)}" for path, names in places)
            tests = ", ".join(link(path) for path in sorted(citations.tests.get(name, [])))
            parts.append(f"| {name} | {sentence} | {code} | {tests} |\n")
    return "".join(parts)


def check_conformance(texts: dict[str, str], declared: Declared) -> Iterator[Finding]:
    tables, wrong = read_data(texts.get(DATA, ""))
    citations = read_citations(texts)
    findings = [*wrong, *check_rows(tables), *check_places(tables, texts, declared), *check_citations(tables, citations)]
    yield from findings
    page = page_of(tables, citations)
    # If the data are wrong, a page made of them would be wrong, too.
    if not findings and texts.get(PAGE) != page and (tables or PAGE in texts):
        lines = texts.get(PAGE, "").splitlines()
        line = next((at for at, row in enumerate(page.splitlines()) if lines[at:at + 1] != [row]), len(lines))
        yield PAGE, line + 1, "the page is stale", f"run {COMMAND}"


def main() -> int:
    from tidy import HERE, Source, Violation, declared_by, list_files, read_text  # tidy.py includes this file.

    parser = argparse.ArgumentParser(description=f"Checks {PAGE}, or writes it.")
    parser.add_argument("--root", type=Path, default=HERE.parent.parent, help="the checkout (default: this one)")
    parser.add_argument("--write", action="store_true", help="write the page")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    texts = {path: text for path in list_files(root) if (text := read_text(root / path)) is not None}
    if arguments.write:
        tables, _ = read_data(texts.get(DATA, ""))
        texts[PAGE] = page_of(tables, read_citations(texts))
        (root / PAGE).write_text(texts[PAGE], encoding="utf-8")
    violations = sorted(Violation(*found) for found in check_conformance(texts, declared_by({path: Source(path, text) for path, text in texts.items()})))
    for violation in violations:
        print(violation)
    print(f"conformance: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
