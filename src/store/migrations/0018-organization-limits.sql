-- Limits for each organization: a token bucket for domains, distinct tags, and the bytes of its attachments.
-- on purpose: tag_counts accepts every value that it accepted before, and 0.

ALTER TABLE rate_debts
  DROP CONSTRAINT rate_debts_bucket_check,
  ADD CONSTRAINT rate_debts_bucket_check CHECK (bucket IN ('requests', 'mails', 'domains'));

ALTER TABLE tag_counts
  DROP CONSTRAINT tag_counts_emails_check,
  ADD CONSTRAINT tag_counts_emails_check CHECK (emails >= 0) NOT VALID;
COMMENT ON TABLE tag_counts IS
  'How many emails carry each tag, together with tag_additions. A new tag is registered here with 0 emails before the first email that carries it is stored.';
COMMENT ON INDEX tag_counts_pkey IS
  'The list of tags by name and value; which of several tags is the rarest; how many distinct tags an organization has.';

CREATE TABLE file_reservations (
  id           text COLLATE "C" PRIMARY KEY,
  org_id       text COLLATE "C" NOT NULL,
  size_bytes   bigint NOT NULL CHECK (size_bytes >= 0),
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  abandoned_at timestamptz(3)
);
COMMENT ON TABLE file_reservations IS
  'Files that requests are about to put into the attachment store. A row is committed before its file is written and deleted in the transaction that stores the email; upkeep removes the files of rows that are left.';
COMMENT ON COLUMN file_reservations.id IS 'The id of the attachment.';
COMMENT ON COLUMN file_reservations.abandoned_at IS
  'When upkeep began to remove the file; an email that refers to it can no longer be stored.';
CREATE INDEX file_reservations_oldest ON file_reservations (created_at);
COMMENT ON INDEX file_reservations_pkey IS 'Storing an email with files; removing a file that was not used.';
COMMENT ON INDEX file_reservations_oldest IS 'Upkeep: files whose request ended without storing an email.';

CREATE TABLE stored_bytes (
  org_id text COLLATE "C" PRIMARY KEY,
  bytes  bigint NOT NULL CHECK (bytes >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE stored_bytes IS 'Bytes of the files of each organization that are in the attachment store or reserved.';
COMMENT ON INDEX stored_bytes_pkey IS 'Reserving and removing files.';

INSERT INTO stored_bytes (org_id, bytes)
SELECT org_id, sum(size) FROM attachments WHERE deleted_at IS NULL GROUP BY org_id;

COMMENT ON COLUMN webhook_endpoints.idle IS
  'Whether its workflow sleeps and must be woken for a new delivery. Writers of deliveries hold the row FOR KEY SHARE; it is marked idle under FOR UPDATE, which waits for none of them, so that none is missed.';
