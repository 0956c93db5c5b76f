#!/usr/bin/env python3
"""Print the SBOM of a source archive of rlock: SPDX 2.3, as JSON. It depends only on the bytes of the archive.

    packaging/sbom.py FOLDER/rlock-VERSION.tar.gz
"""
import datetime
import hashlib
import json
import os
import sys
import tarfile

# The first line of LICENSE: the name that SPDX has for this licence.
LICENCES = {'MIT License': 'MIT'}

# The libraries of rlock: name, licence as SPDX names it, relationships to rlock, comment. No version: a build uses the
# versions that the machine has.
DEPENDENCIES = [
    ('hiredis', 'BSD-3-Clause', ['rlock DEPENDS_ON hiredis'],
     'The reader of replies and the formatter of commands. Its archive is linked, where there is one.'),
    ('argtable2', 'LGPL-2.0-or-later', ['rlock DEPENDS_ON argtable2'],
     'For the program alone, not for librlock. Its archive is linked, where there is one.'),
    ('OpenSSL', 'Apache-2.0', ['OpenSSL BUILD_DEPENDENCY_OF rlock', 'OpenSSL OPTIONAL_DEPENDENCY_OF rlock'],
     'Loaded at run time, for a connection with TLS; the headers are needed to build. TLS=linked links it.'),
    ('glibc', 'LGPL-2.1-or-later', ['rlock DEPENDS_ON glibc'],
     'The C library of Debian. The static programs of a release contain it, as they contain the other libraries.'),
]


def fail(why):
    sys.exit(f'sbom.py: {why}')


def checksums(content, *algorithms):
    return [{'algorithm': name, 'checksumValue': hashlib.new(name.lower(), content).hexdigest()} for name in algorithms]


def read_files(archive):
    """Return the files by their names within the directory of the archive, and the time of the latest file."""
    files, latest = {}, 0
    with tarfile.open(archive) as tar:
        for member in tar:
            latest = max(latest, member.mtime)
            if member.isfile():
                files[member.name.partition('/')[2]] = tar.extractfile(member).read()
            elif not member.isdir():
                fail(f"'{member.name}' is neither a file nor a directory")
    return files, latest


def licence_of(files):
    lines = files['LICENSE'].decode().splitlines()
    if lines[0] not in LICENCES:
        fail(f"LICENSE begins with '{lines[0]}', whose SPDX name is not known here")
    return LICENCES[lines[0]], next(line for line in lines if line.startswith('Copyright'))


def spdx_files(files):
    return [{
        'SPDXID': f'SPDXRef-File-{number}',
        'fileName': f'./{name}',
        'checksums': checksums(content, 'SHA1', 'SHA256'),
        'licenseConcluded': 'NOASSERTION',
        'copyrightText': 'NOASSERTION',
    } for number, (name, content) in enumerate(sorted(files.items()), 1)]


def verification_code(listed):
    """SPDX 2.3, 7.9: the SHA1 of the sorted SHA1s of all files."""
    return hashlib.sha1(''.join(sorted(file['checksums'][0]['checksumValue'] for file in listed)).encode()).hexdigest()


def relationship(element, kind, related):
    return {'spdxElementId': element, 'relationshipType': kind, 'relatedSpdxElement': related}


def package_id(name):
    return f'SPDXRef-Package-{name}'


def dependency(name, licence, _, comment):
    return {
        'SPDXID': package_id(name),
        'name': name,
        'downloadLocation': 'NOASSERTION',
        'filesAnalyzed': False,
        'licenseConcluded': 'NOASSERTION',
        'licenseDeclared': licence,
        'copyrightText': 'NOASSERTION',
        'comment': comment,
    }


def document(archive):
    files, latest = read_files(archive)
    licence, copyright_line = licence_of(files)
    listed = spdx_files(files)
    with open(archive, 'rb') as file:
        sums = checksums(file.read(), 'SHA256')
    base = os.path.basename(archive)
    stem = base.removesuffix('.tar.gz')
    name, _, version = stem.partition('-')
    related = [relationship('SPDXRef-DOCUMENT', 'DESCRIBES', package_id(name))]
    for _, _, relations, _ in DEPENDENCIES:
        for element, kind, other in (text.split() for text in relations):
            related.append(relationship(package_id(element), kind, package_id(other)))
    related += [relationship(package_id(name), 'CONTAINS', file['SPDXID']) for file in listed]
    return {
        'spdxVersion': 'SPDX-2.3',
        'dataLicense': 'CC0-1.0',
        'SPDXID': 'SPDXRef-DOCUMENT',
        'name': stem,
        'documentNamespace': f'https://rlock.invalid/spdx/{stem}-{sums[0]["checksumValue"]}',
        'creationInfo': {
            'created': datetime.datetime.fromtimestamp(latest, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
            'creators': [f'Tool: sbom.py-{version}'],
        },
        'packages': [{
            'SPDXID': package_id(name),
            'name': name,
            'versionInfo': version,
            'packageFileName': base,
            'primaryPackagePurpose': 'SOURCE',
            'supplier': 'NOASSERTION',
            'downloadLocation': 'NOASSERTION',
            'filesAnalyzed': True,
            'packageVerificationCode': {'packageVerificationCodeValue': verification_code(listed)},
            'checksums': sums,
            'licenseConcluded': licence,
            'licenseDeclared': licence,
            'copyrightText': copyright_line,
        }] + [dependency(*row) for row in DEPENDENCIES],
        'files': listed,
        'relationships': related,
    }


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(document(sys.argv[1]), sys.stdout, indent=1, ensure_ascii=False)
    print()
