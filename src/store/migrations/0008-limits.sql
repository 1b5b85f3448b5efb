-- What a key may do, and how much an organization may send: rates by the second, a quota by the month.

ALTER TABLE api_keys
  ADD COLUMN name         text CHECK (name <> ''),
  ADD COLUMN expires_at   timestamptz(3),
  ADD COLUMN allowed_ips  text[],
  ADD COLUMN last_used_at timestamptz(3);
COMMENT ON COLUMN api_keys.expires_at IS 'From then on it is refused; NULL is never.';
COMMENT ON COLUMN api_keys.allowed_ips IS 'Addresses and CIDR ranges it may be used from; NULL is anywhere.';
COMMENT ON COLUMN api_keys.last_used_at IS 'To about a minute: noted in the background.';
CREATE INDEX api_keys_newest ON api_keys (org_id, created_at, id) WHERE revoked_at IS NULL;
COMMENT ON INDEX api_keys_newest IS 'The list of an organization''s keys, newest first.';

CREATE FUNCTION tell_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keys', OLD.id);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION tell_of_key IS
  'Tells the processes that have a key in memory that it changed, however it was changed; last_used_at is none of their business.';
CREATE TRIGGER api_keys_told
  AFTER DELETE OR UPDATE OF preset, domain_ids, sha256, expires_at, allowed_ips, revoked_at ON api_keys
  FOR EACH ROW EXECUTE FUNCTION tell_of_key();

CREATE UNLOGGED TABLE rate_debts (
  org_id text COLLATE "C" NOT NULL,
  bucket text COLLATE "C" NOT NULL CHECK (bucket IN ('requests', 'mails')),
  debt   double precision NOT NULL,
  at     timestamptz NOT NULL,
  PRIMARY KEY (org_id, bucket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE rate_debts IS
  'What organizations have taken out of their token buckets, as all processes together know it. Not logged: after a crash all buckets are full.';
COMMENT ON COLUMN rate_debts.debt IS 'Tokens that had not flowed back at the time in `at`; the bucket is full at 0.';
COMMENT ON INDEX rate_debts_pkey IS 'Processes add what they let through.';

ALTER TABLE organizations ADD COLUMN monthly_quota bigint CHECK (monthly_quota >= 0);
COMMENT ON COLUMN organizations.monthly_quota IS 'Emails it may have accepted in a calendar month (UTC); NULL is any number.';

CREATE TABLE monthly_usage (
  org_id text COLLATE "C" NOT NULL,
  month  date NOT NULL CHECK (extract(day FROM month) = 1),
  emails bigint NOT NULL CHECK (emails >= 0),
  PRIMARY KEY (org_id, month)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE monthly_usage IS
  'Emails accepted in a calendar month (UTC), of organizations with a quota; the others'' are not counted, since nobody should wait for a counter that nobody needs.';
COMMENT ON INDEX monthly_usage_pkey IS 'Accepting email of an organization with a quota.';
