-- Failed sign-ins that expire by themselves, and users whose address was confirmed.

CREATE TABLE sign_in_attempts (
  kind         text NOT NULL CHECK (kind IN ('network', 'pair', 'pair_day', 'email', 'browser', 'password')),
  subject      bytea NOT NULL CHECK (octet_length(subject) = 32),
  email_sha256 bytea CHECK (octet_length(email_sha256) = 32),
  attempts     integer NOT NULL CHECK (attempts >= 0),
  expires_at   timestamptz(3) NOT NULL,
  PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE sign_in_attempts IS 'Attempts to sign in that did not succeed, counted in windows of a fixed length; sign_in_failures is that of versions before.';
COMMENT ON COLUMN sign_in_attempts.kind IS 'network: IPv4 address or IPv6 /64; pair, pair_day: email and network; email: all unknown browsers; browser: email in a known browser; password: the current password of a signed-in user.';
COMMENT ON COLUMN sign_in_attempts.subject IS 'SHA-256 of what is counted; the text that was typed is not stored.';
COMMENT ON COLUMN sign_in_attempts.email_sha256 IS 'SHA-256 of the email that is counted; NULL for a network.';
COMMENT ON COLUMN sign_in_attempts.expires_at IS 'The end of the window; a later attempt starts a new one.';
COMMENT ON INDEX sign_in_attempts_pkey IS 'Counts an attempt.';
CREATE INDEX sign_in_attempts_by_end ON sign_in_attempts (expires_at);
COMMENT ON INDEX sign_in_attempts_by_end IS 'Deletes expired counts.';
CREATE INDEX sign_in_attempts_of_email ON sign_in_attempts (email_sha256) WHERE email_sha256 IS NOT NULL;
COMMENT ON INDEX sign_in_attempts_of_email IS 'Unlocks an email.';

ALTER TABLE users ADD COLUMN proved_at timestamptz(3);
COMMENT ON COLUMN users.proved_at IS 'When the operator confirmed who holds the address; NULL for a user created from an invitation link.';

-- on purpose: this table holds a few open invitations, so that an index is made in no time
CREATE INDEX invitations_of_email ON invitations (email);
COMMENT ON INDEX invitations_of_email IS 'The invitations of a signed-in user.';
-- on purpose: this table holds a few open invitations, so that an index is made in no time
CREATE INDEX invitations_by_end ON invitations (expires_at);
COMMENT ON INDEX invitations_by_end IS 'Deletes expired invitations.';
