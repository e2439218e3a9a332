#!/bin/sh
# Writes .env for docker-compose.yml: a random database password and a random pepper for API keys. Never replaces an existing
# file: with another password the database refuses connections, and with another pepper no API key works.
set -eu
cd "$(dirname "$0")/.."
umask 077
set -o noclobber
secret() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
cat > .env <<END
POSTGRES_PASSWORD=$(secret)
ONCEWARD_API_KEY_PEPPER=$(secret)
END
echo "Wrote $PWD/.env; keep it."
