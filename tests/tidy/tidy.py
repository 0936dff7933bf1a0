#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that neither the compiler nor the formatter can check. They read only text, and
take a few seconds.

    files of the checkout ─▶ rules as data (*.txt) and the checks below ─▶ path:line: what; advice
                         ├─▶ documents: documents.py ────────────────────────────────────────▲
                         └─▶ requirements: conformance.py ───────────────────────────────────▲

The checked files are the text files that git tracks, and new ones that it does not ignore. Without
git, all text files are checked except those in .git, __pycache__ and build folders. Exit status: 0
no violation, 1 violations, 2 the rules cannot be read.
"""

import argparse
import collections
import fnmatch
import functools
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Callable, Iterator, NamedTuple

from conformance import check_conformance
from documents import check_document, check_file_table
from words import ADVICE as WORD_KINDS, check_words

SPDX = "SPDX-License-Identifier: Apache-2.0"
HERE = Path(__file__).resolve().parent
LAYERS = ("messages", "xds", "lb", "metrics", "actors")  # At most one level of sub-folders.
# The folders of the product: all of signalbox except tests, examples and build files.
PRODUCT = (*(f"{layer}/" for layer in LAYERS), "channel/", "tools/")
LONGEST_FUNCTION = 60
LAYERS_ADVICE = "the layers are drawn in ARCHITECTURE.md, the table is tests/tidy/includes.txt"


class Violation(NamedTuple):
    path: str
    line: int
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}; {self.advice}"


class RulesError(Exception):
    """A row of a rule file is malformed."""


# --- files ---------------------------------------------------------------------------------------


def list_files(root: Path) -> list[str]:
    """The files to check: sorted paths relative to the root, with `/`."""
    if (root / ".git").exists():
        ask = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        answer = subprocess.run(ask, capture_output=True, check=False)
        if answer.returncode == 0:
            names = answer.stdout.decode().split("\0")
            return sorted({name for name in names if name and (root / name).is_file()})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", "__pycache__") and not f.startswith("build")]
        found += [(Path(folder) / name).relative_to(root).as_posix() for name in names]
    return sorted(found)


def read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None  # A binary file is not checked.


TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|R"(?P<fence>[^(\s]{0,16})\(.*?\)(?P=fence)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'",  # The ' of 1'000 begins no literal.
    re.DOTALL,
)


def strip(text: str, strings_too: bool) -> str:
    """The text without comments, and with `strings_too` without literals. Lines keep their
    numbers."""

    def blank(match: re.Match) -> str:
        if match["comment"] is None and not strings_too:
            return match[0]
        return " " + "\n" * match[0].count("\n")

    return TOKEN.sub(blank, text)


# --- rules ---------------------------------------------------------------------------------------


def rows(name: str) -> Iterator[tuple[int, str]]:
    return rows_of((HERE / name).read_text(encoding="utf-8"))


def rows_of(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def load_allowed_words(text: str) -> dict[tuple[str, str], int]:
    """The allowed numbers of findings in the checkout's words.txt, by file and kind of finding."""
    allowed = {}
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.startswith("#"):
            continue
        parts = [part.strip() for part in row.split("|")]
        if len(parts) != 3 or parts[1] not in WORD_KINDS or not parts[2].isdigit() or parts[2] == "0":
            raise RulesError(f"words.txt:{number}: expected `file | {', '.join(WORD_KINDS)} | number`")
        allowed[parts[0], parts[1]] = int(parts[2])
    return allowed


def is_under(path: str, place: str) -> bool:
    """Whether the path is in this folder, or is this file with any ending."""
    return path == place or path.startswith((place + "/", place + "."))


class Word(NamedTuple):
    patterns: list[str]
    advice: str


