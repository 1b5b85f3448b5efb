#!/bin/sh
# Replaces the workers and the API by containers of the current image, settings and secrets, without an interruption.
# It ends at the first failure, before it has stopped an API that works, and can be repeated.
set -eu

for fleet in messages email-groups email chat webhooks upkeep; do
  docker compose up --detach --no-deps --wait --force-recreate "worker-$fleet"
done

remove_container() {
  docker stop "$1"
  docker rm "$1"
}

# Removes replicas of the API that are not healthy, such as the new ones of a run that failed. If no replica is healthy, they
# may be overloaded: they are all that may answer, and are left alone.
remove_unhealthy_replicas() {
  docker compose rm --force api
  replicas=$(docker compose ps --format '{{.ID}} {{.Health}}' api)
  if [ -n "$replicas" ] && ! echo "$replicas" | grep -q ' healthy$'; then
    echo "No replica of the API is healthy, so none was removed. See: docker compose logs api" >&2
    echo "This replaces all of them together: docker compose up --detach --force-recreate api" >&2
    exit 1
  fi
  for id in $(echo "$replicas" | awk '$2 != "healthy" { print $1 }'); do
    docker logs --tail 20 "$id"
    remove_container "$id"
  done
}

# The new replicas first, then the old ones go: one always answers.
remove_unhealthy_replicas
old=$(docker compose ps --quiet api)
count=$(echo "$old" | wc -w)
if ! docker compose up --detach --no-deps --no-recreate --scale "api=$((count + 2))" --wait api; then
  remove_unhealthy_replicas
  exit 1
fi
for id in $old; do
  remove_container "$id"
done
docker compose up --detach --no-deps --no-recreate api

# They read their configuration when they start.
for service in prometheus grafana; do
  if [ -n "$(docker compose --profile monitoring ps --quiet "$service")" ]; then
    docker compose --profile monitoring up --detach --no-deps --force-recreate "$service"
  fi
done
