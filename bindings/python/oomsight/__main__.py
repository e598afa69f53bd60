"""python -m oomsight: the command itself, with the same words and exit codes."""
import os
import sys

from ._command import command_path, environment


def main() -> None:
    path = command_path()
    if sys.platform == "win32":  # there another program cannot take the place of this one
        import subprocess

        sys.exit(subprocess.run([path] + sys.argv[1:], env=environment()).returncode)
    os.execve(path, [path] + sys.argv[1:], environment())


if __name__ == "__main__":
    main()