class IncludeTable:
    """The table in includes.txt: the headers that each folder may include."""

    def __init__(self, text: str) -> None:
        self.words: dict[str, Word] = {}
        self.folders: dict[str, list[str]] = {}
        self.extras: dict[str, list[str]] = {}
        # The row's number, the folder or file, and a word as the row writes it.
        self.grants: list[tuple[int, str, str]] = []
        self.circles: dict[tuple[str, ...], int] = {}  # The row's number, by allowed circle.
        for number, row in rows_of(text):
            if row.startswith("circle ") and " ; " in row:
                units, _ = row.removeprefix("circle ").split(" ; ", 1)
                self.circles[tuple(sorted(units.split()))] = number
            elif row.startswith("let ") and "=" in row and ";" in row:
                word, rest = row[4:].split("=", 1)
                patterns, advice = rest.split(";", 1)
                self.words[word.strip()] = Word(patterns.split(), advice.strip())
            elif " | " in row:
                folder, allowed = row.split(" | ", 1)
                self.folders[folder.strip()] = allowed.split()
                self.grants += [(number, folder.strip(), word) for word in allowed.split()]
            elif " + " in row:
                path, allowed = row.split(" + ", 1)
                self.extras[path.strip()] = allowed.split()
                self.grants += [(number, path.strip(), word) for word in allowed.split()]
            else:
                raise RulesError(f"includes.txt:{number}: neither `let`, `folder | …`, `path + …` nor `circle … ; …`")
        for table in (self.folders, self.extras):
            for place, allowed in table.items():
                table[place] = [folder for word in allowed for folder in self.spelled_out(word)]
        known = {"*", "std", *self.words, *self.folders}
        for place, allowed in [*self.folders.items(), *self.extras.items()]:
            if not known.issuperset(allowed):
                raise RulesError(f"includes.txt: {place}: unknown {set(allowed) - known}")

    def spelled_out(self, word: str) -> list[str]:
        """The folders that a word of a row stands for: `folder/*` is the folder and all folders in
        it."""
        if not word.endswith("/*"):
            return [word]
        return [folder for folder in self.folders if f"{folder}/".startswith(word[:-1])] or [word]

    @functools.lru_cache(maxsize=None)
    def folder_of(self, path: str) -> str | None:
        """The innermost folder of the table that contains this path."""
        return max((f for f in self.folders if path.startswith(f + "/")), key=len, default=None)

    def allowed(self, path: str) -> list[str]:
        folder = self.folder_of(path)
        extras = [word for place, words in self.extras.items() if is_under(path, place) for word in words]
        return [*self.folders[folder], folder, *extras]

    @functools.lru_cache(maxsize=None)
    def word_of(self, header: str) -> str | None:
        if re.fullmatch(r"[a-z_0-9]+", header):
            return "std"
        for word, (patterns, _) in self.words.items():
            if any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns):
                return word
        return None


class Ban(NamedTuple):
    where: list[str]
    exempt: list[str]
    kind: str  # "code", "text" or "name"
    shown: str
    pattern: re.Pattern
    advice: str

    def holds_for(self, path: str) -> bool:
        def matches(place: str) -> bool:
            if "*" in place:
                return fnmatch.fnmatchcase(PurePosixPath(path).name, place)
            return is_under(path, place)

        if self.kind == "code" and not path.endswith((".hpp", ".cpp")):
            return False
        return any(map(matches, self.where)) and not any(map(matches, self.exempt))


def word_pattern(plain: str) -> re.Pattern:
    before = r"(?<!\w)" if plain[0].isalnum() else r"(?<![\w.}])" if plain[0] == "/" else ""
    after = r"(?!\w)" if plain[-1].isalnum() else ""
    return re.compile(before + re.escape(plain) + after)


def load_bans() -> list[Ban]:
    bans = []
    for number, row in rows("bans.txt"):
        columns = [column.strip() for column in row.split(" | ")]
        if len(columns) != 3 or not all(columns):
            raise RulesError(f"bans.txt:{number}: wants `where | pattern | say instead`")
        places, plain, advice = columns
        kind = next((k for k in ("text", "name") if plain.startswith(k + ":")), "code")
        shown = plain if kind == "code" else plain.removeprefix(kind + ":")
        where = [p for p in places.split() if not p.startswith("-")]
        exempt = [p[1:] for p in places.split() if p.startswith("-")]
        bans.append(Ban(where, exempt, kind, shown, word_pattern(shown), advice))
    return bans


# --- C++, as far as the checks read it ------------------------------------------------------------

WORD = re.compile(r"[A-Za-z_]\w*")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.MULTILINE)
NAMESPACE = re.compile(r"(inline )?namespace\b|extern\b")
ACCESS = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)*")
TYPE = re.compile(r"(?:template ?<.*> ?)?(?:class|struct|union|enum(?: class)?)\b(?: \[\[\w+\]\])?(?: (\w+))?")
ANNOUNCED = re.compile(r"(?:template ?<.*> ?)?(?:class|struct|union|enum(?: class)?)(?: \[\[\w+\]\])? (?:\w+::)*(\w+)"
                       r"(?: : [\w:]+)?")
