#!/usr/bin/env python3
"""Runs commands alternately, so that other load of the machine affects all alike, and measures each run from before its start until
it has been reaped.

    spawn.py WARM-UPS ROUNDS LABEL [VARIABLE=VALUE...] COMMAND [ARG...] [::: LABEL ...]

Each round runs every command once, in random order, with /dev/null as standard input and output. Prints a line
"LABEL NANOSECONDS" for each run. Exits with 1 at the first failure.
"""

import os
import random
import shutil
import sys
import time


def read_tools(words):
    tools = []
    while words:
        end = words.index(":::") if ":::" in words else len(words)
        (label, *command), words = words[:end], words[end + 1:]
        environment = dict(os.environ)
        while "=" in command[0]:
            name, value = command.pop(0).split("=", 1)
            environment[name] = value
        # Look the programs up once, so that the search is in no measured time.
        tools.append((label, shutil.which(command[0]), command, environment))
    return tools


def main(warm_ups, rounds, *words):
    tools = read_tools(list(words))
    null_fd = os.open(os.devnull, os.O_RDWR)
    streams = [(os.POSIX_SPAWN_DUP2, null_fd, fd) for fd in (0, 1)]
    for turn in range(-int(warm_ups), int(rounds)):
        for label, path, command, environment in random.sample(tools, len(tools)):
            begin_ns = time.monotonic_ns()
            pid = os.posix_spawn(path, command, environment, file_actions=streams)
            _, status = os.waitpid(pid, 0)
            took_ns = time.monotonic_ns() - begin_ns
            if status != 0:
                sys.exit(f"spawn: {label} ended with {os.waitstatus_to_exitcode(status)}")
            if turn >= 0:
                print(label, took_ns)


main(*sys.argv[1:])
