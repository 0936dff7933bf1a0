#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The symbols that libsignalbox.so exports: the functions, variables and classes that the public
headers, and the headers that they include, declare. All other symbols of the archives stay local,
also those of templates of the standard library and of protobuf's messages.

    headers ─▶ declared names ────────┐
    archives ─▶ nm: defined symbols ──┴▶ version script ─▶ the linker ─▶ libsignalbox.so
    libsignalbox.so ─▶ nm -DC ─▶ compared with signalbox.symbols by tests/package/shared_test.py

Usage: exports.py map SOURCE OUTPUT ARCHIVE...   writes the linker's version script
       exports.py list LIBRARY                   prints the symbols that a library exports
       exports.py renew LIBRARY                  writes them into signalbox.symbols"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

LIST = Path(__file__).resolve().with_name("signalbox.symbols")
HEADING = """# The symbols that libsignalbox.so exports, as `nm -DC` prints them. When a public header declares
# another function, renew this file: `conf/shared/exports.py renew build/debug/libsignalbox.so`.
"""
# nm's letters: code, data, zeros, constants. Inline functions and their classes are not exported,
# because each program that uses them has its own.
STRONG = "TDBR"
# An inline variable. It is exported so that the program and the library share one.
UNIQUE = "u"
PREFIXES = ("vtable for ", "typeinfo for ", "typeinfo name for ", "VTT for ", "non-virtual thunk to ", "virtual thunk to ")
ATTRIBUTES = r"(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
# abseil's inline namespace is another one in each version and distribution.
VERSIONS = re.compile(r"\babsl::(?:lts_\d+|debian\d+)::")


class Scope(NamedTuple):
    """A namespace or a class, and what a header declares in it."""

    functions: set[str]
    variables: set[str]
    types: set[str]


# --- headers --------------------------------------------------------------------------------------

def public_headers(source: Path) -> list[Path]:
    """The public headers, and all headers that they include: those that are installed."""
    roots = (source, source / "channel/include")
    waiting = sorted((source / "channel/include/signalbox").glob("*.hpp"))
    found = list(waiting)
    while waiting:
        for include in re.findall(r'^#include "([^"]+)"', waiting.pop().read_text(encoding="utf-8"), re.MULTILINE):
            for header in (root / include for root in roots if (root / include).is_file()):
                if header not in found:
                    found.append(header)
                    waiting.append(header)
    return found


def plain(text: str) -> str:
    """The text without comments, preprocessor lines, and the content of texts."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Yields the scope of each statement and its text, up to its semicolon or its body's brace. The
    bodies of functions and enums, and initialisers, are left out."""
    scopes: list[str | None] = [""]
    said = ""
    for part in re.split(r"([{};])", plain(text)):
        if part == "{":
            here, inside = scopes[-1], None
            opened = re.search(rf"\b(?:namespace|class|struct)\s+{ATTRIBUTES}([\w:]+)[^;()=]*$", said)
            if here is not None:
                yield here, said
                if opened and not re.search(r"\benum\s", said):
                    inside = f"{here}{opened[1]}::"
            scopes.append(inside)
            # An initialiser in braces is part of its statement: what stands before it counts.
            said = "" if inside is not None else said
        elif part == "}":
            scopes.pop()
            said = "" if scopes[-1] is not None else said
        elif part == ";":
            if scopes[-1] is not None:
                yield scopes[-1], said
            said = ""
        elif scopes[-1] is not None:
            said += part


def declared(headers: list[Path]) -> dict[str, Scope]:
    """What the headers declare, by scope: "signalbox::lb::Router::"."""
    scopes: dict[str, Scope] = {}
    for header in headers:
        for name, said in statements(header.read_text(encoding="utf-8")):
            scope = scopes.setdefault(name, Scope(set(), set(), set()))
            scope.types.update(re.findall(rf"\b(?:enum\s+class|class|struct|enum|using)\s+{ATTRIBUTES}(\w+)", said))
            scope.functions.update(re.sub(r"\s+", "", f) for f in re.findall(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+)|~?\b\w+)\s*\(", said))
            variable = re.search(r"\b(\w+)\s*(?:=[^=]|$)", said)
            if variable and not re.search(r"\bconstexpr\b|^\s*(?:using|class|struct|enum|friend|template|return)\b", said):
                scope.variables.add(variable[1])
    return scopes


# --- symbols --------------------------------------------------------------------------------------

def run(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def name_and_arguments(symbol: str) -> tuple[str, str]:
    """"a::b(c::d) const" gives "a::b" and "(c::d) const"."""
    name = re.match(r"(?:\w+::)*(?:operator(?:\(\)|\[\]|[^\w(]+)|~?\w+)", symbol)
    return (name[0], symbol[name.end():]) if name else ("", symbol)


def is_public(symbol: str, kind: str, scopes: dict[str, Scope]) -> bool:
    """Whether a header declares the symbol, a demangled name."""
    def knows(name: str, what: str) -> bool:
        scope, _, last = name.rpartition("::")
        known = scopes.get(f"{scope}::")
        return known is not None and last in getattr(known, what)

    for prefix in PREFIXES:
        if symbol.startswith(prefix) and kind in STRONG:
            name, rest = name_and_arguments(symbol.removeprefix(prefix))
            return knows(name, "functions") if "thunk" in prefix else rest == "" and f"{name}::" in scopes
    name, arguments = name_and_arguments(re.sub(r"\[abi:\w+\]", "", symbol))
    if not name.startswith("signalbox::"):
        return False
    if arguments == "":
        return knows(name, "variables")
    if not arguments.startswith("(") or kind in UNIQUE or "::{" in arguments or re.match(r"\(.*\)(?: const)?::", arguments):
        return False
    # A function of the same name with a type of another header is another function.
    types = re.findall(r"\bsignalbox::[\w:]+", arguments)
    return knows(name, "functions") and all(knows(one, "types") or f"{one}::" in scopes for one in types)


def exported(source: Path, archives: list[str]) -> list[str]:
    """The mangled names of the symbols to export."""
    scopes = declared(public_headers(source))
    found: dict[str, str] = {}
    for line in run("nm", "--extern-only", "--defined-only", "--format=posix", *archives).splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] in STRONG + UNIQUE and "signalbox" in words[0]:
            found[words[0]] = words[1]
    names = list(found)
    shown = run("c++filt", text="\n".join(names)).splitlines()
    return sorted(name for name, symbol in zip(names, shown, strict=True) if is_public(symbol, found[name], scopes))


def version_script(symbols: list[str]) -> str:
    lines = "".join(f"    {symbol};\n" for symbol in symbols)
    return f"{{\n  global:\n{lines}  local:\n    *;\n}};\n"


def symbols_of(library: str) -> list[str]:
    """The symbols that a library exports, without the parts of names that depend on abseil's
    version."""
    lines = run("nm", "-DC", "--defined-only", library).splitlines()
    return sorted({VERSIONS.sub("absl::", line.split(" ", 2)[2]) for line in lines})


def as_list(symbols: list[str]) -> str:
    return HEADING + "".join(f"{symbol}\n" for symbol in symbols)


def main() -> None:
    command, *words = sys.argv[1:]
    if command == "map":
        source, output, *archives = words
        Path(output).write_text(version_script(exported(Path(source), archives)), encoding="utf-8")
    elif command == "list":
        sys.stdout.write(as_list(symbols_of(words[0])))
    elif command == "renew":
        LIST.write_text(as_list(symbols_of(words[0])), encoding="utf-8")
    else:
        raise SystemExit(f"exports.py: there is no command '{command}'. There are: map, list, renew")


if __name__ == "__main__":
    main()
