#!/bin/sh
# Creates the databases and roles of Sendwright and Temporal, or brings those of an earlier version up to date: docs/operating.md.
# Needs PGHOST and PGUSER, a superuser, and the secrets that docker-compose.yml hands it.
set -eu
secrets=${SECRETS_FOLDER:-/run/secrets}
PGPASSWORD="$(cat "$secrets/postgres_password")"
export PGPASSWORD

ask() {
  psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 "$@"
}

for database in sendwright temporal temporal_visibility; do
  if [ "$(ask --dbname postgres --command "SELECT 1 FROM pg_database WHERE datname = '$database'")" != 1 ]; then
    ask --dbname postgres --command "CREATE DATABASE $database"
  fi
  owner=temporal
  if [ $database = sendwright ]; then owner=migrate; fi
  PGOPTIONS="-c roles.owner=$owner -c roles.app_password=$(cat "$secrets/app_password") \
-c roles.migrate_password=$(cat "$secrets/migrate_password") -c roles.temporal_password=$(cat "$secrets/temporal_password")" \
    ask --dbname $database --file "${ROLES_SQL:-/roles.sql}"
done
# Each role reaches its own databases alone.
ask --dbname postgres --command 'REVOKE CONNECT ON DATABASE postgres FROM PUBLIC'
