"""A program that inherits LD_PRELOAD and makes no CUDA call sees and leaves no trace of it."""
import glob
import os
import subprocess
import sys
import tempfile

if os.environ.get("SANITIZED", "none") != "none":
    print("a sanitized library cannot be preloaded")
    sys.exit(77)
failed = 0
for major in (12, 13):
    folder = os.path.join(sys.argv[1], "cuda%d" % major)
    libraries = sorted(p for p in glob.glob(folder + "/lib*.so.*") if os.path.isfile(p))
    with tempfile.TemporaryDirectory() as scratch:
        segment = os.path.join(scratch, "segment")
        open(segment, "wb").close()
        env = dict(os.environ, LD_PRELOAD=":".join(libraries), LD_LIBRARY_PATH=folder, OOMSIGHT_SEGMENT=segment)
        for command in (["true"], ["sh", "-c", "echo hello | tr a-z A-Z"], ["cc", "--version"], [sys.executable, "-c", "print(1)"]):
            try:
                plain = subprocess.run(command, capture_output=True, check=False)
            except FileNotFoundError:
                continue
            loaded = subprocess.run(command, capture_output=True, check=False, env=env)
            if (plain.returncode, plain.stdout, plain.stderr) != (loaded.returncode, loaded.stdout, loaded.stderr):
                failed += 1
                print("disturbed:", command, loaded)
        if os.path.getsize(segment) or os.listdir(scratch) != ["segment"]:
            failed += 1
            print("something was written")
sys.exit(1 if failed else 0)
