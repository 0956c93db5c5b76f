#!/usr/bin/env python3
"""Make the samples of rlock's output in the documents: the terminal of doc/terminal.svg and the samples of man/rlock.1.

samples.py --write    run rlock (RLOCK_BIN, build/rlock) on a private server, and write its output into these files
samples.py --check    print each sample whose words or columns differ from those of rlock, and exit with 1 if there is one

--check ignores times, ids and blanks. In the output of `check` it compares the subjects only: the rest depends on the
server and the machine. The host names and the address of the server are invented. rlock prints everything else, on a
terminal as wide as the document needs.
"""
import difflib
import fcntl
import html
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap

sys.dont_write_bytecode = True
import tree  # noqa: E402

RLOCK = os.path.abspath(os.environ.get('RLOCK_BIN', os.path.join(tree.TOP, 'build/rlock')))
PAGE, PICTURE = (os.path.join(tree.TOP, name) for name in ('man/rlock.1', 'doc/terminal.svg'))
PAGE_COLUMNS, PICTURE_COLUMNS, WAITER_COLUMNS = 72, 114, 132
HOLDER, WAITER = 'deploy@web2 pid 4711 report', 'deploy@web1 pid 815 report'


def fold(line, columns):
    """Break a line that is longer than columns at its blanks. A terminal would break it within a word."""
    return textwrap.wrap(line, columns, break_on_hyphens=False) if len(line) > columns else [line]


class Terminal:
    """A command that runs on a terminal with this many columns."""

    def __init__(self, columns, environment, folder, *command):
        self.columns = columns
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
            os.chdir(folder)
            os.execve(RLOCK, command, environment)
        self.bytes = b''

    def read(self):
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:
            piece = b''
        self.bytes += piece
        return piece

    def read_until(self, text):
        while text not in self.bytes and self.read():
            pass

    def lines(self, keeps=''):
        """Return the final screen of the command without colours, and the last line that has those words."""
        while self.read():
            pass
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        rows = []
        for line in self.bytes.decode().replace('\r\n', '\n').split('\n'):
            shown = ''
            for part in line.split('\r'):
                if keeps and keeps in shown and keeps not in part:
                    rows.append(shown)
                part = re.sub(r'^\x1b\[2?K', lambda match: '\0', part)
                shown = '' if part.startswith('\0') else shown
                part = re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', part.replace('\0', ''))
                shown = part + shown[len(part):]
            rows += fold(shown.rstrip(), self.columns)
        while rows and not rows[-1]:
            rows.pop()
        return rows


