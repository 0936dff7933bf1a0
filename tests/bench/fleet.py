# SPDX-License-Identifier: Apache-2.0
"""./run bench fleet: many clients and one control plane in virtual time. tests/fleet has the model.

    signalbox_fleet ─▶ outcomes of scenarios and manners, and of other capacities ─▶ Run
                    ─▶ table, JSON, page (fleet_page.py)

Nothing is measured: the numbers depend on the options alone, not on the machine."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from world import MeasurementFailed

SCENARIOS = ("push", "handover", "restart", "away", "slow", "bad", "bad-again")
MANNERS = ("signalbox", "grpc-core", "grpc-go", "no-jitter")
CLIENTS, QUICK_CLIENTS, MOST_CLIENTS = 10_000, 1000, 1_000_000
CAPACITY_OF_CLIENT = 0.2  # By default the control plane has this part of the clients as messages a second.

# The capacities of the sizing table: these parts of the clients, as messages a second.
SIZED_PARTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SIZED_SCENARIO, SIZED_MANNER = "restart", "signalbox"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """Outcomes, as the program wrote them: those of the scenarios, and those of other capacities."""

    outcomes: list[dict]
    sizes: list[dict]

    def as_data(self) -> dict:
        return {"outcomes": self.outcomes, "sizes": self.sizes}

    def facts(self) -> str:
        first = (self.outcomes + self.sizes)[0]
        return (f"{first['clients']:,} clients in virtual time, a control plane of {first['capacity']:,.0f} messages a "
                f"second, seed {first['seed']}")


def capacity_of(clients: int, part: float) -> float:
    """A part of the clients as messages a second. The program takes no capacity below 1."""
    return max(1.0, part * clients)


def outcomes_of(program: Path, clients: int, capacity: float, scenarios: list[str], manners: list[str]) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        command = [str(program), "--clients", str(clients), "--capacity", f"{capacity:g}", "--json", str(file)]
        for name in scenarios:
            command += ["--scenario", name]
        for name in manners:
            command += ["--manner", name]
        # Status 1 with a file: some clients never had the newest version. The table says so.
        status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        if status > 1 or not file.exists():
            raise MeasurementFailed(f"{program.name} ended with status {status}")
        return json.loads(file.read_text(encoding="utf-8"))


def run(build: Path, names: list[str], clients: int, capacity: float, say: Say) -> Run:
    """Runs the scenarios with these names; without names all, and the sizing table."""
    program = build / "tests" / "fleet" / "signalbox_fleet"
    say(f"fleet: {', '.join(names or SCENARIOS)}: {clients:,} clients")
    outcomes = outcomes_of(program, clients, capacity, names, [])
    sizes: list[dict] = []
    # With few clients, several parts have the same least capacity.
    for size in () if names else dict.fromkeys(capacity_of(clients, part) for part in SIZED_PARTS):
        say(f"fleet: {SIZED_SCENARIO} with {size:,.0f} messages a second")
        sizes += outcomes_of(program, clients, size, [SIZED_SCENARIO], [SIZED_MANNER])
    return Run(outcomes, sizes)


def write_json(file: Path, result: Run) -> None:
    file.write_text(json.dumps(result.as_data()) + "\n", encoding="utf-8")
