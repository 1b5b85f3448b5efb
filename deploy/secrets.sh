#!/bin/sh
# Makes the files that docker-compose.yml reads secrets from, in the folder given or else in ./secrets. What is there
# already stays as it is. Files of providers and of OpenID Connect are made empty, which means "not set": write their tokens
# into them.
set -eu
folder=${1:-secrets}

# Containers read the files as a user of their own; the folder keeps everybody else of this machine out.
mkdir -p "$folder"
chmod 700 "$folder"
umask 022

random() {
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# keep NAME TEXT: in one step, so that a run that is cut short leaves no half of a secret.
keep() {
  if [ ! -e "$folder/$1" ]; then
    printf '%s' "$2" >"$folder/$1.new"
    mv "$folder/$1.new" "$folder/$1"
  fi
}

keep postgres_password "$(random 24)"
keep app_password "$(random 24)"
keep migrate_password "$(random 24)"
keep temporal_password "$(random 24)"
keep secret_key "$(random 32)"
keep database_url "postgres://sendwright_app:$(cat "$folder/app_password")@postgres:5432/sendwright"
keep migrate_database_url "postgres://sendwright_migrate:$(cat "$folder/migrate_password")@postgres:5432/sendwright"
for name in secret_key_old temporal_api_key postmark_server_token postmark_account_token postmark_webhook_password smtp_url \
  twilio_auth_token meta_access_token meta_app_secret meta_verify_token oidc_client_secret; do
  keep "$name" ''
done
