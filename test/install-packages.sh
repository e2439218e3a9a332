#!/bin/sh
# Installs the programs that tests start and npm does not have, as root on Debian 12. Their own services are not started.
set -eu
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update --quiet --quiet
exec apt-get install --quiet --quiet --yes --no-install-recommends \
  postgresql-15 pgbouncer redis-server rabbitmq-server nats-server \
  haproxy prometheus prometheus-alertmanager prometheus-blackbox-exporter docker-compose \
  chromium fonts-dejavu-core
