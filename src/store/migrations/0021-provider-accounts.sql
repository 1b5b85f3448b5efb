-- Whose a chat-app number is, and provider accounts that cannot send now.

ALTER TABLE chat_numbers ADD COLUMN verified_by text CHECK (verified_by IN ('operator', 'provider'));
COMMENT ON COLUMN chat_numbers.verified_by IS
  'Who confirmed that the number belongs to the organization: the operator, or its provider when it was asked with the number''s own token; NULL for numbers that were connected before anybody was asked.';
-- Numbers that organizations connected themselves are in the audit log; the operator connected the others.
UPDATE chat_numbers SET verified_by = 'operator'
WHERE NOT EXISTS (
  SELECT FROM audit_log WHERE audit_log.target = chat_numbers.id AND audit_log.action = 'chatapp.numbers.create'
);

CREATE TABLE provider_pauses (
  provider      text NOT NULL CHECK (provider IN ('postmark', 'smtp', 'twilio', 'meta')),
  sender        text COLLATE "C" NOT NULL,
  reason        text NOT NULL,
  opened_at     timestamptz(3) NOT NULL DEFAULT now(),
  next_probe_at timestamptz(3) NOT NULL,
  probes        integer NOT NULL DEFAULT 0,
  PRIMARY KEY (provider, sender)
);
COMMENT ON TABLE provider_pauses IS
  'Provider accounts that refused to send: a wrong token, a suspended account, a sender that is not confirmed. While a row exists, messages wait; a row is deleted when a message was sent.';
COMMENT ON COLUMN provider_pauses.sender IS
  'Empty for the whole account; else the sender''s domain (email) or the id of the number (chat-app messages) that alone is refused.';
COMMENT ON COLUMN provider_pauses.reason IS 'The provider''s answer, as a sentence.';
COMMENT ON COLUMN provider_pauses.next_probe_at IS
  'When one message may be sent to find out whether the account works again. The worker that sends it moves this time first, so that workers never probe at the same time.';
COMMENT ON COLUMN provider_pauses.probes IS 'Failed probes so far; the time between them grows with it.';
COMMENT ON INDEX provider_pauses_pkey IS 'Claiming a message: which accounts are paused?';

-- NOT VALID: the rows that there are keep to the narrower list, and need not be read again.
ALTER TABLE attempts
  DROP CONSTRAINT attempts_outcome_check,
  ADD CONSTRAINT attempts_outcome_check CHECK (outcome IN ('sent', 'refused', 'again', 'unknown', 'lost', 'risked', 'account')) NOT VALID;
COMMENT ON COLUMN attempts.outcome IS
  'sent: taken. refused: for good. again: not taken, worth another try. account: not taken because of our account with the provider, which does not count as an attempt. unknown: it may have been taken. lost: asked, and it was not. risked: nobody could say, and it was sent again.';
