#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tidy.py reports each kind of violation in a small tree that has only this violation,
and reports nothing in a clean tree."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from conformance import DATA, PAGE, page_of, read_citations, read_data

HERE = Path(__file__).resolve().parent
SPDX = "SPDX-License-Identifier: Apache-2.0"

CLEAN = {
    "CMakeLists.txt": f"# {SPDX}\nadd_subdirectory(lb)\n",
    "lb/CMakeLists.txt": f"# {SPDX}\nadd_library(signalbox_lb\n  pick/snapshot_cell.cpp\n  tree/priority.cpp)\n",
    "lb/tree/priority.hpp": f"""// {SPDX}
// lb/tree/priority.hpp
//
// priority — it never throws, and std::mutex is but a word in a comment.
//
//   children ─┬▶ [choose] ─▶ one of them, and the reason why it is this one and not the others ─┐
//             └─────────────────────────────────────────────────────────────────────────────────┘
//
// Invariants
//   P1  The first one that is usable is chosen, and where none is usable the last one is: never
//       none.
//   P2  A text may fill its line up to the last column, and then go on at the same indent as the
//       widest.
//   P3  An arrow in a text is no drawing: idle → connecting → ready, and then its last word may be
//       alone.
//
// So it is in a text without an indent: ready → idle, and then its last word may stand for itself,
// alone.

#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "messages/ids.hpp"
""",
    "lb/tree/priority.cpp": f"""// {SPDX}
#include "lb/tree/priority.hpp"

#include <map>

const char* said() {{ return "throw std::mutex"; }}  // 1'000
int rethrow_count(int thrown) {{ return 1'000 + thrown; }}
int Choice::lost(int a) const {{ return a; }}
""" + "namespace {\n\nconstexpr int kTable[] = {\n" + "    int(1),\n" * 70 + "};\n\n"
    "class Policy {\n" + "  void step() {\n    while (true) {\n    }\n  }\n" * 20 + "};\n\n}  // namespace\n",
    "lb/pick/snapshot_cell.cpp": f"// {SPDX}\n#include <urcu-bp.h>\n#include <mutex>\nstd::mutex slow_path;\n",
    "messages/ids.hpp": f"// {SPDX}\n// Identities.\n\n#pragma once\n\n#include <string>\n\nenum class Id {{ kOne }};\n",
    "messages/names.hpp": f"""// {SPDX}
// Names: all of it is used, or called by others.

#pragma once

inline constexpr int kLongest = 5;
struct Name {{ bool operator==(const Name&) const = default; }};
std::function<Name(int)> name_of(Id id, int most = kLongest);
class Listener;
class Listener : public grpc::Listener {{
  struct Block;
  friend class Stranger;
  void heard(Name name) override;
}};
template <typename T>
void tell(const T& listener) {{ listener.heard(name_of(Id::kOne)(1)); }}
""",
    "messages/names.cpp": f"// {SPDX}\n#include \"messages/names.hpp\"\nstruct Listener::Block {{ int a; }};\nvoid f(Listener& a) {{ tell(a); }}\n",
    "messages/CMakeLists.txt": f"# {SPDX}\nadd_library(signalbox_messages names.cpp)\n",
    "tests/a.cpp": f"// {SPDX}\nint b = counted(1);  // [A75-1][A28, A75-10]\n",
    "tests/CMakeLists.txt": f"# {SPDX}\nadd_executable(a a.cpp)\n",
    "actors/protocol/caf.hpp": f"// {SPDX}\n// The version header.\n\n#pragma once\n\n#include <caf/all.hpp>\n",
    "actors/io/dns.hpp": f"// {SPDX}\n// Names.\n\n#pragma once\n\n#include <grpcpp/grpcpp.h>\n#include <netdb.h>\n",
    "xds/parse.hpp": f'// {SPDX}\n// Bytes.\n\n#pragma once\n\n#include "signalbox/envoy/lds.pb.h"\n',
    "conf/word.txt": "build/tmp/ and https://example.com/home/ are no machine paths\n",
    "run": f"#!/usr/bin/env bash\n# {SPDX}\n",
    "README.md": """# Title

[A page](docs/page.md#its-own-heading), [its first](docs/page.md#twice-1), [here](#title), [out](https://example.com/x),
`[code](nowhere.md)`.

```cpp
call([](int) {}); // [code](nowhere.md)
# No heading
```
""",
    "actors/io/README.md": "# actors/io\n\n| files | hold |\n|---|---|\n| `dns` (+ `_rules`) | the `lost` |\n",
    "docs/page.md": "# Its own `heading`!\n\n## Twice\n\n## Twice\n\nSee [the README](../README.md).\n",
    "docs/configure.md": "`name`, `weight`\n",
    "ARCHITECTURE.md": "# How\n\n| **ask** | no glossary |\n\n## Glossary\n\n| word | means |\n|---|---|\n"
    "| **seal**, **weighted cluster** | two |\n| **shell** | **actor** |\n",
    "tests/tidy/terms.txt": "# Terms.\n\nseal\nweighted cluster\n",
    "channel/include/signalbox/plan.hpp": f"// {SPDX}\n// A page is sealed for a weighted\n// cluster.\n\n#pragma once\n",
    "xds/proto/a.proto": f"// {SPDX}\nmessage A {{\n  string name = 1;\n  repeated b.C weight = 2;  // x = 3;\n}}\n",
    "docs/decisions/README.md": "# Decisions\n\n[7](0007-a-cell.md)\n",
    "docs/decisions/0007-a-cell.md": "# 7. A cell\n\nContext.\n",
    DATA: """# Rows.
= A75: fixes | https://example.com/a75

A75-1 | A leaf is a child. | messages/names.cpp: f(Listener); messages/names.hpp: Listener::heard, tell
A75-10 | A75 has ten of them. | messages/ids.hpp: Id

= Others | https://example.com
A28 | The first route serves. | messages/names.hpp: kLongest
""",
}
CLEAN[PAGE] = page_of(read_data(CLEAN[DATA])[0], read_citations(CLEAN))


