"""python -m oomsight: the command itself, with the same words and exit codes."""
import os
import sys

from ._command import command_path, environment


def main() -> None:
    path = command_path()
    os.execve(path, [path] + sys.argv[1:], environment())


if __name__ == "__main__":
    main()
