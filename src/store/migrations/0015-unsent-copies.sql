-- without a transaction
-- Upkeep looks for marketing emails with copies that were not sent and whose workflow is gone.

DROP INDEX CONCURRENTLY IF EXISTS email_recipients_unsent;

CREATE INDEX CONCURRENTLY email_recipients_unsent ON email_recipients (email_id) WHERE status = 'queued';

COMMENT ON INDEX email_recipients_unsent IS 'Copies that are still to be sent, for upkeep and after a restore.';
