-- Batches, and what an idempotency key stands for.

CREATE TABLE batches (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL,
  total      integer NOT NULL CHECK (total > 0),
  created_at timestamptz(3) NOT NULL
);
COMMENT ON INDEX batches_pkey IS 'One batch: shown, canceled.';
CREATE INDEX batches_newest ON batches (org_id, created_at, id);
COMMENT ON INDEX batches_newest IS 'The list of an organization''s batches, newest first.';

CREATE INDEX emails_of_batch ON emails (batch_id, created_at, id) WHERE batch_id IS NOT NULL;
COMMENT ON INDEX emails_of_batch IS 'The emails of a batch: listed, and canceled together.';

CREATE TABLE batch_moves (
  batch_id    text COLLATE "C" NOT NULL,
  from_status text,
  to_status   text NOT NULL,
  members     integer NOT NULL CHECK (members > 0),
  at          timestamptz(3) NOT NULL,
  folded      boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE batch_moves IS
  'How many members of a batch went from one status to another. Rows are only added, so that workers with members of one batch do not wait for each other; the sum is what the batch holds of each status.';
COMMENT ON COLUMN batch_moves.from_status IS 'NULL: from nowhere, when the batch was accepted.';
COMMENT ON COLUMN batch_moves.at IS 'When; of a row that stands for several, the latest.';
COMMENT ON COLUMN batch_moves.folded IS 'Whether the row stands for all that went before, between its two statuses.';
CREATE INDEX batch_moves_of_batch ON batch_moves (batch_id);
COMMENT ON INDEX batch_moves_of_batch IS 'Status and counts of a batch.';
CREATE INDEX batch_moves_unfolded ON batch_moves (at) WHERE NOT folded;
COMMENT ON INDEX batch_moves_unfolded IS 'Which batches have moves to fold, oldest first.';

CREATE TABLE idempotency_keys (
  org_id      text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL CHECK (key <> ''),
  fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
  answer      json NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, key)
);
COMMENT ON TABLE idempotency_keys IS
  'Answers to repeat: written in the transaction that stores what they speak of, so a row says that it happened. Good for 24 hours.';
COMMENT ON COLUMN idempotency_keys.fingerprint IS 'SHA-256 of the request: method, path and body by value.';
COMMENT ON INDEX idempotency_keys_pkey IS 'A request with a key: has it been answered?';
CREATE INDEX idempotency_keys_oldest ON idempotency_keys (created_at);
COMMENT ON INDEX idempotency_keys_oldest IS 'Upkeep: keys that have expired.';
