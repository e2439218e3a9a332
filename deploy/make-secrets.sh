#!/bin/sh
# Writes deploy/secrets/ for docker-compose.yml: random passwords, the URLs with them, and a random pepper for API keys. Never replaces
# existing secrets: with another password the database refuses connections, and with another pepper no API key works.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets || { echo "deploy/secrets/ exists and was not changed." >&2; exit 1; }
random() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
owner=$(random) service=$(random) redis=$(random)
cd secrets
printf %s "$owner" > postgres_password
printf %s "$service" > service_password
printf 'requirepass %s\n' "$redis" > redis.conf
printf 'redis://:%s@redis:6379' "$redis" > redis_url
printf 'postgresql://onceward:%s@postgres:5432/onceward' "$owner" > owner_url
printf 'postgresql://onceward_service:%s@postgres:5432/onceward' "$service" > service_url
printf %s "$(random)" > api_key_pepper
printf %s "$(random)" > grafana_password
# Containers read them as users of their own; on this machine only the directory's owner can reach them.
chmod 444 -- *
echo "Wrote $PWD; keep it."
