# A text of which nothing can be told is neither healthy nor out of memory: empty, prose, a picture, random bytes, a document.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
: >"$work/empty"
echo "hello world" >"$work/prose"
head -c 3000 /dev/zero >"$work/zeros"
python3 -c "
import random, sys, zlib, struct
random.seed(3)
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
rows = b''.join(b'\0' + random.randbytes(192) for _ in range(64))
open(sys.argv[1] + '/picture', 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 64, 64, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
open(sys.argv[1] + '/random', 'wb').write(random.randbytes(200000) + b'\n&oom~ out of memory\n' + random.randbytes(100000))
" "$work"
cp "$root/README.md" "$work/document"
for name in empty prose zeros picture random document; do
    echo "-- $name"
    "$OOMSIGHT" explain "$work/$name" >"$work/out"; code=$?
    sed -n 1,2p "$work/out"; echo "exit $code"
    "$OOMSIGHT" explain --json "$work/$name" | grep -o '"is_oom": [a-z]*, "state": "[a-z_]*"'
    "$OOMSIGHT" explain --format md "$work/$name" | grep -o "^Nothing recognised"
    "$OOMSIGHT" explain --format html "$work/$name" | grep -o '"state": "[a-z_]*"'
done
echo "-- a log is still read"
printf 'INFO 01-01 00:00:00 [a.py:1] Application startup complete.\n' | "$OOMSIGHT" explain --json - | grep -o '"state": "[a-z_]*"'
