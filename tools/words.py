#!/usr/bin/env python3
"""Finds words that the project does not use: in what users read, in comments, and in names.

words.py [-t TABLE] [FILE...]    searches the FILEs instead of the whole tree
words.py --manual               checks that man/ has each phrase that the table requires

The table (tools/words.txt) lists the words, and the patterns that they replace; its head explains the format. The program
prints a line for each find, "file:line: 'phrase': say WORD", and exits with 1. Texts in which a test describes itself count
as comments. Texts that a test passes to a program, or expects from one, are not searched: the program determines them.
"""
import bisect
import itertools
import os
import re
import sys

sys.dont_write_bytecode = True
import tree  # noqa: E402

PLACES = {'users': 'u', 'comments': 'c', 'names': 'n', 'prose': 'uc', 'source': 'cn', 'all': 'ucn'}
FOR_USERS = re.compile(r'(README|CHANGELOG)\.md$|man/')
PROGRAM = re.compile(r'(.*/)?(cli|lib)/.*\.[ch]$')

C_TOKEN = re.compile(r'(?P<c>/\*.*?\*/|//[^\n]*)|(?P<u>"(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])*\'|(?P<n>[A-Za-z_]\w*)', re.S)
LUA_TOKEN = re.compile(r'(?P<c>(?:--[^\n]*\n[ \t]*)+)|(?P<q>"[^"\n]*"|\'[^\'\n]*\')|(?P<n>[A-Za-z_]\w*)')
SHELL_TOKEN = re.compile(
    r'(?P<c>(?:(?:(?<=\n)|\A)[ \t]*#[^\n]*\n)+|(?<=\s)# [^\n]*)|@test "(?P<t>[^\n]*)" \{'
    r'|(?:(?<=\n)|\A)[ \t]*(?P<n>[A-Za-z_]\w*)(?=\(\) )|\b(?P<v>[A-Za-z_]\w*)(?==)|(?<=\bfor )(?P<i>[A-Za-z_]\w*)(?= in\b|;)')
# Matches texts that tests print: when they fail or are skipped, or in a table of results. Also matches the docstrings of Python.
SAID_BY_SCRIPT = re.compile(
    r'\b(?:fail|skip|violated|wrong|complain|broke|must|ought|ought_by|not_under_valgrind|begin_scenario|end_scenario'
    r'|ends \S+ \S+|ends_well \S+) (?P<t>\'[^\'\n]*\'|"(?:\\.|[^"\\\n])*")|(?P<d>"""(?s:.*?)""")')
SAID_BY_CHECK = re.compile(r'\bCHECK\w*\((?:[^;"]|"(?:\\.|[^"\\\n])*")*,\s*(?P<t>"(?:\\.|[^"\\\n])*")(?:,[^;"]*)?\);')
MAN_MACRO = re.compile(r"^[.'](\\\".*|[A-Z][a-z]\b|[A-Z]{2}\b)", re.M)


class Span:
    """A text of one kind. Comment marks and line ends are replaced by blanks, so that a phrase may cross lines."""

    def __init__(self, kind, line, text):
        self.kind, self.line = kind, line
        self.ends = [m.start() for m in re.finditer('\n', text)]
        text = re.sub(r'^[ \t]*(/\*|\*/?|--+|#+!?|//)', lambda m: ' ' * len(m[0]), text, flags=re.M)
        self.text = text.replace('\n', ' ')

    def line_of(self, offset):
        return self.line + sum(end < offset for end in self.ends)


def tokens(pattern, text, kinds):
    line, at = 1, 0
    for match in pattern.finditer(text):
        kind = kinds.get(match.lastgroup)
        if not kind:
            continue
        start = match.start(match.lastgroup)
        line, at = line + text.count('\n', at, start), start
        word = match[match.lastgroup]
        yield Span(kind, line, word.replace('_', ' ') if kind == 'n' else word)


