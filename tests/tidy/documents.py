# SPDX-License-Identifier: Apache-2.0
"""The house rules for documents:

- Links lead to existing files and headings.
- README.md and CONTRIBUTING.md stay short. A decision has a numbered title, at most twenty lines
  with text, and a link in the index.
- docs/configure.md names every field of the xDS configuration.
- The glossary has the terms of terms.txt, and a public header uses each of them.
- The README.md of a folder of the product names the folder's headers.

    *.md ─▶ without code ─▶ links: file and anchor;   sizes;   docs/decisions/NNNN-title.md: form, index;   fields
    terms.txt ─▶ a row in the glossary of ARCHITECTURE.md, and a use in channel/include
    *.hpp ─▶ the tables of the next README.md

Anchors follow the rule of code forges: a heading in lower case, without punctuation, with hyphens
for spaces. The website (conf/docs) makes the same anchors."""

import fnmatch
import functools
import posixpath
import re
from typing import Iterator

# (line, what, advice)
Finding = tuple[int, str, str]

LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]\n]+\]:[ \t]+(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
DECISION = re.compile(r"docs/decisions/(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")
DECISIONS, DECISION_INDEX = "docs/decisions/", "docs/decisions/README.md"
DECISION_LINES, DECISION_COLUMNS = 20, 110
CONFIGURE, PROTOS = "docs/configure.md", "xds/proto/"
# Protos of messages that carry resources, reports or recordings. Their fields are not configuration.
ENVELOPES = ("/service/discovery/", "/service/status/", "/endpoint/v3/load_report.proto", "/admin/v3/", "/google/rpc/", "/recording/", "/typed_struct.proto")
FIELD = re.compile(r"^[ \t]*(?:repeated[ \t]+)?(?:map<[^>]+>|[\w.]+)[ \t]+([a-z_0-9]+)[ \t]*=[ \t]*\d+;", re.MULTILINE)
CELL = re.compile(r"^\|([^|\n]*)\|", re.MULTILINE)  # The first cell of a table's row.
CODE = re.compile(r"`([^`\n]+)`")
TERMS, GLOSSARY, PUBLIC = "tests/tidy/terms.txt", "ARCHITECTURE.md", "channel/include/"
MOST_BYTES = {"README.md": 6 * 1024, "CONTRIBUTING.md": 5 * 1024}


def without_code(text: str) -> str:
    """The text without code and comments. Every line keeps its number."""

    def blank(match: re.Match) -> str:
        return "\n" * match[0].count("\n")

    text = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", blank, text)


@functools.lru_cache(maxsize=None)
def anchors_of(text: str) -> frozenset[str]:
    anchors: set[str] = set()
    fenced = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in HEADING.findall(fenced):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")
        anchor, count = slug, 0
        while anchor in anchors:
            count += 1
            anchor = f"{slug}-{count}"
        anchors.add(anchor)
    return frozenset(anchors)


def check_links(path: str, text: str, texts: dict[str, str], paths: set[str]) -> Iterator[Finding]:
    plain = without_code(text)
    for match in LINK.finditer(plain):
        link = match[1] or match[2]
        if ELSEWHERE.match(link):
            continue
        line = plain.count("\n", 0, match.start()) + 1
        name, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
        if target not in paths:
            yield line, f"the link {link} leads to no file", "name a file of the checkout, relative to this page"
        elif anchor and target.endswith(".md") and anchor not in anchors_of(texts[target]):
            yield line, f"{target} has no heading for #{anchor}", "an anchor is the heading in lower case, with hyphens"


def check_size(path: str, text: str) -> Iterator[Finding]:
    size = len(text.encode())
    most = MOST_BYTES.get(path)
    if most is not None and size > most:
        yield 1, f"{size} bytes, more than {most}", "move what a first reader does not need to docs/"


def check_decision(path: str, text: str, texts: dict[str, str]) -> Iterator[Finding]:
    if not path.startswith(DECISIONS) or path == DECISION_INDEX:
        return
    name = DECISION.fullmatch(path)
    if name is None:
        yield 1, "not the name of a decision", "call it docs/decisions/NNNN-title.md"
        return
    lines = text.splitlines()
    if not lines or not re.match(rf"# {int(name[1])}\. \S", lines[0]):
        yield 1, "no title with the number of the file", f"begin with `# {int(name[1])}. Title`"
    count = sum(1 for line in lines if line.strip())
    if count > DECISION_LINES:
        yield 1, f"{count} lines that are not empty, more than {DECISION_LINES}", "say it shorter, or split it"
    for number, line in enumerate(lines, 1):
        if len(line) > DECISION_COLUMNS:
            yield number, f"{len(line)} columns, more than {DECISION_COLUMNS}", "break the line"
    if posixpath.basename(path) not in texts.get(DECISION_INDEX, ""):
        yield 1, f"{DECISION_INDEX} does not link it", "add it to the index, under its layer"


def check_fields(path: str, text: str, texts: dict[str, str]) -> Iterator[Finding]:
    """docs/configure.md names every field of signalbox's configuration messages."""
    if path != CONFIGURE:
        return
    named = set(re.findall(r"\w+", text))
    for proto in sorted(name for name in texts if name.startswith(PROTOS) and name.endswith(".proto")):
        if any(envelope in proto for envelope in ENVELOPES):
            continue
        for field in FIELD.findall(re.sub(r"//[^\n]*", "", texts[proto])):
            if field not in named:
                yield 1, f"{field} of {proto} is not named", "say how the field is used, or that it has no effect"


@functools.lru_cache(maxsize=None)
def files_named(readme: str) -> frozenset[str]:
    """The names in the first columns of the tables of a README.md. A name is `a`, `a.hpp`, `a` (+
    `_b`) for a_b, a pattern `*_a`, or `folder/` for all its files."""
    names: set[str] = set()
    for cell in CELL.findall(readme):
        said = [name.removesuffix(".hpp") for name in CODE.findall(cell)]
        whole = [name for name in said if not name.startswith("_")]
        names.update(whole)
        names.update(name + ending for ending in said if ending.startswith("_") for name in whole)
    return frozenset(names)


def check_file_table(path: str, texts: dict[str, str]) -> Iterator[Finding]:
    """The nearest README.md above a header has a row for the header. The README.md of the checkout
    does not count."""
    folder = posixpath.dirname(path)
    while folder and f"{folder}/README.md" not in texts:
        folder = posixpath.dirname(folder)
    if not folder:
        return
    readme = f"{folder}/README.md"
    file = posixpath.relpath(path, folder).removesuffix(".hpp")
    names = files_named(texts[readme])
    within = [name for name in names if name.endswith("/") and file.startswith(name)]
    if file not in names and not within and not any(fnmatch.fnmatchcase(file, name) for name in names if "*" in name):
        yield 1, f"{readme} does not name it", "give the file a row in the table of its folder"


def glossary_terms(text: str) -> set[str]:
    """The terms in bold in the first column of the glossary."""
    _, _, glossary = text.partition("\n## Glossary\n")
    cells = [line.split("|")[1] for line in glossary.splitlines() if line.startswith("| **")]
    return {term for cell in cells for term in re.findall(r"\*\*([^*]+)\*\*", cell)}


def check_terms(path: str, text: str, texts: dict[str, str]) -> Iterator[Finding]:
    """Each term of terms.txt has a row in the glossary, and a public header uses it."""
    if path != TERMS:
        return
    explained = glossary_terms(texts.get(GLOSSARY, ""))
    headers = "\n".join(texts[name] for name in sorted(texts) if name.startswith(PUBLIC) and name.endswith(".hpp"))
    said = re.sub(r"\s+(?://+<?\s*)*", " ", headers)
    for number, term in enumerate(text.splitlines(), 1):
        if not term.strip() or term.startswith("#"):
            continue
        # A header may have another form of the term: "policies" for "policy", "sealed" for "seal".
        if term not in explained:
            yield number, f"the glossary of {GLOSSARY} has no row for '{term}'", "add one, or use the field's word instead"
        elif not re.search(rf"\b{re.escape(term.removesuffix('y'))}", said, re.IGNORECASE):
            yield number, f"no public header uses '{term}'", "remove it: the list has the terms of the public headers"


def check_document(path: str, text: str, texts: dict[str, str], paths: set[str]) -> Iterator[Finding]:
    if path.endswith(".md"):
        yield from check_links(path, text, texts, paths)
        yield from check_size(path, text)
        yield from check_decision(path, text, texts)
        yield from check_fields(path, text, texts)
    yield from check_terms(path, text, texts)
