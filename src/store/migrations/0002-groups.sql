-- Many waiting emails share one workflow: their rows in the outbox become one row that names them.
-- An email that must wait alone leaves its group by a row of its own.

ALTER TABLE outbox
  DROP CONSTRAINT outbox_action_check,
  ADD COLUMN group_of jsonb,
  ADD CONSTRAINT outbox_action_check CHECK (action IN ('start', 'leave', 'group', 'reschedule', 'cancel')),
  ADD CONSTRAINT outbox_group_of_check CHECK ((action = 'group') = (group_of IS NOT NULL));
COMMENT ON COLUMN outbox.message_id IS 'The email, or for a group the workflow that shall carry it.';
COMMENT ON COLUMN outbox.group_of IS 'Of a group: {members: [{id, version}], org_id, batch_id, bulk, due_at}.';
COMMENT ON COLUMN outbox.retry_at IS
  'Not before: set when Temporal refused this very row, and for an email that leaves its group between two attempts.';
CREATE INDEX outbox_groups ON outbox (id) WHERE action = 'group';
COMMENT ON INDEX outbox_groups IS 'The relay starts groups apart from what speaks of one email.';
