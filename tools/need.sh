#!/usr/bin/env bash
# Makes sure that commands of the system are there: need.sh COMMAND=DEBIAN-PACKAGE …
# What is missing is installed by apt-get when we are root. What stays missing is named loudly, and is an
# error when CI=true: a test that could not run must not look like one that passed.
set -euo pipefail

missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null; }
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  install 2>/dev/null || { apt-get update -q >/dev/null && install; } || true
fi

absent=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null || absent+=("${pair%%=*} (Debian: ${pair#*=})")
done
[ ${#absent[@]} -eq 0 ] && exit 0
{
  echo "=================================================================="
  printf 'COULD NOT BE INSTALLED: %s\n' "${absent[@]}"
  echo "What needs it will not run."
  echo "=================================================================="
} >&2
[ "${CI:-}" != true ]
