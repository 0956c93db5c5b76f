#!/usr/bin/env python3
"""Check that the files and functions which documents name between backquotes exist, and the files which comments name.

references.py [FILE...]    by default the *.md for maintainers, and the source in C and Lua

`front.c` must be a file somewhere in the tree, `front.c: run` a name that this file defines, and `front_run` a word of the
code in any file of the source. NAME.lua and cmd_VERB.c are placeholders. The program prints a line for each missing name, and exits with 1. It
does not check what a sentence says about a file.
"""
import fnmatch
import functools
import re
import sys

sys.dont_write_bytecode = True
import tree  # noqa: E402

DOCUMENTS = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'tests/lib/README.md', 'tests/chaos/README.md']
FILE = r'[\w*./-]+\.(?:c|h|lua|sh|awk|py|bats|bash|pml|dict|md|conf|[1-9])'
TREE = list(tree.names())
STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
NESTED = re.compile(r'\{[^{}]*\}|\([^(){}]*\)|\[[^][(){}]*\]')


@functools.cache
def code(name):
    """The text of a file without its comments. A name that only a comment has left is stale there, too."""
    text = tree.text(name)
    if re.search(r'\.[ch]$', name):
        return re.sub(rf'/\*.*?\*/|({STRING})', lambda match: match[1] or ' ', text, flags=re.S)
    return re.sub(r'^\s*(?:--|#).*', '', text, flags=re.M)


@functools.cache
def words(name):
    return set(re.findall(r'\w+', code(name)))


@functools.cache
def definitions(name):
    """What a file defines outside of all functions, for a file in C or Lua; else all its words."""
    if name.endswith('.lua'):
        lists = re.findall(r'^(?:local )?(?:function )?([\w, ]+)', code(name), re.M)
        return set(re.findall(r'\w+', ' '.join(lists)))
    if not re.search(r'\.[ch]$', name):
        return words(name)
    outer, text = '', re.sub(rf'extern "C" \{{|{STRING}', '', code(name))
    found = set(re.findall(r'^\s*#define (\w+)|\(\*(?:const )?(\w+)', text, re.M))
    found |= {(constant, '') for body in re.findall(r'^enum[^;{]*\{([^}]*)\}', text, re.M) for constant in re.findall(r'\w+', body)}
    text = re.sub(r'^\s*#(?:[^\n]*\\\n)*[^\n]*', '', text, flags=re.M)
    while outer != text:
        outer, text = text, NESTED.sub('@', text)
    return {name for names in found for name in names} | set(re.findall(r'(\w+)\s*[@=;,]', text))


def files(pattern):
    return [name for name in TREE if fnmatch.fnmatch('/' + name, '*/' + pattern)]


def faults(text):
    """Yield (offset, message) for each missing name between backquotes in text."""
    source = [name for name in TREE if re.match(r'(cli|lib|lua|tests|tools)/', name)]
    for match in re.finditer(r'`([^`]+)`|^ {4}(.*)', text, re.M):
        if match[2]:
            yield from ((match.start(), f"no file '{name}'") for name in re.findall(r'[\w/]+\.(?:c|lua)\b', match[2]) if not files(name))
            continue
        piece = ' '.join(match[1].split())
        for file, names in re.findall(rf'(?<![\w./*-])({FILE})(?![\w-])(?:: ((?:\w+(?:, (?=\w+\b(?!\.)))?)+))?', piece):
            if re.search(r'^build/|(NAME|VERB)\.|^[\d.]+$', file):
                continue
            found = files(file)
            if not found:
                yield match.start(), f"no file '{file}'"
            for name in re.findall(r'\w+', names):
                if found and not any(name in definitions(each) for each in found):
                    yield match.start(), f"no '{name}' in {file}"
        if re.fullmatch(r'[\w/]+/', piece) and not piece.startswith('build/') and not any(f'/{piece}' in f'/{name}' for name in TREE):
            yield match.start(), f"no folder '{piece}'"
        if re.fullmatch(r'[a-z]\w*_\w*[a-z]', piece) and not any(piece in words(each) for each in source):
            yield match.start(), f"no '{piece}' in the source"


def comment_faults(text):
    for comment in re.finditer(r'/\*.*?\*/|^--[^\n]*', text, re.M | re.S):
        for file in re.finditer(r'(?<![\w./*-])[\w/]+\.(?:c|h|lua|bats|bash)\b', comment[0]):
            if not re.search(r'(NAME|VERB)\.', file[0]) and not files(file[0]):
                yield comment.start() + file.start(), f"no file '{file[0]}'"


missing = 0
for document in sys.argv[1:] or sorted(name for name in TREE if name in DOCUMENTS or re.search(r'\.(c|h|lua)$', name)):
    content = tree.text(document)
    for offset, fault in faults(content) if document.endswith('.md') else comment_faults(content):
        line = content.count('\n', 0, offset) + 1
        print(f'{document}:{line}: {fault}')
        missing = 1
sys.exit(missing)
