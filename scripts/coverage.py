"""Says which part of the lines of `crates/*/src` tests have reached, by crate, and fails if that is too little.

    cargo test --no-run --message-format=json | coverage.py LEAST PROFILES MISSED

PROFILES is the folder with the raw profiles that the programs left: how often what was passed. What that is, the programs
themselves say. Both are as LLVM writes them (https://llvm.org/docs/CoverageMappingFormat.html). LLVM's own tools would read
them, but they have to be of the compiler's version, which only rustup has. Tests are not counted among the lines; those
that were not reached are written to the file MISSED.
"""

import collections
import hashlib
import json
import os
import re
import struct
import sys
import zlib
from pathlib import Path

# How a raw profile is laid out, by its version: words of its header, which of them is the distance to the counters, bytes
# of a function, and where in them stands how many counters it has. LLVM 19 to 22 write 10, LLVM 23 writes 11.
LAYOUTS = {10: (16, 10, 64, 48), 11: (19, 13, 72, 56)}
# The version of the mapping that rustc writes.
MAPPING = 6


def main(least, profiles, missed):
    artifacts = map(json.loads, sys.stdin)
    programs = {it["executable"] for it in artifacts if it.get("executable")}
    counters = {}
    for profile in Path(profiles).iterdir():
        for function, counts in read_profile(profile.read_bytes()):
            before = counters.get(function, [0] * len(counts))
            counters[function] = [sum(it) for it in zip(before, counts)]
    # A function that is in several programs is one function.
    functions = {it for program in programs for it in read_program(Path(program).read_bytes())}
    files = collections.defaultdict(collections.Counter)
    for function in functions:
        for path, region, count in regions(function, counters):
            files[path][region] += count

    crates = collections.defaultdict(collections.Counter)
    with open(missed, "w", encoding="utf-8") as output:
        for path in sorted(files):
            crate = re.match(r"crates/(?!prowess-testing/)([^/]+)/src/.*(?<!/tests)\.rs$", os.path.relpath(path))
            if crate:
                text = Path(path).read_text(encoding="utf-8")
                code = text.split("\n#[cfg(test)]\nmod tests")[0].split("\n")
                for line, count in sorted(lines(files[path]).items()):
                    if line <= len(code):
                        crates[crate[1]][count > 0] += 1
                        if count == 0:
                            print(f"{crate[0]}:{line}: {code[line - 1]}", file=output)
    return report(crates, least)


def report(crates, least):
    for crate in sorted(crates):
        print(f"{share(crates[crate]):6.1f} %  {sum(crates[crate].values()):6} lines  {crate}")
    reached = share(sum(crates.values(), collections.Counter()))
    print(f"coverage: {reached:.1f} % of lines")
    if reached < least:
        print(f"error: less than {least:g} % of the lines are reached by tests", file=sys.stderr)
    return reached < least


def share(lines):
    return 100 * lines[True] / max(sum(lines.values()), 1)


def lines(regions):
    """How often each line was passed: the most of what starts in it and what goes on from the line before."""
    entered, going_on = {}, {}
    # The inner region stands behind the outer one, and says more about the lines that both have.
    outer_first = sorted(regions.items(), key=lambda it: (it[0][:2], -it[0][2], -it[0][3]))
    for (start, _, end, _), count in outer_first:
        entered[start] = max(count, entered.get(start, 0))
        for line in range(start + 1, end + 1):
            going_on[line] = count
    return {it: max(entered.get(it, 0), going_on.get(it, 0)) for it in entered.keys() | going_on.keys()}


def regions(function, counters):
    """The regions of a function, each with its file and how often it was passed."""
    name, code, filenames, mapping = function
    counts = counters.get((name, code))
    number = Numbers(mapping)
    paths = [filenames[number()] for _ in range(number())]
    expressions = [(number(), number()) for _ in range(number())]
    known = {}

    def evaluate(counter):
        kind, index = counter & 3, counter >> 2
        if kind == 0 or counts is None:
            return 0
        if kind == 1:
            return counts[index]
        if counter not in known:
            left, right = map(evaluate, expressions[index])
            # A process that was killed may have counted the one and not yet the other.
            known[counter] = left + right if kind == 3 else max(left - right, 0)
        return known[counter]

    for path in paths:
        line = 0
        for _ in range(number()):
            counter = number()
            if counter & 3 == 0 and counter != 0:
                raise SystemExit(f"error: a region of a kind that rustc did not write before: {counter}")
            line += number()
            start, height, end = number(), number(), number()
            yield path, (line, start, line + height, end), evaluate(counter)


def read_profile(data):
    """What a raw profile has: a function, and its counts."""
    version = struct.unpack_from("<Q", data, 8)[0] & 0xFFFFFFFF
    if version not in LAYOUTS:
        raise SystemExit(f"error: raw profiles of version {version} are not known here: see LAYOUTS")
    words, delta, size, count_at = LAYOUTS[version]
    header = struct.unpack_from(f"<{words}Q", data)
    ids, functions, padding, total = header[2:6]
    first = words * 8 + ids
    counters = first + functions * size + padding
    seen = 0
    for at in range(first, first + functions * size, size):
        name, code, distance = struct.unpack_from("<QQQ", data, at)
        (count,) = struct.unpack_from("<I", data, at + count_at)
        # It is the distance from here, modulo the size of a word.
        place = (distance - header[delta] + at - first) % 2**64
        yield (name, code), struct.unpack_from(f"<{count}Q", data, counters + place)
        seen += count
    if seen != total:
        raise SystemExit(f"error: a raw profile has {total} counters, its functions have {seen}")


def read_program(data):
    """What a program says of its functions: name, code and mapping as LLVM numbers them, and the files of its crate."""
    sections = read_sections(data)
    filenames, mapping = {}, sections.get(b"__llvm_covmap", b"")
    at = 0
    while at < len(mapping):
        _, size, _, version = struct.unpack_from("<4I", mapping, at)
        if version != MAPPING:
            raise SystemExit(f"error: mappings of version {version} are not known here")
        names = mapping[at + 16 : at + 16 + size]
        filenames[hashlib.md5(names).digest()[:8]] = read_filenames(names)
        at = (at + 16 + size + 7) & ~7
    records = sections.get(b"__llvm_covfun", b"")
    at = 0
    while at < len(records):
        name, size, code, files = struct.unpack_from("<QIQ8s", records, at)
        yield name, code, filenames[files], records[at + 28 : at + 28 + size]
        at = (at + 28 + size + 7) & ~7


def read_filenames(data):
    number = Numbers(data)
    count, _, compressed = number(), number(), number()
    data = data[number.at :]
    number = Numbers(zlib.decompress(data) if compressed else data)
    names = [number.text() for _ in range(count)]
    # The first is the folder in which the compiler ran.
    return tuple(os.path.join(names[0], it) for it in names)


def read_sections(data):
    """The sections of a 64-bit ELF file, by name."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<3H", data, 58)
    headers = [struct.unpack_from("<II4Q", data, table + index * size) for index in range(count)]
    bodies = [data[offset : offset + length] for _, kind, _, _, offset, length in headers]
    return {bodies[names][it[0] :].split(b"\0", 1)[0]: body for it, body in zip(headers, bodies)}


class Numbers:
    """Numbers of seven bits a byte (LEB128), one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def __call__(self):
        number = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def text(self):
        size = self()
        self.at += size
        return self.data[self.at - size : self.at].decode()


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    sys.exit(main(float(sys.argv[1]), sys.argv[2], sys.argv[3]))
