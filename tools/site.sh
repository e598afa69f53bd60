#!/bin/sh
# The documentation as pages: site.sh BUILD_DIR writes BUILD_DIR/site. mkdocs lives in an environment of its own, made once
# outside the checkout. Exit 77 when it cannot be had.
set -u
build=$1; home=${OOMSIGHT_SITE_VENV:-$HOME/.cache/oomsight/site}
if [ ! -d "$(echo "$home"/lib/python3*/site-packages/material)" ]; then
    python3 -m venv "$home" && "$home/bin/pip" install -q --no-cache-dir 'mkdocs-material>=9.5,<10' ||
        { rm -rf "$home"; echo "mkdocs could not be installed"; exit 77; }
fi
NO_MKDOCS_2_WARNING=1 exec "$home/bin/python" "$(dirname "$0")/site.py" "$build/cli/oomsight" "$build/site"
