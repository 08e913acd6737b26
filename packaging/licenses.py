"""Prints the licences of the crates in the program: licenses.py TARGET.

Crates with the same text are listed together above it. Cargo is the one that CARGO names.
"""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")
COMPILED_IN = """\
This program contains the Rust standard library (MIT OR Apache-2.0, Copyright (c) The Rust Project Contributors), on Linux musl
(MIT, Copyright (c) 2005-2020 Rich Felker, et al.), SQLite (public domain), and the crates below.
"""


def main():
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "metadata", "--format-version=1", "--locked", "--filter-platform", sys.argv[1]]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {it["id"]: it for it in metadata["packages"]}
    needed = normal_dependencies(metadata)
    crates_of, without = collections.defaultdict(list), []
    for package in sorted((packages[it] for it in needed), key=lambda it: (it["name"], it["version"])):
        if package["source"] is None:
            continue  # ours
        crate = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        folder = Path(package["manifest_path"]).parent
        texts = sorted(it for it in folder.iterdir() if it.is_file() and it.name.lower().startswith(NAMES))
        for text in texts:
            crates_of[text.read_text(errors="replace").strip()].append(crate)
        if not texts:
            without.append(crate)
    print(COMPILED_IN)
    for text, crates in sorted(crates_of.items(), key=lambda it: it[1]):
        print("-" * 80, *crates, "", text, "", sep="\n")
    if without:
        print("-" * 80, "These crates come without a text; their licences are among those above:", *without, sep="\n")


def normal_dependencies(metadata):
    """Returns the ids of what the program is made of, without what only its tests and build scripts use."""
    nodes = {it["id"]: it for it in metadata["resolve"]["nodes"]}
    open_ids = [it["id"] for it in metadata["packages"] if it["name"] == "prowess-cli"]
    found = set(open_ids)
    while open_ids:
        for dependency in nodes[open_ids.pop()]["deps"]:
            is_normal = any(it["kind"] is None for it in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                open_ids.append(dependency["pkg"])
    return found


main()