DEFINED = re.compile(r"(?:class|struct|union|enum(?: class)?)\b(?: alignas\([^()]*\))?(?: \[\[\w+\]\])? (?:\w+::)*(\w+)")
AFTER_PARAMETERS = re.compile(r"\)\s*(const|noexcept|override|final|&|->.*|\s)*$")
ARGUMENTS = re.compile(r"<[^<>()]*(?:\([^()]*\)[^<>()]*)*>")  # The arguments of a template.
CALLED = re.compile(r"([A-Za-z_]\w*) ?\(")
PLAIN_CALL = re.compile(r"(?<![\w.:>~])([a-z_]\w*)\(")  # No call of a member, and none with a scope.
MEMBER = re.compile(r"^\w[^\n(=]*\w::(\w+)\(", re.MULTILINE)  # The definition of a member outside of its class.
NAMED = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{\n.*?^\} ", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"(signalbox_library|signalbox_test|add_library|add_executable)\(\s*(\w+)([^()]*)\)")
ALONE = re.compile(r"signalbox_compile_alone\(([^()]*)\)")
CONSTANT = re.compile(r"\bconstexpr\b[^(=]*?\b(k[A-Z]\w*)\b")
# The language or a library uses functions that are declared with these words.
FOREIGN = re.compile(r"\b(override|final|operator|friend|using|static_assert)\b")
NO_FUNCTION = {"alignas", "decltype", "explicit", "noexcept", "requires"}


class Part:
    """A definition or declaration in a namespace or a class."""

    def __init__(self, kind: str, head: str, start: int, end: int) -> None:
        # "function": its definition; "scope": a namespace or a type; "statement": any declaration.
        self.kind = kind
        self.head = head  # The text in front of the part's `{` or `;`.
        self.start = start
        self.end = end

    @functools.cached_property
    def function(self) -> str | None:
        """The name of the function that the part declares or defines. It must be in snake_case."""
        if self.kind == "scope" or "(" not in self.head or FOREIGN.search(self.head):
            return None
        head = self.head.split(" = ")[0]
        while (shorter := ARGUMENTS.sub("", head)) != head:
            head = shorter
        name = next((name for name in CALLED.findall(head) if name not in NO_FUNCTION), None)
        return name if name is not None and not name[0].isupper() else None

    @functools.cached_property
    def constant(self) -> str | None:
        match = CONSTANT.search(self.head) if self.kind == "statement" and "constexpr" in self.head else None
        return match and match[1]

    @functools.cached_property
    def type(self) -> str | None:
        match = TYPE.match(self.head) if "(" not in self.head else None
        return match and match[1]

    @functools.cached_property
    def announced(self) -> str | None:
        """The type of a forward declaration such as `class A;`."""
        match = ANNOUNCED.fullmatch(self.head) if self.kind == "statement" else None
        return match and match[1]

    @functools.cached_property
    def defined(self) -> str | None:
        """The type that the part defines: `Block` for `struct UseCounter::Block {`."""
        match = DEFINED.search(self.head) if self.kind == "scope" and not NAMESPACE.match(self.head) else None
        return match and match[1]


def parts_of(code: str) -> Iterator[Part]:
    """The parts of `code`, which has no comments and no directives. The insides of functions and
    initializers are skipped."""
    open_braces: list[tuple[str, int, str]] = []
    nested = 0  # The number of open braces in a function or an initializer.
    begin = 0
    for match in re.finditer("[{};]", code):
        at = match.start()
        if nested:
            nested += {"{": 1, "}": -1}.get(match[0], 0)
            if nested:
                continue
        text = code[begin:at]
        start = begin + ACCESS.match(text).end()
        if not open_braces or open_braces[-1][0] == "scope":
            head = " ".join(code[start:at].split())
            if match[0] == "{":
                is_type = TYPE.match(head) and not AFTER_PARAMETERS.search(head)
                kind = "scope" if NAMESPACE.match(head) or is_type else "function" if "(" in head else "value"
                # `b_{1}` in a member initializer list is a value. The constructor's body follows.
                if head.endswith("=") or not text[-1:].isspace():
                    kind = "value"
                open_braces.append((kind, start, head))
                nested = 0 if kind == "scope" else 1
                begin = at + 1
                continue
            if match[0] == ";" and head:
                yield Part("statement", head, start, at)
        if match[0] == "}" and open_braces:
            kind, start, head = open_braces.pop()
            if kind == "value":
                begin = start
                continue
            yield Part(kind, head, start, at)
        begin = at + 1


