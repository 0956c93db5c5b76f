#!/usr/bin/env python3
"""Print the messages of the program and the library by source file: each string literal with at least two words.

Use it to read messages aloud, and to compare them before and after a change.
"""
import re
import sys

sys.dont_write_bytecode = True
import tree  # noqa: E402

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|^[ \t]*#[ \t]*include[^\n]*|\'(?:\\.|[^\'\\\n])*\'|"((?:\\.|[^"\\\n])*)"|(\s+|\\\n)|.', re.S | re.M)


def texts(source):
    """Yield the string literals of source. Adjacent literals are joined, also with a PRI... macro between them."""
    source = re.sub(r'"\s*PRI[a-z]\w*\s*"', '', source)
    text = None
    for match in TOKEN.finditer(source):
        if match[1] is not None:
            text = (text or '') + match[1]
        elif match[2] is None and not match[0].startswith(('/*', '//')):
            if text is not None:
                yield text
            text = None


for name in sorted(tree.names()):
    if not re.fullmatch(r'(cli|lib)/.*\.[ch]', name):
        continue
    found = [t for t in texts(tree.text(name)) if re.search(r"[A-Za-z']{2,}[^A-Za-z%]* +\S*[A-Za-z%]", t)]
    if found:
        print(f'\n{name}')
        for each in found:
            print('    ' + each)
