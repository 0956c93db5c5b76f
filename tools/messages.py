#!/usr/bin/env python3
"""Lists what the program and the library say: each text of their sources that has two words, by source file.

messages.py            print the list
messages.py --check    compare it with tests/messages.txt; status 1, and the differences, when they differ
messages.py --write    write tests/messages.txt anew

The list is for reading aloud: a change of a message is a change of a line there, for reviewers to see.
"""
import difflib
import os
import re
import sys

sys.dont_write_bytecode = True
import tree  # noqa: E402

LIST = os.path.join(tree.TOP, 'tests/messages.txt')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|^[ \t]*#[ \t]*include[^\n]*|\'(?:\\.|[^\'\\\n])*\'|"((?:\\.|[^"\\\n])*)"|(\s+|\\\n)|.', re.S | re.M)


def texts(source):
    """The string literals, those side by side as one; a PRI... between two counts as a part of the text."""
    source = re.sub(r'"\s*PRI[a-z]\w*\s*"', '', source)
    text = None
    for match in TOKEN.finditer(source):
        if match[1] is not None:
            text = (text or '') + match[1]
        elif match[2] is None and not match[0].startswith(('/*', '//')):
            if text is not None:
                yield text
            text = None


def lines():
    head = 'What users and callers of the library can read: made by tools/messages.py --write, and compared by a test.'
    yield head
    for name in sorted(tree.names()):
        if not re.fullmatch(r'(cli|lib)/.*\.[ch]', name):
            continue
        found = [t for t in texts(tree.text(name)) if re.search(r"[A-Za-z']{2,}[^A-Za-z%]* +\S*[A-Za-z%]", t)]
        if found:
            yield ''
            yield name
            for each in found:
                yield '    ' + each


def main(argv):
    new = list(lines())
    if argv == ['--write']:
        with open(LIST, 'w', encoding='utf-8') as out:
            out.write('\n'.join(new) + '\n')
        return 0
    if argv != ['--check']:
        print('\n'.join(new))
        return 0
    with open(LIST, encoding='utf-8') as listed:
        old = listed.read().splitlines()
    differences = list(difflib.unified_diff(old, new, 'tests/messages.txt', 'the sources', lineterm='', n=1))
    if differences:
        print('\n'.join(differences))
        print('Read the new messages aloud, then: tools/messages.py --write')
    return 1 if differences else 0


sys.exit(main(sys.argv[1:]))
