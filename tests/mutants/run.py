#!/usr/bin/env python3
"""Breaks the source in places that matter, one after the other, and checks that a test finds each change (mutant).

run.py                 tries each mutant of mutants.txt; exits with 1 unless all are found
run.py --check         only checks that each mutant applies to the source

  MUTANTS        only those whose name or file matches this regular expression
  JOBS           mutants at the same time (1)
  MUTANTS_DIR    working directory, which keeps the logs and the table (build/mutants)
  CHECKED        the targets of make that tests need, with BUILD=build
  LIMIT          seconds for a file of tests (300)

Copies of the tree are made in TMPDIR or /tmp: paths of sockets must be short, and all users must reach them. The test that found
a mutant is also run without it; if it fails then as well, it has found nothing. The lines of mutants.txt:

  == FILE               the mutants that follow change this file
  NAME [TEST...] RULE   a mutant, the test files that must find it (names in tests/bats without .bats; unit: the unit tests), and
                        the rule that it breaks
  - TEXT                the text to replace, which must occur once in the file; several such lines are one text
  + TEXT                the new text; without such a line the old text is removed
"""
import collections
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
PR_SET_CHILD_SUBREAPER = 36
USELESS = ('does not apply', 'does not build')


def read_list():
    """All mutants by name, in the order of the list."""
    mutants, file, mutant = {}, None, None
    for number, line in enumerate((HERE / 'mutants.txt').read_text().splitlines(), 1):
        head = re.fullmatch(r'(\w[\w-]*) \[(.+)\] .+', line)
        if line.startswith('== '):
            file = line[3:]
        elif head and file and head[1] not in mutants:
            mutant = types.SimpleNamespace(name=head[1], file=file, tests=head[2].split(), old=[], new=[])
            mutants[mutant.name] = mutant
        elif mutant and line[:2] in ('- ', '+ '):
            (mutant.old if line[0] == '-' else mutant.new).append(line[2:])
        elif line and not line.startswith('# '):
            sys.exit(f'mutants.txt:{number}: not a line of a mutant, or the name of another one: {line}')
    for mutant in mutants.values():
        mutant.old, mutant.new = '\n'.join(mutant.old), '\n'.join(mutant.new)
        if not mutant.old:
            sys.exit(f'mutants.txt: {mutant.name} changes nothing')
    return mutants


def test_file(test):
    return 'build/unit-tests' if test == 'unit' else f'tests/bats/{test}.bats'


# ---- processes ----