def spans(path, text):
    yield Span('n', 0, re.sub(r'[_/.]', ' ', path))
    if re.search(r'\.(c|h|pml|java)$', path):
        kinds = {'c': 'c', 'n': 'n', 'u': 'u' if PROGRAM.match(path) else None}
        if path == 'lib/rlock.h':
            kinds['c'] = 'u'
        yield from tokens(C_TOKEN, text, kinds)
        yield from tokens(SAID_BY_CHECK, text, {'t': 'c'})
    elif path.endswith('.lua'):
        yield from tokens(LUA_TOKEN, text, {'c': 'c', 'n': 'n'})
    elif path.startswith('man/'):
        yield Span('u', 1, MAN_MACRO.sub(lambda m: ' ' * len(m[0]), text))
    elif path.endswith('.md'):
        yield Span('u' if FOR_USERS.match(path) else 'c', 1, text)
    else:
        yield from tokens(SAID_BY_SCRIPT, text, {'t': 'c', 'd': 'c'})
        yield from tokens(SHELL_TOKEN, text, {'c': 'c', 't': 'c', 'n': 'n', 'v': 'n', 'i': 'n'})


def read_table(path):
    """Return [(word to use, letters of PLACES, pattern, exceptions)], and the phrases that the manual must have."""
    rows, phrases, word, exceptions = [], [], None, []
    for number, line in enumerate(open(path, encoding='utf-8'), 1):
        if not line.strip() or line.startswith('#'):
            continue
        if not line[0].isspace():
            word, exceptions = line.strip(), []
            continue
        place, pattern = line.split(None, 1)
        if place == 'but':
            pattern, _, reason = pattern.partition(' -- ')
            if not reason:
                sys.exit(f'{path}:{number}: an exception without its reason')
            exceptions.append(re.compile(pattern.strip(), re.I))
        elif place == 'like':
            continue
        elif place == 'manual':
            phrases += [phrase.strip() for phrase in pattern.split(';')]
        elif place in PLACES:
            # Let each blank of a pattern match several ones: in the text of the manual a removed macro leaves them.
            pattern = re.sub(r'(?<!\\) (?![^\[]*\])(?![+*?{])', ' +', pattern.strip())
            rows.append((word, PLACES[place], re.compile(pattern, re.I), exceptions))
        else:
            sys.exit(f"{path}:{number}: '{place}' is none of {', '.join(PLACES)}, but, manual, like")
    return rows, phrases


def finds(path, text, rows):
    lines = text.split('\n')
    parts = list(spans(path, text))
    for kind in 'ucn':
        chosen = [part for part in parts if part.kind == kind]
        if kind == 'n':
            chosen = list({part.text: part for part in reversed(chosen)}.values())
        # Join all spans of a kind to one text, and search that. Between the spans is a NUL, which no phrase matches.
        whole = '\0'.join(part.text for part in chosen)
        starts = list(itertools.accumulate((len(part.text) + 1 for part in chosen), initial=0))
        for word, places, pattern, exceptions in rows:
            if kind not in places:
                continue
            for match in pattern.finditer(whole):
                index = bisect.bisect(starts, match.start()) - 1
                line = chosen[index].line_of(match.start() - starts[index])
                shown = f'{path}:{lines[line - 1] if line else ""}'
                if not any(exception.search(shown) for exception in exceptions):
                    yield line or 1, match[0].strip(), word


def missing(phrases):
    pages = [name for name in sorted(tree.names()) if re.fullmatch(r'man/[^/]*\.[1-9]', name)]
    manual = '\0'.join(span.text for name in pages for span in spans(name, tree.text(name)) if span.kind == 'u')
    return [phrase for phrase in phrases if not re.search(r'\b' + phrase.replace(' ', ' +'), manual, re.I)]


def main(argv):
    table = os.path.join(tree.TOP, 'tools/words.txt')
    if argv[:1] == ['-t']:
        table, argv = argv[1], argv[2:]
    rows, phrases = read_table(table)
    if argv[:1] == ['--manual']:
        absent = missing(phrases)
        for phrase in absent:
            print(f"man/: no '{phrase}'")
        return 1 if absent else 0
    found = 0
    for name in argv or sorted(tree.names()):
        if re.search(r'\.(xml|dict)$|/corpus/|^LICENSE$|^\.git|tools/words\.(txt|py)$', name):
            continue
        for line, phrase, word in sorted(finds(name, tree.text(name), rows)):
            print(f"{name}:{line}: '{phrase}': say {word}")
            found = 1
    return found


sys.exit(main(sys.argv[1:]))
