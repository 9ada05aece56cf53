#!/usr/bin/env bash
# Makes .venv with the first Python on the PATH that is new enough, or with the one named by PYTHON.
set -euo pipefail

for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # Debian keeps this part of Python in a package of its own.
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends "$(basename "$python")-venv" >/dev/null
  fi
  exec "$python" -m venv --clear .venv
done
echo "Dragoman needs Python 3.11 or later; none was found on the PATH." >&2
exit 1