def become_subreaper():
    """Become a subreaper: processes that a test leaves behind become children of this process, which kills them."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children():
    """Kill all children, until none is left: a child that ends leaves its own children to this process."""
    while True:
        for pid in pathlib.Path(f'/proc/self/task/{os.getpid()}/children').read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def run(command, log, tree, **environment):
    """Run a command with its output in the log. Returns the exit status."""
    with open(log, 'a', encoding='utf-8') as out:
        return subprocess.run(command, cwd=tree, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              stdout=out, stderr=subprocess.STDOUT, check=False).returncode


def make_flags():
    """The variables of the calling make, without its job server."""
    words = os.environ.get('MAKEFLAGS', '').split(' ')
    return ' '.join(word for word in words if not word.startswith(('-j', '--jobserver')))


def build(tree, log):
    targets = os.environ.get('CHECKED', 'all build/unit-tests').split()
    jobs = os.environ.get('JOBS') or '1'
    return run(['make', f'-j{jobs}', 'BUILD=build', *targets], log, tree, MAKEFLAGS=make_flags()) == 0


def run_tests(tree, log, test, only=''):
    """Whether all tests of the file pass, or those with this name. Stops at the first failure."""
    temporary = tree.parent / 't'
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    return run(['tests/run.sh', test_file(test)], log, tree, FILES='', RLOCK_BIN='build/rlock', TOOLS_DIR='build/tools',
               BATS=str(HERE / 'bats_until_failure'), BATS_PROGRAM=os.environ.get('BATS') or 'bats', ONLY=only,
               LIMIT=os.environ.get('LIMIT') or '300', TMPDIR=str(temporary)) == 0


# ---- one mutant ----


def why_not(mutant, tree):
    """Apply the mutant. None: done; else why it does not apply."""
    path = tree / mutant.file
    if not path.is_file():
        return f'there is no {mutant.file}'
    count = path.read_text().count(mutant.old)
    if count != 1:
        return 'its text is not in the file' if count == 0 else f'its text is in the file {count} times'
    return None


def apply(mutant, tree):
    path = tree / mutant.file
    text = path.read_text()
    if mutant.new:
        text = text.replace(mutant.old, mutant.new)
    else:
        # If whole lines are removed, also remove the line end, since a blank line would end a definition in lua/inc/.
        text = ('\n' + text).replace('\n' + mutant.old + '\n', '\n')[1:].replace(mutant.old, '')
    path.write_text(text)


def first_failure(test, log, start):
    """The name of the test that failed or took too long, from the log after start; '' if unknown."""
    with open(log, encoding='utf-8', errors='replace') as lines:
        lines.seek(start)
        text = lines.read()
    failed = re.search(r'^not ok \d+ (.*)$', text, re.M)
    if failed or test == 'unit':
        return failed[1] if failed else ''
    names = re.findall(r'^@test "(.*)" {$', (TOP / test_file(test)).read_text(), re.M)
    passed = len(re.findall(r'^ok \d', text, re.M))
    return names[passed].replace('\\', '') if passed < len(names) else ''


def exactly(name):
    """A bats pattern for this test name as it is written in the file, where some characters have a backslash."""
    return '^' + re.sub(r'[^\w ,:;-]', '.{1,2}', name) + '$' if name else ''


def try_mutant(mutant, tree, base, log):
    """The result, and the test that found the mutant, or the error. A test that finds it must pass without the mutant."""
    why = why_not(mutant, tree)
    if why:
        return 'does not apply', why
    apply(mutant, tree)
    if not build(tree, log):
        return 'does not build', str(log)
    by = ' '.join(mutant.tests)
    for test in mutant.tests:
        start = os.path.getsize(log)
        if run_tests(tree, log, test):
            continue
        name = first_failure(test, log, start)
        by = f'{test}: {name or "no test by name"}'
        if run_tests(base, log, test, exactly(name)):
            return 'found', by
        by += ' (which fails without the mutant, too)'
    return 'missed', by


def work_on(name, base, log):
    """Run in a child for each mutant: prints the result. base is the built tree without mutants."""
    mutant = read_list()[name]
    become_subreaper()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='rm-', ignore_cleanup_errors=True) as place:
        os.chmod(place, 0o755)
        try:
            tree = pathlib.Path(place, 'w')
            subprocess.run(['cp', '-a', base, tree], check=True)
            result, by = try_mutant(mutant, tree, base, log)
        finally:
            end_children()
    print(json.dumps([result, by, round(time.monotonic() - began)]))


# ---- all of them ----


def make_base(tree, log):
    """A built copy of the work tree, so that only one file must be compiled for a mutant."""
    built = pathlib.Path(os.environ.get('BUILD') or TOP / 'build').resolve()
    shutil.copytree(TOP, tree, symlinks=True, ignore=lambda path, names: {
        name for name in names if name == '.git' or pathlib.Path(path, name).resolve() == built})
    if not build(tree, log):
        sys.exit(f'the tree does not build without a mutant: {log}')


def work_in_process(mutant, base, logs):
    """Run work_on in a child process."""
    log = logs / f'{mutant.name}.log'
    log.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, __file__, '--one', mutant.name, base, log], stdout=subprocess.PIPE,
                          check=True)
    result, by, seconds = json.loads(done.stdout)
    print(f'{result:<14}  {seconds:>3} s  {mutant.name}', flush=True)
    return result, by


def print_table(mutants, results, path):
    """Print the table, and write it to a file."""
    width = max(len(mutant.name) for mutant in mutants)
    rows = [f'{result:<14}  {mutant.name:<{width}}  {mutant.file:<36}  {by}'
            for mutant, (result, by) in zip(mutants, results)]
    counts = collections.Counter(result for result, _ in results)
    total = f'{counts["found"]} found, {counts["missed"]} missed'
    total += ''.join(f', {counts[result]} {result}' for result in USELESS if counts[result])
    path.write_text('\n'.join([*rows, total]) + '\n')
    print('\n' + path.read_text(), end='')
    return counts['found'] == len(mutants)


def main():
    # Exit normally on SIGTERM, so that children are killed and the copies of the tree are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:2] == ['--one']:
        work_on(sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
        return 0
    if sys.argv[1:2] == ['--check']:
        stale = [f'{mutant.name}: {why}' for mutant in read_list().values() if (why := why_not(mutant, TOP))]
        sys.exit('\n'.join(stale) or 0)
    pattern = os.environ.get('MUTANTS') or ''
    mutants = [mutant for mutant in read_list().values() if re.search(pattern, mutant.name) or re.search(pattern, mutant.file)]
    if not mutants:
        sys.exit(f'no mutant matches {pattern}')
    logs = pathlib.Path(os.environ.get('MUTANTS_DIR') or TOP / 'build/mutants').resolve()
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='rm-', ignore_cleanup_errors=True) as place:
        os.chmod(place, 0o755)
        base, log = pathlib.Path(place, 'w'), logs / 'without.log'
        log.unlink(missing_ok=True)
        make_base(base, log)
        print(f'{len(mutants)} mutants', flush=True)
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get('JOBS') or '1')) as pool:
            results = list(pool.map(lambda mutant: work_in_process(mutant, base, logs), mutants))
    return 0 if print_table(mutants, results, logs / 'table') else 1


if __name__ == '__main__':
    sys.exit(main())
