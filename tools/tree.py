"""List the files of the source tree for the other programs of tools/, without build directories and .git."""
import os

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))


def names():
    for folder, folders, files in os.walk(TOP):
        folders[:] = [name for name in folders if not name.startswith(('build', '.git'))]
        yield from (os.path.relpath(os.path.join(folder, name), TOP) for name in files)


def text(name):
    with open(os.path.join(TOP, name), encoding='utf-8', errors='replace') as file:
        return file.read()
