"""Packs a folder: archive.py FOLDER NAME INTO writes INTO/NAME.tar.gz, or .zip for Windows.

The same files give the same bytes: entries are sorted, belong to nobody, and have the time SOURCE_DATE_EPOCH.
"""

import gzip
import io
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path

PROGRAMS = ("prowess", "prowess.exe")


def main():
    folder, name, into = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    moment = int(os.environ["SOURCE_DATE_EPOCH"])
    files = sorted(it for it in folder.rglob("*") if it.is_file())
    entries = [(f"{name}/{it.relative_to(folder).as_posix()}", it.read_bytes()) for it in files]
    if "-windows-" in name:
        write_zip(into / f"{name}.zip", entries, moment)
    else:
        write_tar(into / f"{name}.tar.gz", entries, moment)


def mode(path):
    return 0o755 if path.rsplit("/", 1)[-1] in PROGRAMS else 0o644


def write_tar(path, entries, moment):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, content in entries:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = len(content), moment, mode(name)
                archive.addfile(entry, io.BytesIO(content))


def write_zip(path, entries, moment):
    date = time.gmtime(max(moment, 315532800))[:6]  # the format begins in 1980
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = mode(name) << 16
            archive.writestr(entry, content)


main()
