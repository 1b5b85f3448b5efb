-- Lists of emails by status, batch and tags in any combination, newest first; and how many emails carry each tag.

CREATE FUNCTION tag_key(org_id text, name text, value text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN encode(substr(sha256((org_id || ':' || name || ':' || value)::bytea), 1, 16), 'hex')::uuid;
COMMENT ON FUNCTION tag_key IS
  'The name of an organization''s tag in email_tags: short, however long the tag is. Its parts hold neither : nor \.';

CREATE FUNCTION tag_bits(tag uuid) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN 1::bigint << (get_byte(uuid_send(tag), 0) & 63)
       | 1::bigint << (get_byte(uuid_send(tag), 1) & 63)
       | 1::bigint << (get_byte(uuid_send(tag), 2) & 63);
COMMENT ON FUNCTION tag_bits IS
  'Up to three of 64 bits (a Bloom filter): an email has those of all its tags, so one that lacks any of them lacks the tag.';

CREATE TABLE email_tags (
  tag        uuid NOT NULL,
  created_at timestamptz(3) NOT NULL,
  email_id   text COLLATE "C" NOT NULL,
  tag_bits   bigint NOT NULL,
  PRIMARY KEY (tag, created_at, email_id) INCLUDE (tag_bits)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02);
COMMENT ON TABLE email_tags IS
  'One row for each tag of each email, written with the email. Vacuumed early, since an index answers alone only for pages that were.';
COMMENT ON COLUMN email_tags.tag IS 'tag_key() of the organization, the tag''s name and its value.';
COMMENT ON COLUMN email_tags.tag_bits IS 'As in emails.';
COMMENT ON INDEX email_tags_pkey IS
  'Lists by tag, newest first: by the rarest of the tags asked for; tag_bits tells which of its emails may have the others.';

CREATE TABLE tag_counts (
  org_id text COLLATE "C" NOT NULL,
  name   text COLLATE "C" NOT NULL,
  value  text COLLATE "C" NOT NULL,
  emails bigint NOT NULL CHECK (emails > 0),
  PRIMARY KEY (org_id, name, value)
);
COMMENT ON TABLE tag_counts IS 'How many emails carry each tag, together with tag_additions.';
COMMENT ON INDEX tag_counts_pkey IS 'The list of tags by name and value; and which of several tags is the rarest.';

CREATE TABLE tag_additions (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  name   text COLLATE "C" NOT NULL,
  value  text COLLATE "C" NOT NULL,
  emails integer NOT NULL CHECK (emails > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE tag_additions IS
  'What tag_counts does not hold yet. Rows are only added, so that requests with one tag do not wait for each other, and every second are folded into tag_counts.';
COMMENT ON INDEX tag_additions_pkey IS 'The oldest are folded first.';

ALTER TABLE emails ADD COLUMN tag_bits bigint NOT NULL DEFAULT 0;
ALTER TABLE emails SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
COMMENT ON COLUMN emails.tag_bits IS 'tag_bits() of all its tags together; 0 without tags.';

WITH tagged AS (
  SELECT email.id, email.created_at, tag_key(email.org_id, tag.name, tag.value) AS tag
  FROM emails AS email CROSS JOIN jsonb_to_recordset(email.tags) AS tag(name text, value text)
)
INSERT INTO email_tags (tag, created_at, email_id, tag_bits)
SELECT tag, created_at, id, bit_or(tag_bits(tag)) OVER (PARTITION BY id) FROM tagged;

UPDATE emails SET tag_bits = email_tags.tag_bits FROM email_tags WHERE email_tags.email_id = emails.id;

INSERT INTO tag_counts (org_id, name, value, emails)
SELECT email.org_id, tag.name, tag.value, count(*)
FROM emails AS email CROSS JOIN jsonb_to_recordset(email.tags) AS tag(name text, value text)
GROUP BY email.org_id, tag.name, tag.value;

CREATE INDEX emails_newest ON emails (org_id, created_at, id);
COMMENT ON INDEX emails_newest IS 'The list of all of an organization''s emails, newest first.';
CREATE INDEX emails_by_status ON emails (org_id, status, created_at, id) INCLUDE (tag_bits);
COMMENT ON INDEX emails_by_status IS
  'The list of an organization''s emails of one status, newest first; with tags, tag_bits tells which of them may have those.';
