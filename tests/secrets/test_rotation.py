#!/usr/bin/env python3
"""Eight bundles of one's own are kept in a place. What others put there under such names pushes out none, and the one just made stays.
usage: test_rotation.py BINARY"""
import os
import subprocess
import sys
import tempfile

KEPT = 8
NOBODY = 65534
OUT_OF_MEMORY = "print('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.', flush=True)"
OLD, NEW = "20200101-000000.000000-1-", "99991231-000000.000000-1-"  # names before and behind every one that is made now


def folder(place, name, mode=0o700, owner=None):
    path = os.path.join(place, "oomsight-bundle-" + name)
    os.mkdir(path)
    with open(path + "/bundle.json", "w", encoding="utf-8") as file: file.write("{}")
    os.chmod(path, mode)
    if owner: os.chown(path, owner, owner)


def ours(place, names):
    for name in names: folder(place, name)


def open_to_others(place, names):
    for name in names: folder(place, name, mode=0o755)


def of_another(place, names):
    for name in names: folder(place, name, owner=NOBODY)


def files(place, names):
    for name in names:
        with open(os.path.join(place, "oomsight-bundle-" + name), "w", encoding="utf-8"): pass


def links(place, names):
    os.mkdir(place + "/elsewhere", 0o700)
    for name in names: os.symlink("elsewhere", os.path.join(place, "oomsight-bundle-" + name))


def names(time, count):
    return [time + "%02d" % i for i in range(count)]


def made(binary, place):
    """(what it says, what is there now)"""
    done = subprocess.run([binary, "run", "--", sys.executable, "-c", OUT_OF_MEMORY], env=dict(os.environ, OOMSIGHT_BUNDLE_DIR=place), capture_output=True, text=True, timeout=200, check=False)
    return done.stderr, sorted(name.removeprefix("oomsight-bundle-") for name in os.listdir(place) if name.startswith("oomsight-bundle-"))


def main():
    if os.environ.get("SANITIZED", "none") != "none":
        print("a sanitized library cannot be preloaded")
        return 77
    binary, bad, tried = os.path.abspath(sys.argv[1]), [], 0
    makers = [open_to_others, files, links] + ([of_another] if os.geteuid() == 0 else [])
    # (who made the others, names of theirs, names of ours, those of ours that stay)
    cases = [(maker, names(time, 3 * KEPT), names(OLD, 2), names(OLD, 2)) for maker in makers for time in (OLD + "z", NEW)]
    cases += [(maker, names(NEW, 3), names(OLD, KEPT + 3), names(OLD, KEPT + 3)[4:]) for maker in makers]
    cases += [(None, [], names(OLD, KEPT - 1), names(OLD, KEPT - 1)), (None, [], names(OLD, KEPT), names(OLD, KEPT)[1:]),
              (None, [], names(NEW, KEPT + 5), names(NEW, KEPT + 5)[6:]), (None, [], names(OLD, 2) + names(NEW, KEPT), names(NEW, KEPT)[1:])]
    for maker, theirs, own, stay in cases:
        with tempfile.TemporaryDirectory() as place:
            ours(place, own)
            if maker: maker(place, theirs)
            said, left = made(binary, place)
            tried += 1
            new = [name for name in left if name not in theirs + own]
            whole = len(new) == 1 and os.path.exists("%s/oomsight-bundle-%s/bundle.json" % (place, new[0]))
            if not whole or [name for name in left if name in own] != stay or [name for name in left if name in theirs] != sorted(theirs) or "incomplete" in said:
                bad.append("%s, %d and %d of ours: there is %s\n    %s" % (maker.__name__ if maker else "nobody else", len(theirs), len(own), left, said[-300:]))
    if os.geteuid() != 0: print("skip folders of another user: only root can make them")
    print("\n".join(bad))
    print("%d places, %d wrong" % (tried, len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