def header(body: str) -> str:
    return f"// {SPDX}\n// What it is.\n\n#pragma once\n\n{body}"


def opening(more: str) -> str:
    return f"// {SPDX}\n// What it is.\n//\n{more}\n#pragma once\n"


def source(body: str) -> str:
    return f"// {SPDX}\n{body}"


def data(old: str, new: str) -> str:
    """The data of the clean tree with one change."""
    assert CLEAN[DATA].count(old) == 1
    return CLEAN[DATA].replace(old, new)


# (violation, file, text of the file, "line: a part of the report")
VIOLATIONS = [
    ("lb includes xds", "lb/a.hpp", header('#include "xds/parse.hpp"\n'), "6: lb/ may not include xds/parse.hpp"),
    ("xds includes lb", "xds/a.hpp", header('#include "lb/a.hpp"\n'), "6: xds/ may not include lb/a.hpp"),
    ("messages includes lb", "messages/a.hpp", header('#include "lb/a.hpp"\n'), "6: messages/ may not include"),
    ("a leaf climbs into the tree", "lb/leaf/a.hpp", header('#include "lb/tree/priority.hpp"\n'), "6: lb/leaf/ may not"),
    ("pick climbs into the tree", "lb/pick/a.hpp", header('#include "lb/tree/priority.hpp"\n'), "6: lb/pick/ may not"),
    ("a session climbs into pick", "lb/session/a.hpp", header('#include "lb/pick/a.hpp"\n'), "6: lb/session/ may not"),
    ("lb includes CAF", "lb/a.hpp", header('#include "caf/all.hpp"\n'), "6: lb/ may not include caf/all.hpp; cores"),
    ("lb includes CAF in brackets", "lb/a.hpp", header("#include <caf/all.hpp>\n"), "6: lb/ may not include caf/"),
    ("messages includes CAF", "messages/a.hpp", header("#include <caf/all.hpp>\n"), "6: messages/ may not include"),
    ("channel includes CAF", "channel/a.hpp", header("#include <caf/all.hpp>\n"), "6: channel/ may not include"),
    ("tools includes CAF", "tools/a.hpp", header("#include <caf/all.hpp>\n"), "6: tools/ may not include"),
    ("lb includes the protocol", "lb/a.hpp", header('#include "actors/protocol/caf.hpp"\n'), "6: lb/ may not"),
    ("lb includes protobuf", "lb/a.hpp", header("#include <google/protobuf/any.h>\n"), "6: lb/ may not"),
    ("messages includes a .pb.h", "messages/a.hpp", header('#include "xds/proto/a.pb.h"\n'), "6: messages/ may not"),
    ("actors include a .pb.h", "actors/a.hpp", header('#include "xds/proto/a.pb.h"\n'), "6: actors/ may not include"),
    ("actors/io includes a .pb.h", "actors/io/a.hpp", header('#include "a/b.grpc.pb.h"\n'), "6: actors/io/ may not"),
    ("actors/io climbs into actors", "actors/io/a.hpp", header('#include "actors/a.hpp"\n'), "6: actors/io/ may not"),
    ("a grant that nothing uses", "tests/tidy/includes.txt",
     "let absl = absl/* ; used\nlet re2 = re2/* ; not used\nmessages | std\nlb | std absl messages re2\n",
     "4: nothing of lb includes re2; remove the word"),
    ("a grant of folders that nothing uses", "tests/tidy/includes.txt", "lb | std\nlb/tree | std\nmessages | std lb/*\n",
     "3: nothing of messages includes lb/*"),
    ("a file's grant that it does not use", "tests/tidy/includes.txt",
     "let rcu = urcu-*.h ; used\nlet re2 = re2/* ; not used\nlb | std\nlb/pick/snapshot_cell + rcu re2\n",
     "4: nothing of lb/pick/snapshot_cell includes re2"),
    ("actors include gRPC", "actors/a.hpp", header("#include <grpcpp/grpcpp.h>\n"), "6: actors/ may not include"),
    ("xds includes gRPC", "xds/a.hpp", header("#include <grpc/grpc.h>\n"), "6: xds/ may not include grpc/grpc.h; gRPC"),
    ("lb includes urcu", "lb/a.hpp", header("#include <urcu-bp.h>\n"), "6: lb/ may not include urcu-bp.h; only lb/pick"),
    ("metrics include lb", "metrics/a.hpp", header('#include "lb/a.hpp"\n'), "6: metrics/ may not include"),
    ("actors include the face", "actors/a.hpp", header('#include "signalbox/runtime.hpp"\n'), "6: actors/ may not"),
    ("an unknown library", "lb/a.hpp", header("#include <boost/any.hpp>\n"), "6: lb/ may not include boost/any.hpp"),
    ("an include not from the root", "lb/a.hpp", header('#include "policy.hpp"\n'), '6: "policy.hpp" is not written'),
    ("C++ in conf", "conf/a.hpp", header(""), "1: C++ outside of the layers"),
    ("its own header is not first", "lb/tree/priority.cpp",
     source('#include <vector>\n#include "lb/tree/priority.hpp"\n'), "2: the first include is vector"),
    ("a clock in a core", "lb/a.hpp", header("auto t = std::chrono::steady_clock::now();\n"), "6: 'steady_clock::now'"),
    ("a mutex in a core", "xds/a.hpp", header("std::mutex mutex_;\n"), "6: 'std::mutex' is banned here; a core has"),
    ("chance in a shell", "actors/a.hpp", header("std::random_device dice;\n"), "6: 'std::random_device'"),
    ("a sleep in a shell", "actors/a.hpp", header("std::this_thread::sleep_for(d);\n"), "6: 'sleep_for'"),
    ("a sleep in a test", "tests/sim/a.hpp", header("std::this_thread::sleep_for(d);\n"), "6: 'sleep_for'"),
    ("a cast in a core", "lb/a.hpp", header("auto* p = dynamic_cast<A*>(b);\n"), "6: 'dynamic_cast'"),
    ("a throw in a core", "lb/a.hpp", header("void f() { throw 1; }\n"), "6: 'throw' is banned here; absl::Status"),
    ("a throw after a comment", "lb/a.hpp", header("/* a\n b */ void f() { throw 1; }\n"), "7: 'throw'"),
    ("a throw in messages", "messages/a.hpp", header("void f() { throw 1; }\n"), "6: 'throw'"),
    ("a link", "actors/a.hpp", header("self->link_to(child);\n"), "6: 'link_to'"),
    ("a result that a hardened build wants", "tools/a.hpp", header("static_cast<void>(::write(bell, &one, 8));\n"),
     "6: 'static_cast<void>(::write'"),
    ("another one", "tools/a.hpp", header("static_cast<void>(::read(bell, &one, 8));\n"), "6: 'static_cast<void>(::read'"),
    ("a detached thread", "channel/a.hpp", header("thread.detach();\n"), "6: '.detach()'"),
    ("std::string_view in messages", "messages/a.hpp", header("std::string_view s;\n"), "6: 'std::string_view'"),
    ("assert", "lb/a.hpp", header("assert(true);\n"), "6: 'assert'"),
    ("an atomic shared_ptr", "channel/a.hpp", header("std::atomic<std::shared_ptr<int>> p;\n"), "6: 'std::atomic<"),
    ("using namespace in a header", "lb/a.hpp", header("using namespace std;\n"), "6: 'using namespace'"),
    ("a loose end", "lb/a.hpp", header("// TODO later\n"), "6: 'TODO'"),
    ("a vague name", "lb/pick_utils.hpp", header(""), "1: 'utils' in a file's name"),
    ("a machine path", "conf/a.yaml", "file: /home/me/x\n", "1: '/home/' is banned here; no machine path"),
    ("a machine path in a string", "tests/a.hpp", header('auto p = "/tmp/x";\n'), "6: '/tmp/'"),
    ("no SPDX line in a header", "lb/a.hpp", "// What.\n\n#pragma once\n", "1: no SPDX line"),
    ("no SPDX line in a script", "conf/a.sh", "#!/bin/sh\n", "1: no SPDX line"),
    ("no overview", "lb/a.hpp", f"// {SPDX}\n\n#pragma once\n", "2: no overview"),
    ("an overview that is but the path", "lb/a.hpp", f"// {SPDX}\n// lb/a.hpp\n\n#pragma once\n", "2: no overview"),
    ("a drawing that is cut off", "lb/a.hpp", opening(f"//   a ─▶ {'b' * 88}\n//   rest\n"),
     "5: 'rest' is cut off"),
    ("a word of its own below a short drawing", "lb/a.hpp", opening("//   a ─▶ b\n//   rest\n"), "5: 'rest' is cut off"),
    ("a note in a drawing that is cut off", "lb/a.hpp", opening(f"//   a ─▶ {'b' * 80}\n//        └▶ {'c' * 83}\n//           rest\n"),
     "6: 'rest' is cut off"),
    ("a corner beside its line", "lb/a.hpp", opening("//   a ─┐\n//   b   ├▶ d\n//   c ──┘\n"),
     "4: a corner with nothing below it"),
    ("a corner above nothing", "lb/a.hpp", opening("//   a ──────┐\n//   b\n"), "4: a corner with nothing below it"),
    ("an invariant that is cut off", "lb/a.hpp", opening("//   I1  It is\n//   so.\n"), "5: 'so.' is cut off"),
    ("a wide comment", "lb/a.hpp", opening(f"// Of {'b' * 95}\n"), "4: a comment of 101 columns"),
    ("a long function", "lb/a.hpp", header("struct A {\n  int f(int a)\n      const {" + "\n" * 59 + "  }\n};\n"),
     "7: f has 61 lines; a function has at most 60"),
    ("a long constructor", "lb/pick/snapshot_cell.cpp", source("namespace a {\nA::A() : b_{1} {" + "\n" * 60 + "}\n}\n"),
     "3: A::A has 61 lines"),
    ("a function that only a test uses", "lb/a.hpp",
     header("int counted(int a);\n\ntemplate <typename T>\nint listed(T (*a)(int)) { return 0; }\nint b = listed(&c);\n"),
     "6: nothing in the product uses counted"),
    ("a function that is defined and not used", "lb/tree/priority.hpp",
     header("class Choice {\n public:\n  [[nodiscard]] int lost(int a) const;\n  Choice* next = nullptr;\n};\n"
            "class Choice;\nChoice* made = nullptr;\n"), "8: nothing in the product uses lost"),
    ("a function that another header's source defines", "lb/a.hpp", header("int rethrow_count(int thrown);\n"),
     "6: nothing in the product uses rethrow_count"),
    ("a type that is not used", "lb/a.hpp", header("struct Alone final {\n  Alone();\n  int a = 1;\n};\n"),
     "6: nothing in the product uses Alone"),
    ("a constant that is not used", "lb/a.hpp", header("inline constexpr int kLost = 1;\n"),
     "6: nothing in the product uses kLost"),
    ("messages declares a type of lb", "messages/a.hpp", header("namespace lb {\nclass Policy;\n}\n"),
     "7: Policy is declared here, and defined in lb/tree/priority.cpp"),
    ("messages declares a type that is nowhere", "messages/a.hpp", header("template <typename T>\nstruct Seat;\n"),
     "6: Seat is declared here, and defined in no file of the product"),
    ("messages declares an enumeration of xds", "messages/a.hpp", header("enum class State : int;\n"),
     "6: State is declared here, and defined in no"),
    ("no #pragma once", "lb/a.hpp", f"// {SPDX}\n// What.\n\n#include <vector>\n", "4: no #pragma once"),
    ("an empty header", "lb/a.hpp", "", "1: no #pragma once"),
    ("a foreign ending", "lb/a.cc", source(""), "1: a foreign ending"),
    ("a folder too deep", "lb/tree/more/a.hpp", header(""), "1: a folder too deep"),
    ("a header that its README does not name", "actors/io/lost.hpp", header(""), "1: actors/io/README.md does not name it"),
    ("a source in no list", "lb/tree/lost.cpp", source(""), "1: no CMakeLists.txt names it"),
    ("a link to nowhere", "conf/a.md", "a\n\n[x](other.md)\n[y](../README.md)\n", "3: the link other.md leads to"),
    ("a link to a folder", "conf/a.md", "[x](../docs)\n", "1: the link ../docs leads to no file"),
    ("a link out of the checkout", "conf/a.md", "[x](../../x.md)\n", "1: the link ../../x.md leads to no file"),
    ("a link by reference", "conf/a.md", "See [x].\n\n[x]: nowhere.md\n", "3: the link nowhere.md leads to no file"),
    ("an anchor without its heading", "conf/a.md", "[x](../README.md#no-heading)\n",
     "1: README.md has no heading for #no-heading"),
    ("an anchor of this page", "conf/a.md", "# A\n\n[x](#b)\n", "3: conf/a.md has no heading for #b"),
    ("a long README", "README.md", "# Title\n" + "word " * 1300, "1: 6508 bytes, more than 6144"),
    ("a long CONTRIBUTING", "CONTRIBUTING.md", "word " * 1100, "1: 5500 bytes, more than 5120"),
    ("an xDS field that no page names", "docs/configure.md", "`name`\n", "1: weight of xds/proto/a.proto is not named"),
    ("a term without its row in the glossary", "tests/tidy/terms.txt", "seal\n\nask\n", "3: the glossary of ARCHITECTURE.md has"),
    ("a term that only a row explains", "tests/tidy/terms.txt", "actor\n", "1: the glossary of ARCHITECTURE.md has no row"),
    ("a term that no public header uses", "tests/tidy/terms.txt", "# a\nshell\n", "2: no public header uses 'shell'"),
    ("a decision by another name", "docs/decisions/cell.md", "# 8. Cell\n", "1: not the name of a decision"),
    ("a decision with another number", "docs/decisions/0007-a-cell.md", "# 8. Cell\n", "1: no title with the number"),
    ("a long decision", "docs/decisions/0007-a-cell.md", "# 7. Cell\n" + "line\n\n" * 20, "1: 21 lines that are not"),
    ("a wide decision", "docs/decisions/0007-a-cell.md", "# 7. Cell\n" + "x" * 111, "2: 111 columns, more than 110"),
    ("a decision outside of the index", "docs/decisions/0008-b.md", "# 8. B\n", "1: docs/decisions/README.md does not"),
    ("a pronoun of people in a comment", "lb/a.hpp", header("// Who is told.\n"), "6: 'Who'; name the thing"),
    ("a pronoun of people in a text", "tools/a.hpp", header('auto p = "nobody answers";\n'), "6: 'nobody'"),
    ("a pronoun in a document", "conf/a.md", "# A\n\nWhoever reads `nobody` this.\n", "3: 'Whoever'"),
    ("a pronoun in the page of a folder", "lb/pick/README.md", "# A\n\nThe one who `who` asks.\n", "3: 'who'; name the thing"),
    ("a pronoun in a comment of CMake", "conf/a.cmake", f"# {SPDX}\n# Nobody links it.\n", "2: 'Nobody'; name the thing"),
    ("a pronoun behind a statement of Python", "conf/a.py", f"# {SPDX}\nA = 1 " + " # As somebody asks.\n", "2: 'somebody'"),
    ("a pronoun in a docstring", "conf/a.py", f'# {SPDX}\n"""A table:\nwho may include what."""\n', "3: 'who'; name the"),
    ("a pronoun in a message of protobuf", "xds/a.proto", f"// {SPDX}\n// Whoever reads it.\n", "2: 'Whoever'"),
    ("a long sentence in a docstring", "conf/a.py", f'# {SPDX}\n"""A.\n\n' + "word " * 41 + '"""\n', "4: a sentence of 41 words"),
    ("a long sentence of a text", "tools/a.hpp", header('auto p =\n    "' + "word " * 20 + '"\n    "' + "word " * 21 + '";\n'),
     "7: a sentence of 41 words"),
    ("a long sentence", "lb/a.hpp", header("// " + "word " * 20 + "\n// " + "word " * 21 + "\n"), "6: a sentence of 41 words"),
    ("a long sentence of a document", "conf/a.md", "# A\n\n" + "word " * 41 + "\n", "3: a sentence of 41 words"),
    ("more than words.txt allows", "tests/tidy/words.txt", "lb/tree/priority.hpp | pronoun | 1\n",
     "1: lb/tree/priority.hpp may have 1 of 'pronoun' and has none"),
    ("an id without a sentence", "lb/a.hpp", header("// A75-2, of A75.\n"), "6: A75-2 has no sentence; correct the id, or"),
    ("a gRFC without a sentence", "lb/a.hpp", header("// gRFC A99.\n"), "6: A99 has no sentence"),
    ("an id without a sentence in a test", "tests/a.hpp", header('const char* tags = "[A75-2]";\n'), "6: A75-2 has no"),
    ("an id without a sentence in a document", "conf/a.md", "# A\n\nA75-2, unlike A99.\n", "3: A75-2 has no sentence"),
    ("a sentence without a test", DATA, data("\n\n= O", "\nA75-11 | It is new. | messages/ids.hpp: Id\n\n= O"),
     "6: no test cites A75-11; add the tag [A75-11]"),
    ("a place without its file", DATA, data("messages/ids.hpp: Id", "messages/gone.hpp: Id"),
     "5: A75-10: messages/gone.hpp does not exist (Id now in messages/ids.hpp"),
    ("a place without its function", DATA, data("messages/ids.hpp: Id", "messages/ids.hpp: lost"),
     "5: A75-10: messages/ids.hpp declares no lost (lost now in lb/tree/priority.cpp?); name the file and function"),
    ("a place that only calls its function", DATA, data("kLongest", "tell(kOne)"),
     "8: A28: messages/names.hpp declares no tell(kOne)"),
    ("a requirement without a place", DATA, data("messages/ids.hpp: Id", "messages/ids.hpp"), "5: A75-10 has no place"),
    ("half a sentence", DATA, data("ten of them.", "ten of them"), "5: A75-10 has no whole sentence"),
    ("a long sentence of a requirement", DATA, data("ten of them.", "word " * 28 + "end."),
     "5: the sentence of A75-10 has 31 words; say it in at most 30"),
    ("a requirement with two sentences", DATA, data("A28 |", "A28 | It is. | messages/ids.hpp: Id\nA28 |"),
     "9: A28 has a sentence already; line 8 has it"),
    ("requirements out of order", DATA, data("\n\n= O", "\nA75-9 | It is late. | messages/ids.hpp: Id\n\n= O"),
     "6: A75-9 stands after A75-10"),
    ("what is no requirement", DATA, data("= Others", "Others"), "7: not a row"),
    ("a stale page of requirements", PAGE, CLEAN[PAGE].replace("ten of", "eleven of"), "20: the page is stale; run python3"),
    ("a source in a comment of the list", "metrics/lost.cpp", source(""), "1: no CMakeLists.txt names it"),
]


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def tidy(root: Path, script: str = "tidy.py", *more: str) -> tuple[int, list[str]]:
    run = subprocess.run([sys.executable, str(HERE / script), "--root", str(root), *more], capture_output=True, text=True,
                         check=False)
    return run.returncode, run.stdout.splitlines()


class TidyTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="signalbox tidy ")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        write(self.root, CLEAN)

    def test_a_clean_tree_passes(self) -> None:
        self.assertEqual(tidy(self.root), (0, [f"tidy: {len(CLEAN)} files, 0 violations"]))

    def test_each_violation_is_reported_where_it_is(self) -> None:
        write(self.root, {"metrics/CMakeLists.txt": f"# {SPDX}\n# lost.cpp\n"})
        for what, path, text, said in VIOLATIONS:
            with self.subTest(what):
                file = self.root / path
                before = file.read_text(encoding="utf-8") if file.exists() else None
                write(self.root, {path: text})
                status, lines = tidy(self.root)
                self.assertEqual(status, 1, lines)
                self.assertTrue(any(line.startswith(f"{path}:{said}") for line in lines), lines)
                foreign = [line for line in lines[:-1] if not line.startswith(path + ":")]
                self.assertEqual(foreign, [])
                self.assertTrue(all(re.match(r"[^:]+:\d+: .+; .+", line) for line in lines[:-1]), lines)
                if before is None:
                    file.unlink()
                else:
                    write(self.root, {path: before})

    def test_what_may_be_unused_has_a_row_and_no_other_has(self) -> None:
        declared = header("int start_again();\n")
        write(self.root, {"tools/control_plane.hpp": declared})
        self.assertEqual(tidy(self.root)[0], 0)
        write(self.root, {"tools/control_plane.hpp": declared + "int twice = start_again();\n"})
        status, lines = tidy(self.root)
        self.assertEqual((status, len(lines)), (1, 2))
        self.assertRegex(lines[0], r"^tests/tidy/unused.txt:\d+: start_again of tools/control_plane.hpp is used, or gone;")

    def test_a_name_that_another_header_uses_hides_nothing(self) -> None:
        write(self.root, {"lb/used.hpp": header("int merged();\nint once = merged();\n"), "lb/unused.hpp": header("int merged();\n")})
        status, lines = tidy(self.root)
        self.assertEqual((status, len(lines)), (1, 2), lines)
        self.assertTrue(lines[0].startswith("lb/unused.hpp:6: nothing in the product uses merged"), lines)
        write(self.root, {"lb/user.hpp": header('#include "lb/unused.hpp"\nint twice = merged();\n')})
        self.assertEqual(tidy(self.root)[0], 0)

    def test_the_page_of_requirements_follows_data_and_tags(self) -> None:
        write(self.root, {"tests/more.hpp": header("// [A28]\n")})
        status, lines = tidy(self.root)
        self.assertEqual((status, len(lines)), (1, 2))
        self.assertRegex(lines[0], rf"^{PAGE}:\d+: the page is stale; run python3 tests/tidy/conformance.py --write$")
        self.assertEqual(tidy(self.root, "conformance.py"), (1, [lines[0], "conformance: 1 violations"]))
        (self.root / PAGE).unlink()
        self.assertEqual(tidy(self.root, "conformance.py", "--write"), (0, ["conformance: 0 violations"]))
        self.assertEqual(tidy(self.root)[0], 0)
        self.assertIn("[more.hpp](../tests/more.hpp)", (self.root / PAGE).read_text(encoding="utf-8"))

    def test_units_do_not_include_themselves_by_way_of_others(self) -> None:
        listed = f"# {SPDX}\nadd_library(signalbox_metrics b.cpp)\n"
        files = {
            "metrics/CMakeLists.txt": listed,
            "metrics/a.hpp": header('#include "metrics/b.hpp"\n'),
            "metrics/b.hpp": header(""),
            "metrics/b.cpp": source('#include "metrics/b.hpp"\n'),
            "metrics/user.hpp": header('#include "metrics/a.hpp"\n'),
        }
        write(self.root, files)
        self.assertEqual(tidy(self.root)[0], 0)
        write(self.root, {"metrics/b.cpp": source('#include "metrics/b.hpp"\n#include "metrics/c.hpp"\n'),
                          "metrics/c.hpp": header('#include "metrics/a.hpp"\n')})
        status, lines = tidy(self.root)
        self.assertEqual((status, len(lines)), (1, 2))
        self.assertRegex(lines[0], r"^metrics/a.hpp:6: a circle of includes: metrics/a, metrics/b, metrics/c;")

    def test_joined_sources_do_not_call_a_function_of_anothers_unnamed_namespace(self) -> None:
        def within(namespace: str, body: str) -> str:
            return source(f"\nnamespace {namespace} {{\n{body}\n}}  // namespace {namespace}\n")

        def unnamed(*names: str) -> str:
            bodies = "".join(f"\nint {name}(int value) {{\n  return value;\n}}\n" for name in names)
            return f"namespace {{\n{bodies}\n}}  // namespace\n"

        call = "int sum() {\n  return counted(1);\n}\n"
        listed = f"# {SPDX}\nsignalbox_library(metrics SOURCES a.cpp b.cpp)\n"
        files = {"metrics/CMakeLists.txt": listed, "metrics/a.cpp": within("m", unnamed("first", "counted")),
                 "metrics/count.hpp": header("namespace m {\nint counted(Book book);\n}  // namespace m\n")}
        for other, is_fine in ((within("m", call), False), (within("m::inner", call), False), (within("n", call), True),
                               (within("m", unnamed("counted") + call), True),
                               (within("m", call.replace("counted", "book.counted")), True),
                               (within("m", call.replace("counted", "first")), True)):
            write(self.root, {**files, "metrics/b.cpp": other})
            lines = [line for line in tidy(self.root)[1] if "unnamed" in line]
            self.assertEqual(lines == [], is_fine, lines)
            if not is_fine:
                self.assertRegex(lines[0], r"^metrics/a.cpp:1: counted\(\) of its unnamed namespace is a name in metrics/b.cpp too;"
                                           r" .* signalbox_compile_alone in metrics/CMakeLists.txt$")
            write(self.root, {"metrics/CMakeLists.txt": listed + "signalbox_compile_alone(\n  b.cpp)\n"})
            self.assertEqual([line for line in tidy(self.root)[1] if "unnamed" in line], [])

    def test_a_circle_with_a_row_is_allowed_and_a_row_without_a_circle_is_not(self) -> None:
        files = {"xds/bootstrap.hpp": header('#include "xds/node.hpp"\n'), "xds/node.hpp": header("")}
        write(self.root, {**files, "xds/node.hpp": header('#include "xds/bootstrap.hpp"\n')})
        self.assertEqual(tidy(self.root)[0], 0)
        write(self.root, files)
        status, lines = tidy(self.root)
        self.assertEqual((status, len(lines)), (1, 2))
        self.assertRegex(lines[0], r"^tests/tidy/includes.txt:\d+: xds/bootstrap, xds/node are no circle;")

    def test_a_readme_names_headers_by_name_ending_pattern_or_folder(self) -> None:
        table = "| `a`, `b.hpp` | |\n| `c` (+ `_d`) | |\n| `*_actor` | |\n| `deep/` | |\n| [own](own/README.md) | |\n"
        named = ["a", "b", "c", "c_d", "dns_actor", "deep/e", "own/f"]
        write(self.root, {"metrics/README.md": table, "metrics/own/README.md": "| `f` | |\n",
                          **{f"metrics/{file}.hpp": header("") for file in named}})
        self.assertEqual(tidy(self.root), (0, [f"tidy: {len(CLEAN) + 9} files, 0 violations"]))
        unnamed = ["actor", "d", "own/a", "shallow/e"]
        write(self.root, {f"metrics/{file}.hpp": header("") for file in unnamed})
        status, lines = tidy(self.root)
        self.assertEqual((status, [line.split(":")[0] for line in lines[:-1]]), (1, [f"metrics/{file}.hpp" for file in unnamed]))

    def test_git_decides_what_is_ours(self) -> None:
        write(self.root, {".gitignore": "/mine/\n", "mine/a.hpp": "", "lb/untracked.hpp": ""})
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)
        status, lines = tidy(self.root)
        self.assertEqual(status, 1)
        self.assertTrue(any(line.startswith("lb/untracked.hpp:") for line in lines), lines)
        self.assertFalse(any(line.startswith("mine/") for line in lines), lines)

    def test_the_work_grows_with_the_files_and_no_faster(self) -> None:
        body = header("#include <vector>\n" + "int add(int a, int b) { return add(b, a); }  // Sum.\n" * 50)
        calls = []
        for files in (20, 40, 80):
            write(self.root, {f"lb/file_{number}.hpp": body for number in range(files)})
            result = subprocess.run([sys.executable, "-m", "cProfile", str(HERE / "tidy.py"), "--root", str(self.root)],
                                    capture_output=True, text=True, check=True)
            calls.append(int(re.search(r"(\d+) function calls", result.stdout).group(1)))
        self.assertLess(calls[2] - calls[1], 2.2 * (calls[1] - calls[0]), calls)


if __name__ == "__main__":
    unittest.main()
