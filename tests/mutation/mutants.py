# SPDX-License-Identifier: Apache-2.0
"""The mutations that are made to sources. This file only works on text; mutate.py does the rest.

    text of a source ─▶ code without comments and strings ─▶ menu, line by line ─▶ Mutant ─▶ apply ─▶ text"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tidy"))
from tidy import TOKEN  # noqa: E402

SWAPS = {
    "relational": {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "},
    "logical": {" && ": " || ", " || ": " && "},
    "arithmetic": {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += ", "++": "--", "--": "++"},
    "constant": {"true": "false", "false": "true"},
}
NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")
RETURN = re.compile(r"^\s+if \(.*\) (?:co_)?(?:return\b.*|continue|break);$")
CALL = re.compile(r"^\s+[\w.:\[\]*]+(?:(?:->|\.|::)\w+|\([^;{}]*\)|\[[^\]]*\])*\([^;{}]*\);$")
ASSIGNMENT = re.compile(r"^\s+[\w.\->\[\]*]+ [+\-*|&]?= [^;{}]*;$")
ENUMERATOR = re.compile(r"\b(\w+)::(k[A-Z]\w*)\b")
INVARIANT = re.compile(r"\bSIGNALBOX_INVARIANT\([^;]*\);")
NO_CODE = re.compile(r"^(?:\S|\s*(?:$|static_assert\b|template\b|using\b|return;))")


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int  # The first line is 1.
    kind: str
    before: str  # The whole line; so is `after`.
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.before.strip()}  =>  {self.after.strip() or '(nothing)'}"


def blanked(text: str) -> str:
    """The code with spaces in place of comments, strings and invariants. All other characters keep
    their places."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return INVARIANT.sub(blank, TOKEN.sub(blank, text))


def enumerators_of(texts: list[str]) -> dict[str, list[str]]:
    """The values of each enumeration that the sources use, in alphabetical order."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for scope, value in ENUMERATOR.findall(blanked(text)):
            found.setdefault(scope, set()).add(value)
    return {scope: sorted(values) for scope, values in found.items()}


def closing(code: str, start: int) -> int | None:
    """The position of the parenthesis that closes the one just before `start`. None: it is on
    another line."""
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return None


def changed_lines(line: str, code: str, starts_statement: bool, values: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """(kind, new line) of each mutation of one line."""

    def swapped(start: int, end: int, text: str) -> str:
        return line[:start] + text + line[end:]

    for kind, swaps in SWAPS.items():
        for old, new in swaps.items():
            pattern = rf"\b{old}\b" if old.isalpha() else re.escape(old)
            for match in re.finditer(pattern, code):
                yield kind, swapped(match.start(), match.end(), new)
    for match in NUMBER.finditer(code):
        number = int(match[0])
        for other in (number + 1, number - 1) if number > 0 else (1,):
            yield "boundary", swapped(match.start(), match.end(), str(other))
    for match in ENUMERATOR.finditer(code):
        others = [value for value in values.get(match[1], []) if value != match[2]]
        if others:
            later = [value for value in others if value > match[2]]
            yield "enum", swapped(match.start(2), match.end(2), (later or others)[0])
    for match in re.finditer(r"\bif \(", code):
        end = closing(code, match.end())
        if end is not None and ";" not in code[match.end():end]:
            yield "negation", swapped(match.end(), end, f"!({line[match.end():end]})")
    if RETURN.match(code):
        yield "early return", ""
    elif starts_statement and (CALL.match(code) or ASSIGNMENT.match(code)):
        yield "statement", ""


def mutants_of(path: str, text: str, values: dict[str, list[str]]) -> list[Mutant]:
    """All mutants of a source, in the order of its lines."""
    found = []
    before = ";"  # The last line of code.
    for number, (line, code) in enumerate(zip(text.split("\n"), blanked(text).split("\n")), 1):
        code = code.rstrip()
        if not NO_CODE.match(code):
            starts = before.endswith((";", "{", "}", ":"))
            found += [Mutant(path, number, kind, line, after) for kind, after in changed_lines(line, code, starts, values)]
        if code.strip():
            before = code
    return found


def apply(mutant: Mutant, text: str) -> str:
    lines = text.split("\n")
    if lines[mutant.line - 1] != mutant.before:
        raise ValueError(f"{mutant.path}:{mutant.line} is not '{mutant.before}'")
    lines[mutant.line - 1] = mutant.after
    return "\n".join(lines)
