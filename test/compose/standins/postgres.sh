#!/bin/sh
# Makes a cluster in an empty volume, then becomes the command.
set -eu
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres "$(dirname "$PGDATA")"
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  exec gosu postgres sh "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --auth-host scram-sha-256 --auth-local trust
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # On the socket alone: the health check must not see this server.
  pg_ctl -w -o "-c listen_addresses=''" start
  createdb --username "$POSTGRES_USER" "$POSTGRES_USER"
  pg_ctl -w -m fast stop
fi
exec "$@" -c listen_addresses='*'
