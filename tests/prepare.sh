#!/usr/bin/env bash
# Installs what the tests need beside Python packages: PostgreSQL's server programs and Chromium.
# Where they cannot be installed this says so and fails; no test is skipped for want of them.
set -euo pipefail

have_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
have_chromium() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

missing=()
have_postgres || missing+=(postgresql)
have_chromium || missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "the tests need ${missing[*]}: install with your package manager, for example: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
