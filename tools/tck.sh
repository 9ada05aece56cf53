#!/usr/bin/env bash
# Runs the protocol's conformance kit against our agent under test: tck.sh KIT [PROFILE…]
# KIT is a checkout of a2aproject/a2a-tck, branch 1.0-dev, outside the project. Its own environment is used:
# KIT/.venv, made here if it is missing. Profiles: basic minimal extension (minimal with an extension required).
# Our side runs with PYTHON, by default .venv/bin/python; STORE is the agent's store, by default memory:, and
# TRANSPORTS what the kit asks over, by default jsonrpc,http_json. The kit is of 1.0.0, and knows one card: so are the
# statuses and the card here, unless DRAGOMAN_SERVE_STATUSES and DRAGOMAN_SERVE_CARD say otherwise.
# Reports go to KIT/reports/PROFILE; the exit code says whether any failure is not in tests/tck/known.txt.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
[ -f "${1:-}/run_tck.py" ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
kit=$(cd "$1" && pwd)
shift
python=${PYTHON:-$here/.venv/bin/python}
export DRAGOMAN_SERVE_STATUSES=${DRAGOMAN_SERVE_STATUSES:-1.0.0} DRAGOMAN_SERVE_CARD=${DRAGOMAN_SERVE_CARD:-strict}
profiles=("$@")
[ ${#profiles[@]} -gt 0 ] || profiles=(basic minimal)

if [ ! -x "$kit/.venv/bin/python" ]; then
  "$python" -m venv "$kit/.venv"
fi
"$kit/.venv/bin/python" -c 'import tck, pytest' 2>/dev/null || (cd "$kit" && .venv/bin/python -m pip install --quiet -e .)

verdict=0
for profile in "${profiles[@]}"; do
  exec 3< <(PYTHONPATH="$here/src${PYTHONPATH:+:$PYTHONPATH}" exec "$python" "$here/tests/tck/agent.py" \
    --profile "$profile" --store "${STORE:-memory:}")
  agent=$!
  trap 'kill "$agent" 2>/dev/null || true' EXIT
  read -r -t 30 address <&3
  mkdir -p "$kit/reports/$profile"
  # With an extension required, the kit's other tests, which do not name it, could only be refused.
  only=(); [ "$profile" != extension ] || only=(-k ExtensionRequired)
  (cd "$kit" && .venv/bin/python -m pytest tests/compatibility/ "${only[@]}" -q --tb=short --color=no -rfx \
    --sut-host="$address" --transport="${TRANSPORTS:-jsonrpc,http_json}" \
    --compatibility-report="reports/$profile/compatibility" --junitxml="reports/$profile/junit.xml") \
    >"$kit/reports/$profile/log.txt" 2>&1 || true
  kill "$agent"
  exec 3<&-
  trap - EXIT
  "$python" "$here/tests/tck/count.py" "$kit/reports/$profile/junit.xml" "$profile" || verdict=1
done
exit $verdict