# --- checks --------------------------------------------------------------------------------------


class Source:
    """A text file, and its code if it is C++."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.is_cpp = path.endswith((".hpp", ".cpp"))
        self.is_header = path.endswith(".hpp")

    @functools.cached_property
    def code(self) -> str:
        return strip(self.text, strings_too=True) if self.is_cpp else self.text

    @functools.cached_property
    def parts(self) -> list[Part]:
        code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), self.code)
        return list(parts_of(code))

    @functools.cached_property
    def declared(self) -> set[str]:
        """The words in the declarations of functions, types and variables, without function
        bodies."""
        return {word for part in self.parts for word in WORD.findall(part.head)} if self.is_cpp else set()

    @functools.cached_property
    def unnamed_functions(self) -> set[str]:
        """The functions that an unnamed namespace defines. A member does not begin its line."""
        spans = [match.span() for match in UNNAMED.finditer(self.code)]
        return {part.function for part in self.parts
                if part.kind == "function" and part.function and self.code[part.start - 1] == "\n"
                and any(begin < part.start < end for begin, end in spans)}

    @functools.cached_property
    def free_functions(self) -> set[str]:
        """The functions that are no members."""
        return {part.function for part in self.parts
                if part.kind != "scope" and part.function and self.code[part.start - 1] == "\n"}

    @functools.cached_property
    def plain_calls(self) -> set[str]:
        """The functions that are called without an object and a scope, except members that this file
        defines."""
        return {*PLAIN_CALL.findall(self.code)} - {*MEMBER.findall(self.code)}

    @functools.cached_property
    def namespaces(self) -> list[str]:
        return NAMED.findall(self.code)

    @property
    def home(self) -> str:
        """The namespace that holds the unnamed one."""
        return self.namespaces[0] if self.namespaces else ""

    def is_in(self, namespace: str) -> bool:
        """Whether code of this file is in the namespace or in one that it holds."""
        return not namespace or any(f"{name}::".startswith(f"{namespace}::") for name in self.namespaces)

    @functools.cached_property
    def words(self) -> collections.Counter:
        return collections.Counter(WORD.findall(INCLUDE.sub("", self.code)))

    @functools.cached_property
    def includes(self) -> list[tuple[int, str, bool]]:
        """The includes: (line, header, whether it is in quotes)."""
        pattern = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
        code = strip(self.text, strings_too=False)
        return [(line_of(code, m.start()), m[2], m[1] == '"') for m in pattern.finditer(code)]


def declared_by(sources: dict[str, Source]) -> Callable[[str], set[str]]:
    return lambda path: sources[path].declared


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def check_includes(source: Source, table: IncludeTable) -> Iterator[Violation]:
    if not source.is_cpp:
        return
    folder = table.folder_of(source.path)
    if folder is None:
        yield Violation(source.path, 1, "C++ outside of the layers",
                        "every folder with C++ has a row in tests/tidy/includes.txt")
        return
    allowed = table.allowed(source.path)
    for line, header, quoted in source.includes:
        word = table.word_of(header) or table.folder_of(header)
        if word is None and quoted and header.endswith(".hpp"):
            yield Violation(source.path, line, f'"{header}" is not written from the root',
                            'say "folder/name.hpp"')
        elif "*" not in allowed and word not in allowed:
            advice = table.words[word].advice if word in table.words else LAYERS_ADVICE
            yield Violation(source.path, line, f"{folder}/ may not include {header}", advice)


def check_grants(sources: list[Source], table: IncludeTable) -> Iterator[Violation]:
    """Every grant of the table is used by a file that has it. For `folder/*`, one folder is
    enough."""
    used = set()
    for source in sources:
        folder = table.folder_of(source.path) if source.is_cpp else None
        places = [folder, *(place for place in table.extras if is_under(source.path, place))]
        for _, header, _ in source.includes if folder else []:
            used |= {(place, table.word_of(header) or table.folder_of(header)) for place in places}
    for number, place, word in table.grants:
        if word != "*" and not any((place, spelled) in used for spelled in table.spelled_out(word)):
            yield Violation("tests/tidy/includes.txt", number, f"nothing of {place} includes {word}",
                            "remove the word: a grant that nothing uses is removed")


def check_own_header_first(source: Source, files: set[str]) -> Iterator[Violation]:
    if not source.path.endswith(".cpp") or not source.includes:
        return
    own = source.path.removesuffix(".cpp") + ".hpp"
    line, first, _ = source.includes[0]
    if own in files and first != own:
        yield Violation(source.path, line, f"the first include is {first}",
                        f'begin with "{own}", so that it is proven to compile alone')


def check_bans(source: Source, bans: list[Ban]) -> Iterator[Violation]:
    for ban in bans:
        if not ban.holds_for(source.path):
            continue
        if ban.kind == "name":
            if ban.shown in PurePosixPath(source.path).stem.split("_"):
                yield Violation(source.path, 1, f"'{ban.shown}' in a file's name", ban.advice)
            continue
        text = source.text if ban.kind == "text" else source.code
        if ban.shown not in text:
            continue
        for match in ban.pattern.finditer(text):
            yield Violation(source.path, line_of(text, match.start()), f"'{ban.shown}' is banned here", ban.advice)


def check_opening(source: Source) -> Iterator[Violation]:
    """A file begins with the SPDX line. In a header, an overview follows, then `#pragma once`."""
    name = PurePosixPath(source.path).name
    endings = (".hpp", ".cpp", ".proto", ".py", ".sh", ".cmake")
    if not (name.endswith(endings) or name in ("CMakeLists.txt", "run")):
        return
    lines = source.text.splitlines()
    if not any(SPDX in line for line in lines[:1 if source.is_cpp else 2]):
        yield Violation(source.path, 1, "no SPDX line", f"every source opens with `{SPDX}` in a comment")
    if not source.is_header:
        return
    opening = []
    for line in lines:
        if line.strip() and not line.startswith("//"):
            break
        opening.append(line)
    said = [line.strip("/ ") for line in opening if SPDX not in line]
    if not any(re.search("[A-Za-z]", line) and line != source.path for line in said):
        yield Violation(source.path, 2, "no overview",
                        "a header opens with a `//` comment: what it is, where in the flow, its invariants")
    if lines[len(opening):len(opening) + 1] != ["#pragma once"]:
        yield Violation(source.path, min(len(opening) + 1, max(len(lines), 1)), "no #pragma once",
                        "it follows the overview")


COMMENT = re.compile(r"[ \t]*///?(?P<indent> *)(?P<said>.*?)[ \t]*")
DRAWN = re.compile("[─│┌┐└┘├┤┬┴┼▶◀▲▼→←↑↓]")
LABEL = re.compile(r"[A-Z]{1,2}[0-9]+ ")  # The label of an invariant.
COLUMNS = 100  # The limit of .clang-format, which does not change comments (ReflowComments).


def corners_of(line: str) -> list[int]:
    """The columns at which a line of a drawing has a corner with a line downwards."""
    return [] if line.isascii() else [at for at, sign in enumerate(line) if sign in "┌┐"]


def check_comments(source: Source) -> Iterator[Violation]:
    """Comments are no wider than code. Drawings and invariants must not have been broken or shifted
    by a formatter."""
    if not source.is_cpp:
        return
    above = None
    is_drawing = False  # Whether a line above has an arrow or a box, with no empty line since.
    is_list = False  # Whether the lines are invariants. An arrow in an invariant is text.
    for number, line in enumerate(source.text.splitlines(), 1):
        match = COMMENT.fullmatch(line) if "//" in line else None
        if match is None or not match["said"]:
            above, is_drawing, is_list = None, False, False
            continue
        said = match["said"]
        if len(line) > COLUMNS and " " in said:
            yield Violation(source.path, number, f"a comment of {len(line)} columns", f"at most {COLUMNS}")
        has_lines = not line.isascii() and DRAWN.search(said) is not None
        is_list = is_list or LABEL.match(said) is not None
        is_drawing = (is_drawing or has_lines) and not is_list
        if above and len(match["indent"]) > 1 and not has_lines:
            is_rest = is_drawing and " " not in said
            is_level = match["indent"] == above["indent"]
            if is_rest or (is_level and LABEL.match(above["said"]) and not LABEL.match(said)):
                yield Violation(source.path, number, f"'{said}' is cut off from the line above",
                                "a drawing is broken by hand; an invariant goes on below its text")
        if above and any(line[at:at + 1] in ("", " ") for at in corners_of(above[0])):
            yield Violation(source.path, number - 1, "a corner with nothing below it", "move the corner to its line")
        above = match


def check_place(source: Source) -> Iterator[Violation]:
    parts = source.path.split("/")
    if source.path.endswith((".h", ".hh", ".hxx", ".cc", ".cxx", ".c")):
        yield Violation(source.path, 1, "a foreign ending", "C++ files end in .hpp and .cpp")
    if source.is_cpp and parts[0] in LAYERS and len(parts) > 3:
        yield Violation(source.path, 1, "a folder too deep", "a layer has one level of sub-folders")


def check_functions(source: Source) -> Iterator[Violation]:
    if not source.is_cpp or not source.path.startswith(PRODUCT) or source.text.count("\n") <= LONGEST_FUNCTION:
        return
    for part in source.parts:
        lines = source.code.count("\n", part.start, part.end) + 1
        if part.kind == "function" and lines > LONGEST_FUNCTION:
            name = part.head.split("(")[0].split(" ")[-1]
            yield Violation(source.path, line_of(source.code, part.start), f"{name} has {lines} lines",
                            f"a function has at most {LONGEST_FUNCTION}: cut it where it says what it does")


def check_listed(source: Source, cmake_lists: dict[str, str]) -> Iterator[Violation]:
    """A CMakeLists.txt in the source's folder or above names the source, by its relative path."""
    if not source.path.endswith(".cpp"):
        return
    path = PurePosixPath(source.path)
    for folder in path.parents:
        text = cmake_lists.get("" if str(folder) == "." else f"{folder}/")
        if text is None:
            continue
        name = re.escape(path.relative_to(folder).as_posix())
        if re.search(rf"(?<![\w.-])(?<!(?<!\}})/){name}(?![\w.])", text):
            return
    yield Violation(source.path, 1, "no CMakeLists.txt names it",
                    "add it to the list of its target, or delete it")


