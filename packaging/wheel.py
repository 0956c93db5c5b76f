#!/usr/bin/env python3
"""Pack a static program of rlock as a Python wheel, so that pip, pipx and uv can install it. The wheel has no Python code.

    packaging/wheel.py FOLDER/rlock-VERSION-linux-ARCH

Write FOLDER/rlock-VERSION-py3-none-*.whl. SOURCE_DATE_EPOCH is the time of all files in it.
"""
import base64
import hashlib
import os
import re
import sys
import time
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: rlock
Version: {version}
Summary: flock for a whole fleet: locks on a Redis or Valkey server
License: MIT
Platform: Linux
Requires-Python: >=3.6
Description-Content-Type: text/markdown

`rlock` runs a command while it holds a lock on a Redis or Valkey server:
`rlock run NAME -- COMMAND`. This package has the static program and nothing else.
The program contains argtable2 and the C library (LGPL); the release page has the source.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: wheel.py ({version})
Root-Is-Purelib: false
{tags}
"""


def checksum(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()},{len(content)}"


def pack(program):
    folder, base = os.path.split(program)
    match = re.fullmatch(r"rlock-([0-9.]+)-linux-(\w+)", base)
    if not match:
        sys.exit(f"wheel.py: '{base}' is not named rlock-VERSION-linux-ARCH")
    version, arch = match.groups()
    # A static program runs with any C library, so one wheel serves glibc and musl.
    platforms = [f"manylinux2014_{arch}", f"musllinux_1_1_{arch}"]
    with open(program, "rb") as file:
        content = file.read()
    with open(os.path.join(os.path.dirname(__file__), "..", "LICENSE"), "rb") as file:
        licence = file.read()
    info = f"rlock-{version}.dist-info"
    files = {
        f"rlock-{version}.data/scripts/rlock": content,
        f"{info}/METADATA": METADATA.format(version=version).encode(),
        f"{info}/WHEEL": WHEEL.format(version=version, tags="\n".join(f"Tag: py3-none-{name}" for name in platforms)).encode(),
        f"{info}/LICENSE": licence,
    }
    record = f"{info}/RECORD"
    files[record] = "".join([f"{name},{checksum(data)}\n" for name, data in files.items()] + [f"{record},,\n"]).encode()
    modified = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    wheel = os.path.join(folder, f"rlock-{version}-py3-none-{'.'.join(platforms)}.whl")
    with zipfile.ZipFile(wheel, "w") as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, modified)
            # 3: Unix, so that installers read the mode.
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith("/scripts/rlock") else 0o100644) << 16
            out.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    if len(sys.argv) != 2 or "SOURCE_DATE_EPOCH" not in os.environ:
        sys.exit(__doc__)
    pack(sys.argv[1])