class Stage:
    """A server, the configuration of a machine, and a lock that another machine holds."""

    def __init__(self, folder):
        self.folder = folder
        self.socket = os.path.join(folder, 'redis.sock')
        self.server = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', self.socket, '--save', '', '--appendonly', 'yes',
             '--appendfsync', 'always', '--dir', folder], stdout=subprocess.PIPE, text=True)
        for line in self.server.stdout:
            if 'ready to accept' in line.lower():
                break
        for name in ('config', 'runtime'):
            os.mkdir(os.path.join(folder, name), 0o700)
        with open(os.path.join(folder, 'config/rlock.conf'), 'w', encoding='utf-8') as file:
            file.write(f'url = unix://{self.socket}\n')
        os.chmod(os.path.join(folder, 'config/rlock.conf'), 0o600)
        with open(os.path.join(folder, 'report'), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\necho "report: done"\n')
        os.chmod(os.path.join(folder, 'report'), 0o755)
        self.environment = {'PATH': os.environ['PATH'], 'HOME': folder, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm', 'NO_COLOR': '1',
                            'XDG_CONFIG_HOME': os.path.join(folder, 'config'), 'RLOCK_RUNTIME_DIR': os.path.join(folder, 'runtime')}

    def start(self, *arguments):
        """Start an rlock that holds its lock until the input of its command ends."""
        process = subprocess.Popen([RLOCK, *arguments, '--', 'sh', '-c', 'echo; read -r line'], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=self.environment, cwd=self.folder)
        process.stdout.readline()
        return process

    def terminal(self, columns, *arguments):
        return Terminal(columns, self.environment, self.folder, 'rlock', *arguments)

    def plain(self, lines):
        text = '\n'.join(lines).replace(f'unix://{self.socket}?db=0', 'redis://redis.example:6379/0')
        text = text.replace(f'unix://{self.socket}', 'redis://redis.example')
        return text.replace(os.path.join(self.folder, 'config'), '/etc').split('\n')

    def wait(self, columns):
        """Show a waiter in a queue: what status prints, and the lines of the waiter until its command has ended."""
        holder = self.start('fair', '--note', HOLDER, 'nightly')
        # Use a wide terminal, since a narrow one would cut the name of the holder.
        waiter = self.terminal(WAITER_COLUMNS, 'fair', '--note', WAITER, 'nightly', '--', './report')
        waiter.read_until(b'waiting for')
        status = self.terminal(columns, 'status', 'nightly').lines()
        holder.communicate(b'\n')
        return self.plain(status), [row for line in self.plain(waiter.lines('waiting for')) for row in fold(line, columns)]

    def table(self, columns):
        holders = [self.start('fair', '--note', HOLDER, 'nightly'), self.start('read', '--note', WAITER, 'catalog'),
                   self.start('sem', '--permits', '3', '--note', 'import@web3 pid 99 load', 'imports')]
        lines = self.terminal(columns, 'list').lines()
        for holder in holders:
            holder.communicate(b'\n')
        return self.plain(lines)

    def check(self, columns):
        # Use a wide terminal and fold the lines later, when /etc has replaced the real path, which is longer.
        lines = self.plain(self.terminal(250, 'check').lines())
        # Of the options keep only the URL. Of the lines about this machine keep the last one.
        options = lines.index('options') + 1
        lines = lines[:options] + [line for line in lines[options:] if re.match(r'\w+ +url ', line)] + ['...'] + lines[-1:]
        return [row for line in lines for row in fold(line, columns)]

    def close(self):
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()
        self.server.stdout.close()


def samples():
    folder = tempfile.mkdtemp()
    stage = Stage(folder)
    try:
        status, waiter = stage.wait(PAGE_COLUMNS)
        page = {'waiting': ['$ rlock fair nightly -- ./report'] + waiter,
                'status': ['$ rlock status nightly'] + status,
                'list': ['$ rlock list'] + stage.table(PAGE_COLUMNS),
                'check': ['$ rlock check'] + stage.check(PAGE_COLUMNS)}
        status, waiter = stage.wait(PICTURE_COLUMNS)
        return page, ['$ rlock status nightly'] + status + ['$ rlock fair nightly -- ./report'] + waiter
    finally:
        stage.close()
        shutil.rmtree(folder)


def picture(lines):
    width, height = 24 + PICTURE_COLUMNS * 7, 20 * len(lines) + 52
    rows = []
    for number, line in enumerate(lines):
        # Replace blanks by no-break spaces, since some viewers drop a blank at the start of a line.
        text = html.escape(line).replace(' ', chr(0xa0))
        colour = '#7ee787' if line.startswith('$') else '#e6edf3'
        rows.append(f'<text x="12" y="{52 + 20 * number}" fill="{colour}" textLength="{7 * len(line)}" '
                    f'lengthAdjust="spacingAndGlyphs">{text}</text>')
    return '\n'.join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        '<title>rlock status shows the holder and the queue of a lock; rlock fair waits for it, says so, and runs its command</title>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        *(f'<circle cx="{18 + 18 * number}" cy="17" r="5" fill="{colour}"/>' for number, colour in enumerate(('#ff5f57', '#febc2e', '#28c840'))),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="11.6" xml:space="preserve">',
        *rows, '</g>', '</svg>', ''])


def shown_in_picture(text):
    return [html.unescape(line.replace(chr(0xa0), ' ')) for line in re.findall(r'<text [^>]*>(.*)</text>', text)]


BLOCK = r'(\.\\" sample: {name}\n\.Bd [^\n]*\n)(.*?)(\.Ed)'


def to_roff(lines):
    return ''.join(re.sub(r"^(?=[.'])", r'\\&', line.replace('\\', '\\e').replace('-', '\\-')) + '\n' for line in lines)


def from_roff(text):
    return [re.sub(r'^\\&', '', line).replace('\\-', '-').replace('\\e', '\\') for line in text.splitlines()]


def shape(name, lines):
    """Reduce text to what must not change: remove times, ids and blanks."""
    if name == 'check':
        return sorted({' '.join(line.split()[1:2]) for line in lines if re.match(r'(ok|note|BAD) ', line)} - {'proc'})
    text = re.sub(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'ID', '\n'.join(lines))
    text = re.sub(r'\b[0-9.]+(ms|[smhd])\b', 'TIME', re.sub(r'(\b[0-9]+[mh])(?=[0-9]+s\b)', '', text))
    words = re.sub(r'[0-9]+', 'N', text).split()
    return sorted(words) if name == 'list' else words


def main(argv):
    page, terminal = samples()
    text = tree.text(PAGE)
    if argv == ['--write']:
        for name, lines in page.items():
            text, count = re.subn(BLOCK.format(name=name), lambda match: match[1] + to_roff(lines) + match[3], text, flags=re.S)
            if count != 1:
                sys.exit(f'man/rlock.1: no sample {name}')
        with open(PAGE, 'w', encoding='utf-8') as file:
            file.write(text)
        with open(PICTURE, 'w', encoding='utf-8') as file:
            file.write(picture(terminal))
        return 0
    if argv != ['--check']:
        sys.exit(__doc__)
    differs = 0
    for name, lines in [*page.items(), ('terminal.svg', terminal)]:
        if name in page:
            shown = re.search(BLOCK.format(name=name), text, re.S)
            shown = from_roff(shown[2]) if shown else []
        else:
            shown = shown_in_picture(tree.text(PICTURE))
        for line in difflib.unified_diff(shape(name, shown), shape(name, lines), f'{name} shown', f'{name} printed', lineterm='', n=0):
            print(line)
            differs = 1
    return differs


sys.exit(main(sys.argv[1:]))
