# SPDX-License-Identifier: Apache-2.0
"""The house rules for words, as far as a machine can see them: no pronoun of people for a thing, no sentence of more than
forty words.

    *.hpp *.cpp ─▶ comments, string literals ─┐
    *.md        ─▶ text without code ─────────┴▶ pronoun | long sentence ─▶ less what words.txt allows

A README.md of a folder of the product obeys the rules of code; other documents may speak of people.
words.txt allows a file so many findings of a kind. The number must be exact: it shrinks with every mend, and a file
that is clean leaves the list."""

import re
from collections import Counter
from typing import Iterator, NamedTuple

MOST_WORDS = 40
PRONOUN = {
    "code": re.compile(r"\b(who|whom|whose|whoever|nobody|somebody|anybody|everybody|someone|anyone)\b", re.IGNORECASE),
    "document": re.compile(r"\b(whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE),
}
# Documents may speak of people, but for these: they describe code.
FOLDER_PAGE = re.compile(r"(messages|xds|lb|metrics|actors|channel|tools)/([^/]+/)*README\.md")
ADVICE = {
    "pronoun": "name the thing: who, somebody and nobody are people",
    "sentence": "say one fact in a sentence",
}
COMMENT = re.compile(r"^[ \t]*///?(.*)$|[;{})\],][ \t]*///?<?(.*)$", re.MULTILINE)
STRING = re.compile(r'R"([^(\s]{0,16})\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
# A drawing or a table says nothing in sentences.
DRAWN = re.compile(r"[─│┌┐└┘├┤┬┴┼▶◀▲▼]|^ {3,}|^\s*[|+]|->|=>|::=")


class Finding(NamedTuple):
    line: int
    kind: str
    what: str


def sentences(lines: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """(line of its first word, number of words) of each sentence in lines that follow each other."""
    first, words, before = 0, 0, -1
    for number, text in [*lines, (-1, "")]:
        if words and (number != before + 1 or not text.strip() or DRAWN.search(text) or re.match(r"\s*([-*#>]|\d+\.)\s", text)):
            yield first, words
            words = 0
        before = number
        if DRAWN.search(text):
            continue
        for word in text.split():
            if not words:
                first = number
            words += bool(re.search(r"\w", word))
            if re.search(r"[.!?:;][)\"'`*]*$", word):
                yield first, words
                words = 0


def findings_of(path: str, text: str) -> Iterator[Finding]:
    def at(offset: int) -> int:
        return text.count("\n", 0, offset) + 1

    if path.endswith(".md"):
        plain = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text,
                       flags=re.DOTALL | re.MULTILINE)
        plain = re.sub(r"`[^`\n]*`", "x", plain)
        for match in PRONOUN["code" if FOLDER_PAGE.fullmatch(path) else "document"].finditer(plain):
            yield Finding(plain.count("\n", 0, match.start()) + 1, "pronoun", f"'{match[0]}'")
        prose = [(number, line) for number, line in enumerate(plain.splitlines(), 1) if not line.startswith("|")]
    else:
        prose = []
        for match in COMMENT.finditer(text):
            said = match[1] if match[1] is not None else match[2]
            prose.append((at(match.start()), said))
            for found in PRONOUN["code"].finditer(said):
                yield Finding(at(match.start()), "pronoun", f"'{found[0]}'")
        code = COMMENT.sub(lambda m: " " * len(m[0]) if m[1] is not None else m[0], text)
        for match in STRING.finditer(code):
            for found in PRONOUN["code"].finditer(match[2] or match[3] or ""):
                yield Finding(at(match.start()), "pronoun", f"'{found[0]}'")
    for number, words in sentences(prose):
        if words > MOST_WORDS:
            yield Finding(number, "sentence", f"a sentence of {words} words, more than {MOST_WORDS}")


def is_ours(path: str) -> bool:
    if path.endswith((".hpp", ".cpp")):
        return not path.startswith("tests/package")
    return path.endswith(".md")


def check_words(texts: dict[str, str], allowed: dict[tuple[str, str], int]) -> Iterator[tuple[str, int, str, str]]:
    """(path, line, what, advice). `allowed`: how many findings of a kind a file may have, exactly."""
    left = dict(allowed)
    for path, text in texts.items():
        if not is_ours(path):
            continue
        found = list(findings_of(path, text))
        for kind, count in Counter(finding.kind for finding in found).items():
            limit = left.pop((path, kind), 0)
            if count > limit:
                for finding in found:
                    if finding.kind == kind:
                        yield path, finding.line, finding.what, ADVICE[kind]
            elif count < limit:
                yield "tests/tidy/words.txt", 1, f"{path} may have {limit} of '{kind}' and has {count}", "lower the number"
    for (path, kind), limit in left.items():
        yield "tests/tidy/words.txt", 1, f"{path} may have {limit} of '{kind}' and has none", "take the row out"
