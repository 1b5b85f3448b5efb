-- Emails are found by recipient, sender and words of the subject. The index is filled behind the intake, in blocks of emails that
-- follow each other in the order of lists; the newest emails, which make no whole block yet, are read one by one.

CREATE TABLE email_terms (
  term       uuid NOT NULL,
  created_at timestamptz(3) NOT NULL,
  email_id   text COLLATE "C" NOT NULL,
  email_ids  text[] COLLATE "C",
  bits       bytea,
  PRIMARY KEY (term, created_at, email_id),
  CHECK ((email_ids IS NULL) <> (bits IS NULL))
) PARTITION BY RANGE (email_id);
COMMENT ON TABLE email_terms IS
  'One row for each term of a block of emails, of which all are in one partition. Written in the background.';
COMMENT ON COLUMN email_terms.term IS 'Of the organization: an address or domain in a field, or a word of the subject; a hash.';
COMMENT ON COLUMN email_terms.created_at IS 'Of the oldest email of the block.';
COMMENT ON COLUMN email_terms.email_id IS 'The oldest email of the block.';
COMMENT ON COLUMN email_terms.email_ids IS 'The emails of the block that have the term, if they are few.';
COMMENT ON COLUMN email_terms.bits IS 'Otherwise one bit for each email of the block, oldest first, the lowest of a byte first.';
COMMENT ON INDEX email_terms_pkey IS 'Blocks with a term, newest first; whether a block has another term.';

-- The partitions are those of emails.
DO $$
DECLARE
  bounds record;
BEGIN
  CREATE TABLE email_terms_default (LIKE email_terms INCLUDING ALL);
  ALTER TABLE email_terms ATTACH PARTITION email_terms_default DEFAULT;
  FOR bounds IN SELECT * FROM partitions_of('emails') LOOP
    IF bounds.first_id IS NULL THEN
      EXECUTE format('CREATE TABLE %I (LIKE email_terms INCLUDING ALL)', 'email_terms_' || bounds.suffix);
      EXECUTE format('ALTER TABLE email_terms ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
                     'email_terms_' || bounds.suffix, bounds.end_id);
    ELSE
      PERFORM add_partition('email_terms', 'email_id', bounds.suffix, bounds.first_id, bounds.end_id);
    END IF;
  END LOOP;
END
$$;

CREATE TABLE search_ranges (
  org_id    text COLLATE "C" PRIMARY KEY REFERENCES organizations (id),
  newest_at timestamptz(3) NOT NULL,
  newest_id text COLLATE "C" NOT NULL,
  oldest_at timestamptz(3),
  oldest_id text COLLATE "C" NOT NULL
);
COMMENT ON TABLE search_ranges IS
  'The emails of each organization that email_terms holds: those from oldest to newest in the order of (created_at, id).';
COMMENT ON COLUMN search_ranges.oldest_at IS 'NULL once no older emails are left to index: emails from before the upgrade are indexed backwards.';
COMMENT ON INDEX search_ranges_pkey IS 'One organization: searched, indexed.';
