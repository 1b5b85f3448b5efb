-- Files that were sent along. Their contents are in the attachment store, under the ids of these rows.

CREATE TABLE attachments (
  id           text COLLATE "C" PRIMARY KEY,
  org_id       text COLLATE "C" NOT NULL,
  email_id     text COLLATE "C" NOT NULL,
  position     smallint NOT NULL,
  filename     text NOT NULL CHECK (filename <> ''),
  content_type text NOT NULL CHECK (content_type <> ''),
  size         bigint NOT NULL CHECK (size >= 0),
  content_id   text COLLATE "C",
  look_at      timestamptz(3) NOT NULL,
  deleted_at   timestamptz(3),
  UNIQUE (email_id, position)
);
COMMENT ON TABLE attachments IS 'Metadata outlives the file, which is kept until 30 days after the email was sent or ended.';
COMMENT ON COLUMN attachments.size IS 'Bytes, decoded.';
COMMENT ON COLUMN attachments.look_at IS 'When the file may have expired; it never has before, as what it depends on moves later only.';
COMMENT ON COLUMN attachments.deleted_at IS 'When the file was deleted from the store.';
COMMENT ON INDEX attachments_pkey IS 'One file: its download, and whether what lies in the store belongs to anybody.';
COMMENT ON INDEX attachments_email_id_position_key IS 'The files of an email, in their order: shown, and read by the worker that sends.';
CREATE INDEX attachments_to_look_at ON attachments (look_at) WHERE deleted_at IS NULL;
COMMENT ON INDEX attachments_to_look_at IS 'Upkeep: files that may have expired.';
