# SPDX-License-Identifier: Apache-2.0
"""Route configurations and calls by chance, but always the same: all of them follow from a seed.

    seed, number ─▶ [RandomWorld] ─▶ virtual hosts with routes; calls: authority, path, headers

What the words of a matcher and those of a call are made of is small, so that they meet. Everything here means the same to
Envoy and to gRPC: what does not is one of the special worlds of routes.py, with a row in differences.json."""

import random
from dataclasses import dataclass

CLUSTERS = tuple(f"c{number}" for number in range(8))
SERVICES = ("shop.Orders", "shop.Stock", "SHOP.Orders", "a", "shop")
METHODS = ("Place", "Cancel", "place", "b", "Place2")
PREFIXES = ("", "/", "/shop", "/shop.", "/shop.Orders/", "/shop.Orders/Place", "/a/", "/SHOP", "/shop.Stock/C")
REGEXES = (r"/shop\..*", r".*/Place", r"/[^/]+/[a-z]+", r"/(shop|a)(\.[A-Z][a-z]+)?/.+", r"/shop", r"(?i)/SHOP\.orders/.*")
NAMES = ("x-a", "x-b", "x-number", "X-Mixed", "user-agent")
VALUES = ("1", "v1", "v10", "V1", "a,b", "b", "", "a", "some text", "é")
NUMBERS = ("0", "5", "10", "-3", "5.5", "five", "99999999999999999999", "+5", "05", "")
WORDS = ("v1", "V", "1", "a", "a,b", "b", "text", "v10")
VALUE_REGEXES = (r"v\d+", r"[a-z]*", r".*,b", r"()", r"(?i)V1", r".+")


@dataclass(frozen=True)
class Call:
    authority: str
    path: str
    headers: tuple = ()  # Pairs of name and value.


@dataclass(frozen=True)
class World:
    name: str
    virtual_hosts: list
    calls: list

    def authorities(self) -> list[str]:
        return sorted({call.authority for call in self.calls})


def random_world(seed: int, number: int, calls: int) -> World:
    return RandomWorld(random.Random(f"{seed}/{number}"), f"w{number}").world(calls)


class RandomWorld:
    def __init__(self, chance: random.Random, name: str) -> None:
        self._chance = chance
        self._name = name
        # Names are unique to the world, because signalbox's listeners are named after them.
        self._authorities = tuple(f"{host}.{name}.{top}" for host in ("shop", "api.shop", "SHOP") for top in ("test", "dev"))

    def world(self, calls: int) -> World:
        return World(self._name, self._virtual_hosts(), [self._call() for _ in range(calls)])

    def _virtual_hosts(self) -> list[dict]:
        name = self._name
        domains = [f"shop.{name}.test", f"*.{name}.test", f"shop.{name}.*", f"*.shop.{name}.test", f"api.*",
                   f"Api.Shop.{name}.DEV", "*.dev"]
        self._chance.shuffle(domains)
        if self._chance.random() < 0.7:
            domains.append("*")
        hosts = []
        for number in range(self._chance.randint(1, 3)):
            own = [domains.pop() for _ in range(self._chance.randint(1, 2))]
            routes = [self._route() for _ in range(self._chance.randint(2, 12))]
            if self._chance.random() < 0.5:
                routes.append({"match": {"prefix": ""}, **self._action()})
            hosts.append({"name": f"host{number}", "domains": own, "routes": routes})
        return hosts

    def _route(self) -> dict:
        match = self._path_matcher()
        headers = [self._header_matcher() for _ in range(self._chance.choice((0, 0, 0, 1, 1, 2)))]
        if headers:
            match["headers"] = headers
        if self._chance.random() < 0.1:
            match["runtime_fraction"] = {"default_value": {"numerator": self._chance.choice((0, 100)),
                                                           "denominator": "HUNDRED"}}
        return {"match": match, **self._action()}

    def _path(self) -> str:
        return f"/{self._chance.choice(SERVICES)}/{self._chance.choice(METHODS)}"

    def _path_matcher(self) -> dict:
        kind = self._chance.choice(("prefix", "path", "safe_regex"))
        if kind == "safe_regex":
            return {"safe_regex": {"regex": self._chance.choice(REGEXES)}}
        match = {kind: self._chance.choice(PREFIXES) if kind == "prefix" else self._path()}
        if self._chance.random() < 0.3:
            match["case_sensitive"] = self._chance.random() < 0.3
        return match

    def _header_matcher(self) -> dict:
        matcher = {"name": self._chance.choice(NAMES)}
        kind = self._chance.choice(("exact", "prefix", "suffix", "contains", "safe_regex", "range", "present"))
        if kind == "range":
            start = self._chance.randint(-5, 8)
            matcher["range_match"] = {"start": start, "end": start + self._chance.randint(1, 8)}
        elif kind == "present":
            matcher["present_match"] = self._chance.random() < 0.7
        elif kind == "safe_regex":
            matcher["string_match"] = {"safe_regex": {"regex": self._chance.choice(VALUE_REGEXES)}}
        else:
            matcher["string_match"] = {kind: self._chance.choice(WORDS)}
            if self._chance.random() < 0.3:
                matcher["string_match"]["ignore_case"] = True
        if self._chance.random() < 0.25:
            matcher["invert_match"] = True
        if self._chance.random() < 0.15:
            matcher["treat_missing_header_as_empty"] = True
        return matcher

    def _action(self) -> dict:
        kind = self._chance.random()
        if kind < 0.05:
            return {"direct_response": {"status": 204}}
        if kind < 0.08:
            return {"redirect": {"path_redirect": "/elsewhere"}}
        if kind < 0.3:  # Only one of them has a weight: no draw.
            entries = [{"name": cluster, "weight": 0} for cluster in self._chance.sample(CLUSTERS, 3)]
            self._chance.choice(entries)["weight"] = self._chance.choice((1, 100, 4294967295))
            return {"route": {"weighted_clusters": {"clusters": entries}}}
        return {"route": {"cluster": self._chance.choice(CLUSTERS)}}

    def _call(self) -> Call:
        headers = []
        for name in NAMES:
            if self._chance.random() < 0.7:
                values = NUMBERS if name == "x-number" else VALUES
                headers.append((name.lower(), self._chance.choice(values)))
        return Call(self._chance.choice(self._authorities), self._path(), tuple(headers))