def unit_of(path: str) -> str:
    """The unit of a file: its path without the ending, so a header and its source are one unit."""
    return path.removesuffix(".hpp").removesuffix(".cpp")


def circles_of(includes: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """The largest sets of units that all include each other, directly or not. `includes` has the
    units that each unit includes."""
    rest = {unit: set(others) for unit, others in includes.items()}
    while True:  # Removes units that include no other unit, or that no unit includes.
        included = set().union(*rest.values())
        kept = {unit: {other for other in others if other in rest} for unit, others in rest.items() if unit in included}
        kept = {unit: others for unit, others in kept.items() if others}
        if kept == rest:
            break
        rest = kept

    def reached(unit: str) -> set[str]:
        seen: set[str] = set()
        ahead = [unit]
        while ahead:
            fresh = rest.get(ahead.pop(), set()) - seen
            seen |= fresh
            ahead += fresh
        return seen

    reach = {unit: reached(unit) for unit in rest}
    yield from {tuple(sorted(other for other in reach[unit] if unit in reach[other])) for unit in rest if unit in reach[unit]}


def check_circles(sources: list[Source], table: IncludeTable) -> Iterator[Violation]:
    """No unit of the product includes itself through others, unless a `circle` row allows it."""
    product = {source.path: source for source in sources if source.is_cpp and source.path.startswith(PRODUCT)}
    includes: dict[str, set[str]] = {unit_of(path): set() for path in product}
    for path, source in product.items():
        others = {unit_of(header) for _, header, _ in source.includes} - {unit_of(path)}
        includes[unit_of(path)] |= others & includes.keys()
    unseen = dict(table.circles)
    for circle in circles_of(includes):
        if unseen.pop(circle, None) is not None:
            continue
        path, line = next((path, line) for path in sorted(product) if unit_of(path) in circle
                          for line, header, _ in product[path].includes
                          if unit_of(header) in circle and unit_of(header) != unit_of(path))
        yield Violation(path, line, f"a circle of includes: {', '.join(circle)}",
                        "have them include an interface, or give tests/tidy/includes.txt a `circle` row with the reason")
    for circle, number in unseen.items():
        if includes.keys() >= set(circle):
            yield Violation("tests/tidy/includes.txt", number, f"{', '.join(circle)} are no circle",
                            "remove the row: the list only shrinks")


def joined_sources(folder: str, text: str, sources: dict[str, Source]) -> Iterator[list[Source]]:
    """The sources that a folder's CMake list joins, for each library and test (decision 156)."""
    alone = " ".join(ALONE.findall(text)).split()
    for function, target, words in LISTED.findall(text):
        if not function.startswith("signalbox") and f"signalbox_join_sources({target})" not in text:
            continue
        paths = (f"{folder}{word}" if not word.startswith("${") else word.removeprefix("${PROJECT_SOURCE_DIR}/")
                 for word in words.split() if word.endswith(".cpp") and word not in alone)
        yield [sources[path] for path in paths if path in sources]


def check_joined(sources: dict[str, Source], cmake_lists: dict[str, str]) -> Iterator[Violation]:
    """The build joins sources of a library or test. If one of them calls a function that another one
    has in its unnamed namespace, the call might mean the wrong function. A function that is in no
    header and not in the caller's unnamed namespace is a member or a lambda, which hides the other."""
    homes = collections.defaultdict(set)
    for source in sources.values():
        for name in source.free_functions if source.is_header else ():
            homes[name].add(source.home)
    for folder, text in cmake_lists.items():
        for joined in joined_sources(folder, text, sources):
            for source in joined:
                for name in sorted(source.unnamed_functions):
                    other = next((other for other in joined if other is not source and other.is_in(source.home)
                                  and name in other.plain_calls - other.unnamed_functions
                                  and any(other.is_in(home) for home in homes[name])), None)
                    if other is not None:
                        yield Violation(source.path, 1, f"{name}() of its unnamed namespace is a name in {other.path} too",
                                        "rename it, give a test a namespace with the name of its file, "
                                        f"or add one of the two to signalbox_compile_alone in {folder}CMakeLists.txt")


def check_announced(sources: list[Source]) -> Iterator[Violation]:
    """messages/ has no forward declaration of a type that it does not define, because such a type
    would belong to another layer."""
    homes = collections.defaultdict(set)
    for source in sources:
        if source.is_cpp and source.path.startswith(PRODUCT):
            for part in source.parts:
                homes[part.defined].add(source.path)
    for source in sources:
        if not source.is_cpp or not source.path.startswith("messages/"):
            continue
        for part in source.parts:
            name = part.announced
            if name is None or any(home.startswith("messages/") for home in homes[name]):
                continue
            where = min(homes[name], default="no file of the product")
            yield Violation(source.path, line_of(source.code, part.start), f"{name} is declared here, and defined in {where}",
                            "pass a type that messages/ defines (SessionHint, for example)")


class Unused:
    """Finds functions, types and constants in the product's headers, except the public ones, that the
    product declares and defines, but does not use. Only files that include a header use its functions
    and constants. unused.txt lists exactly those that are allowed."""

    def __init__(self, sources: list[Source]) -> None:
        self.product = {source.path: source for source in sources
                        if source.is_cpp and source.path.startswith(PRODUCT)}
        # The number of times that each word occurs in the product.
        self.named: collections.Counter = collections.Counter()
        # The number of forward declarations of each type, such as `class A;`.
        self.announced: collections.Counter = collections.Counter()
        # The number of definitions of each function in sources. Any source counts.
        self.defined: collections.Counter = collections.Counter()
        for source in self.product.values():
            self.named.update(source.words)
            self.defined.update(part.function for part in source.parts if not source.is_header)
            self.announced.update(part.type for part in source.parts if part.kind == "statement")

    @functools.cached_property
    def users(self) -> dict[str, set[str]]:
        """The files that include each file, directly or not, and the file itself."""
        direct = collections.defaultdict(set)
        for path, source in self.product.items():
            for _, header, _ in source.includes:
                direct[header if header in self.product else f"channel/include/{header}"].add(path)

        def reached(path: str) -> set[str]:
            seen, left = {path}, [path]
            while left:
                more = direct[left.pop()] - seen
                seen |= more
                left += more
            return seen

        return {path: reached(path) for path in self.product}

    def found(self) -> Iterator[tuple[Source, int, str]]:
        """The unused names: (header, position in its code, name)."""
        for source in self.product.values():
            # Programs outside this repository use the public headers.
            if source.is_header and not source.path.startswith("channel/include/"):
                yield from self.found_in(source)

    def found_in(self, source: Source) -> Iterator[tuple[Source, int, str]]:
        own = self.product.get(source.path.removesuffix(".hpp") + ".cpp")
        defined = own.parts if own else []
        functions = collections.Counter(part.function for part in source.parts)
        seen = set()
        for part in source.parts:
            name = part.function or part.constant or (part.kind == "scope" and part.type)
            if not name or name in seen:
                continue
            named = sum(self.product[path].words[name] for path in self.users[source.path])
            if part.function:
                known = functions[name] + sum(other.function == name for path in self.users[source.path]
                                              if not self.product[path].is_header for other in self.product[path].parts)
            elif part.constant:
                known = 1
            else:
                named = self.named[name]  # A file with a forward declaration need not include the header.
                members = sum(len(re.findall(rf"\b{name}::", other.head)) for other in defined)
                inside = WORD.findall(source.code[part.start:part.end]).count(name)
                known = inside + members + self.announced[name]
            if named <= known:
                seen.add(name)
                yield source, part.start, name

    def check(self) -> Iterator[Violation]:
        allowed = {}
        for number, row in rows("unused.txt"):
            columns = [column.strip() for column in row.split(" | ")]
            if len(columns) != 3 or not all(columns):
                raise RulesError(f"unused.txt:{number}: wants `header | name | reason`")
            allowed[columns[0], columns[1]] = number
        for source, at, name in self.found():
            if allowed.pop((source.path, name), None) is None:
                yield Violation(source.path, line_of(source.code, at), f"nothing in the product uses {name}",
                                "remove it, with its tests, or move it to tests/support")
        for (path, name), number in allowed.items():
            if path in self.product:
                yield Violation("tests/tidy/unused.txt", number, f"{name} of {path} is used, or gone",
                                "remove the row: the list only shrinks")


def check_tree(root: Path) -> tuple[int, list[Violation]]:
    """The number of checked files, and the violations in them."""
    table = IncludeTable((HERE / "includes.txt").read_text(encoding="utf-8"))
    bans = load_bans()
    paths = list_files(root)
    texts = {path: text for path in paths if (text := read_text(root / path)) is not None}
    cmake_lists = {
        path.removesuffix("CMakeLists.txt"): re.sub(r"#[^\n]*", "", text)
        for path, text in texts.items()
        if PurePosixPath(path).name == "CMakeLists.txt"
    }
    known = set(paths)
    violations: list[Violation] = []
    by_path = {path: Source(path, text) for path, text in texts.items()}
    sources = list(by_path.values())
    for source in sources:
        violations += check_opening(source)
        violations += check_place(source)
        violations += check_comments(source)
        violations += check_functions(source)
        violations += check_includes(source, table)
        violations += check_own_header_first(source, known)
        violations += check_bans(source, bans)
        violations += check_listed(source, cmake_lists)
        violations += [Violation(source.path, *found) for found in check_document(source.path, source.text, texts, known)]
        if source.is_header and source.path.startswith(PRODUCT):
            violations += [Violation(source.path, *found) for found in check_file_table(source.path, texts)]
    # Only the files of a checkout with this table can use all of its grants.
    if "tests/tidy/includes.txt" in texts:
        violations += check_grants(sources, IncludeTable(texts["tests/tidy/includes.txt"]))
    violations += check_circles(sources, table)
    violations += check_joined(by_path, cmake_lists)
    violations += check_announced(sources)
    violations += Unused(sources).check()
    violations += [Violation(*found) for found in check_conformance(texts, declared_by(by_path))]
    violations += [Violation(*found) for found in check_words(texts, load_allowed_words(texts.get("tests/tidy/words.txt", "")))]
    return len(texts), sorted(violations)


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the house rules on the text of a checkout.")
    parser.add_argument("--root", type=Path, default=HERE.parent.parent, help="the checkout (default: this one)")
    root = parser.parse_args().root.resolve()
    try:
        count, violations = check_tree(root)
    except RulesError as error:
        print(f"tidy: {error}", file=sys.stderr)
        return 2
    for violation in violations:
        print(violation)
    print(f"tidy: {count} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
