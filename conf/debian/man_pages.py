#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the man pages of the `signalbox` command from its --help. Each command has its own help,
and gets its own page. A new command gets a page without a change here.

    signalbox load merge --help ─▶ description, usage, groups of options, paragraphs ─▶ signalbox-load-merge.1

Usage: man_pages.py PROGRAM FOLDER DATE"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

COLUMN = 30  # The column at which CLI11 writes the descriptions of options.
TITLE = re.compile(r"[A-Z][A-Za-z ]*:")
# A line that begins with one of these texts begins a paragraph, even without an empty line above.
CLOSING = ("Exit status", "Options of all commands", "Try '")


class Entry(NamedTuple):
    name: str
    text: str


class Help(NamedTuple):
    """The parts of one --help. `groups` are the lists of arguments, options and subcommands.
    `paragraphs` are the other texts after the usage; each is a list of lines."""

    what: str
    usage: str
    groups: dict[str, list[Entry]]
    paragraphs: list[list[str]]


def entries_of(lines: list[str]) -> list[Entry]:
    """An entry's text begins at COLUMN, on the line of the entry's name or on the next line."""
    entries: list[Entry] = []
    for line in lines:
        if line[2:3].strip():
            name, text = line.strip(), ""
            if line[COLUMN - 1:COLUMN] == " " and line[COLUMN:]:
                name, text = line[:COLUMN].strip(), line[COLUMN:].strip()
            entries.append(Entry(name, text))
        else:
            name, text = entries.pop()
            entries.append(Entry(name, f"{text} {line.strip()}".strip()))
    return entries


def is_group(block: list[str]) -> bool:
    if len(block) < 2 or not TITLE.fullmatch(block[0]):
        return False
    return block[0] in ("Positionals:", "Subcommands:") or block[1].startswith("  -")


def parse(text: str) -> Help:
    blocks = [block.splitlines() for block in re.split(r"\n{2,}", text.strip("\n"))]
    first = "\n".join(blocks[0])
    what, usage = re.fullmatch(r"(.*?)\s*^Usage: (.*)", first, re.DOTALL | re.MULTILINE).groups()
    groups: dict[str, list[Entry]] = {}
    paragraphs: list[list[str]] = []
    for block in blocks[1:]:
        if is_group(block):
            groups[block[0][:-1]] = entries_of(block[1:])
            continue
        paragraphs.append([])
        for line in block:
            if paragraphs[-1] and line.startswith(CLOSING):
                paragraphs.append([])
            paragraphs[-1].append(line)
    return Help(" ".join(what.split()), usage, groups, paragraphs)


# --- roff -----------------------------------------------------------------------------------------

ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def roff(text: str) -> str:
    escaped = "".join(ESCAPES.get(c, c) for c in text)
    return r"\&" + escaped if escaped.startswith(".") else escaped


def prose(text: str) -> str:
    """The text in roff. Words between backticks become bold."""
    parts = [part if i % 2 == 0 else rf"\fB{roff(part)}\fR" for i, part in enumerate(re.split(r"`([^`\n]+)`", text))]
    return "".join(roff(part) if i % 2 == 0 and part else part for i, part in enumerate(parts))


def lines_of(paragraph: list[str]) -> list[str]:
    """The paragraph in roff. Indented lines keep their line breaks; other lines are filled."""
    page: list[str] = []
    literal = False
    for line in paragraph:
        if line.startswith(" ") != literal:
            literal = not literal
            page += [".RS 2", ".nf"] if literal else [".fi", ".RE"]
        page.append(roff(line.removeprefix("  ")) if literal else prose(line))
    return page + ([".fi", ".RE"] if literal else [])


def group(title: str, entries: list[Entry]) -> list[str]:
    page = [f".SH {title.upper()}"]
    for name, text in entries:
        first, *rest = name.split(" ", 1)
        page += [".TP", rf"\fB{roff(first)}\fR" + "".join(f" {roff(part)}" for part in rest), prose(text) or r"\&"]
    return page


def commands(name: str, entries: list[Entry]) -> list[str]:
    page = [".SH COMMANDS"]
    for command, text in entries:
        page += [".TP", rf"\fB{roff(f'{name}-{command}')}\fR(1)", prose(text)]
    return page


def page_of(words: list[str], text: str, version: str, date: str) -> str:
    name = "-".join(words)
    told = parse(text)
    what = told.what.removeprefix("signalbox: ").rstrip(".")
    page = [f'.TH "{roff(name.upper())}" 1 "{roff(date)}" "signalbox {roff(version)}" "User Commands"',
            ".nh", ".ad l", ".SH NAME", rf"{roff(name)} \- {prose(what)}", ".SH SYNOPSIS"]
    for line in told.usage.splitlines():
        page += [rf"\fB{roff(' '.join(words))}\fR{roff(line.removeprefix(' '.join(words)))}"]
    description: list[str] = []
    closing: dict[str, list[str]] = {"EXAMPLES": [], "EXIT STATUS": []}
    options: list[str] = []
    for paragraph in told.paragraphs:
        first = paragraph[0]
        if first in ("Example:", "Examples:"):
            closing["EXAMPLES"] += lines_of(paragraph[1:])
        elif first.startswith("Exit status"):
            body = re.sub(r"^Exit status(: |, )", lambda m: "" if m[1] == ": " else "Also, ", first)
            closing["EXIT STATUS"] += [".PP", *lines_of([body, *paragraph[1:]])]
        elif first.startswith("Options of all commands"):
            options += [".PP", *lines_of(paragraph)]
        elif not first.startswith("Try '"):
            description += [".PP", *lines_of(paragraph)]
    for title, entries in told.groups.items():
        if title == "Subcommands":
            page += commands(name, entries)
        else:
            page += group("Arguments" if title == "Positionals" else title, entries)
            page += options if title == "Options" else []
    # The description follows the options, as in --help, because its texts say "above" and "below".
    if description:
        page += [".SH DESCRIPTION", *description[1:]]
    for title, body in closing.items():
        if body:
            page += [f".SH {title}", *(body[1:] if body[0] == ".PP" else body)]
    above = [words[:-1]] if len(words) > 1 else []
    below = [[*words, command] for command, _ in told.groups.get("Subcommands", [])]
    page += [".SH SEE ALSO", ",\n".join(rf"\fB{roff('-'.join(other))}\fR(1)" for other in above + below)]
    return "\n".join(page) + "\n"


def write_pages(program: str, folder: Path, date: str) -> list[Path]:
    def ask(*words: str) -> str:
        answer = subprocess.run([program, *words], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return answer.stdout

    version = ask("version").split()[1]
    written: list[Path] = []
    waiting = [["signalbox"]]
    while waiting:
        words = waiting.pop(0)
        text = ask(*words[1:], "--help")
        page = folder / f"{'-'.join(words)}.1"
        page.write_text(page_of(words, text, version, date), encoding="utf-8")
        written.append(page)
        waiting += [[*words, command] for command, _ in parse(text).groups.get("Subcommands", [])]
    return written


def main() -> None:
    program, folder, date = sys.argv[1:]
    write_pages(program, Path(folder), date)


if __name__ == "__main__":
    main()
