#!/usr/bin/env bash
# Runs the conformance kit of 0.3 against our agent under test: tck-0.3.sh KIT [CATEGORY…]
# KIT is a checkout of a2aproject/a2a-tck, branch 0.3.x, outside the project; its environment is KIT/.venv, made here.
# Categories: mandatory (the default), capabilities, quality, features, transport-equivalence. TRANSPORTS is what it
# asks over, by default jsonrpc and rest, one after the other. The exit code is that of the kit.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
[ -f "${1:-}/run_tck.py" ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
kit=$(cd "$1" && pwd)
shift
python=${PYTHON:-$here/.venv/bin/python}
[ $# -gt 0 ] || set -- mandatory

if [ ! -x "$kit/.venv/bin/python" ]; then
  "$python" -m venv "$kit/.venv"
  (cd "$kit" && .venv/bin/python -m pip install --quiet -r requirements.txt -e .)
fi

exec 3< <(PYTHONPATH="$here/src" exec "$python" "$here/tests/tck/agent.py" --profile elder)
agent=$!
trap 'kill "$agent" 2>/dev/null || true' EXIT
read -r -t 30 address <&3

verdict=0
for category in "$@"; do
  for transport in ${TRANSPORTS:-jsonrpc rest}; do
    echo "$category over $transport:"
    (cd "$kit" && .venv/bin/python run_tck.py --sut-url "$address" --category "$category" --transports "$transport") \
      >"$kit/reports/$category-$transport.txt" 2>&1 || verdict=1
    grep -E '^FAILED|passed|failed' "$kit/reports/$category-$transport.txt" | sed 's/^/  /' || true
  done
done
exit $verdict
