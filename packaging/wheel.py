#!/usr/bin/env python3
"""Pack a static program of rlock as a Python wheel, so that pip, pipx and uv can install it. The wheel has no Python code.

    packaging/wheel.py FOLDER/rlock-VERSION-linux-ARCH

Write FOLDER/rlock-VERSION-py3-none-*.whl. The wheel also has the program's notices, FOLDER/rlock-VERSION-linux-ARCH.notices.
SOURCE_DATE_EPOCH is the time of all files in it.
"""
import base64
import hashlib
import os
import re
import sys
import time
import zipfile

METADATA = """\
Metadata-Version: 2.4
Name: rlock
Version: {version}
Summary: flock for a whole fleet: locks on a Redis or Valkey server
License-Expression: {licences}
License-File: LICENSE
License-File: NOTICES
Platform: Linux
Requires-Python: >=3.6
Description-Content-Type: text/markdown

`rlock` runs a command while it holds a lock on a Redis or Valkey server:
`rlock run NAME -- COMMAND`. This package has the static program and nothing else.
rlock is under the MIT licence. The file NOTICES has the licences of the libraries in the program.
"""

# The licences of the libraries that a program may contain, as SPDX names them, by the source packages of Debian.
LICENCES = {
    "argtable2": "LGPL-2.0-or-later",
    "cross-toolchain-base": "LGPL-2.1-or-later",  # glibc
    "glibc": "LGPL-2.1-or-later",
    "hiredis": "BSD-3-Clause",
    "libzstd": "BSD-3-Clause",
    "openssl": "Apache-2.0",
    "zlib": "Zlib",
}

WHEEL = """\
Wheel-Version: 1.0
Generator: wheel.py ({version})
Root-Is-Purelib: false
{tags}
"""


def checksum(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()},{len(content)}"


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.exit(f"wheel.py: cannot read '{path}': {error.strerror}")


def licence_expression(notices):
    names = re.findall(r"^-{72}\n([^=\n]+)=", notices.decode(), re.MULTILINE)
    unknown = [name for name in names if name not in LICENCES]
    if unknown:
        sys.exit(f"wheel.py: the SPDX name for the licence of {unknown[0]} is not known here")
    return " AND ".join(["MIT"] + sorted({LICENCES[name] for name in names}))


def pack(program):
    folder, base = os.path.split(program)
    match = re.fullmatch(r"rlock-([0-9.]+)-linux-(\w+)", base)
    if not match:
        sys.exit(f"wheel.py: '{base}' is not named rlock-VERSION-linux-ARCH")
    version, arch = match.groups()
    # A static program runs with any C library, so one wheel serves glibc and musl.
    platforms = [f"manylinux2014_{arch}", f"musllinux_1_1_{arch}"]
    notices = read(f"{program}.notices")
    metadata = METADATA.format(version=version, licences=licence_expression(notices))
    info = f"rlock-{version}.dist-info"
    files = {
        f"rlock-{version}.data/scripts/rlock": read(program),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": WHEEL.format(version=version, tags="\n".join(f"Tag: py3-none-{name}" for name in platforms)).encode(),
        f"{info}/licenses/LICENSE": read(os.path.join(os.path.dirname(__file__), "..", "LICENSE")),
        f"{info}/licenses/NOTICES": notices,
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
