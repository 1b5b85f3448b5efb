#!/bin/sh
# Replaces the workers and the API by containers of the present image, settings and secrets, without an interruption.
# It ends at the first failure, before it has stopped an API that works, and can be repeated.
set -eu

for fleet in messages email-groups email chat webhooks upkeep; do
  docker compose up --detach --no-deps --wait --force-recreate "worker-$fleet"
done

end() {
  docker stop "$1"
  docker rm "$1"
}

# Ends replicas of the API that are not healthy, such as the new ones of a run that failed.
end_failed() {
  docker compose rm --force api
  replicas=$(docker compose ps --format '{{.ID}} {{.Health}}' api)
  for id in $(echo "$replicas" | awk '$2 != "healthy" { print $1 }'); do
    docker logs --tail 20 "$id"
    end "$id"
  done
}

# The new replicas first, then the old ones go: one always answers.
end_failed
old=$(docker compose ps --quiet api)
count=$(echo "$old" | wc -w)
if ! docker compose up --detach --no-deps --no-recreate --scale "api=$((count + 2))" --wait api; then
  end_failed
  exit 1
fi
for id in $old; do
  end "$id"
done
docker compose up --detach --no-deps --no-recreate api
