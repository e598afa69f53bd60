#!/bin/sh
# The HTML report in a real browser, without network: its script runs to the end. replay_page.sh BINARY TRACE|PAGE.html
set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || exit 77
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
case $2 in
*.html) cp "$2" "$work/page.html" || exit 1 ;;
*) "$1" replay --format html --output "$work/page.html" "$2"; [ $? -le 1 ] || exit 1 ;;
esac
grep -Eq '(src|href)="?https?:' "$work/page.html" && { echo "the page asks the network for something"; exit 1; }
timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --virtual-time-budget=4000 \
    --dump-dom "file://$work/page.html" >"$work/dom" 2>/dev/null || exit 77
grep -q 'data-ready="1"' "$work/dom" || { echo "the script of the page did not run to its end"; exit 1; }
