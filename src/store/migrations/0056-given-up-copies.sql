-- The copies of an ambiguous call that is not repeated fail, while others are sent. They may have been delivered, so the attempt
-- is not `again`; it needs no look-up, so it is not `unknown`. NOT VALID: existing rows satisfy the constraint before.
ALTER TABLE attempts
  DROP CONSTRAINT attempts_outcome_check,
  ADD CONSTRAINT attempts_outcome_check
    CHECK (outcome IN ('sent', 'refused', 'again', 'unknown', 'lost', 'risked', 'account', 'given_up')) NOT VALID;
COMMENT ON COLUMN attempts.outcome IS
  'sent: accepted; of a marketing email, at least one copy. refused: rejected permanently. again: not accepted, to be retried. account: refused because of our account; does not count as an attempt. unknown: ambiguous. lost: looked up, and not accepted. risked: it could not be looked up, and the message was sent again. given_up: it could not be looked up; its copies failed, and the others are sent.';
