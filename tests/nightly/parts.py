# SPDX-License-Identifier: Apache-2.0
"""The parts of a night: S1 to S18 of the reliability plan, and further checks of the project.

    Part ─▶ builds, and commands(amount) ─▶ nightly.py runs them ─▶ count, which must reach `gate`

A part without commands has no runner yet. `beyond` names the requirements of the plan that the part
does not check, so its gate can be reached only in part. In a command, {seed} stands for the night's
seed plus the number of the run."""

import os
import shlex
import sys
from dataclasses import dataclass, replace
from math import ceil
from typing import Callable, Optional


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    times: int = 1
    # The number that a successful run adds to the part's count, for a program that prints none.
    # None: it adds nothing.
    worth: Optional[float] = None
    # A pattern that finds the count in the output, in place of `worth`. Its group is a number. If
    # it matches several times, the smallest number counts.
    counted: str = ""
    # A pattern that the output must have, or the run has failed.
    says: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    # The time that the arguments ask for, if it may be hours. The command's limit is longer by it.
    seconds: int = 0

    def with_seed(self, seed: int) -> "Command":
        def seeded(text: str) -> str:
            return text.replace("{seed}", str(seed))

        return replace(self, words=tuple(map(seeded, self.words)),
                       environment=tuple((name, seeded(value)) for name, value in self.environment))

    def line(self) -> str:
        """What a user types to run it once, from the checkout's folder."""
        return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in self.environment), shlex.join(self.words)])

    def line_of_runs(self, seed: int) -> str:
        """The line of the first run, and how often it runs."""
        first = self.with_seed(seed)
        how = "" if first == self else ", each with the next seed"
        return first.line() if self.times == 1 else f"{first.line()}  # {self.times} times{how}"


@dataclass(frozen=True)
class Part:
    name: str
    title: str
    gate: int = 1
    unit: str = "runs"
    commands: Optional[Callable[[int], list[Command]]] = None
    builds: tuple[tuple[str, tuple[str, ...]], ...] = ()  # Presets, each with its targets.
    beyond: str = ""


# As ./run asan sets it. Paths are those of the checkout, where every command runs.
SANITIZED = (("UBSAN_OPTIONS", "print_stacktrace=1:suppressions=conf/sanitizers/ubsan.supp"),)
# With it, a test without its tool fails. Without it, the test is skipped.
COMPLETE = (("CI", "true"),)
# Catch2's last line. Without a matching test it has another.
ALL_PASSED = r"^All tests passed"


def program(preset: str, path: str, *words: str, **how) -> Command:
    return Command((f"build/{preset}/{path}", *words), **how)


def run(*words: str, **how) -> Command:
    return Command(("./run", *words), **how)


def simulated(preset: str, seeds: int, *words: str) -> Command:
    return program(preset, "tests/sim/signalbox_sim", "--seeds", str(seeds), "--seed", "{seed}", "--brief", *words,
                   counted=r"^(\d+) passed", environment=SANITIZED if preset == "asan" else ())


def rounds(amount: int, each: int, **programs: tuple[str, str]) -> list[Command]:
    """Enough runs of each test program to reach `amount`. One run is worth `each`."""
    return [program("release", f"{folder}/{name}", tag, times=ceil(amount / each), worth=each, says=ALL_PASSED)
            for name, (folder, tag) in programs.items()]


def restarts(amount: int, name: str, folder: str) -> Command:
    """Each maker of connections prints its restarts."""
    return program("release", f"{folder}/{name}", "[restarts]", times=ceil(amount / 50),
                   counted=r"^ *(\d+) restarts with sockets: ", says=r"^ *\d+ restarts: ")


RESOURCES = ("listener", "route_config", "cluster", "endpoints", "response")
FUZZ_TARGETS = 13
FUZZED_AT_A_TIME = min(2, os.cpu_count() or 1)
RESOURCES_A_SECOND = 200  # The executions of all targets in RESOURCES together. Measured on two slow processors: 240.
CONTROL_PLANE_FAULTS = "bad-resource,garbage-resource,response-omits,response-repeated,response-stale,response-partial,type-late"
PROPERTIES = (("spec_leaves", "tests/spec"), ("lb_petiole_test", "tests/unit/lb"), ("lb_property_test", "tests/unit/lb"),
              ("priority_model_test", "tests/unit/lb"), ("lb_policy_test", "tests/unit/lb", "[S5]"),
              ("unit_lb_route", "tests/unit/lb", "[property]"), ("unit_load", "tests/unit/load", "[property]"))
SOURCES = 900  # The project has more, and a whole night compiles all of them.
FEWEST_PAIRS = 10  # The error of a median of fewer pairs is not known (tests/bench/comparison.py).
SIM = ("release", ("signalbox_sim",))
NIGHTLY = ("release", ("signalbox_nightly",))
E2E = "tests/e2e"
INTEROP = "tests/interop"


def driver(name: str, *words: str, **how) -> Command:
    return Command((sys.executable, f"tests/nightly/{name}.py", "--build", "build/release", *words), **how)


