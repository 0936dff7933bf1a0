# SPDX-License-Identifier: Apache-2.0
"""The house rules for words that a program can check: no pronoun of people for a thing, and no
sentence of more than forty words.

    *.hpp *.cpp                  ─▶ comments, string literals ─┐
    *.proto *.py *.cmake, CMakeLists.txt ─▶ comments ──────────┤
    *.md                         ─▶ text without code ─────────┴▶ pronoun | long sentence ─▶ less what words.txt allows

The README.md of a product folder follows the rules of code. Other documents may use some of the
pronouns (PRONOUN), because they also speak of people.
words.txt has the allowed number of findings, by file and kind. The number must be exact, so it
shrinks with every correction. A file without findings must not be in the list."""

import ast
import re
from collections import Counter
from typing import Iterator, NamedTuple

MOST_WORDS = 40
PRONOUN = {
    "code": re.compile(r"\b(who|whom|whose|whoever|nobody|somebody|anybody|everybody|someone|anyone)\b", re.IGNORECASE),
    "document": re.compile(r"\b(whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE),
}
# The README.md files of the product's folders. They describe code, and follow the rules of code.
FOLDER_PAGE = re.compile(r"(messages|xds|lb|metrics|actors|channel|tools)/([^/]+/)*README\.md")
ADVICE = {
    "pronoun": "name the thing: who, somebody and nobody are people",
    "sentence": "say one fact in a sentence",
}
COMMENT = re.compile(r"^[ \t]*///?(.*)$|[;{})\],][ \t]*///?<?(.*)$", re.MULTILINE)
STRING = re.compile(r'R"([^(\s]{0,16})\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
# The compiler joins adjacent literals, so they are one text.
JOINED = re.compile(rf'(?:{STRING.pattern})(?:\s*"(?:\\.|[^"\\\n])*")*', re.DOTALL)
# A comment of Python or CMake. A shebang is no comment.
HASH_COMMENT = re.compile(r"^[ \t]*#(?!!)[ ]?(.*)$|[ \t]{2}#[ ](.*)$", re.MULTILINE)
# Lines of drawings and tables have no sentences.
DRAWN = re.compile(r"[─│┌┐└┘├┤┬┴┼▶◀▲▼]|^ {3,}|^\s*[|+]|->|=>|::=")


class Finding(NamedTuple):
    line: int
    kind: str
    what: str


def sentences(lines: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """(line of the first word, number of words) of each sentence. Lines without a break between
    them are one text."""
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


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def comments_of(path: str, text: str) -> list[tuple[int, str]]:
    """(line, text) of each line of comments, and for Python of docstrings."""
    pattern = COMMENT if path.endswith((".hpp", ".cpp", ".proto")) else HASH_COMMENT
    lines = [(line_of(text, match.start()), match[1] if match[1] is not None else match[2])
             for match in pattern.finditer(text)]
    if not path.endswith(".py"):
        return lines
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = ast.get_docstring(node, clean=False)
            if said:
                lines += enumerate([*said.splitlines(), ""], node.body[0].lineno)
    return lines


def literals_of(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each string literal of C++; literals that the compiler joins are one."""
    code = COMMENT.sub(lambda match: " " * len(match[0]) if match[1] is not None else match[0], text)
    for match in JOINED.finditer(code):
        parts = [part[2] or part[3] or "" for part in STRING.finditer(match[0])]
        yield line_of(code, match.start()), "".join(parts).replace("\\n", "\n").replace('\\"', '"')


def findings_of(path: str, text: str) -> Iterator[Finding]:
    if path.endswith(".md"):
        plain = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text,
                       flags=re.DOTALL | re.MULTILINE)
        plain = re.sub(r"`[^`\n]*`", "x", plain)
        for match in PRONOUN["code" if FOLDER_PAGE.fullmatch(path) else "document"].finditer(plain):
            yield Finding(line_of(plain, match.start()), "pronoun", f"'{match[0]}'")
        proses = [[(number, line) for number, line in enumerate(plain.splitlines(), 1) if not line.startswith("|")]]
    else:
        proses = [comments_of(path, text)]
        if path.endswith((".hpp", ".cpp")):
            proses += [list(enumerate(said.splitlines(), line)) for line, said in literals_of(text)]
        for line, said in (row for prose in proses for row in prose):
            for found in PRONOUN["code"].finditer(said):
                yield Finding(line, "pronoun", f"'{found[0]}'")
    # The texts of tests are data: tables, pages and expected output.
    for prose in proses[:1] if path.startswith("tests/") else proses:
        for number, words in sentences(prose):
            if words > MOST_WORDS:
                yield Finding(number, "sentence", f"a sentence of {words} words, more than {MOST_WORDS}")


def is_ours(path: str) -> bool:
    if path.endswith((".hpp", ".cpp")):
        return not path.startswith("tests/package")
    return path.endswith((".md", ".py", ".proto", ".cmake", "CMakeLists.txt"))


def check_words(texts: dict[str, str], allowed: dict[tuple[str, str], int]) -> Iterator[tuple[str, int, str, str]]:
    """Findings: (path, line, what, advice). `allowed` has the exact number of findings that a file
    may have, by file and kind."""
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
