-- An email that ends the processes which deliver it is set aside, so that it cannot stop the delivery of all others.

ALTER TABLE emails ADD COLUMN suspected_at timestamptz(3);
ALTER TABLE emails ADD COLUMN crashes smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN emails.suspected_at IS
  'When its content was about to be read, or an attempt was found whose worker had not recorded the end: it may have ended that worker, and is delivered by an isolated process. NULL again after it was delivered without harm.';
COMMENT ON COLUMN emails.crashes IS
  'How often an isolated process ended by itself just when it had begun to deliver this email. At 2 it is quarantined.';
