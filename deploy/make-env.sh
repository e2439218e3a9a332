#!/bin/sh
# Writes .env for docker-compose.yml: a database password and a pepper for API keys that nobody else has. Never replaces
# one: with another password the database stays shut, and with another pepper every API key stops working.
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
