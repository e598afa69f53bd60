#!/bin/bash
# Five first days, each from the pages that its user would read: journeys.sh [ROOT_DIR [WORDS]]. The commands are typed as they stand, see first_day.sh;
# WORDS choose journeys by name. Each fails when a command fails, or when install and first answer are three minutes of typing. docs/evidence/journeys.md
# has what was tried besides. Needs root, debootstrap, a mirror and PyPI (77 without).
set -u
here=$(cd "$(dirname "$0")" && pwd); work=; root=${1:-}; wanted=${2:-}; failed=0
[ -n "$root" ] || { work=$(mktemp -d); root=$work/root; }
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
journey() { # NAME PAGE...
    local name=$1 code; shift
    [[ $name == *"$wanted"* ]] || return 0
    echo "--- $name: $*"
    "$here/first_day.sh" "$root" "$@"; code=$?
    [ $code -ne 77 ] || exit 77
    [ $code -eq 0 ] || failed=1
}
how=docs/how-to
journey "hobbyist with a 3090" README.md docs/tutorials/size-a-deployment.md $how/quantization.md docs/explanation/memory-by-hand.md
journey "operator with compose, Helm and a log" README.md docs/tutorials/my-engine-died.md $how/read-a-log.md $how/check-deployments.md $how/fix-by-phase.md
journey "platform, CI and Prometheus" docs/install.md $how/check-deployments.md $how/compare-configurations.md $how/upgrade.md $how/fleet.md
journey "Python and notebooks" docs/install.md docs/reference/python.md $how/replay-allocations.md $how/read-a-report.md
journey "contributor" CONTRIBUTING.md docs/contributing/extend.md
exit $failed