def judged(amount: int, least: int) -> tuple[str, ...]:
    """Shorter runs have too few samples to judge speed and memory."""
    return ("--judge",) if amount >= least else ()


def orders(story: str, *words: str, **how) -> Command:
    return program("release", "tests/orders/signalbox_orders", story, *words, **how)


def properties(cases: int) -> list[Command]:
    return [program("release", f"{folder}/{name}", *tags, counted=r"OK, passed (\d+) tests",
                    environment=(("RC_PARAMS", f"max_success={cases} seed={{seed}}"),))
            for name, folder, *tags in PROPERTIES]


def fuzzed_seconds(each: int) -> list[Command]:
    seconds = ceil(each * FUZZ_TARGETS / FUZZED_AT_A_TIME)
    return [run("fuzz", str(seconds), "--seed", "{seed}", counted=r"^fuzz: \w+: ran for (\d+) s$", seconds=seconds)]


PARTS = (
    Part("S1", "the simulator with fresh seeds", 10_000, "seeds", lambda n: [simulated("release", n)], (SIM,)),
    Part("S1-asan", "the simulator with fresh seeds under ASan and UBSan", 1_000, "seeds",
         lambda n: [simulated("asan", n)], (("asan", ("signalbox_sim",)),)),
    Part("S2", "each seed again, here and in a new process", 500, "seeds",
         lambda n: [simulated("release", n, "--twice")], (SIM,)),
    Part("S3", "mutated xDS resources under ASan and UBSan", 1_000_000, "resources",
         lambda n: [run("fuzz", str(ceil(n / RESOURCES_A_SECOND)), *RESOURCES, "--seed", "{seed}",
                        counted=r"^all +(\d[\d,]*)")]),
    Part("S4", "all fuzz targets", 1_200, "seconds for each target", fuzzed_seconds,
         beyond="no target drives the tree of policies (b) or reads command lines (d)"),
    Part("S5", "property tests", 100_000, "cases", properties, (("release", tuple(name for name, *_ in PROPERTIES)),)),
    Part("S6", "unit, spec, scenario, sim, race, stress and e2e tests under ASan and UBSan, races under TSan", 1, "runs",
         lambda _: [run("asan", worth=1), run("tsan", worth=1)]),
    Part("S7", "the control plane is killed at 1,000 calls a second", 600, "seconds without it",
         lambda n: [program("release", "tools/signalbox", "demo", "--drill", "control-plane", "--kill-seconds", "60",
                            "--rps", "1000", "--seed", "{seed}", times=ceil(n / 60), counted=r"^  killed +([\d.]+) s ",
                            # 95 % of 60,000 calls while it is killed.
                            says=r"^  killed +[\d.]+ s +(5[7-9]|[6-9]\d)\d{3} ")],
         (("release", ("signalbox_tools",)),),
         beyond="the time until signalbox_xds_connected is 0, and the alert, are not judged"),
    Part("S8", "cold starts without control plane, then with one; to the fallback and back", 50, "rounds",
         lambda n: [*rounds(n, 1, interop=(INTEROP, "[S8]"), e2e_runtime=(E2E, "[S8]~[slow]")),
                    program("release", f"{E2E}/e2e_runtime", "[S8][slow]", says=ALL_PASSED)],
         (("release", ("interop", "e2e_runtime")),),
         beyond="a black hole is met once; a control plane that connects and is silent is met in virtual time only (S1); "
                "how soon calls fail is not judged"),
    Part("S9", "a control plane that comes and goes", 360, "flaps",
         lambda n: rounds(n, 4, e2e_runtime=(E2E, "[S9]")), (("release", ("e2e_runtime",)),),
         beyond="over real sockets the streams a second and the back-off are not judged; a slow control plane, and one "
                "that answers once, are met in virtual time only (S1)"),
    Part("S10", "bad, missing and repeated resources in any order", 100, "orders",
         lambda n: [simulated("release", n, "--faults", CONTROL_PLANE_FAULTS),
                    program("release", f"{INTEROP}/interop", "[S10]", says=ALL_PASSED)],
         (("release", ("signalbox_sim", "interop")),),
         beyond="orders are seeds of the simulator; over real sockets one bad resource of 1,000, one that is mended and a "
                "deletion come once; CSDS and the metric are not compared"),
    Part("S11", "half-open connections to backends and control planes", 20, "rounds",
         lambda n: rounds(n, 1, e2e_runtime=(E2E, "[S11]"), e2e_ads_transport=(E2E, "[S11]")),
         (("release", ("e2e_runtime", "e2e_ads_transport")),),
         beyond="peers are stopped processes, and no network drops their packets; keepalives are shorter than 10 s and "
                "20 s, and their sum is not judged"),
    Part("S12", "a priority flaps, is drained, or is never heard of", 300, "flaps",
         lambda n: [*rounds(n, 300, spec_policies=("tests/spec", "[S12]"), lb_policy_test=("tests/unit/lb", "[S12]")),
                    program("release", f"{E2E}/e2e_runtime", "[S12]", times=ceil(n / 300), says=ALL_PASSED)],
         (("release", ("spec_policies", "lb_policy_test", "e2e_runtime")),),
         beyond="flaps are in virtual time; real backends are killed and stopped once in each round, and the limits of "
                "1 s, 11 s and 41 s are not judged there"),
    Part("S13", "drains with sessions under load", 1_000, "drains",
         lambda n: [driver("drains", "--drains", str(n), "--rate", "1000", *judged(n, 125),
                           counted=r"^(\d[\d,]*) drains ")], (NIGHTLY,)),
    Part("S14", "10,000 endpoints, a tenth of which is replaced each second", 30, "minutes",
         lambda n: [driver("churn", "--seconds", str(60 * n), "--burst-seconds", str(2 * n), *judged(n, 4),
                           counted=r"^(\d+) minutes: ")], (NIGHTLY,),
         beyond="how many updates of a burst a client applies at once is printed, not judged"),
    Part("S15", "four times the calls that backends can take", 10, "minutes",
         lambda n: [run("bench", "--gate", "--pairs", "10", "--seconds", str(6 * n), "overload_goodput", worth=n)],
         beyond="the time of a rejection and the recovery are measured, not judged"),
    Part("S16", "1,000 calls a second while all kinds of faults come", 60, "minutes",
         lambda n: [driver("soak", "--seconds", str(60 * n), "--rate", "1000", "--seed", "{seed}",
                           *judged(n, 8), counted=r"^(\d+) minutes: ")], (NIGHTLY,),
         beyond="six descriptors and six threads more than after the first round are allowed: the order of the faults "
                "decides whether the second cluster stays connected, and gRPC starts and ends threads by itself"),
    Part("S17", "another version's cookies and files, reloads and SIGTERM under load", 1_000, "reloads",
         lambda n: [driver("upgrade", "--reloads", str(n), "--drains", str(ceil(n / 10)), "--sessions",
                           counted=r"^(\d[\d,]*) reloads ")], (NIGHTLY,),
         beyond="the older version is its files and cookies, not its program; this version has written them before its "
                "release, so they are no record of another version"),
    Part("S18", "no descriptors, 256 MiB of memory, a full disk, clock steps, no DNS", 20, "rounds",
         lambda n: [driver("exhaustion", "--rounds", str(n), counted=r"^(\d+) rounds of ")], (NIGHTLY,),
         beyond="limits on resources keep the client below 256 MiB: a process for which malloc fails dies"),
    Part("orders", "configurations are applied in every order of delivery", 500_000, "states of each story",
         lambda n: [orders("leaves", "--states", str(n), counted=r"^(\d+) states"),
                    orders("returns", "--mailboxes", "all", "--states", str(n), counted=r"^(\d+) states"),
                    orders("calls", says=", complete$")],
         (("release", ("signalbox_orders",)),)),
    Part("restarts", "backends restart gracefully under unary and streaming load", 500, "restarts with each maker of connections",
         lambda n: [restarts(n, "e2e_restarts", E2E), restarts(n, "interop", INTEROP)],
         (("release", ("e2e_restarts", "interop")),)),
    Part("stress", "all calls race with all that can happen", 10, "minutes",
         lambda n: [program("release", "tests/stress/signalbox_stress", "--seconds", str(60 * n), "--seed", "{seed}",
                            worth=n)], (("release", ("signalbox_stress",)),)),
    Part("recording", "what a recording adds to the CPU of a call with 1,000 endpoints", 100, "pairs",
         lambda n: [run("bench", "--gate", "--pairs", str(max(n, FEWEST_PAIRS)), "record_cpu_1000",
                        counted=r": pair (\d+) of \1: ")],
         beyond="a result that is noise is no failure: pairs that are too few, or differ too much, to tell 1 %"),
    Part("interop", "a control plane of go-control-plane", 1, "runs",
         lambda _: [run("test", "interop", worth=1, environment=COMPLETE)]),
    Part("envoy", "a real Envoy beside signalbox", 1, "runs",
         lambda _: [run("test", "envoy", worth=1, environment=COMPLETE)]),
    Part("includes", "sources compile without precompiled headers", SOURCES, "sources",
         lambda n: [Command((sys.executable, "tests/nightly/includes.py", "--seed", "{seed}",
                             *(("--count", str(n)) if n < SOURCES else ())), counted=r"^(\d+) sources compile$")]),
    Part("mutation", "tests against mutants of the cores", 30, "mutants",
         # tests/mutation/README.md wants 92 % of 500 mutants killed. A sample of few mutants varies
         # more, so 80 % is enough here.
         lambda n: [Command((sys.executable, "tests/mutation/mutate.py", "--count", str(n), "--seed", "{seed}",
                             "--at-least", "80"), counted=r"of (\d+) mutants were killed")]),
    Part("packages", "the quick start with the Debian packages in a bare Debian", 1, "roots",
         lambda _: [run("package"), Command((sys.executable, "-B", "tests/package/bare_root.py"), worth=1)]),
    Part("reproducible", "two builds of the Debian packages and of the shared library have the same bytes", 1, "comparisons",
         lambda _: [run("reproducible", worth=1)]),
)
