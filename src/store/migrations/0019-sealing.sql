-- Content of emails is encrypted at rest: a data key per organization, wrapped with a key of SECRET_KEY.
-- on purpose: the check on email_bodies only widens, since sealed rows have neither html nor text

CREATE TABLE data_keys (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  version integer NOT NULL CHECK (version > 0),
  sealed bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, version)
);
COMMENT ON TABLE data_keys IS 'Keys that encrypt the content of an organization''s emails. Without its row, the content cannot be read.';
COMMENT ON COLUMN data_keys.version IS 'Named in each value that the key has encrypted.';
COMMENT ON COLUMN data_keys.sealed IS 'The key, 32 bytes, sealed with a key of SECRET_KEY.';
COMMENT ON INDEX data_keys_pkey IS 'The key of a value, and the latest key of an organization.';

ALTER TABLE email_bodies ADD COLUMN sealed bytea, ADD COLUMN body_bytes integer;
-- Ciphertext does not compress.
ALTER TABLE email_bodies ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE email_bodies DROP CONSTRAINT email_bodies_check,
  ADD CONSTRAINT email_bodies_check CHECK (sealed IS NOT NULL AND body_bytes > 0 OR coalesce(html, '') <> '' OR coalesce(text, '') <> '') NOT VALID;
COMMENT ON COLUMN email_bodies.sealed IS 'HTML and text, compressed and encrypted; html and text are NULL then. See domain/email/content.ts.';
COMMENT ON COLUMN email_bodies.body_bytes IS 'Bytes of HTML and text in UTF-8 before they were sealed; NULL where they are not.';

ALTER TABLE emails ADD COLUMN sealed_headers bytea;
COMMENT ON COLUMN emails.sealed_headers IS 'The custom headers, encrypted; headers is {} then. NULL where there are none.';
