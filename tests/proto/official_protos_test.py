#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the messages, fields and enum values below xds/proto with the official descriptors of
the xDS API.

    our .proto files ─ protoc ─▶ FileDescriptorSet ─┐
                                                     ├─▶ differences, one a line; exit 1 when there is any
    PyPI package xds-protos ─ import ─▶ descriptors ─┘

Our messages may leave fields out. Their other fields must have the official names, numbers, types,
labels, oneofs and enum values. The first run makes a virtual environment with the pinned package.
The test then runs itself again inside this environment.
"""

import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ["xds-protos==1.85.0", "protobuf"]
PREFIX = "signalbox."
# Files that Envoy has, but the package xds-protos does not have yet.
NOT_YET_OFFICIAL = {"envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.proto"}
AT_LEAST_MESSAGES = 51  # A comparison of fewer messages must not pass.


def enter_venv(venv):
    """Returns only inside the virtual environment. Outside of it, makes the environment if
    necessary, and replaces this process by one inside it."""
    python = venv / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == venv.resolve():
        return
    complete = venv / "complete"
    wanted = "\n".join(PACKAGES)
    if not complete.is_file() or complete.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        complete.write_text(wanted)
    os.execv(python, [str(python), *sys.argv])


def our_files(protoc, root):
    from google.protobuf import descriptor_pb2

    paths = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    # The messages of recordings are signalbox's own.
    paths = [path for path in paths if not path.startswith("signalbox/recording/")]
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "ours.bin"
        subprocess.run([protoc, f"--proto_path={root}", f"--descriptor_set_out={out}", *paths], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def official_file(path):
    """The official FileDescriptorProto. None: the package has no such file."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    try:
        importlib.import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
        found = descriptor_pool.Default().FindFileByName(path)
    except (ImportError, KeyError):
        return None
    proto = descriptor_pb2.FileDescriptorProto()
    found.CopyToProto(proto)
    return proto


def oneof_of(field, message):
    return message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""


def type_name_of(field):
    return field.type_name.removeprefix(".").removeprefix(PREFIX)


class Comparison:
    def __init__(self):
        self.differences = []
        self.messages = self.fields = self.values = 0

    def expect(self, where, what, ours, theirs):
        if ours != theirs:
            self.differences.append(f"{where}: {what} is {ours!r}, officially {theirs!r}")

    def enum(self, where, ours, theirs):
        official = {value.name: value.number for value in theirs.value}
        for value in ours.value:
            self.values += 1
            self.expect(f"{where}.{value.name}", "number", value.number, official.get(value.name))

    def field(self, where, field, message, official, official_message):
        self.fields += 1
        for what in ("number", "type", "label", "proto3_optional"):
            self.expect(where, what, getattr(field, what), getattr(official, what))
        self.expect(where, "type name", type_name_of(field), type_name_of(official))
        if official.json_name:  # The package leaves out JSON names that follow from field names.
            self.expect(where, "JSON name", field.json_name, official.json_name)
        self.expect(where, "oneof", oneof_of(field, message), oneof_of(official, official_message))

    def message(self, where, ours, theirs):
        self.messages += 1
        self.expect(where, "map entry", ours.options.map_entry, theirs.options.map_entry)
        official = {field.name: field for field in theirs.field}
        for field in ours.field:
            if field.name in official:
                self.field(f"{where}.{field.name}", field, ours, official[field.name], theirs)
            else:
                self.differences.append(f"{where}.{field.name}: not an official field")
        self.inner(where, ours.nested_type, theirs.nested_type, ours.enum_type, theirs.enum_type)

    def inner(self, where, messages, official_messages, enums, official_enums):
        for kind, ours, theirs, compare in (
            ("message", messages, official_messages, self.message),
            ("enum", enums, official_enums, self.enum),
        ):
            official = {item.name: item for item in theirs}
            for item in ours:
                if item.name in official:
                    compare(f"{where}.{item.name}", item, official[item.name])
                else:
                    self.differences.append(f"{where}.{item.name}: not an official {kind}")

    def file(self, ours):
        path = ours.name.removeprefix(PREFIX[:-1] + "/")
        if path in NOT_YET_OFFICIAL:
            return
        theirs = official_file(path)
        if theirs is None:
            self.differences.append(f"{ours.name}: there is no official {path}")
            return
        self.expect(ours.name, "syntax", ours.syntax, theirs.syntax)
        self.expect(ours.name, "package", ours.package, PREFIX + theirs.package)
        self.inner(theirs.package, ours.message_type, theirs.message_type, ours.enum_type, theirs.enum_type)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="virtual environment to make or use")
    parser.add_argument("--protoc", required=True, help="the protobuf compiler")
    parser.add_argument("--protos", type=pathlib.Path, required=True, help="the folder xds/proto")
    args = parser.parse_args()
    enter_venv(args.venv)

    comparison = Comparison()
    for file in our_files(args.protoc, args.protos):
        comparison.file(file)
    if comparison.messages < AT_LEAST_MESSAGES:
        comparison.differences.append(f"only {comparison.messages} messages compared, expected at least {AT_LEAST_MESSAGES}")
    for difference in comparison.differences:
        print(difference)
    print(f"compared {comparison.messages} messages, {comparison.fields} fields, {comparison.values} enum values:", end=" ")
    print(f"{len(comparison.differences)} differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
